//! The layer that puts requests in a context, limits them, and completes their responses.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use http::header::{
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderName, HeaderValue, ORIGIN,
    RETRY_AFTER,
};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::body::RateLimitBody;
use super::headers::RateLimitHeaders;
use super::peer;
use super::response::response;
use crate::client_ip::ClientIp;
use crate::context::RequestContext;
use crate::error::Error;
use crate::error::missing_key::MissingKey;
use crate::key::IntoKey;
use crate::limiter::Limiter;
use crate::log::log;
use crate::record::Record;

/// A layer that puts each request in a [`RequestContext`], so that every annotated function below it knows the caller.
///
/// It works with any service over `http` requests: axum, tonic, hyper. A context that an outer layer provides is replaced.
/// Middleware below it can add the user it has authenticated: `RequestContext::current().with_user(id).scope(next.run(request))`.
///
/// ```
/// use axum::{Router, routing::get};
/// use ratelimits::web::RateLimitLayer;
/// use ratelimits::{ClientIp, Error, rate_limit};
///
/// #[rate_limit("10/min", key_type = IP)]
/// async fn search() -> Result<String, Error> {
///     Ok("found".into())
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client_ip = ClientIp::header("x-forwarded-for", ["10.0.0.0/8"])?;
/// let app: Router = Router::new().route("/search", get(search)).layer(RateLimitLayer::new().client_ip(client_ip));
/// # drop(app); Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct RateLimitLayer {
    client_ip: ClientIp,
    user: Option<Arc<UserOf>>,
    limit: Option<Arc<Limit>>,
    headers: Option<RateLimitHeaders>,
    /// Whether it was logged that requests have no address.
    lacks_peer: Arc<AtomicBool>,
}

/// The service of a [`RateLimitLayer`].
#[derive(Clone, Debug)]
pub struct RateLimitService<S> {
    service: S,
    layer: RateLimitLayer,
}

type UserOf = dyn Fn(&Parts) -> Option<String> + Send + Sync;
type Limit = dyn Fn(&Parts) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> + Send + Sync;

impl RateLimitLayer {
    /// Creates a layer that takes the client's address from the connection.
    #[must_use]
    pub fn new() -> Self {
        RateLimitLayer::default()
    }

    /// Sets where the client's address comes from, for services behind proxies.
    #[must_use]
    pub fn client_ip(self, client_ip: ClientIp) -> Self {
        RateLimitLayer { client_ip, ..self }
    }

    /// Sets how to find the user of a request, from its headers or from what authentication has added to its extensions. A user
    /// that is blank is none.
    ///
    /// Do not take the user from a header that clients can write themselves, without checking it.
    ///
    /// ```
    /// use ratelimits::web::RateLimitLayer;
    ///
    /// #[derive(Clone)]
    /// struct Session { user: u64 }
    ///
    /// let layer = RateLimitLayer::new().user(|request| Some(request.extensions.get::<Session>()?.user.to_string()));
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn user(self, user: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        RateLimitLayer { user: Some(Arc::new(user)), ..self }
    }

    /// Limits requests before their bodies are read and their parameters parsed. Each takes one permit of the key that the function
    /// returns; a request without a key is refused. The function runs in the context of the request, for keys such as
    /// `RequestContext::current().ip()`.
    ///
    /// Preflight requests of browsers pass. A layer has one limit: for several that are decided together, annotate a function.
    ///
    /// ```
    /// use ratelimits::web::RateLimitLayer;
    /// use ratelimits::{Registry, RequestContext, TokenBucket};
    ///
    /// # fn main() -> Result<(), ratelimits::Error> {
    /// let by_address = Registry::in_memory().limiter("by-address", TokenBucket::per_second(50))?;
    /// let layer = RateLimitLayer::new().limit(by_address, |_| RequestContext::current().ip());
    /// # drop(layer); Ok(()) }
    /// ```
    #[must_use]
    pub fn limit<K, M>(
        self,
        limiter: Limiter,
        key: impl Fn(&Parts) -> Option<K> + Send + Sync + 'static,
    ) -> Self
    where
        K: IntoKey<M> + Send + 'static,
        M: 'static,
    {
        let limit = move |request: &Parts| -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> {
            let (limiter, key) = (limiter.clone(), key(request));
            Box::pin(async move {
                limiter.try_acquire(key.ok_or(MissingKey::Part)?, 1).await?;
                Ok(())
            })
        };
        RateLimitLayer { limit: Some(Arc::new(limit)), ..self }
    }

