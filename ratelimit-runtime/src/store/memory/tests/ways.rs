//! Random lists, decided under the locks of slots and under the table's alike.

use proptest::prelude::*;

use super::*;
use crate::algorithm::adjustable_gcra::AdjustableGcraSpec;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::holds::HoldsSpec;
use crate::algorithm::interval_bucket::IntervalBucketSpec;
use crate::algorithm::settled_gcra::SettledGcraSpec;
use crate::algorithm::sliding_window::SlidingWindowSpec;
use crate::algorithm::warming_up::WarmingUpSpec;
use crate::algorithm::{UNKNOWN, UNKNOWN_BUT_NEXT};
use crate::base::property_tests::config;
use crate::base::rate::Rate;

/// What is done to a store.
#[derive(Clone, Debug)]
enum Step {
    /// Some of the keys, with cost, wait and shadow; and whether at another rate, where that can change.
    Decide(Vec<(usize, u64, u64, bool)>, bool),
    /// Of the last charge of the key, or of one before it, or of whatever it holds.
    Refund(usize, u64, Option<usize>),
    /// Of what the charge of the key cost, gives back all but so much.
    Settle(usize, u64),
    Debit(usize, u64),
    Pause(usize, u64),
    Reset(usize),
    /// Sets the clock forward, or a little back.
    Pass(u64),
    Back(u64),
}

/// How large the numbers are.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// The permits of a policy.
    n: u64,
    /// The microseconds that count as one.
    unit: u64,
    /// The permits that a cost of 1 stands for.
    bulk: u64,
}

/// Small numbers, or such that intervals, and times until a bucket is full, mostly just fit into a slot.
fn scale() -> impl Strategy<Value = Scale> {
    prop_oneof![
        3 => (1..5u64).prop_map(|n| Scale { n, unit: 1, bulk: 1 }),
        1 => (250..270u64, 0..2u64).prop_map(|(n, over)| Scale { n, unit: (1 << 28) / 10 + over, bulk: 65 }),
    ]
}

/// A policy for each key, of all kinds.
fn specs(Scale { n, unit, .. }: Scale) -> Vec<AlgorithmSpec> {
    let bucket = |kind| GcraSpec { kind, interval: 10 * unit, capacity: 10 * unit * n };
    let window =
        |aligned| AlgorithmSpec::FixedWindow(FixedWindowSpec { limit: n, period: 50 * unit, aligned });
    let log = |precision| {
        let precision = precision * unit;
        AlgorithmSpec::SlidingWindow(SlidingWindowSpec { limit: n, period: 40 * unit, precision })
    };
    let rate = Rate::new(1, Duration::from_micros(10 * unit));
    let refills = |adjustable| {
        let period = 20 * unit;
        AlgorithmSpec::IntervalBucket(IntervalBucketSpec { burst: n, refill: 2, period, adjustable })
    };
    vec![
        AlgorithmSpec::Gcra(bucket(GcraKind::TokenBucket)),
        AlgorithmSpec::Gcra(bucket(GcraKind::Meter)),
        AlgorithmSpec::Gcra(bucket(GcraKind::Queue)),
        AlgorithmSpec::Gcra(bucket(GcraKind::Borrowing(rate))),
        AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(bucket(GcraKind::TokenBucket))),
        AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(GcraSpec {
            interval: 7 * unit,
            ..bucket(GcraKind::Queue)
        })),
        AlgorithmSpec::SettledGcra(SettledGcraSpec(bucket(GcraKind::TokenBucket))),
        window(false),
        window(true),
        log(0),
        log(10),
        refills(false),
        refills(true),
        AlgorithmSpec::WarmingUp(WarmingUpSpec { rate, warmup: 100 * unit, adjustable: false }),
        AlgorithmSpec::Holds(HoldsSpec { max: n }),
    ]
}

/// The same policy at another rate, if its numbers can change.
fn at_another_rate(spec: AlgorithmSpec, unit: u64) -> AlgorithmSpec {
    match spec {
        AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec)) => {
            AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(GcraSpec { interval: 4 * unit, ..spec }))
        }
        AlgorithmSpec::SettledGcra(SettledGcraSpec(spec)) => {
            AlgorithmSpec::SettledGcra(SettledGcraSpec(GcraSpec { interval: 4 * unit, ..spec }))
        }
        AlgorithmSpec::IntervalBucket(spec) if spec.adjustable => {
            AlgorithmSpec::IntervalBucket(IntervalBucketSpec { refill: 1, ..spec })
        }
        _ => spec,
    }
}

