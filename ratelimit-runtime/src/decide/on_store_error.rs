//! What happens to a call that the store cannot decide.

use std::fmt;
use std::str::FromStr;

use crate::base::invalid_policy::InvalidPolicy;

/// What happens to a call if the store fails or does not respond before the deadline.
///
/// [`RegistryBuilder::on_store_error`](crate::RegistryBuilder::on_store_error) sets it for a registry. An attribute
/// (`on_store_error = deny`) or [`Limiter::on_store_error`](crate::Limiter::on_store_error) overrides it. If several policies
/// are decided together, the strictest setting of those that can refuse applies: deny, then local, then allow.
///
/// It applies to outages. Permanent errors, which a healthy store would return too, always become
/// [`Error::Store`](crate::Error::Store): another program's value under a key, no tokio runtime. It has
/// no effect in a registry without Redis.
///
/// An attacker who can overload the store chooses what happens here. Use [`Deny`](Self::Deny) where guessing pays: logins,
/// payments, one-time codes.
///
/// ```
/// use ratelimits::{OnStoreError, Registry, TokenBucket};
///
/// # fn main() -> Result<(), ratelimits::Error> {
/// # let registry = Registry::in_memory();
/// let search = registry.limiter("search", TokenBucket::per_second(50))?.on_store_error(OnStoreError::Allow);
/// let login = registry.limiter("login", TokenBucket::per_second(1))?.on_store_error(OnStoreError::Deny);
/// # Ok(()) }
/// ```
///
/// A configuration has it as the attributes do:
///
/// ```
/// # use ratelimits::OnStoreError;
/// assert_eq!("deny".parse(), Ok(OnStoreError::Deny));
/// assert_eq!(OnStoreError::Deny.to_string(), "deny");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnStoreError {
    /// Decides in process, by this instance's share of the policy: its rate and capacity divided by
    /// [`instances`](crate::RegistryBuilder::instances), but at least one permit. This is the default.
    ///
    /// All shares together admit no more than the policy, with two exceptions. If the capacity is smaller than the number of
    /// instances, each instance may admit one call more. If calls may borrow, each instance lends the cost of one call.
    /// `instances` is 1 by default; every process beyond it adds another share.
    ///
    /// A process that is cut off admits at most its share on top of what Redis admits elsewhere, for as long as it is cut off. A
    /// share of less than one permit per 3650 days is one permit per 3650 days.
    ///
    /// Intermittent outages grant no fresh burst each time: charges that Redis admits are mirrored locally while local state
    /// exists, which is for every key until a minute after the last outage, and later for keys whose local state has not expired.
    /// While outages are less than a minute apart, a process exceeds the policy by at most twice its share's burst or limit,
    /// however many there are. What Redis admits beyond the share is owed: for up to one more burst or window, the next outage
    /// finds the share used up.
    ///
    /// A call that costs more than a share can hold, but no more than the policy can, fails with
    /// [`Error::Store`](crate::Error::Store). A call that waits joins a local queue with the rest of its timeout.
    /// [`max_keys`](crate::RegistryBuilder::max_keys) bounds the memory.
    #[default]
    Local,
    /// Lets the call through without charging it. During an outage nothing is limited.
    Allow,
    /// Refuses the call with [`Error::Store`](crate::Error::Store). During an outage every call is refused.
    Deny,
}

impl OnStoreError {
    const ALL: [OnStoreError; 3] = [OnStoreError::Local, OnStoreError::Allow, OnStoreError::Deny];

    /// Returns the name that the attributes have for it: `local`, `allow` or `deny`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OnStoreError::Local => "local",
            OnStoreError::Allow => "allow",
            OnStoreError::Deny => "deny",
        }
    }

    /// Returns the stricter of two settings.
    pub(crate) fn stricter(self, other: Self) -> Self {
        let is_any = |mode| self == mode || other == mode;
        [OnStoreError::Deny, OnStoreError::Local].into_iter().find(|mode| is_any(*mode)).unwrap_or(self)
    }
}

impl fmt::Display for OnStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for OnStoreError {
    type Err = InvalidPolicy;

    fn from_str(name: &str) -> Result<Self, InvalidPolicy> {
        let unknown = InvalidPolicy::new("on_store_error", "is not known; write `local`, `allow` or `deny`");
        OnStoreError::ALL.into_iter().find(|mode| mode.name() == name).ok_or(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::OnStoreError;
    use super::OnStoreError::{Allow, Deny, Local};

    #[test]
    fn names_are_parsed() {
        for mode in OnStoreError::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert_eq!("Deny".parse::<OnStoreError>().unwrap_err().argument(), "on_store_error");
    }

    #[test]
    fn strictest_setting_wins() {
        for (one, other, strictest) in [
            (Allow, Allow, Allow),
            (Allow, Local, Local),
            (Local, Local, Local),
            (Local, Deny, Deny),
            (Allow, Deny, Deny),
            (Deny, Deny, Deny),
        ] {
            assert_eq!((one.stricter(other), other.stricter(one)), (strictest, strictest));
        }
    }
}
