//! A page that shows the limits of a running service: [`Dashboard`].

mod change;
mod hosts;
mod page;
mod report;
mod same_origin;

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use self::change::{Change, ChangeRequest, change};
use self::hosts::Hosts;
use crate::decide::observation::Observation;
use crate::observe::dashboard::counts::Counts;
use crate::usage::registry::Registry;

/// A page for axum that shows the policies of a registry, what they decide at the moment, the keys that are limited most, the
/// state of the store, and the overrides in force.
///
/// [`observer`](Self::observer) counts the decisions of a registry, in this process, and [`router`](Self::router) serves the page to
/// those whom a function admits. A layer around it authenticates them, and leaves that in the extensions of the request:
///
/// ```
/// use axum::extract::Request;
/// use axum::middleware::{Next, from_fn};
/// use axum::{Router, response::Response};
/// use ratelimits::Registry;
/// use ratelimits::dashboard::Dashboard;
///
/// #[derive(Clone)]
/// struct Operator { may_reset: bool }
///
/// async fn authenticate(mut request: Request, next: Next) -> Response {
///     if let Some(operator) = operator_of(&request) {
///         request.extensions_mut().insert(operator);
///     }
///     next.run(request).await
/// }
/// # fn operator_of(_: &Request) -> Option<Operator> { None }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let dashboard = Dashboard::new(|request| request.extensions.get::<Operator>().is_some())
///     .may_reset(|request| request.extensions.get::<Operator>().is_some_and(|operator| operator.may_reset))
///     .hosts(["limits.internal.example"]);
/// let registry = Registry::builder().observer(dashboard.observer()).in_memory();
/// ratelimits::install(registry.clone())?;
///
/// let page = dashboard.router(&registry).layer(from_fn(authenticate));
/// let app: Router = Router::new().nest_service("/limits", page);
/// # Ok(()) }
/// ```
///
/// The page needs no other host, and reads `/limits/data`, which is JSON, every two seconds. The format of that may change with
/// any release. The page shows names, arguments and source files of the program and the address of Redis, so serve it on an
/// internal address *and* authenticate its users.
///
/// Counts are kept for each second of the last minute, and in total since the dashboard was created, for up to 1,000 policies. All
/// further ones are counted as `(other)`. Numbers are suggested for up to 50 policies, as [`Suggestions`](crate::Suggestions) does.
/// Keys are shown as hashes, and counted for five to ten minutes. What other processes decide is not seen.
///
/// With an observer, calls in process take [longer](crate::RegistryBuilder::observer). Cheap to clone: clones are one dashboard.
#[derive(Clone)]
pub struct Dashboard {
    counts: Arc<Counts>,
    may_see: Arc<Rule>,
    may_reset: Option<Arc<Rule>>,
    hosts: Hosts,
}

/// Tells whether the sender of a request may do something.
type Rule = dyn Fn(&Parts) -> bool + Send + Sync;

/// What a router serves.
#[derive(Clone)]
struct Served {
    dashboard: Dashboard,
    registry: Registry,
}

impl Dashboard {
    /// Creates a dashboard that has counted nothing, for those whom `may_see` admits. It gets the head of each request: to find out
    /// who sends it is up to your authentication.
    #[must_use]
    pub fn new(may_see: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        Dashboard {
            counts: Arc::new(Counts::new()),
            may_see: Arc::new(may_see),
            may_reset: None,
            hosts: Hosts::default(),
        }
    }

    /// Lets those reset and pause keys whom `may_reset` admits, of those who may see the page. Without it, the page changes nothing.
    ///
    /// A reset is a `POST` to `/limits/reset`, with a content type of `application/json`: of `{"policy": "search", "key": ["42"]}` with
    /// the parts of the key as text, or of `{"policy": "search", "key_hash": "d556d08fdfb3f7d6"}` for a key in the list of those that
    /// are limited most. The response is `{"reset": true}`, or `false` if the key had no state. A [pause](crate::Limiter::pause) is the
    /// same to `/limits/pause`, with `"duration": "30s"` in addition, and the response `{"paused_seconds": 30.0}` has what is left of
    /// it. Each reset and each pause is logged, without the key.
    ///
    /// A request that a browser sends for another site is refused, by its `Sec-Fetch-Site` or `Origin`, so a cookie is enough to
    /// authenticate users. A proxy in front must keep `Host` for browsers that send no `Sec-Fetch-Site`, as over plain HTTP.
    #[must_use]
    pub fn may_reset(self, may_reset: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        Dashboard { may_reset: Some(Arc::new(may_reset)), ..self }
    }

