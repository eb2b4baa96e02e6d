//! The outcome of a rate-limit check.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::store::StoreError;
use crate::policy::Algorithm;
use crate::source::Source;
use crate::store::Receipt;

/// The outcome of a rate-limit check by one policy or several.
///
/// The fields are those of one policy. If any refused, it is the one with the longest `retry_after`, where none counts as the
/// longest; if all admitted the call, it is the one with the fewest `remaining`. [`policies`](Self::policies) returns all of
/// them.
///
/// It is not `Clone`, because it holds the receipt for what was charged, which can be refunded once.
///
/// ```
/// # use ratelimits::{Registry, TokenBucket};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let uploads = Registry::in_memory().limiter("uploads", TokenBucket::per_second(1).burst(10))?;
/// let decision = uploads.try_acquire("tenant-7", 4).await?;
/// assert_eq!((decision.limit, decision.remaining), (10, 6));
/// decision.refund().await?;
/// assert_eq!(uploads.peek("tenant-7").await?.remaining, 10);
/// # Ok(()) }
/// ```
#[non_exhaustive]
pub struct Decision {
    /// The burst, capacity or limit of the policy, in permits. For a queue it is the capacity plus one, for the call that leaves
    /// at once.
    pub limit: u64,
    /// The whole permits that a call now would get. For a queue this includes those that would have to wait.
    pub remaining: u64,
    /// Time until the same call would be admitted without waiting; for a queue, until the same call with the same timeout would
    /// get a slot. Exact: without competing callers, a retry after this delay succeeds. `None` if the call was admitted, or
    /// costs more than the policy can ever admit.
    pub retry_after: Option<Duration>,
    /// Time until the key's state expires: the bucket is full, or the window is over.
    pub reset_after: Duration,
    /// How long the call waited. For a bucket, from the decision to its slot by the store's clock; for a window, from the call.
    pub waited: Duration,
    /// Where the decision was made.
    pub source: Source,
    /// The index of the reported policy.
    reported: usize,
    policies: Vec<PolicyDecision>,
    receipt: Option<Receipt>,
}

/// What one policy of a [`Decision`] said.
///
/// ```
/// # use ratelimits::{FixedWindow, Registry, TokenBucket};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let registry = Registry::in_memory();
/// let burst = registry.limiter("burst", TokenBucket::per_second(1).burst(5))?;
/// let daily = registry.limiter("daily", FixedWindow::new(100, std::time::Duration::from_secs(86_400)))?;
/// let decision = registry.try_acquire_all([burst.charge("ann", 1), daily.charge("ann", 1)]).await?;
/// let remaining: Vec<u64> = decision.policies().iter().map(|policy| policy.remaining).collect();
/// assert_eq!(remaining, [4, 99]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyDecision {
    /// The name of the policy.
    pub policy: Arc<str>,
    /// The algorithm of the policy.
    pub algorithm: Algorithm,
    /// Whether this policy admits the call.
    pub admitted: bool,
    /// Whether this policy is a shadow, which never refuses.
    pub shadow: bool,
    /// As [`Decision::limit`].
    pub limit: u64,
    /// As [`Decision::remaining`].
    pub remaining: u64,
    /// As [`Decision::retry_after`].
    pub retry_after: Option<Duration>,
    /// As [`Decision::reset_after`].
    pub reset_after: Duration,
}

impl Decision {
    /// Returns what each policy said, in the order of the attributes or of the list.
    #[must_use]
    pub fn policies(&self) -> &[PolicyDecision] {
        &self.policies
    }

    /// Gives back what the call was charged, at most once and only what still counts: all of it in a window that still counts
    /// the charge, and in a bucket the permits that have not been refilled since.
    ///
    /// Several policies are refunded one after another. If the future is dropped, the remaining ones stay charged. A bucket that
    /// has been [reset](crate::Limiter::reset) since may be credited all the same.
    ///
    /// # Errors
    ///
    /// If the store fails. Whether it has refunded the permits is then unknown, and the refund is not repeated.
    pub async fn refund(self) -> Result<(), StoreError> {
        match self.receipt {
            Some(receipt) => receipt.refund().await,
            None => Ok(()),
        }
    }

    /// A decision of at least one policy.
    pub(crate) fn new(
        policies: Vec<PolicyDecision>,
        source: Source,
        waited: Duration,
        receipt: Option<Receipt>,
    ) -> Self {
        let refused = (0..policies.len())
            .filter(|i| !policies[*i].admitted && !policies[*i].shadow)
            .max_by_key(|i| policies[*i].retry_after.unwrap_or(Duration::MAX));
        let fewest = || (0..policies.len()).min_by_key(|i| policies[*i].remaining);
        let reported = refused.or_else(fewest).unwrap_or(0);
        let PolicyDecision { limit, remaining, retry_after, reset_after, .. } = policies[reported];
        Decision { limit, remaining, retry_after, reset_after, waited, source, reported, policies, receipt }
    }

    /// Returns the index of the reported policy.
    pub(crate) fn reported(&self) -> usize {
        self.reported
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("policies", &self.policies)
            .field("waited", &self.waited)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
