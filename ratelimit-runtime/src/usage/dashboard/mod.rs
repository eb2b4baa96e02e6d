//! A page that shows the limits of a running service: [`Dashboard`].

mod page;
mod report;
mod reset;
mod same_origin;

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::decide::observation::Observation;
use crate::observe::dashboard::counts::Counts;
use crate::usage::registry::Registry;

/// A page for axum that shows the policies of a registry, what they decide at the moment, the keys that are limited most, the
/// state of the store, and the overrides in force.
///
/// [`observer`](Self::observer) counts the decisions of a registry, in this process, and [`router`](Self::router) serves the page:
///
/// ```
/// use axum::Router;
/// use ratelimits::Registry;
/// use ratelimits::dashboard::Dashboard;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let dashboard = Dashboard::new();
/// let registry = Registry::builder().observer(dashboard.observer()).in_memory();
/// ratelimits::install(registry.clone())?;
///
/// let app: Router = Router::new().nest("/limits", dashboard.router(&registry));
/// # Ok(()) }
/// ```
///
/// The page needs no other host, and reads `/limits/data`, which is JSON, every two seconds. The format of that may change with
/// any release. The page shows names, arguments and source files of the program and the address of Redis, so serve it on an
/// internal address, or behind a layer that authenticates users. It changes nothing; see
/// [`router_with_reset`](Self::router_with_reset).
///
/// Counts are kept for each second of the last minute, and in total since the dashboard was created, for up to 1,000 policies. All
/// further ones are counted as `(other)`. Keys are shown as hashes, and counted for five to ten minutes. What other processes
/// decide is not seen.
///
/// With an observer, calls in process take [longer](crate::RegistryBuilder::observer). Cheap to clone: clones are one dashboard.
#[derive(Clone)]
pub struct Dashboard {
    counts: Arc<Counts>,
}

/// Tells whether the sender of a request may reset keys.
type MayReset = dyn Fn(&Parts) -> bool + Send + Sync;

/// What a router serves.
#[derive(Clone)]
struct Served {
    counts: Arc<Counts>,
    registry: Registry,
    may_reset: Option<Arc<MayReset>>,
}

impl Dashboard {
    /// Creates a dashboard that has counted nothing.
    #[must_use]
    pub fn new() -> Self {
        Dashboard { counts: Arc::new(Counts::new()) }
    }

    /// Shows keys as they are in place of hashes. They may be personal data, and are as long as callers make them.
    ///
    /// The dashboard starts afresh: call this before [`observer`](Self::observer).
    #[must_use]
    pub fn with_keys(self) -> Self {
        Dashboard { counts: Arc::new(Counts::with_keys()) }
    }

    /// Returns a function that counts decisions, for [`RegistryBuilder::observer`](crate::RegistryBuilder::observer). Several
    /// registries may have it, and are then counted together.
    pub fn observer(&self) -> impl Fn(&Observation<'_>) + Send + Sync + use<> {
        let counts = Arc::clone(&self.counts);
        move |seen| counts.count(seen)
    }

    /// Returns the routes of the page, which change nothing. Nest them below a path without a slash at its end.
    ///
    /// Every response has headers that forbid other scripts, styles, hosts and frames, and caching.
    pub fn router<S: Clone + Send + Sync + 'static>(&self, registry: &Registry) -> Router<S> {
        self.serve(registry, None)
    }

    /// Returns the routes of the page, on which the users whom `may_reset` admits can reset keys of a policy. Others see the same
    /// page without that.
    ///
    /// `may_reset` gets the head of each request. A layer around the dashboard authenticates the user and leaves that in the
    /// extensions:
    ///
    /// ```
    /// use axum::extract::Request;
    /// use axum::middleware::{Next, from_fn};
    /// use axum::{Router, response::Response};
    /// use ratelimits::Registry;
    /// use ratelimits::dashboard::Dashboard;
    ///
    /// #[derive(Clone)]
    /// struct Operator;
    ///
    /// async fn authenticate(mut request: Request, next: Next) -> Response {
    ///     if is_operator(&request) {
    ///         request.extensions_mut().insert(Operator);
    ///     }
    ///     next.run(request).await
    /// }
    /// # fn is_operator(_: &Request) -> bool { false }
    ///
    /// let dashboard = Dashboard::new();
    /// let registry = Registry::builder().observer(dashboard.observer()).in_memory();
    /// let page = dashboard.router_with_reset(&registry, |request| request.extensions.get::<Operator>().is_some());
    /// let app: Router = Router::new().nest("/limits", page.layer(from_fn(authenticate)));
    /// ```
    ///
    /// A reset is a `POST` of `{"policy": "search", "key": ["42"]}` to `/limits/reset`, with a content type of `application/json`
    /// and the parts of the key as text. The response is `{"reset": true}`, or `false` if the key had no state. A request that a
    /// browser sends for another site is refused, by its `Sec-Fetch-Site` or `Origin`, so a cookie is enough to authenticate users.
    /// A proxy in front must keep `Host` for browsers that send no `Sec-Fetch-Site`, as over plain HTTP.
    pub fn router_with_reset<S: Clone + Send + Sync + 'static>(
        &self,
        registry: &Registry,
        may_reset: impl Fn(&Parts) -> bool + Send + Sync + 'static,
    ) -> Router<S> {
        self.serve(registry, Some(Arc::new(may_reset)))
    }

    fn serve<S: Clone + Send + Sync + 'static>(
        &self,
        registry: &Registry,
        may_reset: Option<Arc<MayReset>>,
    ) -> Router<S> {
        let served = Served { counts: Arc::clone(&self.counts), registry: registry.clone(), may_reset };
        let (for_data, for_reset) = (served.clone(), served.clone());
        let mut router = Router::new()
            .route("/", get(async || page::page()))
            .route("/data", get(async move |request: Request| for_data.data(request)));
        if served.may_reset.is_some() {
            let reset = async move |request: Request| for_reset.reset(request).await;
            router = router.route("/reset", post(reset));
        }
        router.layer(axum::middleware::map_response(page::with_headers))
    }
}

impl Served {
    fn data(&self, request: Request) -> Response {
        let (parts, _) = request.into_parts();
        let may_reset = self.may_reset.as_ref().is_some_and(|may_reset| may_reset(&parts));
        page::json(&report::report(&self.counts, &self.registry, may_reset)).into_response()
    }

    async fn reset(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let may_reset = self.may_reset.as_ref().is_some_and(|may_reset| may_reset(&parts));
        match reset::reset(&self.registry, may_reset, &parts, body).await {
            Ok(reset) => page::json(&serde_json::json!({ "reset": reset })).into_response(),
            Err((status, error)) => {
                (status, page::json(&serde_json::json!({ "error": error }))).into_response()
            }
        }
    }
}

impl Default for Dashboard {
    fn default() -> Self {
        Dashboard::new()
    }
}

impl fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dashboard").finish_non_exhaustive()
    }
}