    /// Sets the names by which browsers reach the page, such as `limits.internal.example`: a request is refused whose `Host` is
    /// another one. Addresses and `localhost` are always allowed.
    ///
    /// Otherwise any site that an operator visits could point a name of its own to the address of this server (DNS rebinding), and
    /// would be the same site for the browser: it could read the page, and reset keys where the rules go by the network.
    #[must_use]
    pub fn hosts<H: AsRef<str>>(self, names: impl IntoIterator<Item = H>) -> Self {
        Dashboard { hosts: Hosts::new(names), ..self }
    }

    /// Shows keys as they are in place of hashes, or their first 256 bytes. They may be personal data.
    ///
    /// The dashboard starts afresh: call this before [`observer`](Self::observer).
    #[must_use]
    pub fn keep_keys(self) -> Self {
        Dashboard { counts: Arc::new(Counts::keep_keys()), ..self }
    }

    /// Returns a function that counts decisions, for [`RegistryBuilder::observer`](crate::RegistryBuilder::observer). Several
    /// registries may have it, and are then counted together.
    pub fn observer(&self) -> impl Fn(&Observation<'_>) + Send + Sync + use<> {
        let counts = Arc::clone(&self.counts);
        move |seen| counts.count(seen)
    }

    /// Returns the routes of the page. `nest_service("/limits", …)` also serves `/limits/`, which `nest` does not.
    ///
    /// Every response has headers that forbid other scripts, styles, hosts and frames, and caching.
    pub fn router<S: Clone + Send + Sync + 'static>(&self, registry: &Registry) -> Router<S> {
        let served = Served { dashboard: self.clone(), registry: registry.clone() };
        let for_data = served.clone();
        let mut router = Router::new()
            .route("/", get(async || page::page()))
            .route("/data", get(async move |request: Request| for_data.data(request).await));
        if self.may_reset.is_some() {
            for (path, change) in [("/reset", Change::Reset), ("/pause", Change::Pause)] {
                let served = served.clone();
                router = router
                    .route(path, post(async move |request: Request| served.change(change, request).await));
            }
        }
        let guard = move |request: Request, next: Next| {
            let (parts, body) = request.into_parts();
            let refusal = served.refusal(&parts);
            async move {
                match refusal {
                    Some(reason) => (StatusCode::FORBIDDEN, reason).into_response(),
                    None => next.run(Request::from_parts(parts, body)).await,
                }
            }
        };
        router.layer(from_fn(guard)).layer(map_response(page::with_headers))
    }
}

impl Served {
    /// Returns why a request is refused, whatever it asks for.
    fn refusal(&self, parts: &Parts) -> Option<&'static str> {
        if !self.dashboard.hosts.include(parts) {
            return Some("the dashboard is not served by this name; see Dashboard::hosts");
        }
        (!(self.dashboard.may_see)(parts)).then_some("you may not see the dashboard")
    }

    fn may_reset(&self, parts: &Parts) -> bool {
        self.dashboard.may_reset.as_ref().is_some_and(|may_reset| may_reset(parts))
    }

    async fn data(&self, request: Request) -> Response {
        let (parts, _) = request.into_parts();
        let may_reset = self.may_reset(&parts);
        page::json(&report::report(&self.dashboard.counts, &self.registry, may_reset).await).into_response()
    }

    async fn change(&self, what: Change, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let (registry, counts) = (&self.registry, &*self.dashboard.counts);
        let is_allowed = self.may_reset(&parts);
        match change(what, ChangeRequest { registry, counts, is_allowed, parts: &parts, body }).await {
            Ok(changed) => page::json(&changed).into_response(),
            Err((status, error)) => {
                (status, page::json(&serde_json::json!({ "error": error }))).into_response()
            }
        }
    }
}

impl fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dashboard").finish_non_exhaustive()
    }
}
