//! Charges that start before others that wait for their key. Their refunds are those of a key without a queue.

use std::pin::pin;
use std::slice;
use std::task::{Context, Waker};

use super::waiters::Random;
use super::*;
use crate::algorithm::{AlgorithmSpec, ChargeId};

const START: u64 = 1_000_000_000;
const SECOND: u64 = 1_000_000;

/// A key with an empty bucket of one permit per second and ten at most, for which a call of cost 10 waits ten seconds.
struct AwaitedKey {
    time: Arc<AtomicU64>,
    store: MemoryStore,
    charge_id: ChargeId,
    /// `None` if the store does not queue.
    waiter: Option<Arc<Waiter>>,
}

fn spec(burst: u64) -> AlgorithmSpec {
    Policy::from(TokenBucket::per_second(1).burst(burst).adjustable()).spec().unwrap()
}

fn waiting() -> Charge {
    Charge { spec: spec(10), cost: 10, wait: 60 * SECOND, ..charge("awaited", 1) }
}

/// A charge of so large a bucket that it need not wait.
fn at_once(cost: u64) -> Charge {
    Charge { spec: spec(100), cost, wait: 0, ..waiting() }
}

impl AwaitedKey {
    fn new(queues: bool) -> Self {
        let time = Arc::new(AtomicU64::new(START));
        let store = MemoryStore::new(10, Clock::manual(Arc::clone(&time)));
        assert!(store.decide(&[Charge { wait: 0, ..waiting() }]).admitted);
        let (outcome, waiter) =
            if queues { store.reserve(&[waiting()]) } else { (store.decide(&[waiting()]), None) };
        assert_eq!((outcome.wait(), store.has_queues()), (10 * SECOND, queues));
        AwaitedKey { time, store, charge_id: outcome.verdicts[0].charge_id, waiter }
    }

    /// Makes a charge at once, which ends the queue. Returns its receipt.
    fn charge(&self, charge: &Charge) -> ChargeId {
        let outcome = self.store.decide(slice::from_ref(charge));
        assert_eq!((outcome.admitted, outcome.wait(), self.store.has_queues()), (true, 0, false));
        outcome.verdicts[0].charge_id
    }

    fn refund(&self, charge: &Charge, charge_id: ChargeId) {
        self.store.refund(&charge.key, &charge.spec, charge.cost, Some(charge_id));
    }

    /// Drops the waiting call.
    fn leave(&self) {
        match &self.waiter {
            Some(waiter) => self.store.leave(&[(waiting(), waiter.slot(0).charge_id)], waiter),
            None => self.refund(&waiting(), self.charge_id),
        }
    }

    /// Returns what the large bucket has left, so many seconds after the start.
    fn remaining(&self, seconds: u64) -> u64 {
        self.time.store(START + seconds * SECOND, Ordering::SeqCst);
        self.store.decide(&[at_once(0)]).verdicts[0].remaining
    }
}

#[test]
fn charge_made_at_once_is_refunded() {
    for key in [false, true].map(AwaitedKey::new) {
        let charge_id = key.charge(&at_once(50));
        assert_eq!(key.remaining(0), 30);
        key.refund(&at_once(50), charge_id);
        assert_eq!((key.remaining(0), key.remaining(15)), (80, 95));
    }
}

#[test]
fn charge_made_at_once_is_refunded_after_the_waiting_call_has_left() {
    for key in [false, true].map(AwaitedKey::new) {
        let charge_id = key.charge(&at_once(50));
        key.leave();
        assert_eq!(key.remaining(0), 40);
        key.refund(&at_once(50), charge_id);
        assert_eq!(key.remaining(0), 90);
    }
}

#[test]
fn late_refund_gives_back_no_later_charge() {
    for key in [false, true].map(AwaitedKey::new) {
        let charge_id = key.charge(&at_once(5));
        key.leave();
        // All that was charged so far has refilled when the last charge is refunded.
        let _ = key.remaining(16);
        let _ = key.charge(&at_once(20));
        let before = key.remaining(18);
        key.refund(&at_once(5), charge_id);
        assert_eq!((before, key.remaining(18)), (82, 82));
    }
}

#[test]
fn mirrored_charge_is_refunded() {
    for key in [false, true].map(AwaitedKey::new) {
        let (charge, charge_id) = key.store.mirror(&at_once(10), true).unwrap();
        assert_eq!(key.remaining(0), 70);
        key.refund(&charge, charge_id);
        assert_eq!(key.remaining(0), 80);
    }
}

#[test]
fn shadow_is_refunded() {
    for key in [false, true].map(AwaitedKey::new) {
        let shadow = Charge { shadow: true, ..waiting() };
        let charge_id = key.charge(&shadow);
        assert_eq!(key.remaining(0), 70);
        key.refund(&shadow, charge_id);
        assert_eq!(key.remaining(0), 80);
    }
}

#[test]
fn debt_is_behind_the_waiting_call() {
    for key in [false, true].map(AwaitedKey::new) {
        assert!(!key.store.debit(&waiting().key, &spec(10), 5));
        assert_eq!((key.store.has_queues(), key.remaining(0)), (false, 75));
        // The part of its charge after its slot comes back.
        key.leave();
        assert_eq!((key.remaining(0), key.remaining(15)), (85, 100));
    }
}

