//! What one of several instances may give by itself, so that all of them together keep to the spec.
//!
//! The rate is per_instance by stretching time, the capacity down to one permit. All numbers stay within those of a policy, so
//! what the algorithms make sure of holds for shares too. What would be slower than one permit in 3650 days is that: no
//! process runs for so long that it would give a second one.

use super::AlgorithmSpec;
use super::fixed_window::FixedWindowSpec;
use super::gcra::{Gcra, Kind};
use super::interval_bucket::IntervalBucket;
use super::sliding_window::SlidingWindowSpec;
use super::warming_up::WarmingUp;
use crate::bounds::LONGEST_MICROS;

impl AlgorithmSpec {
    /// The share of one of so many instances; of one it is the spec itself, and 0 counts as 1.
    ///
    /// In every interval all shares together give no more than the spec, where its capacity is at least a permit for each
    /// instance. Where it is not, one call an instance more: so too where calls may borrow, of a cost above 1.
    #[must_use]
    pub fn per_instance(self, instances: u32) -> AlgorithmSpec {
        let instances = instances.max(1);
        match self {
            AlgorithmSpec::Gcra(spec) => AlgorithmSpec::Gcra(spec.per_instance(instances)),
            AlgorithmSpec::IntervalBucket(spec) => {
                AlgorithmSpec::IntervalBucket(spec.per_instance(instances.into()))
            }
            AlgorithmSpec::WarmingUp(WarmingUp { rate, warmup }) => {
                AlgorithmSpec::WarmingUp(WarmingUp { rate: rate.per_instance(instances), warmup })
            }
            AlgorithmSpec::FixedWindow(spec) => {
                AlgorithmSpec::FixedWindow(spec.per_instance(instances.into()))
            }
            AlgorithmSpec::SlidingWindow(spec) => {
                AlgorithmSpec::SlidingWindow(spec.per_instance(instances.into()))
            }
        }
    }
}

impl Gcra {
    /// Where a permit takes so many times as long, the same time from empty to full is that part of the permits.
    fn per_instance(self, instances: u32) -> Self {
        let interval = stretched(self.interval, instances.into(), 1);
        let (kind, capacity) = match self.kind {
            Kind::Borrowing(rate) => {
                // Each of them lends a permit, and the policy only one in all.
                let lent = self.interval.saturating_mul(u64::from(instances) - 1);
                (Kind::Borrowing(rate.per_instance(instances)), self.capacity.saturating_sub(lent))
            }
            kind => (kind, self.capacity.max(interval)),
        };
        Gcra { kind, interval, capacity }
    }
}

impl IntervalBucket {
    fn per_instance(self, instances: u64) -> Self {
        let IntervalBucket { burst, refill, period } = self;
        let period = if refill < instances { stretched(period, instances, refill) } else { period };
        IntervalBucket { burst: (burst / instances).max(1), refill: (refill / instances).max(1), period }
    }
}

impl FixedWindowSpec {
    fn per_instance(self, instances: u64) -> Self {
        let FixedWindowSpec { limit, period, aligned } = self;
        if limit >= instances {
            return FixedWindowSpec { limit: limit / instances, period, aligned };
        }
        // Of one permit a window that opens with the call keeps the next one a whole period away, and aligned ones do not.
        FixedWindowSpec { limit: 1, period: stretched(period, instances, limit), aligned: false }
    }
}

impl SlidingWindowSpec {
    fn per_instance(self, instances: u64) -> Self {
        let SlidingWindowSpec { limit, period, precision } = self;
        let (period, precision) = match precision {
            _ if limit >= instances => (period, precision),
            0 => (stretched(period, instances, limit), 0),
            _ => {
                let windows = period / precision;
                let precision = stretched(precision, instances, limit).min(LONGEST_MICROS / windows);
                (precision * windows, precision)
            }
        };
        SlidingWindowSpec { limit: (limit / instances).max(1), period, precision }
    }
}

/// A time in microseconds, `times / by` as long, rounded up.
fn stretched(micros: u64, times: u64, by: u64) -> u64 {
    let stretched = (u128::from(micros) * u128::from(times)).div_ceil(by.into());
    stretched.min(LONGEST_MICROS.into()) as u64
}
