//! Keys whose fingerprints have the same first half, by which lock-free decisions find a slot.

use proptest::prelude::*;

use super::*;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::base::property_tests::config;

/// Fingerprints in one line, which has to be split for the last of them. The first halves of unused slots are 0, too.
const KEYS: [[u64; 2]; 7] = [[0, 1], [0, 2], [4, 1], [4, 2], [4, 3], [6, 1], [6, 2]];

fn bucket(burst: u64) -> AlgorithmSpec {
    let kind = GcraKind::TokenBucket;
    AlgorithmSpec::Gcra(GcraSpec { kind, interval: 10, capacity: 10 * burst })
}

fn window(limit: u64) -> AlgorithmSpec {
    AlgorithmSpec::FixedWindow(FixedWindowSpec { limit, period: 50, aligned: false })
}

fn charge_of_key(key: [u64; 2], spec: AlgorithmSpec, cost: u64) -> Charge {
    Charge {
        key: Key::hashed(Fingerprint(key[0], key[1]), PolicyId::default()),
        spec,
        cost,
        wait: 0,
        shadow: false,
    }
}

#[test]
fn keys_with_the_same_first_half_have_their_own_permits() {
    for spec in [bucket(3), window(3)] {
        for keys in [[[4, 1], [4, 2]], [[4, 2], [4, 1]]] {
            let store = MemoryStore::new(100, Clock::manual(Arc::new(AtomicU64::new(1000))));
            assert!(keys.iter().all(|key| admits(&store, charge_of_key(*key, spec, 1))));
            for key in keys {
                let admitted = [(); 4].map(|()| admits(&store, charge_of_key(key, spec, 1)));
                assert_eq!(admitted, [true, true, false, false], "{key:?}: {spec:?}");
            }
        }
    }
}

#[test]
fn stack_is_charged_once_however_often_it_is_tried() {
    let (other, keys) = ([8, 1], [[4, 1], [4, 2]]);
    for key in keys {
        let store = MemoryStore::new(100, Clock::manual(Arc::new(AtomicU64::new(1000))));
        let all = [other, keys[0], keys[1]];
        assert!(all.iter().all(|key| admits(&store, charge_of_key(*key, bucket(20), 1))));
        assert!(store.decide(&[other, key].map(|key| charge_of_key(key, bucket(20), 1))).admitted);
        let stack = all.map(|key| charge_of_key(key, bucket(20), 1));
        assert!(store.decide(&stack).admitted);
        let remaining: Vec<_> =
            store.decide(&stack).verdicts.iter().map(|verdict| verdict.remaining).collect();
        assert_eq!(remaining, all.map(|each| if each == other || each == key { 16 } else { 17 }));
    }
}

/// Returns a stack of one to three charges, in any order. Every key has one policy.
fn stack() -> impl Strategy<Value = Vec<Charge>> {
    let keys: Vec<usize> = (0..KEYS.len()).collect();
    let costs = prop::collection::vec(1..4u64, 3);
    (prop::sample::subsequence(keys, 1..=3).prop_shuffle(), costs).prop_map(|(keys, costs)| {
        let charge = |(key, cost): (usize, u64)| {
            let spec = if key % 2 == 0 { bucket(3 + key as u64) } else { window(2 + key as u64) };
            charge_of_key(KEYS[key], spec, cost)
        };
        keys.into_iter().zip(costs).map(charge).collect()
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn keys_with_the_same_first_half_are_decided_as_under_the_lock(
        calls in prop::collection::vec((0..20u64, stack(), 0..20usize), 1..60),
    ) {
        let time = Arc::new(AtomicU64::new(1000));
        let store = || MemoryStore::new(100, Clock::manual(Arc::clone(&time)));
        let (store, locked) = (store(), store().locked());
        for (elapsed, stack, reset) in calls {
            time.fetch_add(elapsed, Ordering::SeqCst);
            let (outcome, expected) = (store.decide(&stack), locked.decide(&stack));
            prop_assert_eq!(outcome.admitted, expected.admitted);
            prop_assert_eq!(outcome.verdicts, expected.verdicts);
            if let Some(key) = KEYS.get(reset) {
                let key = charge_of_key(*key, bucket(1), 1).key;
                prop_assert_eq!(store.reset(&key), locked.reset(&key));
            }
        }
    }
}
