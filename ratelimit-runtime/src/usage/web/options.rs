//! What a layer or a middleware is told to do with requests, whatever the framework.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::headers::RateLimitHeaders;
use super::message::RequestHead;
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::log::log;
use crate::base::random::random;
use crate::decide::decision::Decision;
use crate::decide::error::Error;
use crate::key::IntoKey;
use crate::key::missing_key::MissingKey;
use crate::usage::client_ip::ClientIp;
use crate::usage::context::{self, RequestContext};
use crate::usage::limiter::Limiter;
use crate::usage::unnamed_clients::UnnamedClients;

/// The header that tells scripts of other origins what they may read.
pub(super) const EXPOSED: &str = "access-control-expose-headers";

/// The options of a layer for requests of the type `R`.
pub(super) struct Options<R> {
    /// `None` for the address of the connection, unless an outer layer has found one.
    pub(super) client_ip: Option<(ClientIp, Arc<UnnamedClients>)>,
    pub(super) user: Option<Arc<UserOf<R>>>,
    pub(super) limit: Option<Arc<Limit<R>>>,
    pub(super) headers: Option<RateLimitHeaders>,
    /// The largest share of a delay that clients are told on top.
    pub(super) spread: Option<f64>,
    pub(super) events: Arc<Events>,
}

/// What was logged about the addresses of requests.
#[derive(Default)]
pub(super) struct Events {
    lacks_peer: AtomicBool,
    ignores_header: AtomicBool,
}

/// Headers by which proxies name clients.
const FORWARDING: [&str; 3] = ["x-forwarded-for", "forwarded", "x-real-ip"];

pub(super) type UserOf<R> = dyn Fn(&R) -> Option<String> + Send + Sync;
pub(super) type Limit<R> = dyn Fn(&R) -> Verdict + Send + Sync;
pub(super) type Verdict = Pin<Box<dyn Future<Output = Result<Option<Decision>, Error>> + Send>>;

impl<R> Options<R> {
    pub(super) fn client_ip(self, client_ip: ClientIp) -> Self {
        let unnamed = UnnamedClients::new(client_ip.header_name().unwrap_or_default());
        Options { client_ip: Some((client_ip, Arc::new(unnamed))), ..self }
    }

    pub(super) fn limit<K, M>(
        self,
        limiter: Limiter,
        charge: impl Fn(&R) -> Option<(K, u64)> + Send + Sync + 'static,
    ) -> Self
    where
        K: IntoKey<M> + Send + 'static,
        M: 'static,
    {
        let limit = move |request: &R| -> Verdict {
            let (limiter, charge) = (limiter.clone(), charge(request));
            Box::pin(async move {
                match charge {
                    Some((key, cost)) => limiter.try_acquire_n(key, cost).await.map(Some),
                    // Without an address, that is what the service has to provide first.
                    None if RequestContext::current().ip().is_none() => {
                        limiter.try_acquire_without_key(context::missing_ip()).map(|()| None)
                    }
                    None => limiter.try_acquire_without_key(MissingKey::Part).map(|()| None),
                }
            })
        };
        Options { limit: Some(Arc::new(limit)), ..self }
    }

    pub(super) fn spread(self, fraction: f64) -> Result<Self, InvalidPolicy> {
        match fraction {
            0.0..=1.0 => Ok(Options { spread: Some(fraction), ..self }),
            _ => Err(InvalidPolicy::new("spread", "is not between 0 and 1; write a fraction such as 0.1")),
        }
    }

    /// Returns the headers about limits for a response, in the context of its request. [`EXPOSED`] is added to what the response has
    /// of it, and the others replace it.
    pub(super) fn fields(&self, has_retry_after: bool, is_cross_origin: bool) -> Vec<(&'static str, String)> {
        let record = context::record();
        let mut fields: Vec<_> =
            self.headers.iter().zip(&record).flat_map(|(headers, record)| headers.fields(record)).collect();
        let retry_after = has_retry_after.then_some("retry-after");
        let names: Vec<_> = retry_after.into_iter().chain(fields.iter().map(|(name, _)| *name)).collect();
        if is_cross_origin && !names.is_empty() {
            fields.push((EXPOSED, names.join(", ")));
        }
        fields
    }
}

