//! What one of several instances may give by itself, so that all of them together keep to the rule.
//!
//! The rate is divided by stretching time, the capacity down to one permit. All numbers stay within those of a policy, so
//! what the algorithms make sure of holds for shares too. What would be slower than one permit in 3650 days is that: no
//! process runs for so long that it would give a second one.

use super::Rule;
use super::fixed_window::FixedWindowRule;
use super::gcra::{Gcra, Kind};
use super::interval_bucket::IntervalBucket;
use super::sliding_window::SlidingWindowRule;
use super::warming_up::WarmingUp;
use crate::bounds::LONGEST_MICROS;

impl Rule {
    /// The share of one of so many instances; of one it is the rule itself, and 0 counts as 1.
    ///
    /// In every interval all shares together give no more than the rule, where its capacity is at least a permit for each
    /// instance. Where it is not, one call an instance more: so too where calls may borrow, of a cost above 1.
    #[must_use]
    pub fn divided(self, instances: u32) -> Rule {
        let instances = instances.max(1);
        match self {
            Rule::Gcra(rule) => Rule::Gcra(rule.divided(instances)),
            Rule::IntervalBucket(rule) => Rule::IntervalBucket(rule.divided(instances.into())),
            Rule::WarmingUp(WarmingUp { rate, warmup }) => {
                Rule::WarmingUp(WarmingUp { rate: rate.divided(instances), warmup })
            }
            Rule::FixedWindow(rule) => Rule::FixedWindow(rule.divided(instances.into())),
            Rule::SlidingWindow(rule) => Rule::SlidingWindow(rule.divided(instances.into())),
        }
    }
}

impl Gcra {
    /// Where a permit takes so many times as long, the same time from empty to full is that part of the permits.
    fn divided(self, instances: u32) -> Self {
        let interval = stretched(self.interval, instances.into(), 1);
        let (kind, capacity) = match self.kind {
            Kind::Borrowing(rate) => {
                // Each of them lends a permit, and the policy only one in all.
                let lent = self.interval.saturating_mul(u64::from(instances) - 1);
                (Kind::Borrowing(rate.divided(instances)), self.capacity.saturating_sub(lent))
            }
            kind => (kind, self.capacity.max(interval)),
        };
        Gcra { kind, interval, capacity }
    }
}

impl IntervalBucket {
    fn divided(self, instances: u64) -> Self {
        let IntervalBucket { burst, refill, period } = self;
        let period = if refill < instances { stretched(period, instances, refill) } else { period };
        IntervalBucket { burst: (burst / instances).max(1), refill: (refill / instances).max(1), period }
    }
}

impl FixedWindowRule {
    fn divided(self, instances: u64) -> Self {
        let FixedWindowRule { limit, period, aligned } = self;
        if limit >= instances {
            return FixedWindowRule { limit: limit / instances, period, aligned };
        }
        // Of one permit a window that opens with the call keeps the next one a whole period away, and aligned ones do not.
        FixedWindowRule { limit: 1, period: stretched(period, instances, limit), aligned: false }
    }
}

impl SlidingWindowRule {
    fn divided(self, instances: u64) -> Self {
        let SlidingWindowRule { limit, period, precision } = self;
        let (period, precision) = match precision {
            _ if limit >= instances => (period, precision),
            0 => (stretched(period, instances, limit), 0),
            _ => {
                let windows = period / precision;
                let precision = stretched(precision, instances, limit).min(LONGEST_MICROS / windows);
                (precision * windows, precision)
            }
        };
        SlidingWindowRule { limit: (limit / instances).max(1), period, precision }
    }
}

/// A time in microseconds, `times / by` as long, rounded up.
fn stretched(micros: u64, times: u64, by: u64) -> u64 {
    let stretched = (u128::from(micros) * u128::from(times)).div_ceil(by.into());
    stretched.min(LONGEST_MICROS.into()) as u64
}
