//! Leaky bucket.

use std::time::Duration;

use super::Policy;
use super::numbers::{checked_count, fits, interval};
use crate::algorithm::AlgorithmSpec;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::error::invalid_policy::InvalidPolicy;
use crate::rate::Rate;

/// Leaky bucket: calls fill a bucket of a capacity that leaks at a rate, and what does not fit is refused.
///
/// As a meter it answers at once, and in every interval of length `t` at most `capacity + leak_rate · t` permits are given. It
/// is the token bucket seen from the other side (Turner 1986), and the sentences on rounding there hold here too. As a
/// [`queue`](Self::queue) it lets calls wait and leave evenly spaced.
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
    queue: bool,
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
        LeakyBucket { capacity, leak: Leak::Rate(leak_rate), queue: false }
    }

    /// A bucket for `capacity` permits that takes `drain` from full to empty.
    #[must_use]
    pub const fn draining(capacity: u64, drain: Duration) -> Self {
        LeakyBucket { capacity, leak: Leak::Drain(drain), queue: false }
    }

    /// The textbook queue: one call leaves at once, `capacity` more wait and leave evenly spaced at the leak rate, and
    /// further ones are refused. A call of cost n takes the next n slots, leaves at the first, and is refused unless all of
    /// them are free. In every interval of length `t` at most `1 + leak_rate · t` permits are given.
    ///
    /// [`Limiter::acquire`](crate::Limiter::acquire) waits for the slot; [`try_acquire`](crate::Limiter::try_acquire)
    /// gets one only if the line is empty. `retry_after` tells when the same call, with the same timeout, would get a slot.
    ///
    /// ```
    /// use ratelimits::{LeakyBucket, Rate, Registry};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let texts = Registry::in_memory().limiter("texts", LeakyBucket::new(2, Rate::per_second(100)).queue())?;
    /// let (first, second, third, fourth) = tokio::join!(
    ///     texts.acquire((), 1),
    ///     texts.acquire((), 1),
    ///     texts.acquire((), 1),
    ///     texts.acquire((), 1),
    /// );
    /// assert!(first?.waited.is_zero());
    /// assert!(second?.waited < third?.waited);
    /// assert!(fourth.unwrap_err().is_limited());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn queue(mut self) -> Self {
        self.queue = true;
        self
    }

    /// Whether the numbers make sense.
    ///
    /// # Errors
    ///
    /// If the capacity or the rate is zero or out of range, or a microsecond too coarse for the rate.
    pub const fn check(&self) -> Result<(), InvalidPolicy> {
        Policy::LeakyBucket(*self).check()
    }

    pub(super) const fn spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
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
        // The call that leaves at once has a place of its own.
        let (kind, capacity) =
            if self.queue { (GcraKind::Queue, capacity + 1) } else { (GcraKind::Meter, capacity) };
        match fits(capacity as u128 * interval as u128, "capacity") {
            Ok(capacity) => Ok(AlgorithmSpec::Gcra(GcraSpec { kind, interval, capacity })),
            Err(invalid) => Err(invalid),
        }
    }
}
