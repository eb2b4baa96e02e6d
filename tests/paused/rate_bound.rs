//! The most that a bucket may admit in any interval of time.

use ratelimit_runtime::algorithm::gcra::GcraKind;
use ratelimit_runtime::store::AlgorithmSpec;

/// Checks calls given as (slot, cost), in µs. `permit` is the nanoseconds of one permit, rounded down.
pub(super) fn assert_within(spec: &AlgorithmSpec, permit: u64, mut calls: Vec<(u64, u64)>) {
    calls.sort_unstable();
    for first in 0..calls.len() {
        let mut total = 0;
        for (slot, cost) in &calls[first..] {
            let before = total;
            total += cost;
            let elapsed = slot - calls[first].0;
            let within = match spec {
                AlgorithmSpec::IntervalBucket(spec) => {
                    total <= spec.burst + spec.refill * (elapsed / spec.period + 1)
                }
                AlgorithmSpec::WarmingUp(_) => before * permit / 1000 <= elapsed + 1,
                AlgorithmSpec::Gcra(spec) => match spec.kind {
                    GcraKind::TokenBucket => total * spec.interval <= spec.capacity + elapsed,
                    GcraKind::Queue => before * spec.interval <= elapsed,
                    _ => before * permit / 1000 <= spec.capacity + elapsed,
                },
                _ => unreachable!("only buckets reserve slots"),
            };
            assert!(within, "{total} permits in {elapsed} µs by {spec:?}: {:?}", &calls[first..]);
        }
    }
}
