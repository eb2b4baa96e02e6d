//! Random lists, decided under the locks of slots and under the table's alike.

use proptest::prelude::*;

use super::*;
use crate::algorithm::adjustable_gcra::AdjustableGcraSpec;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::interval_bucket::IntervalBucketSpec;
use crate::algorithm::sliding_window::SlidingWindowSpec;
use crate::algorithm::warming_up::WarmingUpSpec;
use crate::base::property_tests::config;
use crate::base::rate::Rate;

/// What is done to a store.
#[derive(Clone, Debug)]
enum Step {
    /// Some of the keys, with cost, wait and shadow; and whether at another rate, where that can change.
    Decide(Vec<(usize, u64, u64, bool)>, bool),
    /// Of the last charge of the key, or of whatever it holds.
    Refund(usize, u64, bool),
    Reset(usize),
    /// Sets the clock forward, or a little back.
    Pass(u64),
    Back(u64),
}

/// A policy for each key, of all kinds.
fn specs(n: u64) -> Vec<AlgorithmSpec> {
    let bucket = |kind| GcraSpec { kind, interval: 10, capacity: 10 * n };
    let window = |aligned| AlgorithmSpec::FixedWindow(FixedWindowSpec { limit: n, period: 50, aligned });
    let log = |precision| AlgorithmSpec::SlidingWindow(SlidingWindowSpec { limit: n, period: 40, precision });
    let rate = Rate::new(1, Duration::from_micros(10));
    let refills = |adjustable| {
        AlgorithmSpec::IntervalBucket(IntervalBucketSpec { burst: n, refill: 2, period: 20, adjustable })
    };
    vec![
        AlgorithmSpec::Gcra(bucket(GcraKind::TokenBucket)),
        AlgorithmSpec::Gcra(bucket(GcraKind::Meter)),
        AlgorithmSpec::Gcra(bucket(GcraKind::Queue)),
        AlgorithmSpec::Gcra(bucket(GcraKind::Borrowing(rate))),
        AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(bucket(GcraKind::TokenBucket))),
        AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(GcraSpec {
            interval: 7,
            ..bucket(GcraKind::Queue)
        })),
        window(false),
        window(true),
        log(0),
        log(10),
        refills(false),
        refills(true),
        AlgorithmSpec::WarmingUp(WarmingUpSpec { rate, warmup: 100, adjustable: false }),
    ]
}

/// The same policy at another rate, if its numbers can change.
fn at_another_rate(spec: AlgorithmSpec) -> AlgorithmSpec {
    match spec {
        AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec)) => {
            AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(GcraSpec { interval: 4, ..spec }))
        }
        AlgorithmSpec::IntervalBucket(spec) if spec.adjustable => {
            AlgorithmSpec::IntervalBucket(IntervalBucketSpec { refill: 1, ..spec })
        }
        _ => spec,
    }
}

const KEYS: usize = 13;

fn step() -> impl Strategy<Value = Step> {
    let request = (0..KEYS, 0..4u64, prop_oneof![4 => Just(0), 1 => 1..60u64], prop::bool::weighted(0.2));
    prop_oneof![
        8 => (prop::collection::vec(request, 1..5), prop::bool::weighted(0.2))
            .prop_map(|(requests, faster)| Step::Decide(requests, faster)),
        2 => (0..KEYS, 1..4u64, any::<bool>()).prop_map(|(key, cost, last)| Step::Refund(key, cost, last)),
        1 => (0..KEYS).prop_map(Step::Reset),
        4 => (1..60u64).prop_map(Step::Pass),
        1 => (1..30u64).prop_map(Step::Back),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn slots_and_table_decide_alike(n in 1..5u64, steps in prop::collection::vec(step(), 1..60)) {
        let time = Arc::new(AtomicU64::new(1000));
        let store = || MemoryStore::new(100, Clock::manual(Arc::clone(&time)));
        let stores = [store(), store().locked()];
        let (specs, keys) = (specs(n), (0..KEYS).map(|key| Key::raw(key.to_string())).collect::<Vec<_>>());
        let mut last = vec![None; KEYS];
        for step in steps {
            match step {
                Step::Decide(mut requests, faster) => {
                    let mut known = std::collections::HashSet::new();
                    requests.retain(|(key, ..)| known.insert(*key));
                    let list: Vec<Charge> = requests
                        .into_iter()
                        .map(|(key, cost, wait, shadow)| {
                            let spec = if faster { at_another_rate(specs[key]) } else { specs[key] };
                            Charge { key: keys[key].clone(), spec, cost, wait, shadow }
                        })
                        .collect();
                    let [ours, locked] = stores.each_ref().map(|store| store.decide(&list));
                    prop_assert_eq!((ours.now, ours.admitted, &ours.verdicts), (locked.now, locked.admitted, &locked.verdicts));
                    for (charge, verdict) in list.iter().zip(&ours.verdicts) {
                        if let Some(key) = keys.iter().position(|key| *key == charge.key)
                            && ours.admitted
                            && charge.is_made(verdict)
                        {
                            last[key] = Some((charge.cost, verdict.charge_id));
                        }
                    }
                }
                Step::Refund(key, cost, of_last) => {
                    let (cost, id) = match last[key].filter(|_| of_last) {
                        Some((cost, id)) => (cost, Some(id)),
                        None => (cost, None),
                    };
                    stores.iter().for_each(|store| match PlainSpec::of(&specs[key]).zip(id) {
                        Some((spec, id)) => store.refund_charge(&keys[key], &spec, cost, id),
                        None => store.refund(&keys[key], &specs[key], cost, id),
                    });
                }
                Step::Reset(key) => {
                    let [ours, locked] = stores.each_ref().map(|store| store.reset(&keys[key]));
                    prop_assert_eq!(ours, locked);
                }
                Step::Pass(micros) => _ = time.fetch_add(micros, Ordering::SeqCst),
                Step::Back(micros) => _ = time.fetch_sub(micros, Ordering::SeqCst),
            }
        }
    }
}
