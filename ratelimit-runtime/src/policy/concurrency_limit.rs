//! Concurrency limit.

use super::numbers::{checked_count, is_valid, tri};
use crate::algorithm::AlgorithmSpec;
use crate::algorithm::holds::HoldsSpec;
use crate::base::invalid_policy::InvalidPolicy;

/// Concurrency limit, a semaphore: at most `max` permits are held at once.
///
/// A call holds its permits from its admission until its [`Decision`](crate::Decision) is dropped, however long that takes, and then
/// others may have them. Of a function with `#[concurrency_limit]` that is when its future has ended or is dropped.
///
/// One that is never dropped, as by [`std::mem::forget`], holds them as long as the process lives, also in Redis. A
/// [`reset`](crate::Limiter::reset) frees them in process, but not in Redis, where their process says it again.
///
/// It is unknown when a call will end, so a refusal has no `retry_after`. A lower `max` ends no call.
///
/// ```
/// # use ratelimits::{ConcurrencyLimit, Registry};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let exports = Registry::in_memory().limiter("exports", ConcurrencyLimit::new(2))?;
/// let first = exports.try_acquire("tenant-7").await?;
/// let _second = exports.try_acquire("tenant-7").await?;
/// assert!(exports.try_acquire("tenant-7").await.is_err());
/// drop(first);
/// assert!(exports.try_acquire("tenant-7").await.is_ok());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConcurrencyLimit {
    pub(super) max: u64,
}

impl ConcurrencyLimit {
    /// Creates a policy under which at most `max` permits of a key are held at once.
    #[must_use]
    pub const fn new(max: u64) -> Self {
        ConcurrencyLimit { max }
    }

    /// Checks the number of the policy.
    ///
    /// # Errors
    ///
    /// Fails if `max` is zero or too large.
    pub const fn check(&self) -> Result<(), InvalidPolicy> {
        is_valid(self.spec())
    }

    pub(super) const fn spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        Ok(AlgorithmSpec::Holds(HoldsSpec { max: tri!(checked_count(self.max, "max")) }))
    }
}
