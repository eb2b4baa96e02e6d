//! Where a decision was made.

use std::fmt;

/// Where a decision was made: [`Decision::source`](crate::Decision::source).
///
/// ```
/// # use ratelimits::{Registry, DecidedBy, TokenBucket};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let limiter = Registry::in_memory().limiter("reports", TokenBucket::per_second(1))?;
/// let decision = limiter.try_acquire("tenant-7").await?;
/// assert_eq!(decision.source, DecidedBy::Memory);
/// assert_eq!(decision.source.to_string(), "memory");
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecidedBy {
    /// In process.
    Memory,
    /// In Redis, shared by all processes. Some refusals repeat what Redis has decided less than a second ago
    /// ([`RegistryBuilder::local_denials`](crate::RegistryBuilder::local_denials)).
    Redis,
    /// In process during an outage of Redis, by this instance's share of the policy
    /// ([`OnStoreError::Local`](crate::OnStoreError::Local)). All numbers of the decision are those of the share.
    Local,
    /// Nowhere: Redis failed and the call was let through ([`OnStoreError::Allow`](crate::OnStoreError::Allow)). The decision
    /// reports an unused policy, and nothing was charged.
    Allowed,
    /// Nowhere: the call costs nothing, or limits are disabled. The decision reports an unused policy.
    Skipped,
}

impl DecidedBy {
    /// Returns a stable name, such as `redis`, for labels of metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DecidedBy::Memory => "memory",
            DecidedBy::Redis => "redis",
            DecidedBy::Local => "local",
            DecidedBy::Allowed => "allowed",
            DecidedBy::Skipped => "skipped",
        }
    }
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
