//! What a bucket gives in any interval of time.

use ratelimits::algorithm::gcra::Kind;
use ratelimits::store::Rule;

/// Checks calls by their slots and costs. `permit` is the nanoseconds of one permit, rounded down.
pub(super) fn holds(rule: &Rule, permit: u64, mut calls: Vec<(u64, u64)>) {
    calls.sort_unstable();
    for first in 0..calls.len() {
        let mut all = 0;
        for (slot, cost) in &calls[first..] {
            let but_last = all;
            all += cost;
            let time = slot - calls[first].0;
            let within = match rule {
                Rule::IntervalBucket(rule) => all <= rule.burst + rule.refill * (time / rule.period + 1),
                Rule::WarmingUp(_) => but_last * permit / 1000 <= time + 1,
                Rule::Gcra(rule) => match rule.kind {
                    Kind::TokenBucket => all * rule.interval <= rule.capacity + time,
                    Kind::Queue => but_last * rule.interval <= time,
                    _ => but_last * permit / 1000 <= rule.capacity + time,
                },
                _ => unreachable!("only buckets reserve"),
            };
            assert!(within, "{all} permits in {time} µs by {rule:?}: {:?}", &calls[first..]);
        }
    }
}
