//! The policies that users write: an algorithm and its numbers.

mod algorithm;
mod arguments;
mod attribute_kind;
mod concurrency_limit;
mod fixed_window;
mod leaky_bucket;
mod lease_size;
mod notify_at;
pub(crate) mod numbers;
mod promise;
#[cfg(feature = "serde")]
mod serde;
mod sliding_window;
mod token_bucket;
#[cfg(feature = "overrides")]
mod words;
mod written;

pub use algorithm::Algorithm;
pub use arguments::ArgumentValue;
#[cfg(feature = "overrides")]
pub(crate) use arguments::Number;
pub use concurrency_limit::ConcurrencyLimit;
pub use fixed_window::FixedWindow;
pub use leaky_bucket::LeakyBucket;
pub use lease_size::LeaseSize;
pub(crate) use lease_size::Slack;
pub use notify_at::NotifyAt;
pub use promise::{BucketPromise, Promise};
pub use sliding_window::SlidingWindow;
pub use token_bucket::TokenBucket;

use crate::algorithm::AlgorithmSpec;
use crate::base::invalid_policy::InvalidPolicy;

/// One of the five algorithms with its numbers.
///
/// Functions that take a policy accept `impl Into<Policy>`, so each algorithm can be passed directly. Use this type to store
/// policies of different algorithms, for example from a configuration file.
///
/// ```
/// use std::time::Duration;
/// use ratelimits::{FixedWindow, Policy, Registry, TokenBucket};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let plans: [(&str, Policy); 2] = [
///     ("free", FixedWindow::new(100, Duration::from_secs(86_400)).into()),
///     ("paid", TokenBucket::per_second(50).burst(200).into()),
/// ];
/// let registry = Registry::in_memory();
/// for (name, policy) in plans {
///     registry.limiter(name, policy)?.try_acquire("tenant-7").await?;
/// }
/// # Ok(()) }
/// ```
///
/// With the feature `serde` a policy is a table of the arguments of its attribute, and of its [`algorithm`](Algorithm::name). What
/// attributes take without a value is `true`. Numbers are checked as they are read.
///
/// ```
/// # #[cfg(feature = "serde")] fn main() -> Result<(), serde_json::Error> {
/// # use ratelimits::{LeakyBucket, Policy, Rate, TokenBucket};
/// let free: Policy = serde_json::from_str(r#"{"algorithm": "token bucket", "rate": "100/min", "burst": 20}"#)?;
/// assert_eq!(free, TokenBucket::new(Rate::new(100, std::time::Duration::from_secs(60))).burst(20).into());
///
/// let paced = Policy::from(LeakyBucket::new(50, Rate::per_second(10)).queue());
/// let text = r#"{"algorithm":"leaky bucket","capacity":50,"leak_rate":"10/s","queue":true}"#;
/// assert_eq!(serde_json::to_string(&paced)?, text);
/// # Ok(()) }
/// # #[cfg(not(feature = "serde"))] fn main() {}
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// Permits refill at a rate, up to a burst.
    TokenBucket(TokenBucket),
    /// A limit for each window.
    FixedWindow(FixedWindow),
    /// Calls fill a bucket that leaks at a rate.
    LeakyBucket(LeakyBucket),
    /// A limit for every interval of one period.
    SlidingWindow(SlidingWindow),
    /// A limit for the calls that run at once.
    ConcurrencyLimit(ConcurrencyLimit),
}

impl Policy {
    /// Checks the numbers of the policy.
    ///
    /// Creating a limiter checks them as well. In a `const` this check makes an invalid policy a compile error.
    ///
    /// # Errors
    ///
    /// Returns the first argument that is zero, out of range, or cannot be represented exactly enough, and what to write
    /// instead.
    pub const fn check(&self) -> Result<(), InvalidPolicy> {
        numbers::is_valid(self.spec())
    }

    /// Checks that there is the time zone of a calendar, which no constant can.
    pub(crate) fn check_zone(&self) -> Result<(), InvalidPolicy> {
        match self {
            Policy::FixedWindow(window) => window.check_zone(),
            _ => Ok(()),
        }
    }

    /// Returns the policy in the numbers that its algorithm counts in.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        match self {
            Policy::TokenBucket(policy) => policy.spec(),
            Policy::FixedWindow(policy) => policy.spec(),
            Policy::LeakyBucket(policy) => policy.spec(),
            Policy::SlidingWindow(policy) => policy.spec(),
            Policy::ConcurrencyLimit(policy) => policy.spec(),
        }
    }

    /// Returns the policy as attributes have it whose numbers are computed: a bucket keeps one state whatever they are.
    #[doc(hidden)]
    #[must_use]
    pub const fn computed(self) -> Self {
        match self {
            Policy::TokenBucket(bucket) => Policy::TokenBucket(bucket.adjustable()),
            Policy::LeakyBucket(bucket) => Policy::LeakyBucket(bucket.adjustable()),
            Policy::FixedWindow(_) | Policy::SlidingWindow(_) | Policy::ConcurrencyLimit(_) => self,
        }
    }

    /// Returns the policy as attributes with `settle` or `bind` have it.
    #[doc(hidden)]
    #[must_use]
    pub const fn settled(self) -> Self {
        match self {
            Policy::TokenBucket(bucket) => Policy::TokenBucket(bucket.settled()),
            Policy::LeakyBucket(bucket) => Policy::LeakyBucket(bucket.settled()),
            Policy::FixedWindow(_) | Policy::SlidingWindow(_) | Policy::ConcurrencyLimit(_) => self,
        }
    }

    /// Returns the numbers that keys depend on even if they are computed.
    #[doc(hidden)]
    #[must_use]
    pub fn shaping(&self) -> &'static [&'static str] {
        match self {
            Policy::FixedWindow(_) | Policy::SlidingWindow(_) => &["period", "precision"],
            Policy::TokenBucket(bucket) if bucket.interval_refill => &["rate"],
            Policy::TokenBucket(_) | Policy::LeakyBucket(_) | Policy::ConcurrencyLimit(_) => &[],
        }
    }

    /// Returns the algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        match self {
            Policy::TokenBucket(_) => Algorithm::TokenBucket,
            Policy::FixedWindow(_) => Algorithm::FixedWindow,
            Policy::LeakyBucket(_) => Algorithm::LeakyBucket,
            Policy::SlidingWindow(_) => Algorithm::SlidingWindow,
            Policy::ConcurrencyLimit(_) => Algorithm::Semaphore,
        }
    }
}

macro_rules! impl_from {
    ($($policy:ident)*) => {$(
        impl From<$policy> for Policy {
            fn from(policy: $policy) -> Self {
                Policy::$policy(policy)
            }
        }
    )*};
}
impl_from!(TokenBucket FixedWindow LeakyBucket SlidingWindow ConcurrencyLimit);
