//! Calls that hold permits until they end.

use ratelimit_runtime::algorithm::AlgorithmSpec;
use ratelimit_runtime::store::ChargeId;

use crate::support::{Shared, bucket, charge, explore, holds, key};

impl Shared {
    /// Takes a permit.
    fn take(&self, of: u64, spec: AlgorithmSpec) -> Option<ChargeId> {
        let outcome = self.store.decide(&[charge(of, spec, 1)]);
        outcome.admitted.then(|| outcome.verdicts[0].charge_id)
    }

    fn end(&self, of: u64, spec: AlgorithmSpec, charge_id: ChargeId) {
        self.store.refund(&key(of), &spec, 1, Some(charge_id));
    }

    /// Takes a permit, and ends at once.
    fn call(&self, of: u64, spec: AlgorithmSpec) -> bool {
        self.take(of, spec).map(|charge_id| self.end(of, spec, charge_id)).is_some()
    }
}

#[test]
fn calls_that_have_ended_hold_nothing() {
    explore(2, || {
        let shared = Shared::new(10);
        assert!(shared.call(1, holds(2)));
        let other = shared.spawn(|shared| shared.call(1, holds(2)));
        assert!(shared.call(1, holds(2)) && other.join().unwrap());
        assert_eq!(shared.remaining(1, holds(2)), 2);
    });
}

#[test]
fn permit_is_held_by_one_call_at_a_time() {
    explore(2, || {
        let shared = Shared::new(10);
        let first = shared.take(1, holds(1)).unwrap();
        let other = shared.spawn(|shared| shared.take(1, holds(1)));
        shared.end(1, holds(1), first);
        let mine = shared.take(1, holds(1));
        let other = other.join().unwrap();
        assert!(mine.is_some() ^ other.is_some());
        shared.end(1, holds(1), mine.or(other).unwrap());
        assert_eq!(shared.remaining(1, holds(1)), 1);
    });
}

/// The last call of a key ends while another begins, which then is the first.
#[test]
fn holds_that_meet_an_end_are_not_lost() {
    explore(2, || {
        let shared = Shared::new(10);
        let first = shared.take(1, holds(2)).unwrap();
        let other = shared.spawn(|shared| {
            shared.set_time(1001);
            shared.take(1, holds(2)).unwrap()
        });
        shared.end(1, holds(2), first);
        let other = other.join().unwrap();
        assert_eq!(shared.remaining(1, holds(2)), 1);
        shared.end(1, holds(2), other);
        assert_eq!(shared.remaining(1, holds(2)), 2);
    });
}

#[test]
fn new_key_is_held_by_all_that_take_it() {
    explore(1, || {
        let shared = Shared::new(10);
        let other = shared.spawn(|shared| shared.call(1, holds(2)));
        assert!(shared.call(1, holds(2)) && other.join().unwrap());
        assert_eq!(shared.remaining(1, holds(2)), 2);
    });
}

#[test]
fn stacks_beside_ends_are_all_or_nothing() {
    explore(1, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(2, bucket(2))]));
        let first = shared.take(1, holds(1)).unwrap();
        let other = shared.spawn(|shared| shared.admits(&[(2, bucket(2)), (1, holds(1))]));
        shared.end(1, holds(1), first);
        let admitted = other.join().unwrap();
        let left = u64::from(!admitted);
        assert_eq!([shared.remaining(1, holds(1)), shared.remaining(2, bucket(2))], [left, left]);
    });
}

#[test]
fn reset_frees_what_is_held() {
    explore(2, || {
        let shared = Shared::new(10);
        let first = shared.take(1, holds(2)).unwrap();
        let reset = shared.spawn(|shared| shared.store.reset(&key(1)));
        shared.end(1, holds(2), first);
        reset.join().unwrap();
        assert_eq!(shared.remaining(1, holds(2)), 2);
    });
}
