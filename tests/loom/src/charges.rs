//! Charges of keys that exist.

use ratelimit_runtime::models::locks;

use crate::support::{PERIOD, Shared, adjustable, bucket, charge, explore, window};

#[test]
fn known_keys_are_charged_without_a_lock() {
    explore(1, || {
        let shared = Shared::new(10);
        let keys = [1, 2, 3, 21, 22, 23];
        keys.iter().for_each(|key| assert!(shared.admits(&[(*key, bucket(4))])));
        let before = locks();
        let [a, b, c] = [1, 2, 3].map(|key| (key, bucket(4)));
        for stack in [&[a][..], &[a, b], &[a, b, c]] {
            assert!(shared.admits(stack));
        }
        for stack in [&[a][..], &[b, a], &[c, b, a]] {
            assert!(!shared.admits(stack));
        }
        keys[3..].iter().for_each(|key| assert!(shared.admits(&[(*key, bucket(4))])));
        assert_eq!(locks(), before);
    });
}

#[test]
fn last_permit_goes_to_one_call() {
    for spec in [bucket(2), adjustable(2)] {
        explore(2, move || {
            let shared = Shared::new(10);
            assert!(shared.admits(&[(1, spec)]));
            let other = shared.spawn(move |shared| shared.admits(&[(1, spec)]));
            assert!(shared.admits(&[(1, spec)]) ^ other.join().unwrap());
        });
    }
}

#[test]
fn window_admits_its_limit() {
    explore(1, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(1, window(3))]));
        let others = [(); 2].map(|()| shared.spawn(|shared| shared.admits(&[(1, window(3))])));
        let mine = shared.admits(&[(1, window(3))]);
        let admitted = others.map(|other| other.join().unwrap()).into_iter().filter(|admitted| *admitted);
        assert_eq!(admitted.count() + usize::from(mine), 2);
        assert_eq!(shared.remaining(1, window(3)), 0);
    });
}

#[test]
fn new_key_is_made_once() {
    explore(2, || {
        let shared = Shared::new(10);
        let other = shared.spawn(|shared| shared.admits(&[(1, bucket(1))]));
        assert!(shared.admits(&[(1, bucket(1))]) ^ other.join().unwrap());
        assert_eq!(shared.store.len(), 1);
    });
}

#[test]
fn stacks_in_opposite_order_charge_all_or_nothing() {
    explore(2, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(1, bucket(2)), (2, window(2))]));
        let other = shared.spawn(|shared| shared.admits(&[(1, bucket(2)), (2, window(2))]));
        assert!(shared.admits(&[(2, window(2)), (1, bucket(2))]) ^ other.join().unwrap());
        assert_eq!([shared.remaining(1, bucket(2)), shared.remaining(2, window(2))], [0, 0]);
    });
}

#[test]
fn one_of_three_overlapping_stacks_is_admitted() {
    explore(1, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(1, bucket(2)), (2, bucket(2)), (3, bucket(2))]));
        let first = shared.spawn(|shared| shared.admits(&[(1, bucket(2)), (2, bucket(2))]));
        let second = shared.spawn(|shared| shared.admits(&[(2, bucket(2)), (3, bucket(2))]));
        let third = shared.admits(&[(3, bucket(2)), (1, bucket(2))]);
        let admitted = [first.join().unwrap(), second.join().unwrap(), third];
        assert_eq!(admitted.into_iter().filter(|admitted| *admitted).count(), 1, "{admitted:?}");
    });
}

#[test]
fn refused_stack_takes_no_permit_from_others() {
    explore(2, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(1, bucket(2)), (2, bucket(1))]));
        let stack = shared.spawn(|shared| shared.admits(&[(1, bucket(2)), (2, bucket(1))]));
        assert!(shared.admits(&[(1, bucket(2))]));
        assert!(!stack.join().unwrap());
    });
}

#[test]
fn stack_that_loses_a_permit_keeps_none() {
    explore(1, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(1, bucket(2)), (2, bucket(2))]));
        // Whichever gets the last permit of the second key, the first key has one for the other call.
        let stack = shared.spawn(|shared| shared.admits(&[(1, bucket(2)), (2, bucket(2))]));
        let single = shared.spawn(|shared| shared.admits(&[(2, bucket(2))]));
        let last = shared.admits(&[(1, bucket(2))]);
        let (stack, single) = (stack.join().unwrap(), single.join().unwrap());
        assert!(stack ^ single || stack ^ last);
        assert!(stack || (single && last));
        assert_eq!(shared.remaining(1, bucket(2)), 0);
    });
}

#[test]
fn refusal_reads_one_state() {
    explore(2, || {
        let shared = Shared::new(10);
        assert!(shared.store.decide(&[charge(1, window(3), 2)]).admitted);
        let other = shared.spawn(|shared| {
            shared.set_time(1000 + PERIOD);
            assert!(shared.admits(&[(1, window(3))]));
        });
        // One permit is left of the first window, two or three of the next.
        let outcome = shared.store.decide(&[charge(1, window(3), 2)]);
        other.join().unwrap();
        assert_eq!(outcome.admitted, outcome.now > 1000, "{outcome:?}");
        assert!(outcome.admitted || outcome.verdicts[0].remaining == 1, "{outcome:?}");
        assert_eq!(shared.remaining(1, window(3)), if outcome.admitted { 0 } else { 2 });
    });
}

#[test]
fn refused_stack_reads_its_keys_at_one_time() {
    explore(2, || {
        let shared = Shared::new(10);
        assert!(shared.store.decide(&[charge(1, bucket(3), 2), charge(2, window(3), 2)]).admitted);
        let other = shared.spawn(|shared| assert!(shared.admits(&[(1, bucket(3)), (2, window(3))])));
        let outcome = shared.store.decide(&[charge(1, bucket(3), 2), charge(2, window(3), 2)]);
        let [bucket, window] = [0, 1].map(|i| outcome.verdicts[i].remaining);
        assert!(!outcome.admitted && bucket == window, "{outcome:?}");
        other.join().unwrap();
    });
}
