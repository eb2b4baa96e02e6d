//! Threads that charge several policies at once, each of which is exact.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ratelimit_runtime::store::{Charge, Clock, Key, MemoryStore};

use super::replay::{Record, StoreClock, replay_threads};
use super::{PROCESSES, memory_stores};
use crate::support::budget::budget;
use crate::support::policies::{self, Pair};
use crate::support::random::Random;

/// Returns stacks of policies that run out at different times.
fn stacks() -> [Vec<(&'static str, Pair)>; 3] {
    let [second, millisecond] = [Duration::from_secs(1), Duration::from_millis(1)];
    let [bucket, small, window, log] = [
        ("bucket", policies::token_bucket(5_000, second, 20)),
        ("small bucket", policies::draining_bucket(10, 2 * millisecond)),
        ("window", policies::fixed_window(12, millisecond, false)),
        ("log", policies::sliding_window(12, millisecond, None)),
    ]
    .map(|(name, pair)| (name, pair.expect("the policy is valid")));
    [vec![bucket, window], vec![small, window, bucket], vec![bucket, log, window]]
}

#[test]
fn threads_share_stacks_exactly() {
    for stack in stacks() {
        let time = Arc::new(AtomicU64::new(1));
        for store in memory_stores(|| Clock::manual(Arc::clone(&time))) {
            let decide = |thread| decide(&store, &time, &stack, Random::new(thread));
            let of_threads: Vec<_> = thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..PROCESSES).map(|thread| scope.spawn(move || decide(thread))).collect();
                threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
            });
            for (i, (name, pair)) in stack.iter().enumerate() {
                let records = of_threads.iter().flat_map(|records| &records[i]).copied();
                replay_threads(name, pair.model, records.collect(), StoreClock::new(0));
            }
        }
    }
}

/// Charges all policies or none, many times. Returns what each has decided.
fn decide(
    store: &MemoryStore,
    time: &AtomicU64,
    stack: &[(&str, Pair)],
    mut random: Random,
) -> Vec<Vec<Record>> {
    let mut records = vec![Vec::new(); stack.len()];
    for _ in 0..budget(150, 1_000) {
        let wait = random.pick(&[0, 0, 0, 0, 0, 0, 0, 1000]);
        let charge = |(name, pair): &(&str, Pair)| Charge {
            key: Key::raw(*name),
            spec: pair.spec,
            cost: random.between(1, 3),
            wait,
            shadow: false,
        };
        let mut charges: Vec<(usize, Charge)> = stack.iter().map(charge).enumerate().collect();
        if random.percent(50) {
            charges.reverse();
        }
        let (order, charges): (Vec<usize>, Vec<Charge>) = charges.into_iter().unzip();
        let outcome = store.decide(&charges);
        for ((i, charge), verdict) in order.into_iter().zip(&charges).zip(&outcome.verdicts) {
            // Where another policy refuses, this one only reports what it has.
            let is_read = verdict.admitted && !outcome.admitted;
            let (cost, max_wait) = (if is_read { 0 } else { charge.cost }, wait.into());
            let (now, cost) = (outcome.now.into(), cost.into());
            records[i].push(Record { now, cost, max_wait, verdict: verdict.into() });
        }
        let retry_after = outcome.verdicts.iter().filter_map(|verdict| verdict.retry_after).max();
        // Now and then long enough for full buckets, so that the windows refuse.
        let step = if random.percent(2) { 5_000 } else { retry_after.unwrap_or(30).min(100) };
        time.fetch_add(random.below(step.max(1)), Ordering::SeqCst);
    }
    records
}
