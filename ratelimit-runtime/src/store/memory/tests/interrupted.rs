//! Decisions during which other calls change the same keys, right after the clock is read.

use std::slice;

use super::*;
use crate::algorithm::fixed_window::FixedWindowSpec;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::holds::HoldsSpec;
use crate::base::clock::AFTER_READING;

struct Interrupted {
    store: MemoryStore,
    time: Arc<AtomicU64>,
}

impl Interrupted {
    fn new() -> Arc<Self> {
        let time = Arc::new(AtomicU64::new(10));
        let store = MemoryStore::new(100, Clock::manual(Arc::clone(&time)));
        Arc::new(Interrupted { store, time })
    }

    fn decide(&self, charge: &Charge) -> Outcome {
        self.store.decide(slice::from_ref(charge))
    }

    /// Decides at a time. Right after the clock is read, it is another time, at which others do something.
    fn decide_interrupted(
        self: &Arc<Self>,
        charges: &[Charge],
        at: u64,
        later: u64,
        others: impl FnOnce(&Self) + 'static,
    ) -> Outcome {
        self.interrupt(at, later, others, |store| store.decide(charges))
    }

    /// Does something in the same way.
    fn interrupt<T>(
        self: &Arc<Self>,
        at: u64,
        later: u64,
        others: impl FnOnce(&Self) + 'static,
        act: impl FnOnce(&MemoryStore) -> T,
    ) -> T {
        self.time.store(at, Ordering::SeqCst);
        let interrupted = Arc::clone(self);
        AFTER_READING.set(Some(Box::new(move || {
            interrupted.time.store(later, Ordering::SeqCst);
            others(&interrupted);
        })));
        let result = act(&self.store);
        assert!(AFTER_READING.take().is_none(), "nothing has read the clock");
        result
    }
}

fn bucket(key: &str, interval: u64, burst: u64) -> Charge {
    let kind = GcraKind::TokenBucket;
    let spec = AlgorithmSpec::Gcra(GcraSpec { kind, interval, capacity: interval * burst });
    Charge { spec, ..charge(key, 1) }
}

fn window(key: &str, limit: u64, period: u64) -> Charge {
    let spec = AlgorithmSpec::FixedWindow(FixedWindowSpec { limit, period, aligned: false });
    Charge { spec, ..charge(key, 1) }
}

#[test]
fn bucket_is_decided_no_earlier_than_its_last_charge() {
    let calls = Interrupted::new();
    let charge = bucket("b", 100, 2);
    assert!(calls.decide(&charge).admitted);
    let other = charge.clone();
    let outcome =
        calls.decide_interrupted(&[charge], 100, 150, move |calls| assert!(calls.decide(&other).admitted));
    assert!(outcome.admitted, "a bucket of two has one left at 150");
    assert_eq!((outcome.now, outcome.verdicts[0].remaining), (150, 0));
}

#[test]
fn refused_bucket_is_decided_no_earlier_than_its_last_refund() {
    let calls = Interrupted::new();
    let charge = bucket("b", 100, 3);
    let first = calls.decide(&Charge { cost: 3, ..charge.clone() });
    let refunded = charge.clone();
    let outcome = calls.decide_interrupted(&[charge], 20, 150, move |calls| {
        let Charge { key, spec, .. } = &refunded;
        calls.store.refund(key, spec, 3, Some(first.verdicts[0].charge_id));
    });
    assert!(outcome.admitted && outcome.now == 150, "{outcome:?}");
}

#[test]
fn window_counts_charges_that_come_after_its_time() {
    let calls = Interrupted::new();
    let charge = window("w", 5, 1_000_000);
    assert!(calls.decide(&charge).admitted);
    let other = charge.clone();
    let outcome = calls.decide_interrupted(slice::from_ref(&charge), 100, 150, move |calls| {
        assert_eq!(calls.decide(&other).verdicts[0].reset_after, 999_860);
    });
    assert_eq!((outcome.now, outcome.verdicts[0].remaining), (100, 2));
    assert_eq!(outcome.verdicts[0].reset_after, 999_910);
    assert_eq!(calls.decide(&charge).verdicts[0].remaining, 1);
}

#[test]
fn window_that_was_opened_or_emptied_later_is_decided_later() {
    let semaphore = Charge { spec: AlgorithmSpec::Holds(HoldsSpec { max: 5 }), ..charge("w", 1) };
    let aligned = FixedWindowSpec { limit: 5, period: 1000, aligned: true };
    let aligned = Charge { spec: AlgorithmSpec::FixedWindow(aligned), ..charge("w", 1) };
    type Others = fn(&Interrupted, &Charge, ChargeId);
    let reset: Others = |calls, charge, _| assert!(calls.store.reset(&charge.key));
    let refund: Others = |calls, Charge { key, spec, cost, .. }, id| {
        calls.store.refund(key, spec, *cost, Some(id));
    };
    let open: Others = |calls, charge, _| assert!(calls.decide(charge).admitted);
    for (charge, at, others, left) in [
        (window("w", 5, 1000), 100, reset, 4),
        (window("w", 5, 1000), 100, refund, 4),
        (window("w", 5, 50), 100, open, 3),
        (aligned.clone(), 100, reset, 4),
        (aligned.clone(), 100, refund, 4),
        (aligned, 990, open, 3),
        (semaphore, 100, refund, 4),
    ] {
        let calls = Interrupted::new();
        let id = calls.decide(&charge).verdicts[0].charge_id;
        let other = charge.clone();
        let outcome = calls.decide_interrupted(slice::from_ref(&charge), at, at + 50, move |calls| {
            others(calls, &other, id)
        });
        let Verdict { remaining, charge_id, .. } = outcome.verdicts[0];
        assert_eq!((outcome.now, remaining, charge_id.at), (at + 50, left, at + 50), "{charge:?}");
    }
}

