//! The specs: an algorithm and its numbers.

mod fixed_window;
mod leaky_bucket;
mod numbers;
mod sliding_window;
mod token_bucket;

pub use fixed_window::FixedWindow;
pub use leaky_bucket::LeakyBucket;
pub use sliding_window::SlidingWindow;
pub use token_bucket::TokenBucket;

use crate::algorithm::AlgorithmSpec;
use crate::error::invalid_policy::InvalidPolicy;

/// A spec: one of the four algorithms with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// Permits come back at a rate, up to a burst.
    TokenBucket(TokenBucket),
    /// So many permits in each window.
    FixedWindow(FixedWindow),
    /// Calls fill a bucket that leaks at a rate.
    LeakyBucket(LeakyBucket),
    /// So many permits in every interval of a length.
    SlidingWindow(SlidingWindow),
}

impl Policy {
    /// Whether the numbers make sense.
    ///
    /// # Errors
    ///
    /// Names the argument that is zero, too large, too small, or not exact enough, and what to write instead.
    pub const fn check(&self) -> Result<(), InvalidPolicy> {
        match self.spec() {
            Ok(_) => Ok(()),
            Err(invalid) => Err(invalid),
        }
    }

    /// The policy in the numbers that the algorithms count in.
    #[doc(hidden)]
    pub const fn spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        match self {
            Policy::TokenBucket(policy) => policy.spec(),
            Policy::FixedWindow(policy) => policy.spec(),
            Policy::LeakyBucket(policy) => policy.spec(),
            Policy::SlidingWindow(policy) => policy.spec(),
        }
    }

    /// The textbook name of the algorithm.
    pub(crate) const fn algorithm(&self) -> &'static str {
        match self {
            Policy::TokenBucket(_) => "token bucket",
            Policy::FixedWindow(_) => "fixed window",
            Policy::LeakyBucket(_) => "leaky bucket",
            Policy::SlidingWindow(_) => "sliding window",
        }
    }
}

macro_rules! policies {
    ($($policy:ident)*) => {$(
        impl From<$policy> for Policy {
            fn from(policy: $policy) -> Self {
                Policy::$policy(policy)
            }
        }
    )*};
}
policies!(TokenBucket FixedWindow LeakyBucket SlidingWindow);
