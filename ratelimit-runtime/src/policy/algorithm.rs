//! The algorithms by their textbook names.

use std::fmt;

/// The algorithm of a [`Policy`](crate::Policy).
///
/// ```
/// use ratelimits::{Algorithm, Policy, TokenBucket};
///
/// let policy = Policy::from(TokenBucket::per_second(5));
/// assert_eq!(policy.algorithm(), Algorithm::TokenBucket);
/// assert_eq!(policy.algorithm().to_string(), "token bucket");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// [`TokenBucket`](crate::TokenBucket), of `#[rate_limit]`.
    TokenBucket,
    /// [`FixedWindow`](crate::FixedWindow), of `#[count_limit]`.
    FixedWindow,
    /// [`LeakyBucket`](crate::LeakyBucket), of `#[funnel_limit]`.
    LeakyBucket,
    /// [`SlidingWindow`](crate::SlidingWindow), of `#[window_limit]`.
    SlidingWindow,
    /// [`ConcurrencyLimit`](crate::ConcurrencyLimit), of `#[concurrency_limit]`.
    Semaphore,
}

impl Algorithm {
    #[cfg(feature = "serde")]
    pub(super) const ALL: [Algorithm; 5] = [
        Algorithm::TokenBucket,
        Algorithm::FixedWindow,
        Algorithm::LeakyBucket,
        Algorithm::SlidingWindow,
        Algorithm::Semaphore,
    ];

    /// Returns the textbook name, such as `token bucket`. It is stable: use it as a label in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::TokenBucket => "token bucket",
            Algorithm::FixedWindow => "fixed window",
            Algorithm::LeakyBucket => "leaky bucket",
            Algorithm::SlidingWindow => "sliding window",
            Algorithm::Semaphore => "semaphore",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