const KEYS: usize = 15;

fn step() -> impl Strategy<Value = Step> {
    let request = (0..KEYS, 0..4u64, prop_oneof![4 => Just(0), 1 => 1..60u64], prop::bool::weighted(0.2));
    prop_oneof![
        8 => (prop::collection::vec(request, 1..7), prop::bool::weighted(0.2))
            .prop_map(|(requests, faster)| Step::Decide(requests, faster)),
        2 => (0..KEYS, 1..4u64, prop::option::of(0..3usize))
            .prop_map(|(key, cost, later)| Step::Refund(key, cost, later)),
        1 => (0..KEYS, 1..4u64).prop_map(|(key, used)| Step::Settle(key, used)),
        1 => (0..KEYS, 1..20u64).prop_map(|(key, cost)| Step::Debit(key, cost)),
        1 => (0..KEYS, 0..60u64).prop_map(|(key, micros)| Step::Pause(key, micros)),
        1 => (0..KEYS).prop_map(Step::Reset),
        4 => (1..60u64).prop_map(Step::Pass),
        1 => (1..30u64).prop_map(Step::Back),
    ]
}

/// Decides a single charge that does not wait as calls with one are decided, if its key is not there, or it only looks, and its state is
/// plain or would be.
fn decide_single(store: &MemoryStore, list: &[Charge]) -> Option<Outcome> {
    let [Charge { key: Key(_, policy), spec, cost, wait: 0, shadow: false }] = list else { return None };
    let (key, plain) = (list[0].key.fingerprint(), PlainSpec::of(spec)?);
    let mut outcome = Outcome::default();
    if *cost == 0 {
        let (now, read) = store.peek_plain(key, *policy, plain)?;
        let mut verdict = plain.peek(plain.limit(), read, now);
        // Only calls that wait tell them apart.
        verdict.retry_after =
            verdict.retry_after.map(|after| if after == UNKNOWN { UNKNOWN_BUT_NEXT } else { after });
        (outcome.now, outcome.admitted) = (now, verdict.admitted);
        outcome.verdicts.push(verdict);
        return Some(outcome);
    }
    let PlainOutcome { now, admitted, snapshots: [read], .. } =
        store.decide_new_plain((key, *policy), &plain, *cost)?;
    (outcome.now, outcome.admitted) = (now, admitted);
    outcome.verdicts.push(plain.verdict(plain.limit(), read, now, *cost, admitted));
    Some(outcome)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn slots_and_table_decide_alike(scale in scale(), steps in prop::collection::vec(step(), 1..60)) {
        let Scale { unit, bulk, .. } = scale;
        let time = Arc::new(AtomicU64::new(1000 * unit));
        let store = || MemoryStore::new(100, Clock::manual(Arc::clone(&time)));
        let stores = [store(), store().locked()];
        let (specs, keys) = (specs(scale), (0..KEYS).map(|key| Key::raw(key.to_string())).collect::<Vec<_>>());
        let mut made = vec![Vec::new(); KEYS];
        for step in steps {
            match step {
                Step::Decide(mut requests, faster) => {
                    let mut known = std::collections::HashSet::new();
                    requests.retain(|(key, ..)| known.insert(*key));
                    let list: Vec<Charge> = requests
                        .into_iter()
                        .map(|(key, cost, wait, shadow)| {
                            let spec = if faster { at_another_rate(specs[key], unit) } else { specs[key] };
                            let (cost, wait) = (cost * bulk, wait * unit);
                            Charge { key: keys[key].clone(), spec, cost, wait, shadow }
                        })
                        .collect();
                    // As single calls are decided.
                    let decide = |store| decide_single(store, &list).unwrap_or_else(|| store.decide(&list));
                    let [ours, locked] = stores.each_ref().map(decide);
                    prop_assert_eq!((ours.now, ours.admitted, &ours.verdicts), (locked.now, locked.admitted, &locked.verdicts));
                    prop_assert_eq!(&*ours.paused, &*locked.paused);
                    for (charge, verdict) in list.iter().zip(&ours.verdicts) {
                        if let Some(key) = keys.iter().position(|key| *key == charge.key)
                            && ours.admitted
                            && charge.is_made(verdict)
                        {
                            made[key].push((charge.spec, charge.cost, verdict.charge_id));
                        }
                    }
                }
                Step::Refund(key, cost, later) => {
                    let charge = later.and_then(|later| made[key].iter().rev().nth(later));
                    stores.iter().for_each(|store| match charge {
                        Some((spec, cost, id)) => store.refund(&keys[key], spec, *cost, Some(*id)),
                        None => store.refund(&keys[key], &specs[key], cost * bulk, None),
                    });
                }
                Step::Settle(key, used) => {
                    let Some((spec, cost, id)) = made[key].pop() else { continue };
                    let less = cost.saturating_sub(used);
                    stores.iter().for_each(|store| store.refund(&keys[key], &spec, less, Some(id)));
                }
                Step::Debit(key, cost) => {
                    if specs[key].can_owe() {
                        let cuts = stores.each_ref().map(|store| store.debit(&keys[key], &specs[key], cost * bulk));
                        // With large numbers, several debts may exceed what a policy owes at most.
                        prop_assert!(cuts == [false; 2] || bulk > 1 && cuts == [true; 2]);
                    }
                }
                Step::Pause(key, micros) => {
                    stores.iter().for_each(|store| store.pause(&keys[key], &specs[key], micros * unit));
                }
                Step::Reset(key) => {
                    let [ours, locked] = stores.each_ref().map(|store| store.reset(&keys[key]));
                    prop_assert_eq!(ours, locked);
                }
                Step::Pass(micros) => _ = time.fetch_add(micros * unit * bulk, Ordering::SeqCst),
                Step::Back(micros) => _ = time.fetch_sub(micros * unit, Ordering::SeqCst),
            }
        }
    }
}

