//! The policies, and which algorithm each of them is.

use ratelimit_runtime::CalendarPeriod;

use super::adjustable::{AdjustableBucket, Pace};
use super::bucket::{Bucket, Price};
use super::calendar_window::CalendarWindow;
use super::fixed_window::FixedWindow;
use super::holds::Holds;
use super::interval_bucket::IntervalBucket;
use super::queue::Queue;
use super::sliding_window::SlidingWindow;
use super::warming_up::WarmingUp;
use super::{Algorithm, ceil};

/// A policy in microseconds and permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// A token bucket or leaky bucket: holds `full` microseconds of refill, of which a permit takes `permit`.
    Bucket {
        permit: i128,
        full: i128,
    },
    /// Holds `burst` permits and gets `refill` of them at once every `every`, from the call that found it full.
    Interval {
        burst: i128,
        refill: i128,
        every: i128,
        /// Whether the first two can change.
        adjustable: bool,
    },
    /// Holds `full` microseconds of refill. A call takes its permits at the rate, and later calls wait until its debt is paid.
    Borrowing {
        permits: i128,
        period_ns: i128,
        full: i128,
    },
    /// This many slots, each `interval` after the one before.
    Queue {
        interval: i128,
        slots: i128,
    },
    WarmingUp {
        permits: i128,
        period_ns: i128,
        warmup: i128,
        /// Whether the numbers can change.
        adjustable: bool,
    },
    /// A bucket or queue whose numbers can change.
    Adjustable(AdjustableBucket),
    Fixed {
        limit: i128,
        period: i128,
        aligned: bool,
    },
    /// The days, weeks, months or years of a time zone.
    Calendar {
        limit: i128,
        period: CalendarPeriod,
        zone: &'static str,
    },
    /// An exact log, or with a precision a counter of sub-windows.
    Sliding {
        limit: i128,
        period: i128,
        precision: Option<i128>,
    },
    /// So many permits at once.
    Holds {
        max: i128,
    },
}

impl Policy {
    /// Returns a bucket with a rate of `permits` per `period_ns` that holds `burst` permits.
    pub(crate) fn bucket(permits: i128, period_ns: i128, burst: i128) -> Policy {
        let permit = ceil(period_ns, permits * 1000);
        Policy::Bucket { permit, full: burst * permit }
    }

    /// Returns a bucket that holds what `time_ns` refills, fractions kept, and at least one permit.
    pub(crate) fn bucket_for(permits: i128, period_ns: i128, time_ns: i128) -> Policy {
        let permit = ceil(period_ns, permits * 1000);
        Policy::Bucket { permit, full: (time_ns * permits * permit / period_ns).max(permit) }
    }

    /// Returns a bucket that lends and holds what `time_ns` refills.
    pub(crate) fn borrowing_for(permits: i128, period_ns: i128, time_ns: i128) -> Policy {
        Policy::Borrowing { permits, period_ns, full: ceil(time_ns, 1000) }
    }

    /// Returns a bucket that lends and holds `burst` permits.
    pub(crate) fn borrowing(permits: i128, period_ns: i128, burst: i128) -> Policy {
        Policy::borrowing_for(permits, period_ns, ceil(burst * period_ns, permits))
    }

    /// Returns a queue from which one call leaves at once, while `capacity` wait.
    pub(crate) fn queue(permits: i128, period_ns: i128, capacity: i128) -> Policy {
        Policy::Queue { interval: ceil(period_ns, permits * 1000), slots: 1 + capacity }
    }

    /// Returns the most permits available at once.
    pub(crate) fn limit(self) -> i128 {
        self.algorithm().limit()
    }

    /// Returns a policy with the larger numbers of both, which differ only in what can change.
    pub(crate) fn largest(self, other: Policy) -> Policy {
        match (self, other) {
            (Policy::Adjustable(a), Policy::Adjustable(b)) => {
                let pace = if b.pace.is_faster_than(a.pace) { b.pace } else { a.pace };
                let burst = self.limit().max(other.limit());
                Policy::Adjustable(AdjustableBucket {
                    pace,
                    full: ceil(burst * pace.micros, pace.permits),
                    ..a
                })
            }
            (
                Policy::Interval { burst, refill, every, adjustable },
                Policy::Interval { burst: b, refill: r, .. },
            ) => Policy::Interval { burst: burst.max(b), refill: refill.max(r), every, adjustable },
            _ => self,
        }
    }

    /// Returns the pace of a bucket that refills continuously and whose numbers change.
    pub(crate) fn pace(self) -> Option<Pace> {
        match self {
            Policy::Adjustable(bucket) => Some(bucket.pace),
            _ => None,
        }
    }

    pub(crate) fn is_window(self) -> bool {
        matches!(
            self,
            Policy::Fixed { .. } | Policy::Calendar { .. } | Policy::Sliding { .. } | Policy::Holds { .. }
        )
    }

    /// Returns the least that a charge takes: microseconds of refill from a bucket that refills continuously, else permits.
    pub(crate) fn price(self, cost: i128) -> i128 {
        self.algorithm().price(cost)
    }

    /// Returns the bucket, if its numbers never change and its calls do not queue.
    pub(super) fn literal_bucket(self) -> Option<Bucket> {
        match self {
            Policy::Bucket { permit, full } => Some(Bucket { full, price: Price::PerPermit(permit) }),
            Policy::Borrowing { permits, period_ns, full } => {
                Some(Bucket { full, price: Price::Borrowed { permits, period_ns } })
            }
            _ => None,
        }
    }

    pub(super) fn algorithm(self) -> Box<dyn Algorithm> {
        if let Some(bucket) = self.literal_bucket() {
            return Box::new(bucket);
        }
        match self {
            Policy::Bucket { .. } | Policy::Borrowing { .. } => unreachable!("it is a literal bucket"),
            Policy::Adjustable(bucket) => Box::new(bucket),
            Policy::Interval { burst, refill, every, adjustable } => {
                Box::new(IntervalBucket { burst, refill, every, adjustable })
            }
            Policy::Queue { interval, slots } => Box::new(Queue { interval, slots }),
            Policy::WarmingUp { permits, period_ns, warmup, adjustable } => {
                Box::new(WarmingUp { permits, period_ns, warmup, adjustable })
            }
            Policy::Fixed { limit, period, aligned } => Box::new(FixedWindow { limit, period, aligned }),
            Policy::Calendar { limit, period, zone } => Box::new(CalendarWindow { limit, period, zone }),
            Policy::Sliding { limit, period, precision } => {
                Box::new(SlidingWindow { limit, period, precision })
            }
            Policy::Holds { max } => Box::new(Holds { max }),
        }
    }
}
