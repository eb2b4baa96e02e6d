//! What a bucket gives in any interval of time.

use ratelimit_runtime::algorithm::gcra::GcraKind;
use ratelimit_runtime::store::AlgorithmSpec;

/// Checks calls by their slots and costs. `permit` is the nanoseconds of one permit, rounded down.
pub(super) fn holds(spec: &AlgorithmSpec, permit: u64, mut calls: Vec<(u64, u64)>) {
    calls.sort_unstable();
    for first in 0..calls.len() {
        let mut all = 0;
        for (slot, cost) in &calls[first..] {
            let but_last = all;
            all += cost;
            let time = slot - calls[first].0;
            let within = match spec {
                AlgorithmSpec::IntervalBucket(spec) => {
                    all <= spec.burst + spec.refill * (time / spec.period + 1)
                }
                AlgorithmSpec::WarmingUp(_) => but_last * permit / 1000 <= time + 1,
                AlgorithmSpec::Gcra(spec) => match spec.kind {
                    GcraKind::TokenBucket => all * spec.interval <= spec.capacity + time,
                    GcraKind::Queue => but_last * spec.interval <= time,
                    _ => but_last * permit / 1000 <= spec.capacity + time,
                },
                _ => unreachable!("only buckets reserve"),
            };
            assert!(within, "{all} permits in {time} µs by {spec:?}: {:?}", &calls[first..]);
        }
    }
}
