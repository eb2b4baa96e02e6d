//! Who makes the call, for keys that count by address or user.

use std::fmt::Display;
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use crate::error::missing_key::MissingKey;

tokio::task_local! {
    static CONTEXT: RequestContext;
}

/// Who makes the call: what `key_type = IP`, `key_type = USER` and the placeholders `<@ip>`, `<@user>` and
/// `<@user_or_ip>` read.
///
/// It holds for everything awaited inside [`scope`](Self::scope), not for what is spawned there. Where it lacks what a
/// key asks for, the call is refused with [`MissingKey`]: it never shares an "unknown" bucket.
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
#[derive(Clone, Debug, Default)]
pub struct RequestContext {
    ip: Option<IpAddr>,
    user: Option<Arc<str>>,
}

impl RequestContext {
    /// A context that knows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        RequestContext::default()
    }

    /// The client's address. An IPv6 address counts by its /64, which is what one customer gets; one that maps an IPv4
    /// address counts as that.
    #[must_use]
    pub fn with_ip(mut self, ip: impl Into<IpAddr>) -> Self {
        self.ip = Some(partition(ip.into()));
        self
    }

    /// The user, by whatever names one.
    #[must_use]
    pub fn with_user(mut self, user: impl Display) -> Self {
        self.user = Some(user.to_string().into());
        self
    }

    /// Runs the future in this context. It replaces the surrounding one as a whole.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CONTEXT.scope(self, future).await
    }
}

pub(crate) fn ip() -> Result<IpAddr, MissingKey> {
    CONTEXT.try_with(|context| context.ip).ok().flatten().ok_or(MissingKey::Ip)
}

pub(crate) fn user() -> Result<Arc<str>, MissingKey> {
    CONTEXT.try_with(|context| context.user.clone()).ok().flatten().ok_or(MissingKey::User)
}

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
    fn addresses_count_by_customer() {
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
