//! Slots that are freed and used for other keys, and keys that move.

use crate::support::{PERIOD, Shared, bucket, charge, explore, key, window};

#[test]
fn charge_never_lands_on_the_key_that_takes_the_slot() {
    charge_a_key_whose_slot_another_takes([1, 2]);
}

#[test]
fn charge_never_lands_on_a_key_with_the_same_first_half() {
    charge_a_key_whose_slot_another_takes([31, 32]);
}

fn charge_a_key_whose_slot_another_takes(keys: [u64; 2]) {
    explore(2, move || {
        let shared = Shared::new(1);
        let charge = move |shared: &Shared, key| assert!(shared.admits(&[(key, bucket(3))]));
        charge(&shared, keys[0]);
        let other = shared.spawn(move |shared| charge(shared, keys[1]));
        charge(&shared, keys[0]);
        other.join().unwrap();
        assert_eq!(shared.store.len(), 1);
        let left = keys.map(|key| shared.remaining(key, bucket(3)));
        assert!(left == [2, 3] || left == [3, 2], "{left:?}");
    });
}

#[test]
fn charge_never_lands_on_a_key_of_another_kind() {
    explore(1, || {
        let shared = Shared::new(1);
        assert!(shared.admits(&[(1, window(3))]));
        let other = shared.spawn(|shared| assert!(shared.admits(&[(2, bucket(3))])));
        assert!(shared.admits(&[(1, window(3))]));
        other.join().unwrap();
        let left = [shared.remaining(1, window(3)), shared.remaining(2, bucket(3))];
        assert!(left == [2, 3] || left == [3, 2], "{left:?}");
    });
}

#[test]
fn key_is_not_refused_for_what_its_slot_holds_next() {
    explore(1, || {
        let shared = Shared::new(1);
        assert!(shared.admits(&[(1, bucket(2))]));
        // The other key is empty, this one never is.
        let other = shared.spawn(|shared| {
            assert!(shared.store.decide(&[charge(2, bucket(2), 2)]).admitted);
        });
        assert!(shared.admits(&[(1, bucket(2))]));
        other.join().unwrap();
    });
}

#[test]
fn new_key_is_not_refused_for_what_its_slot_held_before() {
    explore(1, || {
        let shared = Shared::new(1);
        assert!(shared.store.decide(&[charge(1, bucket(2), 2)]).admitted);
        let other = shared.spawn(|shared| assert!(shared.admits(&[(2, bucket(2))])));
        assert!(shared.admits(&[(2, bucket(2))]));
        other.join().unwrap();
        assert_eq!(shared.remaining(2, bucket(2)), 0);
    });
}

#[test]
fn stack_charges_a_key_that_is_made_again() {
    explore(1, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(1, bucket(3)), (2, bucket(3))]));
        let other = shared.spawn(|shared| {
            shared.store.reset(&key(1));
            assert!(shared.admits(&[(3, bucket(3))]) && shared.admits(&[(1, bucket(3))]));
        });
        assert!(shared.admits(&[(1, bucket(3)), (2, bucket(3))]));
        other.join().unwrap();
        // Charged before the reset or after it.
        let left = [1, 2, 3].map(|key| shared.remaining(key, bucket(3)));
        assert!(left == [2, 1, 2] || left == [1, 1, 2], "{left:?}");
    });
}

#[test]
fn expired_key_that_is_swept_is_charged_anew() {
    explore(1, || {
        let shared = Shared::new(1);
        assert!(shared.admits(&[(1, window(1))]));
        shared.set_time(1000 + PERIOD);
        let other = shared.spawn(|shared| assert!(shared.admits(&[(2, window(1))])));
        assert!(shared.admits(&[(1, window(1))]));
        other.join().unwrap();
        assert_eq!(shared.store.len(), 1);
        let left = [1, 2].map(|key| shared.remaining(key, window(1)));
        assert!(left == [0, 1] || left == [1, 0], "{left:?}");
    });
}

#[test]
fn key_is_not_refused_for_one_with_the_same_first_half() {
    explore(1, || {
        let shared = Shared::new(10);
        assert!(shared.admits(&[(31, bucket(2))]));
        let other = shared.spawn(|shared| {
            assert!(shared.store.decide(&[charge(32, bucket(2), 2)]).admitted);
        });
        assert!(shared.admits(&[(31, bucket(2))]));
        other.join().unwrap();
        assert_eq!([31, 32].map(|key| shared.remaining(key, bucket(2))), [0, 0]);
    });
}

#[test]
fn key_that_moves_keeps_its_charges() {
    charge_keys_while_a_line_is_split([1, 2, 21, 22, 23, 24], &[22], [1, 1, 1, 0, 1, 1]);
}

#[test]
fn keys_with_the_same_first_half_keep_their_charges_when_they_move() {
    charge_keys_while_a_line_is_split([1, 2, 41, 42, 21, 22], &[42, 41], [1, 1, 0, 0, 1, 1]);
}

fn charge_keys_while_a_line_is_split(keys: [u64; 6], charged: &'static [u64], left: [u64; 6]) {
    explore(1, move || {
        let shared = Shared::new(10);
        let charge = |key: &u64| assert!(shared.admits(&[(*key, bucket(2))]));
        keys.iter().for_each(charge);
        // The seventh key splits the first line.
        let other = shared.spawn(|shared| assert!(shared.admits(&[(3, bucket(2))])));
        charged.iter().for_each(charge);
        other.join().unwrap();
        assert_eq!(keys.map(|key| shared.remaining(key, bucket(2))), left);
    });
}
