//! What policies promise, for whoever checks the calls that a limiter has admitted.

use std::time::Duration;

use super::fixed_window::Windows;
use super::leaky_bucket::Leak;
use super::token_bucket::BurstSize;
use super::{LeakyBucket, Policy, TokenBucket};
use crate::base::bounds::MAX_PERIOD;
use crate::base::calendar::Calendar;
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::rate::Rate;

/// What a policy promises of the calls that it admits, by its numbers as they are written. What the algorithms round makes them
/// stricter, so a limiter that rounds otherwise keeps the promise as well. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// In every half-open interval at most what a bucket holds, and what refills in the length of the interval.
    Bucket(BucketPromise),
    /// In every half-open interval of length `t` at most `burst + refill · (⌊t / period⌋ + 1)`.
    Refills {
        /// The permits that the bucket holds.
        burst: u64,
        /// The permits of a refill.
        refill: u64,
        /// The time from one refill to the next.
        period: u64,
    },
    /// At most `limit` in each window, which a call opens.
    OpenedWindows {
        /// The permits of a window.
        limit: u64,
        /// The length of a window.
        period: u64,
    },
    /// At most `limit` in each window, which starts on a multiple of its length since the Unix epoch.
    AlignedWindows {
        /// The permits of a window.
        limit: u64,
        /// The length of a window.
        period: u64,
    },
    /// At most `limit` in each window of a calendar.
    CalendarWindows {
        /// The permits of a window.
        limit: u64,
        /// When windows begin.
        calendar: Calendar,
    },
    /// At most `limit` in every half-open interval of this length.
    SlidingWindow {
        /// The permits of a window.
        limit: u64,
        /// The length of a window.
        period: u64,
        /// How much longer a counter may count a call.
        precision: u64,
    },
    /// At most so many permits are held at once.
    Holds {
        /// The permits.
        max: u64,
    },
}

/// A bucket in fractions of a permit, small enough for all of its numbers to be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketPromise {
    /// The fractions of one permit.
    pub permit: u128,
    /// The fractions that refill in a nanosecond.
    pub refill: u128,
    /// The fractions that the bucket holds.
    pub capacity: u128,
    /// Whether a call may take more than the bucket holds, so that the last call of an interval does not count.
    pub lends: bool,
    /// Whether the starts of calls tell what it refuses. They do not tell how long a queue is, or how cold a bucket.
    pub tells_refusals: bool,
}

impl Policy {
    /// Returns what the policy promises.
    ///
    /// # Errors
    ///
    /// Fails as [`check`](Self::check) does.
    #[doc(hidden)]
    pub fn promise(&self) -> Result<Promise, InvalidPolicy> {
        self.check()?;
        Ok(match self {
            Policy::TokenBucket(bucket) if bucket.interval_refill => return bucket.refills(),
            Policy::TokenBucket(bucket) => Promise::Bucket(bucket.promise()),
            Policy::LeakyBucket(bucket) => Promise::Bucket(bucket.promise()),
            Policy::FixedWindow(window) => match window.windows {
                Windows::Opened(period) => {
                    Promise::OpenedWindows { limit: window.limit, period: nanos(period) }
                }
                Windows::Aligned(period) => {
                    Promise::AlignedWindows { limit: window.limit, period: nanos(period) }
                }
                Windows::Calendar(calendar) => Promise::CalendarWindows { limit: window.limit, calendar },
            },
            Policy::SlidingWindow(window) => Promise::SlidingWindow {
                limit: window.limit,
                period: nanos(window.period),
                precision: window.precision.map_or(0, nanos),
            },
            Policy::ConcurrencyLimit(limit) => Promise::Holds { max: limit.max },
        })
    }
}

impl TokenBucket {
    fn promise(&self) -> BucketPromise {
        let bucket = BucketPromise::at(self.rate);
        let refill = bucket.refill;
        let permits = |count: u64| u128::from(count) * bucket.permit;
        let whole_micros = |fractions: u128| fractions.div_ceil(refill * 1000) * refill * 1000;
        let burst = match self.burst {
            BurstSize::Default => Duration::from_secs(1).as_nanos() * refill,
            BurstSize::For(time) => time.as_nanos() * refill,
            BurstSize::Permits(count) => permits(count),
        };
        // Times of the store are in whole microseconds, which lending rounds up to; after idle ones, a call may be 2 µs short.
        let (capacity, lends) = match (self.warmup, self.borrow) {
            (Some(_), _) => (2_000 * refill, true),
            (None, true) => (whole_micros(burst), true),
            (None, false) => (burst.max(permits(1)), false),
        };
        BucketPromise { capacity, lends, tells_refusals: self.warmup.is_none(), ..bucket }
    }

    fn refills(&self) -> Result<Promise, InvalidPolicy> {
        let burst = match self.spec()?.max_cost() {
            Some(burst) => burst,
            None => self.rate.permits,
        };
        Ok(Promise::Refills { burst, refill: self.rate.permits, period: nanos(self.rate.period) })
    }
}

impl LeakyBucket {
    fn promise(&self) -> BucketPromise {
        let bucket = match self.leak {
            Leak::Rate(rate) => BucketPromise::at(rate),
            Leak::Drain(drain) => BucketPromise::at(Rate::new(self.capacity, drain)),
        };
        // In a queue a call starts when those before it have left, whatever it takes itself.
        let capacity = if self.queue { 0 } else { u128::from(self.capacity) * bucket.permit };
        BucketPromise { capacity, lends: self.queue, tells_refusals: !self.queue, ..bucket }
    }
}

impl BucketPromise {
    /// Returns an empty bucket with this rate.
    const fn at(rate: Rate) -> Self {
        let (mut divisor, mut rest) = (rate.period.as_nanos(), rate.permits as u128);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        let (permit, refill) = (rate.period.as_nanos() / divisor, rate.permits as u128 / divisor);
        BucketPromise { permit, refill, capacity: 0, lends: false, tells_refusals: true }
    }
}

/// Returns a period, which is at most [`MAX_PERIOD`].
fn nanos(period: Duration) -> u64 {
    period.min(MAX_PERIOD).as_nanos() as u64
}