impl<R: RequestHead> Options<R> {
    /// Returns the context of a request, given the address at the other end of its connection. What this layer does not find out
    /// is that of the layer around it.
    pub(super) fn context(&self, request: &R, peer: Option<IpAddr>) -> RequestContext {
        let outer = RequestContext::current();
        let context = match &self.client_ip {
            None if outer.knows_peer() => outer,
            None => self.with_address(outer, request, peer, &ClientIp::peer()),
            Some((client_ip, unnamed)) => {
                let context = self.with_address(outer, request, peer, client_ip);
                if context.ip().is_none() && peer.is_some() { context.unnamed(unnamed) } else { context }
            }
        };
        let context = match self.user.as_ref().and_then(|user| user(request)) {
            Some(user) => context.with_user(user),
            None => context,
        };
        let context = match self.spread {
            Some(fraction) => context.with_spread(fraction * random()),
            None => context,
        };
        match self.headers {
            // Layers around each other tell of the same decisions.
            Some(_) => context.with_record(context::record().unwrap_or_default()),
            None => context,
        }
    }

    fn with_address(
        &self,
        context: RequestContext,
        request: &R,
        peer: Option<IpAddr>,
        client_ip: &ClientIp,
    ) -> RequestContext {
        let Some(peer) = peer else {
            if !self.events.lacks_peer.swap(true, Ordering::Relaxed) {
                let advice = R::PEER_ADVICE;
                log!(WARN, advice, "requests have no peer address, so calls that need one are refused");
            }
            return context.in_network(None);
        };
        if !self.events.ignores_header.load(Ordering::Relaxed) && !client_ip.trusts(peer) {
            self.warn_of_ignored_header(request);
        }
        let header = client_ip.header_name();
        let lines = header.into_iter().flat_map(|name| request.values(name));
        context.in_network(client_ip.find(peer, lines).ok())
    }

    /// Logs once that a connection that is not trusted names a client. Not whom, as anybody can send that.
    fn warn_of_ignored_header(&self, request: &R) {
        let sent = FORWARDING.into_iter().find(|name| request.values(name).next().is_some());
        if let Some(header) = sent
            && !self.events.ignores_header.swap(true, Ordering::Relaxed)
        {
            let advice = "if it is your proxy, pass its networks to `ClientIp::header`: until then all of its clients count as one";
            log!(
                WARN,
                header,
                advice,
                "a header about the client is ignored, as its connection is not trusted"
            );
        }
    }

    /// Decides about a request. The permits that it holds are released with the decision. To be called in its context.
    ///
    /// # Errors
    ///
    /// If it is refused.
    pub(super) async fn decide(&self, request: &R) -> Result<Option<Decision>, Error> {
        match self.limit.as_ref().filter(|_| !request.is_preflight()) {
            Some(limit) => limit(request).await,
            None => Ok(None),
        }
    }
}

impl<R> Clone for Options<R> {
    fn clone(&self) -> Self {
        let Options { client_ip, user, limit, headers, spread, events } = self;
        Options {
            client_ip: client_ip.clone(),
            user: user.clone(),
            limit: limit.clone(),
            headers: headers.clone(),
            spread: *spread,
            events: Arc::clone(events),
        }
    }
}

impl<R> Default for Options<R> {
    fn default() -> Self {
        Options {
            client_ip: None,
            user: None,
            limit: None,
            headers: None,
            spread: None,
            events: Arc::default(),
        }
    }
}

impl<R> fmt::Debug for Options<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { client_ip, user, limit, headers, spread, .. } = self;
        f.debug_struct("Options")
            .field("client_ip", &client_ip.as_ref().map(|(client_ip, _)| client_ip))
            .field("has_user", &user.is_some())
            .field("has_limit", &limit.is_some())
            .field("headers", headers)
            .field("spread", spread)
            .finish_non_exhaustive()
    }
}
