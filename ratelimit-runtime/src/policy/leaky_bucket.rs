//! Leaky bucket.

use std::time::Duration;

use super::Policy;
use super::numbers::{checked_count, fits, interval};
use crate::algorithm::Rule;
use crate::algorithm::gcra::Gcra;
use crate::error::InvalidPolicy;
use crate::rate::Rate;

/// Leaky bucket as a meter: calls fill a bucket of a capacity that leaks at a rate, and what does not fit is refused.
///
/// In every interval of length `t` at most `capacity + leak_rate · t` permits are given. It answers at once; it is the
/// token bucket seen from the other side (Turner 1986), and the sentences on rounding there hold here too.
///
/// ```
/// use std::time::Duration;
/// use ratelimits::{LeakyBucket, Rate};
///
/// const UPLOADS: LeakyBucket = LeakyBucket::new(20, Rate::per_second(2));
/// const LOGINS: LeakyBucket = LeakyBucket::draining(5, Duration::from_secs(1800));
/// const _: () = assert!(UPLOADS.check().is_ok() && LOGINS.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeakyBucket {
    capacity: u64,
    leak: Leak,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Leak {
    Rate(Rate),
    Drain(Duration),
}

impl LeakyBucket {
    /// A bucket for `capacity` permits that leaks at `leak_rate`.
    #[must_use]
    pub const fn new(capacity: u64, leak_rate: Rate) -> Self {
        LeakyBucket { capacity, leak: Leak::Rate(leak_rate) }
    }

    /// A bucket for `capacity` permits that takes `drain` from full to empty.
    #[must_use]
    pub const fn draining(capacity: u64, drain: Duration) -> Self {
        LeakyBucket { capacity, leak: Leak::Drain(drain) }
    }

    /// Whether the numbers make sense.
    ///
    /// # Errors
    ///
    /// If the capacity or the rate is zero or out of range, or a microsecond too coarse for the rate.
    pub const fn check(&self) -> Result<(), InvalidPolicy> {
        Policy::LeakyBucket(*self).check()
    }

    pub(super) const fn rule(&self) -> Result<Rule, InvalidPolicy> {
        let capacity = match checked_count(self.capacity, "capacity") {
            Ok(capacity) => capacity,
            Err(invalid) => return Err(invalid),
        };
        let interval = match self.leak {
            Leak::Rate(rate) => interval(rate, "leak_rate"),
            Leak::Drain(drain) if drain.is_zero() => {
                Err(InvalidPolicy::new("drain", "has no length; write a time above zero, like \"30m\""))
            }
            Leak::Drain(drain) => interval(Rate::new(capacity, drain), "drain"),
        };
        let interval = match interval {
            Ok(interval) => interval,
            Err(invalid) => return Err(invalid),
        };
        match fits(capacity as u128 * interval as u128, "capacity") {
            Ok(capacity) => Ok(Rule::Gcra(Gcra { kind: "lb", interval, capacity })),
            Err(invalid) => Err(invalid),
        }
    }
}
