//! The layer that puts requests in a context, limits them, and completes their responses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::body::RateLimitBody;
use super::headers::RateLimitHeaders;
use super::message::RequestHead;
use super::options::{EXPOSED, Options};
use super::peer;
use super::response::response_to;
use crate::base::invalid_policy::InvalidPolicy;
use crate::key::IntoKey;
use crate::usage::client_ip::ClientIp;
use crate::usage::limiter::Limiter;

/// A layer that puts each request in a [`RequestContext`](crate::RequestContext), so that every annotated function below it knows the
/// caller.
///
/// It works with any service over `http` requests whose response body has data that can be made from `Bytes`: axum, tonic, hyper.
/// Of layers around each other, the inner one adds to the context of the outer one. Middleware below it can add the user it has
/// authenticated: `RequestContext::current().with_user(id).scope(next.run(request))`. The body of a response is in the context of
/// the layer, however late it is sent, without what is added below.
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
#[derive(Clone, Debug, Default)]
pub struct RateLimitLayer {
    options: Options<Parts>,
}

/// The service of a [`RateLimitLayer`].
#[derive(Clone, Debug)]
pub struct RateLimitService<S> {
    service: S,
    options: Arc<Options<Parts>>,
}

impl RateLimitLayer {
    /// Creates a layer that takes the client's address from the connection.
    #[must_use]
    pub fn new() -> Self {
        RateLimitLayer::default()
    }

    /// Sets where the client's address comes from, for services behind proxies.
    #[must_use]
    pub fn client_ip(self, client_ip: ClientIp) -> Self {
        RateLimitLayer { options: self.options.client_ip(client_ip) }
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
        RateLimitLayer { options: Options { user: Some(Arc::new(user)), ..self.options } }
    }

    /// Limits requests before their bodies are read and their parameters parsed. Each takes one permit of the key that the function
    /// returns; a request without a key is refused. The function runs in the context of the request, for keys such as
    /// `RequestContext::current().ip()`.
    ///
    /// With the feature `tonic`, gRPC requests are refused with a status of gRPC.
    ///
    /// Preflight requests of browsers pass. So does any OPTIONS request that looks like one, without a body and credentials: where a
    /// handler serves such requests, annotate it. A layer has one limit, that of the last call: for several that are decided
    /// together, annotate a function.
    ///
    /// With a [`ConcurrencyLimit`](crate::ConcurrencyLimit) a request holds its permit until the body of its response has ended or is
    /// dropped.
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
        self.limit_cost(limiter, move |request| Some((key(request)?, 1)))
    }

    /// The same for requests that cost more than one permit, such as uploads by their size. The function returns the key, and the
    /// permits to take: a request that takes none passes without asking.
    ///
    /// ```
    /// use ratelimits::web::RateLimitLayer;
    /// use ratelimits::{Registry, RequestContext, TokenBucket};
    ///
    /// # fn main() -> Result<(), ratelimits::Error> {
    /// let bytes = Registry::in_memory().limiter("upload-bytes", TokenBucket::per_second(1_000_000).burst(50_000_000))?;
    /// let layer = RateLimitLayer::new().limit_cost(bytes, |request| {
    ///     // Without a length, a body may be as large as the server takes.
    ///     let length = request.headers.get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
    ///     Some((RequestContext::current().ip()?, length.unwrap_or(50_000_000)))
    /// });
    /// # drop(layer); Ok(()) }
    /// ```
    #[must_use]
    pub fn limit_cost<K, M>(
        self,
        limiter: Limiter,
        charge: impl Fn(&Parts) -> Option<(K, u64)> + Send + Sync + 'static,
    ) -> Self
    where
        K: IntoKey<M> + Send + 'static,
        M: 'static,
    {
        RateLimitLayer { options: self.options.limit(limiter, charge) }
    }

    /// Adds headers about limits to responses. On requests of other origins, it also lets scripts of the browser read them.
    #[must_use]
    pub fn headers(self, headers: RateLimitHeaders) -> Self {
        RateLimitLayer { options: Options { headers: Some(headers), ..self.options } }
    }

    /// Tells refused clients to come back later than they could, each at another time: by up to this fraction of the delay, at random,
    /// and never earlier. Without it, all that are refused in one window are told its end, and come back together.
    ///
    /// Use it where many clients share a key, or have windows that end together, as those of `aligned` and of calendars do. A client with a bucket of
    /// its own comes back alone, and only waits longer.
    ///
    /// It concerns all that the response to a refused request tells, whether the layer has refused it or a function below: `Retry-After`,
    /// `RateLimit` and `X-RateLimit-Reset`, and `RetryInfo` and `grpc-retry-pushback-ms` of gRPC. They agree with each other.
    /// [`Error::retry_after`](crate::Error::retry_after) stays exact, and so does what a handler writes by it. Of layers around each
    /// other, the outermost that has a spread decides.
    ///
    /// Headers have whole seconds, and an addition of less than one is dropped: 0.1 has no effect on delays of up to ten seconds.
    ///
    /// # Errors
    ///
    /// [`InvalidPolicy`] if the fraction is not between 0 and 1.
    ///
    /// ```
    /// use ratelimits::web::RateLimitLayer;
    ///
    /// # fn main() -> Result<(), ratelimits::Error> {
    /// // Of the clients that have to wait for an hour, each is told between 60 and 66 minutes.
    /// let layer = RateLimitLayer::new().spread(0.1)?;
    /// # drop(layer); Ok(()) }
    /// ```
    pub fn spread(self, fraction: f64) -> Result<Self, InvalidPolicy> {
        Ok(RateLimitLayer { options: self.options.spread(fraction)? })
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimitService<S>;

    fn layer(&self, service: S) -> Self::Service {
        RateLimitService { service, options: Arc::new(self.options.clone()) }
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
        let mut service = std::mem::replace(&mut self.service, clone);
        let options = Arc::clone(&self.options);
        let (mut parts, body) = request.into_parts();
        let peer = peer::address(&mut parts.extensions);
        let context = options.context(&parts, peer);
        let is_cross_origin = parts.is_cross_origin();
        let of_body = context.clone();
        Box::pin(context.scope(async move {
            let mut response = match options.decide(&parts).await {
                Err(error) => response_to(&parts, error).map(RateLimitBody::of_refusal),
                Ok(decision) => {
                    let response = service.call(Request::from_parts(parts, body)).await?;
                    response.map(|body| RateLimitBody::of_service(body, of_body, decision))
                }
            };
            let headers = response.headers_mut();
            for (name, value) in options.fields(headers.contains_key(RETRY_AFTER), is_cross_origin) {
                let Ok(value) = HeaderValue::try_from(value) else { continue };
                if name == EXPOSED {
                    headers.append(name, value);
                } else {
                    headers.insert(name, value);
                }
            }
            Ok(response)
        }))
    }
}

impl RequestHead for Parts {
    const PEER_ADVICE: &'static str = peer::ADVICE;

    fn method(&self) -> &str {
        self.method.as_str()
    }

    fn values<'a>(&'a self, header: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        self.headers.get_all(header).into_iter().map(HeaderValue::as_bytes)
    }
}
