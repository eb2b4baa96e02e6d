//! The middleware of actix-web that puts requests in a context, limits them, and completes their responses.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use actix_web::body::EitherBody;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::http::header::{HeaderName, HeaderValue, RETRY_AFTER};

use super::headers::RateLimitHeaders;
use super::message::RequestHead;
use super::options::{EXPOSED, Options};
use super::scoped_body::ScopedBody;
use crate::base::invalid_policy::InvalidPolicy;
use crate::key::IntoKey;
use crate::usage::client_ip::ClientIp;
use crate::usage::limiter::Limiter;

/// A middleware of actix-web that puts each request in a [`RequestContext`](crate::RequestContext), so that every annotated function
/// below it knows the caller. It is to actix-web what `RateLimitLayer` is to other frameworks.
///
/// Create it, and the limiter of [`limit`](Self::limit), before `HttpServer::new`, and clone it into the closure, which runs once
/// for each worker: a registry or limiter created there would count for its worker only.
///
/// Of several middlewares, the one that is wrapped last comes first. It adds to the context of a middleware around it.
/// Middleware below it can add the user it has authenticated: `RequestContext::current().with_user(id).scope(next.call(request))`.
/// Tasks take the context along with `actix_web::rt::spawn(RequestContext::current().scope(task))`.
///
/// If middleware below it returns an error instead of a response, the error passes unchanged, without headers about limits and
/// without a [`spread`](Self::spread).
///
/// ```
/// use actix_web::{App, HttpServer, web};
/// use ratelimits::web::RateLimitMiddleware;
/// use ratelimits::{ClientIp, Error, rate_limit};
///
/// #[rate_limit("10/min", key_type = IP)]
/// async fn search() -> Result<String, Error> {
///     Ok("found".into())
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client_ip = ClientIp::header("x-forwarded-for", ["10.0.0.0/8"])?;
/// let limits = RateLimitMiddleware::new().client_ip(client_ip);
/// let server = HttpServer::new(move || {
///     App::new().route("/search", web::get().to(search)).wrap(limits.clone())
/// });
/// # drop(server); Ok(()) }
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "actix")))]
#[derive(Clone, Debug, Default)]
pub struct RateLimitMiddleware {
    options: Options<ServiceRequest>,
}

/// The service of a [`RateLimitMiddleware`].
#[cfg_attr(docsrs, doc(cfg(feature = "actix")))]
#[derive(Debug)]
pub struct RateLimitMiddlewareService<S> {
    service: Rc<S>,
    options: Rc<Options<ServiceRequest>>,
}

impl RateLimitMiddleware {
    /// Creates a middleware that takes the client's address from the connection.
    #[must_use]
    pub fn new() -> Self {
        RateLimitMiddleware::default()
    }

    /// Sets where the client's address comes from, for services behind proxies.
    #[must_use]
    pub fn client_ip(self, client_ip: ClientIp) -> Self {
        RateLimitMiddleware { options: self.options.client_ip(client_ip) }
    }

    /// Sets how to find the user of a request, from its headers or from what authentication has added to its extensions. A user
    /// that is blank is none.
    ///
    /// Do not take the user from a header that clients can write themselves, without checking it.
    ///
    /// ```
    /// use actix_web::HttpMessage;
    /// use ratelimits::web::RateLimitMiddleware;
    ///
    /// struct Session { user: u64 }
    ///
    /// let middleware =
    ///     RateLimitMiddleware::new().user(|request| Some(request.extensions().get::<Session>()?.user.to_string()));
    /// # drop(middleware);
    /// ```
    #[must_use]
    pub fn user(self, user: impl Fn(&ServiceRequest) -> Option<String> + Send + Sync + 'static) -> Self {
        RateLimitMiddleware { options: Options { user: Some(Arc::new(user)), ..self.options } }
    }

