//! What becomes of a call that the store does not decide.

/// What becomes of a call that the store did not decide, because it failed or did not answer in time.
///
/// A registry has one ([`RegistryBuilder::on_store_error`](crate::RegistryBuilder::on_store_error)), an attribute
/// (`on_store_error = deny`) and a limiter ([`Limiter::on_store_error`](crate::Limiter::on_store_error)) may have their own.
/// Of several policies that are decided together the strictest holds, of those that can refuse: deny before local before
/// allow.
///
/// It is about trouble, which passes. Errors that a healthy store would not fix are always [`Error::Store`](crate::Error):
/// another program's value under a key, a URL that makes no sense, no tokio runtime. In a registry in this process there is
/// no trouble, and this says nothing.
///
/// Whoever can bring the store down chooses what happens then: behind a login, a payment or a one-time code, which somebody
/// gains from guessing at, write `deny`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnStoreError {
    /// Decide in this process, by its share of the policy: the rate per_instance by
    /// [`instances`](crate::RegistryBuilder::instances), and the capacity too, down to one permit. The default.
    ///
    /// The shares of all instances come to no more than the policy, with two exceptions: where the capacity is less than there
    /// are instances, each of them lets one call pass that the policy may not have had room for; and where a call may
    /// borrow, each lends one call's cost. More processes than `instances`, which is 1 by default, give as many shares more, rate
    /// and capacity. What Redis has counted before and what is counted here do not know of each other, so an
    /// outage costs at most one capacity a key, and its end none: what was counted here is kept as long as the registry lives, and
    /// the next outage goes on with it. A share of less than a permit in 3650 days counts as that.
    ///
    /// A call that costs more than a share ever holds, and not more than the policy, is [`Error::Store`](crate::Error). A call
    /// that waits stands in a line of this process, with the time that it has left. Memory is bounded by
    /// [`max_keys`](crate::RegistryBuilder::max_keys).
    #[default]
    Local,
    /// Let the call go ahead uncharged: while the store is in trouble there is no limit.
    Allow,
    /// Refuse the call with [`Error::Store`](crate::Error): while the store is in trouble nobody gets in, and the store is
    /// as needed as the function itself.
    Deny,
}

impl OnStoreError {
    pub(crate) fn strictest(self, other: Self) -> Self {
        let is_any = |mode| self == mode || other == mode;
        [OnStoreError::Deny, OnStoreError::Local].into_iter().find(|mode| is_any(*mode)).unwrap_or(self)
    }
}

#[cfg(test)]
mod tests {
    use super::OnStoreError::{Allow, Deny, Local};

    #[test]
    fn the_strictest_holds() {
        for (one, other, strictest) in [
            (Allow, Allow, Allow),
            (Allow, Local, Local),
            (Local, Local, Local),
            (Local, Deny, Deny),
            (Allow, Deny, Deny),
            (Deny, Deny, Deny),
        ] {
            assert_eq!((one.strictest(other), other.strictest(one)), (strictest, strictest));
        }
    }
}
