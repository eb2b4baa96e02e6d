//! The algorithms by their textbook names.

use std::fmt;

use crate::algorithm::AlgorithmSpec;
use crate::algorithm::adjustable_gcra::AdjustableGcraSpec;
use crate::algorithm::gcra::GcraKind;

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
}

impl Algorithm {
    /// Returns the textbook name, such as `token bucket`. It is stable: use it as a label in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::TokenBucket => "token bucket",
            Algorithm::FixedWindow => "fixed window",
            Algorithm::LeakyBucket => "leaky bucket",
            Algorithm::SlidingWindow => "sliding window",
        }
    }

    #[inline]
    pub(crate) const fn of(spec: &AlgorithmSpec) -> Self {
        match spec {
            AlgorithmSpec::Gcra(spec) | AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec)) => {
                match spec.kind {
                    GcraKind::TokenBucket | GcraKind::Borrowing(_) => Algorithm::TokenBucket,
                    GcraKind::Meter | GcraKind::Queue => Algorithm::LeakyBucket,
                }
            }
            AlgorithmSpec::IntervalBucket(_) | AlgorithmSpec::WarmingUp(_) => Algorithm::TokenBucket,
            AlgorithmSpec::FixedWindow(_) => Algorithm::FixedWindow,
            AlgorithmSpec::SlidingWindow(_) => Algorithm::SlidingWindow,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
