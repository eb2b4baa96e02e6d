//! The client and user of a request, for keys.

use std::fmt::{self, Display};
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use crate::error::missing_key::MissingKey;

tokio::task_local! {
    static CONTEXT: RequestContext;
}

/// The client address and user of a request, which `key_type = IP`, `key_type = USER` and the placeholders `<@ip>`, `<@user>`
/// and `<@user_or_ip>` read.
///
/// It applies to everything awaited inside [`scope`](Self::scope), but not to tasks spawned there. If a key needs an address
/// or user that the context does not have, the call is refused with [`MissingKey`]. Such calls never share a bucket.
///
/// ```
/// # use ratelimits::{count_limit, Error, RequestContext};
/// #[count_limit(1, "1d", key_type = USER)]
/// async fn send() -> Result<(), Error> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let from = |user| RequestContext::new().with_user(user).scope(send());
/// assert!(from("ann").await.is_ok());
/// assert!(from("ann").await.is_err());
/// assert!(from("bob").await.is_ok());
/// assert!(matches!(send().await, Err(Error::MissingKey(_))));
/// # }
/// ```
#[derive(Clone, Default)]
pub struct RequestContext {
    ip: Option<IpAddr>,
    user: Option<Arc<str>>,
}

impl RequestContext {
    /// Creates an empty context.
    #[must_use]
    pub fn new() -> Self {
        RequestContext::default()
    }

    /// Sets the client's address.
    ///
    /// An IPv6 address is reduced to its /64 network, which a provider usually assigns to a single customer. An IPv4-mapped
    /// address counts as the IPv4 address.
    #[must_use]
    pub fn with_ip(mut self, ip: impl Into<IpAddr>) -> Self {
        self.ip = Some(partition(ip.into()));
        self
    }

    /// Sets the user, by any identifier that is `Display`.
    ///
    /// A blank one, which is empty or only whitespace, is no user: a key that needs one refuses the call with [`MissingKey`], and
    /// `<@user_or_ip>` counts by address. Otherwise all blank users would share one limit.
    ///
    /// ```
    /// # use ratelimits::{count_limit, Error, MissingKey, RequestContext};
    /// #[count_limit(1, "1d", key_type = USER)]
    /// async fn send() -> Result<(), Error> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let refused = RequestContext::new().with_user("").scope(send()).await;
    /// assert!(matches!(refused, Err(Error::MissingKey(MissingKey::User))));
    /// # }
    /// ```
    #[must_use]
    pub fn with_user(mut self, user: impl Display) -> Self {
        let user = user.to_string();
        self.user = (!user.trim().is_empty()).then(|| user.into());
        self
    }

    /// Runs the future in this context, which replaces the surrounding one completely.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CONTEXT.scope(self, future).await
    }
}

/// Without the address and the user.
impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RequestContext { ip, user } = self;
        let mut context = f.debug_struct("RequestContext");
        context.field("has_ip", &ip.is_some()).field("has_user", &user.is_some()).finish()
    }
}

/// Returns the address of the current context.
pub(crate) fn ip() -> Result<IpAddr, MissingKey> {
    CONTEXT.try_with(|context| context.ip).ok().flatten().ok_or(MissingKey::Ip)
}

/// Returns the user of the current context.
pub(crate) fn user() -> Result<Arc<str>, MissingKey> {
    CONTEXT.try_with(|context| context.user.clone()).ok().flatten().ok_or(MissingKey::User)
}

/// Returns the address that an address is counted by.
fn partition(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_count_by_network() {
        for (address, counts_as) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::", "2001:db8:1:2::"),
            ("::1", "::"),
        ] {
            assert_eq!(partition(address.parse().unwrap()).to_string(), counts_as);
        }
    }
}
