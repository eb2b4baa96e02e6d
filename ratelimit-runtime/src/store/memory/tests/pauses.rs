//! Keys that are paused while others charge them, or wait for them.

use std::slice;
use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::sliding_window::SlidingWindowSpec;
use crate::base::rate::Rate;

const START: u64 = 1_000_000_000;
const SECOND: u64 = 1_000_000;
const BURST: u64 = 20;

/// Policies of twenty permits, of which hardly any come back within a minute.
fn specs() -> [AlgorithmSpec; 5] {
    let hour = Duration::from_secs(3600);
    let rate = Rate::new(1, hour);
    let policies: [Policy; 3] = [
        TokenBucket::new(rate).burst(BURST).into(),
        TokenBucket::new(rate).burst(BURST).adjustable().into(),
        TokenBucket::new(rate).burst(BURST).settled().into(),
    ];
    let [bucket, adjustable, settled] = policies.map(|policy| policy.spec().unwrap());
    let period = 3600 * SECOND;
    let window = FixedWindowSpec { limit: BURST, period, aligned: false };
    let log = SlidingWindowSpec { limit: BURST, period, precision: 0 };
    [bucket, adjustable, settled, AlgorithmSpec::FixedWindow(window), AlgorithmSpec::SlidingWindow(log)]
}

/// Makes calls until told to end, and returns how many were admitted in all, and once the key was known to be paused.
fn call(store: &MemoryStore, charges: &[Charge], is_paused: &AtomicBool, has_ended: &AtomicBool) -> [u64; 2] {
    let mut admitted = [0; 2];
    while !has_ended.load(Ordering::SeqCst) {
        let was_paused = is_paused.load(Ordering::SeqCst);
        if store.decide(charges).admitted {
            admitted[0] += 1;
            admitted[1] += u64::from(was_paused);
        }
    }
    admitted
}

#[test]
fn no_thread_is_admitted_once_a_key_is_paused() {
    for round in 0..40 {
        for spec in specs() {
            let time = Arc::new(AtomicU64::new(START));
            let store = MemoryStore::new(10, Clock::manual(Arc::clone(&time)));
            let (is_paused, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
            let of = |key: &str, spec| Charge { key: Key::raw(key), spec, cost: 1, wait: 0, shadow: false };
            let both = [of("other", spec), of("key", spec)];
            let list = &both[usize::from(round % 2 == 0)..];
            let (before, after) = thread::scope(|scope| {
                let (store, is_paused, has_ended) = (&store, &is_paused, &has_ended);
                let callers = [(); 2].map(|()| scope.spawn(move || call(store, list, is_paused, has_ended)));
                if round % 3 > 0 {
                    thread::yield_now();
                }
                store.pause(&both[1].key, &spec, 30 * SECOND);
                is_paused.store(true, Ordering::SeqCst);
                for second in 1..30 {
                    time.store(START + second * SECOND, Ordering::SeqCst);
                    thread::yield_now();
                }
                has_ended.store(true, Ordering::SeqCst);
                let all = callers.map(|caller| caller.join().unwrap());
                (all[0][0] + all[1][0], all[0][1] + all[1][1])
            });
            assert_eq!(after, 0, "{spec:?}");
            assert!(before <= BURST, "{spec:?}");
            // One permit of a bucket, and what is left of a window.
            time.store(START + 30 * SECOND, Ordering::SeqCst);
            let left = (0..=BURST).take_while(|_| store.decide(&both[1..]).admitted).count() as u64;
            let is_window = matches!(spec, AlgorithmSpec::FixedWindow(_) | AlgorithmSpec::SlidingWindow(_));
            let expected = if is_window { BURST - before } else { u64::from(before < BURST) };
            assert_eq!(left, expected, "{before} before by {spec:?}");
        }
    }
}

#[test]
fn pauses_of_several_threads_last_as_long_as_the_longest() {
    for spec in specs() {
        let time = Arc::new(AtomicU64::new(START));
        let store = MemoryStore::new(10, Clock::manual(Arc::clone(&time)));
        let one = Charge { key: Key::raw("key"), spec, cost: 1, wait: 0, shadow: false };
        thread::scope(|scope| {
            for thread in 0..4 {
                let (store, one) = (&store, &one);
                scope.spawn(move || {
                    for second in 1..=20 {
                        store.pause(&one.key, &spec, (second + thread) * SECOND);
                        assert!(!store.decide(slice::from_ref(one)).admitted);
                    }
                });
            }
        });
        let outcome = store.decide(slice::from_ref(&one));
        let pause = outcome.pause(0).unwrap();
        assert_eq!((pause.until, pause.moved), (START + 23 * SECOND, 23 * SECOND), "{spec:?}");
        time.store(START + 23 * SECOND, Ordering::SeqCst);
        assert!(store.decide(slice::from_ref(&one)).admitted, "{spec:?}");
    }
}

#[test]
fn calls_that_wait_keep_their_slots_and_learn_by_how_much_they_move() {
    let rate = Rate::new(1, Duration::from_secs(1));
    let kinds = [GcraKind::TokenBucket, GcraKind::Meter, GcraKind::Queue, GcraKind::Borrowing(rate)];
    for kind in kinds {
        let capacity = if kind == GcraKind::Queue { 9 * SECOND } else { SECOND };
        let spec = AlgorithmSpec::Gcra(GcraSpec { kind, interval: SECOND, capacity });
        let time = Arc::new(AtomicU64::new(START));
        let store = MemoryStore::new(10, Clock::manual(Arc::clone(&time)));
        let charge = Charge { key: Key::raw("key"), spec, cost: 1, wait: 20 * SECOND, shadow: false };
        let one = slice::from_ref(&charge);
        let mut waiters: Vec<_> = (0..6).filter_map(|_| store.reserve(one).1).collect();
        assert!(store.has_queues());
        store.pause(&charge.key, &spec, 2 * SECOND);
        assert!(!store.has_queues());
        let starts: Vec<u64> = waiters.iter().map(|waiter| waiter.start() - START).collect();
        // A bucket that lends has one slot more.
        let lent = u64::from(matches!(kind, GcraKind::Borrowing(_)));
        assert_eq!(starts, (1..6 - lent).map(|second| second * SECOND).collect::<Vec<_>>(), "{kind:?}");
        let peek = || store.decide(&[Charge { cost: 0, wait: 0, ..charge.clone() }]);
        assert_eq!(peek().pause(0).map(|pause| pause.moved), Some(2 * SECOND), "{kind:?}");
        // One more waits behind them, in the pause, and moves up for nobody.
        let (outcome, last) = store.reserve(one);
        assert_eq!(outcome.wait(), (8 - lent) * SECOND, "{kind:?}");
        let first = waiters.remove(0);
        store.leave(&[(charge.clone(), first.slot(0).charge_id)], &first);
        let last = last.unwrap();
        assert_eq!(last.start(), START + (8 - lent) * SECOND, "{kind:?}");
        // After the pause another leaves, whose receipt is from before.
        time.store(START + 3 * SECOND, Ordering::SeqCst);
        let before = peek().verdicts[0].reset_after;
        let next = waiters.remove(0);
        store.leave(&[(charge.clone(), next.slot(0).charge_id)], &next);
        assert_eq!(peek().verdicts[0].reset_after, before, "{kind:?}");
        // The last one's receipt is good.
        store.leave(&[(charge.clone(), last.slot(0).charge_id)], &last);
        assert_eq!(peek().verdicts[0].reset_after, before - SECOND, "{kind:?}");
    }
}
