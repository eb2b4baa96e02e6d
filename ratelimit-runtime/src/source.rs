//! Where a decision was made.

/// Where a decision was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// In this process.
    Memory,
    /// In Redis, for all processes.
    Redis,
    /// In this process, by its share of the policy, as Redis did not decide
    /// ([`OnStoreError::Local`](crate::OnStoreError::Local)). All numbers of the decision are those of the share.
    Local,
    /// Nowhere, as Redis did not decide, and the call goes ahead all the same
    /// ([`OnStoreError::Allow`](crate::OnStoreError::Allow)). The decision then tells of an unused policy, and there is nothing to
    /// give back.
    Allowed,
    /// Nowhere: the call costs nothing, or limits are turned off. The decision then tells of an unused policy.
    Skipped,
}