#[test]
fn semaphore_that_was_reset_later_is_decided_as_another_one() {
    let calls = Interrupted::new();
    let charge = Charge { spec: AlgorithmSpec::Holds(HoldsSpec { max: 2 }), ..charge("w", 1) };
    let id = calls.decide(&charge).verdicts[0].charge_id;
    let other = charge.clone();
    let outcome = calls.decide_interrupted(slice::from_ref(&charge), 10, 150, move |calls| {
        assert!(calls.store.reset(&other.key));
    });
    assert!(outcome.admitted && outcome.verdicts[0].charge_id.at > id.at, "{outcome:?}");
    calls.store.refund(&charge.key, &charge.spec, 1, Some(id));
    let admitted = [(); 2].map(|()| calls.decide(&charge).admitted);
    assert_eq!(admitted, [true, false], "the hold of before the reset frees none");
}

#[test]
fn refund_is_no_earlier_than_the_last_hold() {
    let calls = Interrupted::new();
    let charge = Charge { spec: AlgorithmSpec::Holds(HoldsSpec { max: 2 }), ..charge("w", 1) };
    let id = calls.decide(&charge).verdicts[0].charge_id;
    let other = charge.clone();
    let others = move |calls: &Interrupted| {
        assert!(calls.decide(&other).admitted);
        calls.store.refund(&other.key, &other.spec, 1, None);
    };
    calls.interrupt(10, 150, others, |store| store.refund(&charge.key, &charge.spec, 1, Some(id)));
    assert_eq!(calls.decide(&charge).verdicts[0].charge_id.at, 150);
}

#[test]
fn stack_is_decided_no_earlier_than_the_refund_that_admits_it() {
    let (long, short, bucket) = (window("w", 2, 1_000_000), window("s", 2, 500), bucket("b", 100, 1));
    for (beside, left) in [(bucket, 0), (short, 1)] {
        let calls = Interrupted::new();
        assert!(calls.decide(&beside).admitted);
        let first = calls.decide(&long);
        assert!(first.admitted && calls.decide(&long).admitted);
        let refunded = long.clone();
        let outcome = calls.decide_interrupted(&[long.clone(), beside.clone()], 200, 1000, move |calls| {
            assert!(!calls.decide(&refunded).admitted);
            let Charge { key, spec, .. } = &refunded;
            calls.store.refund(key, spec, 1, Some(first.verdicts[0].charge_id));
        });
        assert!(outcome.admitted && outcome.now == 1000, "{outcome:?}");
        let admitted = [(); 2].map(|()| calls.decide(&beside).admitted);
        assert_eq!(admitted.into_iter().filter(|admitted| *admitted).count(), left);
    }
}

#[test]
fn refused_stack_is_decided_at_one_time() {
    let calls = Interrupted::new();
    let (window, bucket) = (window("w", 5, 1_000_000), bucket("b", 100, 1));
    assert!(calls.decide(&window).admitted && calls.decide(&bucket).admitted);
    let other = window.clone();
    let outcome = calls.decide_interrupted(&[window, bucket], 100, 1500, move |calls| {
        assert!(calls.decide(&other).admitted);
    });
    assert!(outcome.admitted && outcome.now == 1500, "{outcome:?}");
    assert_eq!(outcome.verdicts[0].remaining, 2);
}

#[test]
fn word_that_is_the_same_again_is_noticed() {
    let calls = Interrupted::new();
    let charge = window("w", 1000, 1_000_000);
    assert!(calls.decide(&charge).admitted);
    let other = charge.clone();
    // As many charges as a slot has versions.
    let outcome = calls.decide_interrupted(&[charge], 100, 100, move |calls| {
        (0..256).for_each(|_| assert!(calls.decide(&other).admitted));
    });
    assert_eq!(outcome.verdicts[0].remaining, 1000 - 258);
}

#[test]
fn clock_that_steps_back_takes_one_call_off_the_fast_lane() {
    for cost in [1, 5] {
        let calls = Interrupted::new();
        let charge = Charge { cost, ..bucket("b", 100, 5) };
        let is_fast =
            || calls.store.decide_plain_list(slice::from_ref(&charge), &mut Outcome::default()).is_some();
        calls.time.store(10_000, Ordering::SeqCst);
        calls.decide(&Charge { cost: 5, ..charge.clone() });
        for back in [5_000, 4_990] {
            calls.time.store(back, Ordering::SeqCst);
            assert!(!is_fast());
            calls.decide(&charge);
            assert!(is_fast());
        }
    }
}
