//! The client and user of a request, for keys.

use std::fmt::{self, Display};
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
#[cfg(feature = "web")]
use std::time::Duration;

use futures_core::Stream;
use tokio::task::JoinHandle;

use crate::key::missing_key::MissingKey;
#[cfg(feature = "web")]
use crate::observe::record::RequestDecisions;
#[cfg(feature = "web")]
use crate::usage::unnamed_clients::UnnamedClients;

tokio::task_local! {
    static CONTEXT: RequestContext;
}

/// The client address and user of a request, which `key_type = IP`, `key_type = USER` and the placeholders `<@ip>`, `<@user>`
/// and `<@user_or_ip>` read.
///
/// It applies to everything awaited inside [`scope`](Self::scope), but not to tasks spawned there, unless with
/// [`spawn`](Self::spawn). If a key needs an address or user that the context does not have, the call is refused with
/// [`MissingKey`]. Such calls never share a bucket.
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
    /// Is told if a key needs an address that a proxy has not named.
    #[cfg(feature = "web")]
    unnamed: Option<Arc<UnnamedClients>>,
    /// Gets the decisions of the request, if its response has headers about them.
    #[cfg(feature = "web")]
    record: Option<Arc<RequestDecisions>>,
    /// The share of a delay that is added to it where the client is told, so that clients do not come back together. One for all that
    /// a response tells.
    #[cfg(feature = "web")]
    spread: Option<f64>,
}

impl RequestContext {
    /// Creates an empty context.
    #[must_use]
    pub fn new() -> Self {
        RequestContext::default()
    }

    /// Sets the client's address.
    ///
    /// An IPv6 address is reduced to its /64 network, which a provider usually assigns to a single customer. One that stands for an
    /// IPv4 address counts as that: `::ffff:192.0.2.1`, `::192.0.2.1`, and `64:ff9b::192.0.2.1` of NAT64. Behind proxies, and for
    /// other IPv6 prefixes, use [`ClientIp`](crate::ClientIp).
    #[must_use]
    pub fn with_ip(mut self, ip: impl Into<IpAddr>) -> Self {
        self.ip = Some(network(ip.into(), 64));
        self
    }

    /// Replaces the address by this one, which is reduced to a network already.
    pub(crate) fn in_network(self, ip: Option<IpAddr>) -> Self {
        RequestContext { ip, ..self }
    }

    /// Sets the user, by any identifier that is `Display`.
    ///
    /// A blank one, which is empty or only whitespace, is no user: a key that needs one refuses the call with [`MissingKey`], and
    /// `<@user_or_ip>` counts by address. Otherwise all blank users would share one limit.
    ///
    /// ```
    /// # use ratelimits::{count_limit, Error, RequestContext};
    /// # use ratelimits::error::MissingKey;
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

    /// Returns the context of the current call, or an empty one outside any.
    ///
    /// ```
    /// # use ratelimits::{count_limit, Error, RequestContext};
    /// #[count_limit(1, "1d", key_type = USER)]
    /// async fn send() -> Result<(), Error> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
    /// // Authentication adds the user to what the server has found out already.
    /// let authenticated = async { RequestContext::current().with_user("ann").scope(send()).await };
    /// RequestContext::new().with_ip([192, 0, 2, 1]).scope(authenticated).await
    /// # }
    /// ```
    #[must_use]
    pub fn current() -> Self {
        CONTEXT.try_with(RequestContext::clone).unwrap_or_default()
    }