    /// Limits requests before their bodies are read and their parameters parsed. Each takes one permit of the key that the function
    /// returns; a request without a key is refused. The function runs in the context of the request, for keys such as
    /// `RequestContext::current().ip()`.
    ///
    /// Preflight requests of browsers pass. So does any OPTIONS request that looks like one, without a body and credentials: where a
    /// handler serves such requests, annotate it. A middleware has one limit, that of the last call: for several that are decided
    /// together, annotate a function.
    ///
    /// With a [`ConcurrencyLimit`](crate::ConcurrencyLimit) a request holds its permit until the body of its response has ended or is
    /// dropped.
    ///
    /// ```
    /// use ratelimits::web::RateLimitMiddleware;
    /// use ratelimits::{Registry, RequestContext, TokenBucket};
    ///
    /// # fn main() -> Result<(), ratelimits::Error> {
    /// let by_address = Registry::in_memory().limiter("by-address", TokenBucket::per_second(50))?;
    /// let middleware = RateLimitMiddleware::new().limit(by_address, |_| RequestContext::current().ip());
    /// # drop(middleware); Ok(()) }
    /// ```
    #[must_use]
    pub fn limit<K, M>(
        self,
        limiter: Limiter,
        key: impl Fn(&ServiceRequest) -> Option<K> + Send + Sync + 'static,
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
    /// use ratelimits::web::RateLimitMiddleware;
    /// use ratelimits::{Registry, RequestContext, TokenBucket};
    ///
    /// # fn main() -> Result<(), ratelimits::Error> {
    /// let bytes = Registry::in_memory().limiter("upload-bytes", TokenBucket::per_second(1_000_000).burst(50_000_000))?;
    /// let middleware = RateLimitMiddleware::new().limit_cost(bytes, |request| {
    ///     // Without a length, a body may be as large as the server takes.
    ///     let length = request.headers().get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
    ///     Some((RequestContext::current().ip()?, length.unwrap_or(50_000_000)))
    /// });
    /// # drop(middleware); Ok(()) }
    /// ```
    #[must_use]
    pub fn limit_cost<K, M>(
        self,
        limiter: Limiter,
        charge: impl Fn(&ServiceRequest) -> Option<(K, u64)> + Send + Sync + 'static,
    ) -> Self
    where
        K: IntoKey<M> + Send + 'static,
        M: 'static,
    {
        RateLimitMiddleware { options: self.options.limit(limiter, charge) }
    }

    /// Adds headers about limits to responses. On requests of other origins, it also lets scripts of the browser read them.
    #[must_use]
    pub fn headers(self, headers: RateLimitHeaders) -> Self {
        RateLimitMiddleware { options: Options { headers: Some(headers), ..self.options } }
    }

    /// Tells refused clients to come back later than they could, each at another time: by up to this fraction of the delay, at random,
    /// and never earlier. Without it, all that are refused in one window are told its end, and come back together.
    ///
    /// Use it where many clients share a key, or have windows that end together, as those of `aligned` and of calendars do. A client with a bucket of
    /// its own comes back alone, and only waits longer.
    ///
    /// It concerns all that the response to a refused request tells, whether the middleware has refused it or a function below:
    /// `Retry-After`, `RateLimit` and `X-RateLimit-Reset`. They agree with each other.
    /// [`Error::retry_after`](crate::Error::retry_after) stays exact, and so does what a handler writes by it. Of middlewares around
    /// each other, the outermost that has a spread decides.
    ///
    /// Headers have whole seconds, and an addition of less than one is dropped: 0.1 has no effect on delays of up to ten seconds.
    ///
    /// # Errors
    ///
    /// [`InvalidPolicy`] if the fraction is not between 0 and 1.
    ///
    /// ```
    /// use ratelimits::web::RateLimitMiddleware;
    ///
    /// # fn main() -> Result<(), ratelimits::Error> {
    /// // Of the clients that have to wait for an hour, each is told between 60 and 66 minutes.
    /// let middleware = RateLimitMiddleware::new().spread(0.1)?;
    /// # drop(middleware); Ok(()) }
    /// ```
    pub fn spread(self, fraction: f64) -> Result<Self, InvalidPolicy> {
        Ok(RateLimitMiddleware { options: self.options.spread(fraction)? })
    }
}

impl<S, B> Transform<S, ServiceRequest> for RateLimitMiddleware
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>> + 'static,
    B: 'static,
{
    type Response = ServiceResponse<EitherBody<ScopedBody<B>>>;
    type Error = S::Error;
    type Transform = RateLimitMiddlewareService<S>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, service: S) -> Self::Future {
        let options = Rc::new(self.options.clone());
        ready(Ok(RateLimitMiddlewareService { service: Rc::new(service), options }))
    }
}

impl<S, B> Service<ServiceRequest> for RateLimitMiddlewareService<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>> + 'static,
    B: 'static,
{
    type Response = ServiceResponse<EitherBody<ScopedBody<B>>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>>>>;

    fn poll_ready(&self, task: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(task)
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let (service, options) = (Rc::clone(&self.service), Rc::clone(&self.options));
        // Not `realip_remote_addr`, which believes what any client writes into a header.
        let peer = request.peer_addr().map(|peer| peer.ip());
        let (context, is_cross_origin) = (options.context(&request, peer), request.is_cross_origin());
        let of_body = context.clone();
        Box::pin(context.scope(async move {
            let mut response = match options.decide(&request).await {
                Err(error) => request.error_response(error).map_into_right_body(),
                Ok(decision) => {
                    let response = service.call(request).await?;
                    response.map_body(|_, body| ScopedBody::new(body, of_body, decision)).map_into_left_body()
                }
            };
            let headers = response.headers_mut();
            for (name, value) in options.fields(headers.contains_key(RETRY_AFTER), is_cross_origin) {
                let Ok(value) = HeaderValue::try_from(value) else { continue };
                if name == EXPOSED {
                    headers.append(HeaderName::from_static(name), value);
                } else {
                    headers.insert(HeaderName::from_static(name), value);
                }
            }
            Ok(response)
        }))
    }
}

impl RequestHead for ServiceRequest {
    const PEER_ADVICE: &'static str =
        "with actix-web, serve TCP sockets; in its tests, call `TestRequest::peer_addr`";

    fn method(&self) -> &str {
        self.method().as_str()
    }

    fn values<'a>(&'a self, header: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        self.headers().get_all(header).map(HeaderValue::as_bytes)
    }
}
