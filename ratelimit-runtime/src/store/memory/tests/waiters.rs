//! Whatever happens to a queue of reservations, no slot moves back: with numbers that differ between the calls of a key, and
//! with a clock that steps back.

use std::pin::pin;
use std::slice;
use std::task::{Context, Waker};

use super::*;
use crate::algorithm::AlgorithmSpec;
use crate::base::rate::Rate;
use crate::policy::LeakyBucket;

const RUNS: u64 = 300;
const OPERATIONS: u64 = 300;

struct Call {
    charge: Charge,
    waiter: Arc<Waiter>,
    /// As it was last seen.
    slot: u64,
}

/// SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)) % bound
    }
}

/// Policies of one kind that share a key: a literal one, or several whose numbers are computed.
fn specs(random: &mut Random) -> Vec<AlgorithmSpec> {
    let is_literal = random.below(2) == 0;
    let kind = random.below(5);
    let period = Duration::from_millis(100 + random.below(900));
    let count = if is_literal { 1 } else { 1 + random.below(4) };
    let numbers = (0..count).map(|_| (1 + random.below(9), 4 + random.below(16)));
    let policy = |(permits, burst)| -> Policy {
        let bucket = TokenBucket::new(Rate::new(permits, period));
        match kind {
            0 => bucket.burst(burst).into(),
            1 => bucket.burst(burst).interval_refill().into(),
            2 => bucket.burst(burst).borrow().into(),
            3 => bucket.warmup(period * 10).into(),
            _ => LeakyBucket::new(burst * 5, Rate::new(permits, period)).queue().into(),
        }
    };
    let adjusted = |policy: Policy| if is_literal { policy } else { policy.computed() };
    numbers.map(|numbers| adjusted(policy(numbers)).spec().unwrap()).collect()
}

#[test]
fn slots_never_move_back() {
    let mut moved_up = 0;
    for run in 0..RUNS {
        let mut random = Random(run);
        let specs = specs(&mut random);
        let time = Arc::new(AtomicU64::new(1_000_000_000));
        let store = MemoryStore::new(10, Clock::manual(Arc::clone(&time)));
        let key = Key::raw("key");
        let mut calls: Vec<Call> = Vec::new();
        for _ in 0..OPERATIONS {
            let now = time.load(Ordering::SeqCst);
            let spec = specs[random.below(specs.len() as u64) as usize];
            let cost = 1 + random.below(4);
            let charge = Charge { key: key.clone(), spec, cost, wait: 20_000_000, shadow: false };
            match random.below(15) {
                0..5 => {
                    let (outcome, waiter) = store.reserve(slice::from_ref(&charge));
                    if let Some(waiter) = waiter {
                        assert_eq!(waiter.start(), now + outcome.wait());
                        calls.push(Call { charge, slot: waiter.start(), waiter });
                    }
                }
                5..7 if !calls.is_empty() => {
                    let Call { charge, waiter, .. } = calls.remove(random.below(calls.len() as u64) as usize);
                    store.leave(&[(charge, waiter.slot(0).charge_id)], &waiter);
                }
                7 => store.move_up(&[charge]),
                8 => _ = store.decide(&[Charge { cost: 0, ..charge }]),
                9 => store.refund(&key, &spec, cost, None),
                10 if random.below(5) == 0 => _ = store.reset(&key),
                11 => time.store(now + random.below(50_000), Ordering::SeqCst),
                12 => time.store(now + random.below(3_000_000), Ordering::SeqCst),
                13 if random.below(8) == 0 => time.store(now - random.below(2_000_000), Ordering::SeqCst),
                14 if random.below(5) == 0 => store.pause(&key, &spec, random.below(3_000_000)),
                _ => {}
            }
            for call in &mut calls {
                let slot = call.waiter.start();
                assert!(slot <= call.slot, "run {run}: from {} to {slot} by {specs:?}", call.slot);
                moved_up += u64::from(slot < call.slot);
                call.slot = slot;
            }
            // Sometimes those whose slots have come start.
            if random.below(3) == 0 {
                let now = time.load(Ordering::SeqCst);
                let (started, waiting) = calls.into_iter().partition(|call| call.slot <= now);
                calls = waiting;
                let started: Vec<Call> = started;
                started.into_iter().for_each(|call| store.move_up(&[call.charge]));
            }
        }
    }
    assert!(moved_up > 3_000, "{moved_up}");
}

/// All calls start on time, although a refund or reset moves up only the first.
#[test]
fn refund_and_reset_move_up_all_calls() {
    const START: u64 = 1_000_000_000;
    const SECOND: u64 = 1_000_000;
    const CALLS: u64 = 300;
    let spec = Policy::from(TokenBucket::per_second(1).burst(10).adjustable()).spec().unwrap();
    let one = Charge { key: Key::raw("awaited"), spec, cost: 1, wait: u64::MAX, shadow: false };
    let refund = |store: &MemoryStore| store.refund(&one.key, &spec, 7, None);
    let reset = |store: &MemoryStore| assert!(store.reset(&one.key));
    let overtake = |store: &MemoryStore| {
        refund(store);
        let spec = Policy::from(TokenBucket::per_second(1).burst(1000).adjustable()).spec().unwrap();
        assert_eq!(store.decide(&[Charge { spec, ..one.clone() }]).wait(), 0);
    };
    for (change, moved_up) in [(&refund as &dyn Fn(&MemoryStore), 7), (&reset, 10), (&overtake, 7)] {
        let time = Arc::new(AtomicU64::new(START));
        let store = MemoryStore::new(10, Clock::manual(Arc::clone(&time)));
        assert!(store.decide(&[Charge { cost: 10, ..one.clone() }]).admitted);
        // Each with the slot at which its timer ends.
        let reserve = |_| store.reserve(slice::from_ref(&one)).1.unwrap();
        let mut calls: Vec<_> = (0..CALLS).map(reserve).map(|waiter| (waiter.start(), waiter)).collect();
        change(&store);
        for second in 0..CALLS {
            time.store(START + second * SECOND, Ordering::SeqCst);
            calls.retain_mut(|(timer, waiter)| {
                if pin!(waiter.moved()).poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                    store.move_up(slice::from_ref(&one));
                    *timer = waiter.start();
                }
                if *timer > time.load(Ordering::SeqCst) {
                    return true;
                }
                store.move_up(slice::from_ref(&one));
                false
            });
            assert_eq!(calls.len() as u64, (CALLS - moved_up).saturating_sub(second));
        }
        assert!(!store.has_queues());
    }
}