    /// Returns the client's address, as keys count by it: an IPv6 address is that of a network.
    ///
    /// ```
    /// # use ratelimits::RequestContext;
    /// let context = RequestContext::new().with_ip([192, 0, 2, 1]);
    /// assert_eq!(context.ip().unwrap().to_string(), "192.0.2.1");
    /// ```
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        self.ip
    }

    /// Returns the user.
    ///
    /// ```
    /// # use ratelimits::RequestContext;
    /// assert_eq!(RequestContext::new().with_user(7).user(), Some("7"));
    /// assert_eq!(RequestContext::new().user(), None);
    /// ```
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Runs the future in this context, which replaces the surrounding one: neither its address nor its user applies.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CONTEXT.scope(self.inherit(), future).await
    }

    /// Runs code that is not async in this context, like [`scope`](Self::scope).
    ///
    /// A thread of `spawn_blocking` has no context of its own: `RequestContext::current()`, called before it starts, takes that of the
    /// request along.
    ///
    /// ```
    /// # use ratelimits::{count_limit, Error, RequestContext};
    /// #[count_limit(1, "1d", key_type = USER)]
    /// fn render(_report: &str) -> Result<(), Error> {
    ///     Ok(())
    /// }
    ///
    /// async fn handle() -> Result<(), Error> {
    ///     let context = RequestContext::current();
    ///     let rendered = tokio::task::spawn_blocking(move || context.sync_scope(|| render("sales")));
    ///     rendered.await.expect("it does not panic")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// assert!(RequestContext::new().with_user("ann").scope(handle()).await.is_ok());
    /// # }
    /// ```
    pub fn sync_scope<T>(self, code: impl FnOnce() -> T) -> T {
        CONTEXT.sync_scope(self.inherit(), code)
    }

    /// Runs the stream in this context, however late and wherever it is polled.
    ///
    /// A stream that a function returns, such as the body of a response, is polled after the function's own context has ended.
    ///
    /// ```
    /// # use futures_util::{Stream, StreamExt, stream};
    /// # use ratelimits::{count_limit, Error, RequestContext};
    /// #[count_limit(2, "1d", key_type = USER)]
    /// async fn row(number: u32) -> Result<u32, Error> {
    ///     Ok(number)
    /// }
    ///
    /// async fn rows() -> impl Stream<Item = Result<u32, Error>> {
    ///     RequestContext::current().scope_stream(stream::iter(1..).then(row))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let rows = RequestContext::new().with_user("ann").scope(rows()).await;
    /// assert_eq!(rows.take_while(|row| std::future::ready(row.is_ok())).count().await, 2);
    /// # }
    /// ```
    pub fn scope_stream<S: Stream>(self, stream: S) -> impl Stream<Item = S::Item> {
        ScopedStream { context: self.inherit(), stream: Box::pin(stream) }
    }

    /// Spawns the future as a tokio task in this context. `RequestContext::current().spawn(…)` is a task in the context of the
    /// current call, which `tokio::spawn` would leave behind. The registry of [`Registry::scope`](crate::Registry::scope) does not
    /// follow.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, as `tokio::spawn` does.
    ///
    /// ```
    /// # use ratelimits::{count_limit, Error, RequestContext};
    /// #[count_limit(1, "1d", key_type = USER)]
    /// async fn send() -> Result<(), Error> {
    ///     Ok(())
    /// }
    ///
    /// async fn send_later() -> tokio::task::JoinHandle<Result<(), Error>> {
    ///     RequestContext::current().spawn(send())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let task = RequestContext::new().with_user("ann").scope(send_later()).await;
    /// assert!(task.await.unwrap().is_ok());
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        tokio::spawn(self.inherit().scope(future))
    }

    /// Gives what concerns the response of the current context to one that has nothing of it.
    fn inherit(self) -> Self {
        RequestContext {
            #[cfg(feature = "web")]
            record: self.record.or_else(record),
            #[cfg(feature = "web")]
            spread: self.spread.or_else(spread),
            ..self
        }
    }
}

#[cfg(feature = "web")]
impl RequestContext {
    /// Adds a record of the decisions that are made in this context.
    pub(crate) fn with_record(self, record: Arc<RequestDecisions>) -> Self {
        RequestContext { record: Some(record), ..self }
    }

    /// Adds the share of each delay that the client is told on top, unless a layer around this one has.
    pub(crate) fn with_spread(self, share: f64) -> Self {
        RequestContext { spread: self.spread.or(Some(share)), ..self }
    }

    /// Whether a layer has looked for the address behind proxies, or there is one.
    pub(crate) fn knows_peer(&self) -> bool {
        self.ip.is_some() || self.unnamed.is_some()
    }

    /// Removes the address, as a proxy has not named one.
    pub(crate) fn unnamed(self, unnamed: &Arc<UnnamedClients>) -> Self {
        RequestContext { ip: None, unnamed: Some(Arc::clone(unnamed)), ..self }
    }

    /// Polls something in this context.
    #[cfg(any(feature = "tower", feature = "actix"))]
    pub(crate) fn poll<T>(&self, poll: impl FnOnce() -> T) -> T {
        CONTEXT.sync_scope(self.clone(), poll)
    }
}

