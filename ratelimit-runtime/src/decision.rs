//! What was decided.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::store::StoreError;
use crate::source::Source;
use crate::store::Receipt;

/// What a policy, or a stack of them, decided about a call.
///
/// Of a stack it tells the policy that is reported: of those that refuse the one with the longest `retry_after`, none
/// counting as the longest, or when admitted the one with the fewest `remaining`. [`policies`](Self::policies) tells all.
///
/// Not `Clone`: it carries the receipt of what was charged, which can be given back once.
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
    /// The burst, capacity or limit of the policy, in permits; of a queue one more than its capacity, for the call that leaves
    /// at once.
    pub limit: u64,
    /// The whole permits a call now would get; in a queue those that would have to wait count too.
    pub remaining: u64,
    /// How long until the same call would be admitted without waiting, or in a queue until the same call, with the same
    /// timeout, would get a slot: a lone caller that comes back then gets in. `None` if it was admitted, or if it costs more
    /// than the policy ever admits.
    pub retry_after: Option<Duration>,
    /// How long until the state of the key says nothing more: the bucket is full, the window has ended.
    pub reset_after: Duration,
    /// How long the call has waited: from when it was decided to its slot, by the store's clock; for a window from the call on.
    pub waited: Duration,
    /// Where it was decided.
    pub source: Source,
    reported: usize,
    policies: Vec<PolicyDecision>,
    receipt: Option<Receipt>,
}

/// What one policy of a decision said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyDecision {
    /// The policy's name.
    pub policy: Arc<str>,
    /// Whether this policy admits the call.
    pub admitted: bool,
    /// Whether it never refuses, and only tells what it would have said.
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
    /// What each policy said, in the order in which they stand on the function or in the list.
    #[must_use]
    pub fn policies(&self) -> &[PolicyDecision] {
        &self.policies
    }

    /// Gives back what the call was charged: once or not at all, and only what of it still counts. A window gets it back
    /// while the charge counts, a bucket as far as the permits have not come back by themselves. The policies of a list get
    /// theirs back one after another; a future that is dropped on the way leaves the later ones charged.
    ///
    /// # Errors
    ///
    /// If the store fails; whether it has given the permits back is then unknown, and it is not asked again.
    pub async fn refund(self) -> Result<(), StoreError> {
        match self.receipt {
            Some(receipt) => receipt.refund().await,
            None => Ok(()),
        }
    }

    /// Of what at least one policy said.
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

    /// The place of the policy that is reported.
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
