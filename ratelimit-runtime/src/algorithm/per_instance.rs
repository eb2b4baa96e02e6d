//! The share of a policy that one of several instances grants on its own.
//!
//! A share divides the rate by stretching time, and the capacity down to one permit. Its numbers stay within the bounds of a
//! policy, so everything that the algorithms guarantee holds for shares too. A share slower than one permit in 3650 days
//! becomes exactly that, as no process runs for long enough to grant a second one.

use super::adjustable_gcra::AdjustableGcraSpec;
use super::calendar_window::CalendarWindowSpec;
use super::fixed_window::FixedWindowSpec;
use super::gcra::{GcraKind, GcraSpec};
use super::holds::HoldsSpec;
use super::interval_bucket::IntervalBucketSpec;
use super::settled_gcra::SettledGcraSpec;
use super::sliding_window::SlidingWindowSpec;
use super::spec::AlgorithmSpec;
use super::warming_up::WarmingUpSpec;
use crate::base::bounds::MAX_PERIOD_MICROS;

impl AlgorithmSpec {
    /// Returns the share of one of this many instances. The share of a single instance is the spec itself; 0 counts as 1.
    ///
    /// In every interval all shares together admit no more than the spec if its capacity is at least one permit per instance.
    /// If it is smaller, or if calls of a cost above 1 may borrow, they admit up to one more call per instance.
    #[must_use]
    pub fn per_instance(self, instances: u32) -> AlgorithmSpec {
        let instances = instances.max(1);
        let n = u64::from(instances);
        match self {
            AlgorithmSpec::Gcra(spec) => AlgorithmSpec::Gcra(spec.per_instance(instances)),
            AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec)) => {
                AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec.per_instance(instances)))
            }
            AlgorithmSpec::SettledGcra(SettledGcraSpec(spec)) => {
                AlgorithmSpec::SettledGcra(SettledGcraSpec(spec.per_instance(instances)))
            }
            AlgorithmSpec::IntervalBucket(spec) => AlgorithmSpec::IntervalBucket(spec.per_instance(n)),
            AlgorithmSpec::WarmingUp(spec) => {
                AlgorithmSpec::WarmingUp(WarmingUpSpec { rate: spec.rate.per_instance(instances), ..spec })
            }
            AlgorithmSpec::FixedWindow(spec) => AlgorithmSpec::FixedWindow(spec.per_instance(n)),
            // No share can lengthen a month.
            AlgorithmSpec::CalendarWindow(CalendarWindowSpec { limit, calendar }) => {
                AlgorithmSpec::CalendarWindow(CalendarWindowSpec { limit: (limit / n).max(1), calendar })
            }
            AlgorithmSpec::SlidingWindow(spec) => AlgorithmSpec::SlidingWindow(spec.per_instance(n)),
            AlgorithmSpec::Holds(HoldsSpec { max }) => {
                AlgorithmSpec::Holds(HoldsSpec { max: max.div_ceil(n) })
            }
        }
    }
}

impl GcraSpec {
    /// Stretches only the interval: the same time from empty to full then holds fewer permits.
    fn per_instance(self, instances: u32) -> Self {
        let interval = stretched(self.interval, instances.into(), 1);
        let (kind, capacity) = match self.kind {
            GcraKind::Borrowing(rate) => {
                // Each share lends a permit, but the policy lends only one in total.
                let lent = self.interval.saturating_mul(u64::from(instances) - 1);
                (GcraKind::Borrowing(rate.per_instance(instances)), self.capacity.saturating_sub(lent))
            }
            kind => (kind, self.capacity.max(interval)),
        };
        GcraSpec { kind, interval, capacity }
    }
}

impl IntervalBucketSpec {
    fn per_instance(self, instances: u64) -> Self {
        let IntervalBucketSpec { burst, refill, period, .. } = self;
        let period = if refill < instances { stretched(period, instances, refill) } else { period };
        IntervalBucketSpec {
            burst: (burst / instances).max(1),
            refill: (refill / instances).max(1),
            period,
            ..self
        }
    }
}

impl FixedWindowSpec {
    fn per_instance(self, instances: u64) -> Self {
        let FixedWindowSpec { limit, period, aligned } = self;
        if limit >= instances {
            return FixedWindowSpec { limit: limit / instances, period, aligned };
        }
        // With one permit, unaligned windows keep calls a whole period apart, and aligned ones do not.
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
                let precision = stretched(precision, instances, limit).min(MAX_PERIOD_MICROS / windows);
                (precision * windows, precision)
            }
        };
        SlidingWindowSpec { limit: (limit / instances).max(1), period, precision }
    }
}

/// Returns the time multiplied by `times / by`, rounded up.
fn stretched(micros: u64, times: u64, by: u64) -> u64 {
    let stretched = (u128::from(micros) * u128::from(times)).div_ceil(by.into());
    stretched.min(MAX_PERIOD_MICROS.into()) as u64
}