/// Returns the record of the current request, if it has one.
#[cfg(feature = "web")]
pub(crate) fn record() -> Option<Arc<RequestDecisions>> {
    CONTEXT.try_with(|context| context.record.clone()).ok().flatten()
}

/// Returns how much later than after this delay the client of the current request is told to come back.
#[cfg(feature = "web")]
pub(crate) fn spread_of(delay: Duration) -> Duration {
    delay.mul_f64(spread().unwrap_or(0.0))
}

#[cfg(feature = "web")]
fn spread() -> Option<f64> {
    CONTEXT.try_with(|context| context.spread).ok().flatten()
}

/// Calls a function with the record of the current request, if it has one.
#[cfg(feature = "web")]
pub(crate) fn with_record(then: impl FnOnce(&RequestDecisions)) {
    let _ = CONTEXT.try_with(|context| context.record.as_deref().map(then));
}

/// A stream that is polled in a context.
struct ScopedStream<S> {
    context: RequestContext,
    stream: Pin<Box<S>>,
}

impl<S: Stream> Stream for ScopedStream<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let ScopedStream { context, stream } = self.get_mut();
        CONTEXT.sync_scope(context.clone(), || stream.as_mut().poll_next(task))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.size_hint()
    }
}

/// Without the address and the user.
impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RequestContext { ip, user, .. } = self;
        let mut context = f.debug_struct("RequestContext");
        context.field("has_ip", &ip.is_some()).field("has_user", &user.is_some()).finish()
    }
}

/// Returns the address of the current context.
pub(crate) fn ip() -> Result<IpAddr, MissingKey> {
    CONTEXT.try_with(|context| context.ip).ok().flatten().ok_or_else(missing_ip)
}

/// Returns the error of a call whose key needs the address, and logs if it is a proxy that should have named it.
#[cold]
pub(crate) fn missing_ip() -> MissingKey {
    #[cfg(feature = "web")]
    if let Some(unnamed) = CONTEXT.try_with(|context| context.unnamed.clone()).ok().flatten() {
        unnamed.count();
    }
    MissingKey::Ip
}

/// Returns the user of the current context.
pub(crate) fn user() -> Result<Arc<str>, MissingKey> {
    CONTEXT.try_with(|context| context.user.clone()).ok().flatten().ok_or(MissingKey::User)
}

/// Returns the address that an address is counted by: for IPv6, its network with this prefix of at least 1 bit.
pub(crate) fn network(ip: IpAddr, ipv6_prefix: u8) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => match embedded_ipv4(ip) {
            Some(ip) => ip.into(),
            None => Ipv6Addr::from_bits(ip.to_bits() & u128::MAX << (128 - ipv6_prefix)).into(),
        },
        v4 => v4,
    }
}

/// Returns the IPv4 address that a translator has embedded (RFC 6052, NAT64), or that an old notation does (RFC 4291). One network
/// holds them all, so its prefix would be the same for everybody.
fn embedded_ipv4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let [prefix @ .., high, low] = ip.segments();
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    match prefix {
        [0x64, 0xff9b, 0, 0, 0, 0] => Some(Ipv4Addr::new(a, b, c, d)),
        // Not the unspecified address, nor that of the own machine.
        [0, 0, 0, 0, 0, 0] if a > 0 => Some(Ipv4Addr::new(a, b, c, d)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_count_by_network() {
        for (address, prefix, counts_as) in [
            ("192.0.2.7", 64, "192.0.2.7"),
            ("::ffff:192.0.2.7", 64, "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::"),
            ("2001:db8:1:2::", 64, "2001:db8:1:2::"),
            ("::1", 64, "::"),
            ("::1", 128, "::1"),
            ("64:ff9b::192.0.2.7", 64, "192.0.2.7"),
            ("64:ff9b::192.0.2.7", 128, "192.0.2.7"),
            ("64:ff9b:1::192.0.2.7", 64, "64:ff9b:1::"),
            ("::192.0.2.7", 64, "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", 128, "2001:db8:1:2:3:4:5:6"),
            ("2001:db8:1:2ff:3:4:5:6", 56, "2001:db8:1:200::"),
            ("ffff::", 1, "8000::"),
        ] {
            assert_eq!(network(address.parse().unwrap(), prefix).to_string(), counts_as);
        }
    }
}
