//! Leaky bucket.

use std::time::Duration;

use super::numbers::{checked_capacity, checked_count, checked_interval, is_valid, tri};
use crate::algorithm::AlgorithmSpec;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::settled_gcra::SettledGcraSpec;
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::rate::Rate;

/// Leaky bucket: calls fill a bucket that leaks at a constant rate, and calls that would overflow it are refused.
///
/// By default the bucket is a meter, which decides every call at once and admits at most `capacity + leak_rate · t` permits in
/// every interval of length `t`. It is the mirror image of a [`TokenBucket`](crate::TokenBucket) (Turner 1986) and rounds its
/// rate in the same way. As a [`queue`](Self::queue) it delays calls, so that they start evenly spaced.
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
    pub(super) capacity: u64,
    pub(super) leak: Leak,
    pub(super) queue: bool,
    pub(super) adjustable: bool,
    pub(super) settled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Leak {
    Rate(Rate),
    Drain(Duration),
}

impl LeakyBucket {
    /// Creates a bucket for `capacity` permits that leaks at `leak_rate`.
    #[must_use]
    pub const fn new(capacity: u64, leak_rate: Rate) -> Self {
        LeakyBucket { capacity, leak: Leak::Rate(leak_rate), queue: false, adjustable: false, settled: false }
    }

    /// Creates a bucket for `capacity` permits that drains from full to empty in `drain`.
    #[must_use]
    pub const fn draining(capacity: u64, drain: Duration) -> Self {
        LeakyBucket { capacity, leak: Leak::Drain(drain), queue: false, adjustable: false, settled: false }
    }

    /// Makes the bucket the textbook queue: one call starts at once, up to `capacity` more wait and start evenly spaced at the
    /// leak rate, and further calls are refused.
    ///
    /// A call of cost n takes the next n slots and starts at the first of them. It is refused unless all n are within the
    /// queue. At most `1 + leak_rate · t` slots lie in every interval of length `t`.
    ///
    /// [`Limiter::acquire`](crate::Limiter::acquire) waits for the slot; [`try_acquire`](crate::Limiter::try_acquire)
    /// succeeds only if the queue is empty. `retry_after` is the time until the same call, with the same timeout, would get a
    /// slot.
    ///
    /// ```
    /// use ratelimits::{LeakyBucket, Rate, Registry};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let texts = Registry::in_memory().limiter("texts", LeakyBucket::new(2, Rate::per_second(100)).queue())?;
    /// let (first, second, third, fourth) = tokio::join!(
    ///     texts.acquire(()),
    ///     texts.acquire(()),
    ///     texts.acquire(()),
    ///     texts.acquire(()),
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

    /// Keeps one state per key, whatever the capacity and the leak rate, so that a key gets no fresh capacity when they change.
    /// Attributes do this by themselves where a number is computed.
    ///
    /// The permits in the bucket stay in it. They leak at the rate of the last admitted call until the next one is admitted.
    /// [`TokenBucket::adjustable`](crate::TokenBucket::adjustable) has the details and an example.
    #[must_use]
    pub const fn adjustable(mut self) -> Self {
        self.adjustable = true;
        self
    }

    /// As [`TokenBucket::settled`](crate::TokenBucket::settled), but for a queue no more than [`adjustable`](Self::adjustable).
    #[doc(hidden)]
    #[must_use]
    pub const fn settled(mut self) -> Self {
        (self.adjustable, self.settled) = (true, true);
        self
    }

    /// Checks the numbers of the policy.
    ///
    /// # Errors
    ///
    /// Fails if the capacity or the rate is zero or out of range, or if rounding to microseconds would change the rate by
    /// over 1 %.
    pub const fn check(&self) -> Result<(), InvalidPolicy> {
        is_valid(self.spec())
    }

    pub(super) const fn spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        let capacity = tri!(checked_count(self.capacity, "capacity"));
        let interval = tri!(match self.leak {
            Leak::Rate(rate) => checked_interval(rate, "leak_rate"),
            Leak::Drain(drain) if drain.is_zero() => {
                Err(InvalidPolicy::new("drain", "is zero; write a duration above zero, like \"30m\""))
            }
            Leak::Drain(drain) => checked_interval(Rate::new(capacity, drain), "drain"),
        });
        // A queue has one slot more, for the call that starts at once.
        let (kind, slots) =
            if self.queue { (GcraKind::Queue, capacity + 1) } else { (GcraKind::Meter, capacity) };
        let capacity = tri!(checked_capacity(slots as u128 * interval as u128, "capacity"));
        let spec = GcraSpec { kind, interval, capacity };
        if self.settled && !self.queue {
            return Ok(AlgorithmSpec::SettledGcra(SettledGcraSpec(spec)));
        }
        Ok(AlgorithmSpec::gcra(spec, self.adjustable))
    }
}