/// States that slots hold, and ones that they do not, beside a call that only looks at a queue whose calls wait.
#[test]
fn lists_of_plain_and_other_states_are_decided_in_place() {
    let time = Arc::new(AtomicU64::new(1000));
    let store = || MemoryStore::new(100, Clock::manual(Arc::clone(&time)));
    let stores = [store(), store().locked()];
    let specs = specs(Scale { n: 4, unit: 1, bulk: 1 });
    let charge = |key: usize, cost| {
        let (spec, key) = (specs[key], Key::raw(key.to_string()));
        Charge { key, spec, cost, wait: 0, shadow: false }
    };
    let (token_bucket, queue, window, log, counter) = (0, 2, 7, 9, 10);
    let list = |cost| {
        [(token_bucket, 1), (window, cost), (log, 1), (counter, 1), (queue, 0)]
            .map(|(key, cost)| charge(key, cost))
    };
    let both = |list: &[Charge]| {
        let [ours, locked] = stores.each_ref().map(|store| store.decide(list));
        assert_eq!((ours.admitted, &ours.verdicts), (locked.admitted, &locked.verdicts));
        ours
    };
    assert!(both(&[charge(queue, 1)]).admitted);
    assert!(both(&list(1)).admitted);
    for (cost, admitted) in [(1, true), (3, false), (2, true), (1, false)] {
        let mut ours = Outcome::default();
        assert!(stores[0].decide_in_place(&list(cost), &mut ours).is_some(), "{cost}");
        let locked = stores[1].decide(&list(cost));
        assert_eq!((ours.admitted, &ours.verdicts), (locked.admitted, &locked.verdicts), "{cost}");
        assert_eq!(ours.admitted, admitted, "{cost}");
    }
}

#[test]
fn a_list_with_a_key_twice_charges_nothing() {
    let store = MemoryStore::new(100, Clock::manual(Arc::new(AtomicU64::new(1000))));
    let spec = Policy::from(FixedWindow::new(9, Duration::from_secs(40))).spec().unwrap();
    let charges = ["a", "b"].map(|key| Charge { spec, ..charge(key, 40) });
    let [a, b] = &charges;
    let remaining =
        || [a, b].map(|charge| store.peek(&Charge { cost: 0, ..charge.clone() }).unwrap().remaining);
    assert!(!store.admits_all([a, b].into_iter()), "the keys are not there yet");
    assert!(store.decide(&charges).admitted);
    assert!(store.admits_all([a, b].into_iter()));
    assert_eq!(remaining(), [7, 7]);
    assert!(!store.admits_all([a, b, a].into_iter()));
    assert_eq!(remaining(), [7, 7]);
    assert!(store.admits_all([a, b].into_iter()), "the slots are unlocked");
}
