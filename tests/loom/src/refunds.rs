//! Charges beside what takes a state out of its slot for a moment.

use ratelimit_runtime::models::Waiting;
use ratelimit_runtime::store::{AlgorithmSpec, Charge, Outcome};

use crate::support::{INTERVAL, Shared, bucket, charge, explore, key, window};

impl Shared {
    /// Refunds the first charge of a decision.
    fn refund(&self, of: u64, spec: AlgorithmSpec, outcome: &Outcome, cost: u64) {
        self.store.refund(&key(of), &spec, cost, Some(outcome.verdicts[0].charge_id));
    }
}

#[test]
fn refunded_permit_goes_to_one_call() {
    explore(1, || {
        let shared = Shared::new(10);
        let first = shared.decide(&[(1, bucket(2))]);
        assert!(first.admitted && shared.admits(&[(1, bucket(2))]));
        let other = shared.spawn(|shared| shared.admits(&[(1, bucket(2))]));
        shared.refund(1, bucket(2), &first, 1);
        let mine = shared.admits(&[(1, bucket(2))]);
        assert!(mine ^ other.join().unwrap());
        assert_eq!(shared.remaining(1, bucket(2)), 0);
    });
}

#[test]
fn refusal_reads_a_state_before_or_after_a_refund() {
    explore(2, || {
        let shared = Shared::new(10);
        assert!(shared.store.decide(&[charge(1, window(3), 2)]).admitted);
        let other = shared.spawn(|shared| {
            let charged = shared.decide(&[(1, window(3))]);
            shared.refund(1, window(3), &charged, 1);
        });
        let outcome = shared.store.decide(&[charge(1, window(3), 2)]);
        assert!(!outcome.admitted && outcome.verdicts[0].remaining <= 1, "{outcome:?}");
        other.join().unwrap();
        assert_eq!(shared.remaining(1, window(3)), 1);
    });
}

#[test]
fn refund_leaves_later_charges_alone() {
    explore(2, || {
        let shared = Shared::new(10);
        let first = shared.decide(&[(1, bucket(2))]);
        // Once that charge has refilled it is worth nothing.
        let charges = shared.spawn(|shared| {
            shared.set_time(1000 + INTERVAL);
            assert!(shared.store.decide(&[charge(1, bucket(2), 2)]).admitted);
        });
        shared.refund(1, bucket(2), &first, 1);
        charges.join().unwrap();
        assert_eq!(shared.remaining(1, bucket(2)), 0);
    });
}

#[test]
fn state_that_is_read_under_the_lock_loses_no_charge() {
    explore(2, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(1, window(2))]));
        let reader = shared.spawn(|shared| shared.remaining(1, window(2)));
        assert!(shared.admits(&[(1, window(2))]));
        assert!(reader.join().unwrap() <= 1);
        assert_eq!(shared.remaining(1, window(2)), 0);
    });
}

#[test]
fn last_permit_goes_to_a_call_that_waits_or_to_one_that_does_not() {
    explore(2, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(1, bucket(2))]));
        let other = shared.spawn(|shared| {
            let mut waiting = charge(1, bucket(2), 1);
            waiting.wait = INTERVAL;
            shared.store.decide(&[waiting])
        });
        let mine = shared.admits(&[(1, bucket(2))]);
        let other = other.join().unwrap();
        assert!(other.admitted && mine == (other.verdicts[0].wait > 0), "{other:?}");
    });
}

#[test]
fn refund_that_ends_a_queue_leaves_later_charges_alone() {
    explore(2, || {
        let shared = Shared::new(10);
        assert!(shared.store.decide(&[charge(1, bucket(2), 2)]).admitted);
        let wait = || Waiting::new(&shared.store, Charge { wait: 5 * INTERVAL, ..charge(1, bucket(2), 1) });
        let (first, second) = (wait().unwrap(), wait().unwrap());
        first.leave(&shared.store);
        // The second call has moved up, and starts now.
        shared.set_time(1000 + INTERVAL);
        let charges = shared.spawn(|shared| {
            shared.set_time(1000 + 10 * INTERVAL);
            assert!(shared.store.decide(&[charge(1, bucket(2), 2)]).admitted);
        });
        shared.store.refund(&key(1), &bucket(2), 1, None);
        charges.join().unwrap();
        drop(second);
        assert!(shared.remaining(1, bucket(2)) <= 1);
    });
}

#[test]
fn reset_comes_before_or_after_a_charge() {
    explore(2, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(1, bucket(2))]));
        let reset = shared.spawn(|shared| shared.store.reset(&key(1)));
        assert!(shared.admits(&[(1, bucket(2))]));
        reset.join().unwrap();
        let remaining = shared.remaining(1, bucket(2));
        assert!(remaining == 1 || remaining == 2, "{remaining}");
    });
}