    /// Adds headers about limits to responses. On requests of other origins, it also lets scripts of the browser read them.
    #[must_use]
    pub fn headers(self, headers: RateLimitHeaders) -> Self {
        RateLimitLayer { headers: Some(headers), ..self }
    }

    fn context(&self, request: &Parts) -> RequestContext {
        let context = match peer::address(&request.extensions) {
            Some(peer) => {
                let name = self.client_ip.header_name();
                let lines: Vec<_> =
                    name.map(|name| request.headers.get_all(name).iter().collect()).unwrap_or_default();
                self.client_ip.context(peer, lines.iter().map(|line: &&HeaderValue| line.as_bytes()))
            }
            None => {
                if !self.lacks_peer.swap(true, Ordering::Relaxed) {
                    log!(
                        WARN,
                        advice = peer::ADVICE,
                        "requests have no peer address, so calls that need one are refused"
                    );
                }
                RequestContext::new()
            }
        };
        match self.user.as_ref().and_then(|user| user(request)) {
            Some(user) => context.with_user(user),
            None => context,
        }
    }

    /// Adds the headers about limits.
    fn complete(&self, headers: &mut HeaderMap, record: &Record, from_browser: bool) {
        let mut names = Vec::from_iter(headers.contains_key(RETRY_AFTER).then_some("retry-after"));
        for (name, value) in self.headers.iter().flat_map(|headers| headers.fields(record)) {
            // They have only ASCII.
            let Ok(value) = HeaderValue::try_from(value) else { continue };
            headers.insert(HeaderName::from_static(name), value);
            names.push(name);
        }
        if from_browser && !names.is_empty() {
            let names = HeaderValue::try_from(names.join(", ")).expect("names of headers are valid values");
            headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, names);
        }
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimitService<S>;

    fn layer(&self, service: S) -> Self::Service {
        RateLimitService { service, layer: self.clone() }
    }
}

impl<S, B, R> Service<Request<B>> for RateLimitService<S>
where
    S: Service<Request<B>, Response = Response<R>, Future: Send> + Clone + Send + 'static,
    B: Send + 'static,
{
    type Response = Response<RateLimitBody<R>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(task)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that is ready is this one, not its clone.
        let clone = self.service.clone();
        let (mut service, layer) = (std::mem::replace(&mut self.service, clone), self.layer.clone());
        let (parts, body) = request.into_parts();
        let (mut context, record) = (layer.context(&parts), Arc::new(Record::default()));
        if layer.headers.is_some() {
            context = context.with_record(Arc::clone(&record));
        }
        let from_browser = parts.headers.contains_key(ORIGIN);
        let limit = layer.limit.clone().filter(|_| !is_preflight(&parts));
        let in_context = context.clone();
        Box::pin(context.scope(async move {
            let refused = match limit {
                Some(limit) => limit(&parts).await.err(),
                None => None,
            };
            let mut response = match refused {
                Some(error) => response(&error).map(RateLimitBody::of_refusal),
                None => {
                    let response = service.call(Request::from_parts(parts, body)).await?;
                    response.map(|body| RateLimitBody::of_service(body, in_context))
                }
            };
            layer.complete(response.headers_mut(), &record, from_browser);
            Ok(response)
        }))
    }
}

/// Whether a browser asks if it may send the request. It does not send the request itself.
fn is_preflight(request: &Parts) -> bool {
    request.method == Method::OPTIONS
        && request.headers.contains_key(ORIGIN)
        && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

impl fmt::Debug for RateLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RateLimitLayer { client_ip, user, limit, headers, .. } = self;
        f.debug_struct("RateLimitLayer")
            .field("client_ip", client_ip)
            .field("has_user", &user.is_some())
            .field("has_limit", &limit.is_some())
            .field("headers", headers)
            .finish_non_exhaustive()
    }
}
