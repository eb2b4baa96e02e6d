//! Threads that make, charge, refund, reset and evict keys at once.

use std::collections::{HashMap, HashSet};
use std::thread;

use super::*;
use crate::algorithm::fixed_window::FixedWindowSpec;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::sliding_window::SlidingWindowSpec;
use crate::base::property_tests::is_long;
use crate::store::memory::owners::{Hand, Owner};

const MAX_KEYS: usize = 200;
const HOUR: u64 = 3_600_000_000;

/// The keys that several threads use. Their policies hold less than their share, so they are never evicted.
const HOT: u64 = 4;

/// Windows that stay open, and a bucket that hardly refills.
const WINDOW: AlgorithmSpec =
    AlgorithmSpec::FixedWindow(FixedWindowSpec { limit: 20, period: 24 * HOUR, aligned: false });
const COUNTER: AlgorithmSpec =
    AlgorithmSpec::SlidingWindow(SlidingWindowSpec { limit: 20, period: 24 * HOUR, precision: HOUR });
const BUCKET: AlgorithmSpec =
    AlgorithmSpec::Gcra(GcraSpec { kind: GcraKind::TokenBucket, interval: HOUR, capacity: 20 * HOUR });

fn charge_by(policy: &str, key: u64, spec: AlgorithmSpec, cost: u64) -> Charge {
    Charge { spec, cost, ..charge_of(policy, key, 1) }
}

/// SplitMix64.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % below
}

/// Makes new keys, which expire soon or are evicted.
fn flood(store: &MemoryStore, time: &AtomicU64, thread: u64, calls: u64) {
    let mut state = thread;
    for call in 0..calls {
        let (key, period) = (thread * calls + call, 1 + random(&mut state, 10_000));
        let window = AlgorithmSpec::FixedWindow(FixedWindowSpec { limit: 2, period, aligned: false });
        let policy = format!("flood {thread}");
        let charges = [charge_by(&policy, key, window, 1), charge_by("warm", key / 8 % 50, window, 1)];
        let outcome = store.decide(&charges[..1 + random(&mut state, 2) as usize]);
        if outcome.admitted && random(&mut state, 4) == 0 {
            store.refund(&charges[0].key, &window, 1, Some(outcome.verdicts[0].charge_id));
        }
        time.fetch_add(random(&mut state, 20), Ordering::SeqCst);
    }
}

/// Charges windows and buckets together, gives some of it back, and waits in a queue. Returns the permits kept of each key.
fn charge_hot_keys(store: &MemoryStore, thread: u64, calls: u64) -> HashMap<u64, u64> {
    let (mut state, mut kept) = (thread, HashMap::new());
    for _ in 0..calls {
        let (key, cost) = (random(&mut state, HOT), 1 + random(&mut state, 2));
        let mut charges = [
            charge_by("window", key, WINDOW, cost),
            charge_by("bucket", key, BUCKET, cost),
            charge_by("counter", key, COUNTER, cost),
        ];
        if random(&mut state, 2) == 0 {
            charges.reverse();
        }
        let outcome = store.decide(&charges);
        if outcome.admitted {
            *kept.entry(key).or_default() += cost;
        }
        if outcome.admitted && random(&mut state, calls / 5) > 0 {
            for (Charge { key, spec, cost, .. }, verdict) in charges.iter().zip(&outcome.verdicts) {
                store.refund(key, spec, *cost, Some(verdict.charge_id));
            }
            *kept.entry(key).or_default() -= cost;
        }
        match random(&mut state, 20) {
            0 => _ = store.reset(&charge_of("reset", key, 1).key),
            1 => {
                let waiting = [Charge { wait: 100 * HOUR, ..charge_by("queue", key, BUCKET, 15) }];
                if let (outcome, Some(waiter)) = store.reserve(&waiting) {
                    let [waiting] = waiting;
                    store.leave(&[(waiting, outcome.verdicts[0].charge_id)], &waiter);
                }
            }
            _ => _ = store.decide(&[charge_by("reset", key, WINDOW, 1)]),
        }
    }
    kept
}

#[test]
fn table_is_consistent_after_threads_have_used_it() {
    let calls = if is_long() { 1_000_000 } else { 20_000 };
    let time = Arc::new(AtomicU64::new(1000));
    let store = MemoryStore::new(MAX_KEYS, Clock::manual(Arc::clone(&time)));
    let mut kept = HashMap::<u64, u64>::new();
    thread::scope(|scope| {
        let (store, time) = (&store, &*time);
        let chargers = [1, 2].map(|thread| scope.spawn(move || charge_hot_keys(store, thread, calls)));
        for thread in [3, 4] {
            scope.spawn(move || flood(store, time, thread, calls));
        }
        for charger in chargers {
            for (key, permits) in charger.join().unwrap() {
                *kept.entry(key).or_default() += permits;
            }
        }
    });
    assert!(store.evicted() > 0);
    for key in 0..HOT {
        let charges = [
            charge_by("window", key, WINDOW, 0),
            charge_by("bucket", key, BUCKET, 0),
            charge_by("counter", key, COUNTER, 0),
        ];
        let verdicts = store.decide(&charges).verdicts;
        assert_eq!([0, 2].map(|i| verdicts[i].remaining), [20 - kept[&key]; 2], "{key}");
        // Less than an hour has passed.
        assert!(verdicts[1].remaining.abs_diff(20 - kept[&key]) <= 1, "{key}: {verdicts:?}, {kept:?}");
    }
    assert!(time.load(Ordering::SeqCst) < HOUR);
    check(&store.lock());
}

/// Checks that all parts of a table agree.
fn check(table: &Table) {
    let (mut len, mut others, mut shares) = (0, HashSet::new(), HashMap::<u32, usize>::new());
    let mut hand = Hand::default();
    let lines = (0..table.owners.lines()).map(|_| table.owners.next_line(&mut hand));
    for slot in lines.flat_map(|line| table.slots.slots_of(line)) {
        let (content, fingerprint) =
            (table.slots.slot(slot).read().content, table.slots.slot(slot).fingerprint());
        if content.is_free() {
            assert_eq!(fingerprint, Fingerprint(0, 0));
            continue;
        }
        len += 1;
        assert_eq!(table.slots.locate(fingerprint), Some(slot));
        assert!(table.slots.find(fingerprint).is_some_and(|slot| slot.is_of(fingerprint)));
        let Owner { policy, place } = table.owners[slot];
        assert_eq!(table.shares.slot(policy, place), slot);
        *shares.entry(policy).or_default() += 1;
        if let Some(state) = content.as_other() {
            assert!(others.insert(state));
        }
    }
    assert!(len == table.len && len <= table.max_keys);
    assert!(shares.iter().all(|(policy, size)| table.shares.size(*policy) == *size));
    assert_eq!(table.unused.in_use(), others.len());
    assert!(table.queues.keys().all(|key| table.slots.locate(*key).is_some()));
}