#[test]
fn waiting_calls_keep_their_slots() {
    let key = AwaitedKey::new(true);
    let one = Charge { cost: 1, wait: 1 << 40, ..waiting() };
    let waiters: Vec<_> = (0..100).filter_map(|_| key.store.reserve(slice::from_ref(&one)).1).collect();
    let last = &waiters[99];
    assert_eq!(last.start(), START + 110 * SECOND);
    // They move up before the queue ends, and are told.
    key.leave();
    key.charge(&Charge { spec: spec(1000), ..at_once(1) });
    assert_eq!(last.start(), START + 100 * SECOND);
    assert!(pin!(last.moved()).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    // From then on they stay where they are.
    key.store.leave(&[(one.clone(), waiters[0].slot(0).charge_id)], &waiters[0]);
    key.store.move_up(&[one]);
    assert_eq!(last.start(), START + 100 * SECOND);
}

#[test]
fn call_that_starts_before_others_is_refunded_after_they_have_left() {
    for key in [false, true].map(AwaitedKey::new) {
        let sooner = Charge { spec: spec(15), cost: 1, ..waiting() };
        let (outcome, waiter) = key.store.reserve(slice::from_ref(&sooner));
        assert_eq!(outcome.wait(), 6 * SECOND);
        assert_eq!(key.remaining(7), 86);
        key.store.move_up(slice::from_ref(&sooner));
        let charge_id = waiter.unwrap().slot(0).charge_id;
        key.leave();
        assert_eq!(key.remaining(7), 96);
        key.refund(&sooner, charge_id);
        assert_eq!(key.remaining(7), 97);
    }
}

#[test]
fn calls_that_move_up_start_in_order() {
    let key = AwaitedKey::new(true);
    let [first, second, third] = [(1, 1), (10, 9), (11, 1)].map(|(burst, cost)| {
        let charge = Charge { spec: spec(burst), cost, ..waiting() };
        let (outcome, waiter) = key.store.reserve(slice::from_ref(&charge));
        assert_eq!(outcome.wait(), 20 * SECOND);
        (charge, waiter.unwrap())
    });
    // The third would have to wait for only eleven seconds, and would start before the first.
    let (charge, waiter) = second;
    key.store.leave(&[(charge, waiter.slot(0).charge_id)], &waiter);
    key.store.move_up(&[waiting()]);
    assert_eq!([first, third].map(|(_, waiter)| waiter.start()), [START + 20 * SECOND; 2]);
}

/// A call of the random schedules.
struct Call {
    charge: Charge,
    slot: u64,
    charge_id: ChargeId,
    /// `None` once it has started.
    waiter: Option<Arc<Waiter>>,
}

impl Call {
    /// Starts it if it waits and its slot has come.
    fn start(&mut self, store: &MemoryStore, now: u64) {
        if let Some(waiter) = self.waiter.take_if(|waiter| waiter.start() <= now) {
            store.move_up(slice::from_ref(&self.charge));
            (self.slot, self.charge_id) = (waiter.start(), waiter.slot(0).charge_id);
        }
    }

    fn slot(&self) -> u64 {
        self.waiter.as_ref().map_or(self.slot, |waiter| waiter.start())
    }
}

#[test]
fn refunds_keep_the_bound() {
    const MOST: u64 = 12;
    let mut ended = 0;
    for run in 0..3000 {
        let mut random = Random(run);
        let time = Arc::new(AtomicU64::new(START));
        let store = MemoryStore::new(10, Clock::manual(Arc::clone(&time)));
        let mut calls: Vec<Call> = Vec::new();
        for _ in 0..150 {
            let (now, had_queues) = (time.load(Ordering::SeqCst), store.has_queues());
            match random.below(8) {
                0..4 => {
                    let burst = if random.below(2) == 0 { MOST } else { 1 + random.below(4) };
                    let cost = 1 + random.below(burst);
                    let charge = Charge { spec: spec(burst), cost, wait: 20 * SECOND, ..waiting() };
                    let (outcome, waiter) = store.reserve(slice::from_ref(&charge));
                    ended += u64::from(had_queues && !store.has_queues());
                    if outcome.admitted {
                        let charge_id = outcome.verdicts[0].charge_id;
                        calls.push(Call { charge, slot: now + outcome.wait(), charge_id, waiter });
                    }
                }
                4..6 if !calls.is_empty() => {
                    // One of the last that were made. It is dropped while it waits, or else refunded.
                    let index = calls.len() - 1 - random.below(calls.len().min(4) as u64) as usize;
                    let Call { charge, charge_id, waiter, .. } = calls.remove(index);
                    match waiter {
                        Some(waiter) => store.leave(&[(charge, charge_id)], &waiter),
                        None => store.refund(&charge.key, &charge.spec, charge.cost, Some(charge_id)),
                    }
                }
                6 => calls.iter_mut().for_each(|call| call.start(&store, now)),
                _ => time.store(now + random.below(8 * SECOND), Ordering::SeqCst),
            }
        }
        let mut served: Vec<_> = calls.iter().map(|call| (call.slot(), call.charge.cost)).collect();
        served.sort_unstable();
        for first in 0..served.len() {
            let mut total = 0;
            for (slot, cost) in &served[first..] {
                total += cost;
                let elapsed = slot - served[first].0;
                assert!(total * SECOND <= MOST * SECOND + elapsed, "run {run}: {total} in {elapsed} µs");
            }
        }
    }
    assert!(ended > 3000, "{ended}");
}
