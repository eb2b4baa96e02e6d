//! Keys whose states do not fit into their slots, decided under the locks of these.

use ratelimit_runtime::algorithm::AlgorithmSpec;
use ratelimit_runtime::algorithm::adjustable_gcra::AdjustableGcraSpec;
use ratelimit_runtime::algorithm::gcra::{GcraKind, GcraSpec};
use ratelimit_runtime::algorithm::sliding_window::SlidingWindowSpec;

use crate::support::{PERIOD, Shared, bucket, charge, explore, key};

/// A bucket whose interval a slot has no room for.
fn slow(permits: u64) -> AlgorithmSpec {
    let interval = 1 << 28;
    let spec = GcraSpec { kind: GcraKind::TokenBucket, interval, capacity: permits * interval };
    AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec))
}

fn counter(limit: u64) -> AlgorithmSpec {
    AlgorithmSpec::SlidingWindow(SlidingWindowSpec { limit, period: PERIOD, precision: PERIOD / 2 })
}

#[test]
fn last_permit_of_such_a_key_goes_to_one_call() {
    for spec in [slow(2), counter(2)] {
        explore(2, move || {
            let shared = Shared::new(10);
            assert!(shared.admits(&[(1, spec)]));
            let other = shared.spawn(move |shared| shared.admits(&[(1, spec)]));
            assert!(shared.admits(&[(1, spec)]) ^ other.join().unwrap());
            assert_eq!(shared.remaining(1, spec), 0);
        });
    }
}

#[test]
fn mixed_stacks_in_opposite_order_charge_all_or_nothing() {
    explore(1, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(1, bucket(2)), (2, counter(2))]));
        let other = shared.spawn(|shared| shared.admits(&[(1, bucket(2)), (2, counter(2))]));
        assert!(shared.admits(&[(2, counter(2)), (1, bucket(2))]) ^ other.join().unwrap());
        assert_eq!([shared.remaining(1, bucket(2)), shared.remaining(2, counter(2))], [0, 0]);
    });
}

#[test]
fn charge_never_lands_on_the_state_of_the_key_that_takes_the_slot() {
    explore(2, || {
        let shared = Shared::new(1);
        assert!(shared.admits(&[(1, counter(3))]));
        let other = shared.spawn(|shared| assert!(shared.admits(&[(2, counter(3))])));
        assert!(shared.admits(&[(1, counter(3))]));
        other.join().unwrap();
        assert_eq!(shared.store.len(), 1);
        let left = [1, 2].map(|key| shared.remaining(key, counter(3)));
        assert!(left == [2, 3] || left == [3, 2], "{left:?}");
    });
}

#[test]
fn key_that_moves_keeps_the_charges_of_its_state() {
    explore(1, || {
        let shared = Shared::new(10);
        let keys = [1, 2, 21, 22, 23, 24];
        let charge = |key: u64| assert!(shared.admits(&[(key, counter(2))]));
        keys.into_iter().for_each(charge);
        // The seventh key splits the first line.
        let other = shared.spawn(|shared| assert!(shared.admits(&[(3, bucket(2))])));
        charge(22);
        other.join().unwrap();
        assert_eq!(keys.map(|key| shared.remaining(key, counter(2))), [1, 1, 1, 0, 1, 1]);
    });
}

#[test]
fn state_that_the_tables_lock_holds_loses_no_charge() {
    explore(1, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(1, counter(2))]));
        // The second key is new, so the list is decided under the lock.
        let stack = shared.spawn(|shared| shared.admits(&[(1, counter(2)), (2, bucket(1))]));
        assert!(shared.admits(&[(1, counter(2))]) ^ stack.join().unwrap());
        assert_eq!(shared.remaining(1, counter(2)), 0);
    });
}

#[test]
fn state_that_is_reset_is_charged_before_or_after() {
    explore(2, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(1, slow(3))]));
        let reset = shared.spawn(|shared| shared.store.reset(&key(1)));
        assert!(shared.store.decide(&[charge(1, slow(3), 2)]).admitted);
        assert!(reset.join().unwrap());
        let remaining = shared.remaining(1, slow(3));
        assert!(remaining == 1 || remaining == 3, "{remaining}");
    });
}
