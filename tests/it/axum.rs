//! An axum app with limited handlers, over HTTP.

#[expect(dead_code, reason = "used in part")]
#[path = "../web/client.rs"]
mod client;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::{HeaderMap, RETRY_AFTER};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use ratelimits::{Registry, RequestContext, count_limit, funnel_limit, rate_limit, window_limit};
use tokio::net::TcpListener;

use self::client::{Client, Reply};

struct App {
    registry: Registry,
    orders: Mutex<Vec<String>>,
}

enum AppError {
    Refused(ratelimits::Error),
    NotFound,
}

impl From<ratelimits::Error> for AppError {
    fn from(error: ratelimits::Error) -> Self {
        AppError::Refused(error)
    }
}

impl IntoResponse for AppError {
    fn into_response(self) -> Response {
        let AppError::Refused(error) = self else { return StatusCode::NOT_FOUND.into_response() };
        let status =
            if error.is_limited() { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::SERVICE_UNAVAILABLE };
        let seconds = error.retry_after().map(|wait| wait.as_secs_f64().ceil());
        (status, seconds.map(|seconds| [(RETRY_AFTER, seconds.to_string())]), error.to_string())
            .into_response()
    }
}

#[count_limit(1, "1d", key = id, registry = &app.registry)]
async fn read(Path(id): Path<u64>, State(app): State<Arc<App>>) -> Result<String, AppError> {
    if id == 0 {
        return Err(AppError::NotFound);
    }
    Ok(format!("{id} of {}", app.orders.lock().unwrap().len()))
}

#[window_limit(1, "1d", key = (tenant(&headers), query.get("words")), registry = &app.registry)]
async fn search(
    Query(mut query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    State(app): State<Arc<App>>,
) -> Result<impl IntoResponse, AppError> {
    let words = query.remove("words").ok_or(AppError::NotFound)?;
    Ok((StatusCode::ACCEPTED, [("x-orders", app.orders.lock().unwrap().len().to_string())], words))
}

fn tenant(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-tenant")?.to_str().ok()
}

type Order = Json<(String, u32)>;

#[rate_limit("5/day", burst = 5, key = user, cost = amount, fallback = queue, pass_args, registry = &app.registry)]
async fn order(State(app): State<Arc<App>>, Json((user, amount)): Order) -> (StatusCode, String) {
    app.orders.lock().unwrap().push(user);
    (StatusCode::CREATED, format!("{amount} ordered"))
}

async fn queue(State(app): State<Arc<App>>, Json((user, amount)): Order) -> (StatusCode, String) {
    tokio::task::yield_now().await;
    (StatusCode::ACCEPTED, format!("{amount} queued for {user}, behind {}", app.orders.lock().unwrap().len()))
}

/// One view of a page for each user, three in total.
#[funnel_limit(1, drain = "1d", key = "<id>:<@user>", fallback = |error| AppError::from(error).into_response())]
#[count_limit(3, "1d", key = id, fallback = |_| format!("no more of {id}").into_response())]
async fn page(Path((id, name)): Path<(u8, String)>) -> Response {
    (StatusCode::CREATED, format!("{name} is {id}")).into_response()
}

#[window_limit(1, "1h", key_type = USER)]
async fn profile() -> axum::response::Result<&'static str, AppError> {
    Ok("profile")
}

#[allow(clippy::result_large_err, reason = "axum's error type")]
#[rate_limit("1/h", fallback = |error| Err(AppError::from(error).into()))]
async fn orders_count(State(app): State<Arc<App>>) -> axum::response::Result<Json<usize>> {
    if app.orders.lock().unwrap().len() > 100 {
        Err(StatusCode::INSUFFICIENT_STORAGE)?;
    }
    Ok(Json(7))
}

/// Sets the request's user and the app's registry.
async fn context(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let user = request.headers().get("x-user").and_then(|user| user.to_str().ok()).map(str::to_owned);
    let context = user.map_or_else(RequestContext::new, |user| RequestContext::new().with_user(user));
    app.registry.scope(context.scope(next.run(request))).await
}

fn app() -> Router {
    let app = Arc::new(App { registry: Registry::in_memory(), orders: Mutex::default() });
    Router::new()
        .route("/orders/{id}", get(read))
        .route("/search", get(search))
        .route("/orders", post(order))
        .route("/pages/{id}/{name}", get(page))
        .route("/profile", get(profile))
        .route("/any", get(orders_count))
        .layer(from_fn_with_state(Arc::clone(&app), context))
        .with_state(app)
}

/// Serves the app on a free port.
fn serve(requests: impl AsyncFnOnce(Client)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client(listener.local_addr().unwrap());
        tokio::spawn(async { axum::serve(listener, app()).await });
        requests(client).await;
    });
}

impl Reply {
    #[track_caller]
    fn is(&self, status: u16, body: &str) {
        assert_eq!((self.status, self.body.as_str()), (status, body));
    }

    /// Expects 429 with a `retry-after` of at most this period.
    #[track_caller]
    fn is_limited(&self, period: u64) {
        assert_eq!(self.status, 429, "{}", self.body);
        let wait = self.seconds();
        assert!((1..=period).contains(&wait), "retry-after: {wait}");
    }
}

const JSON: &[&str] = &["content-type: application/json"];
const DAY: u64 = 24 * 60 * 60;

#[test]
fn path_in_the_key() {
    serve(async |client| {
        client.get("/orders/1", &[]).await.is(200, "1 of 0");
        client.get("/orders/1", &[]).await.is_limited(DAY);
        client.get("/orders/2", &[]).await.is(200, "2 of 0");
        client.get("/orders/0", &[]).await.is(404, "");
        client.get("/orders/0", &[]).await.is_limited(DAY);
        client.get("/orders/x", &[]).await.is(400, "Invalid URL: Cannot parse `x` to a `u64`");
    });
}

#[test]
fn query_and_header_in_the_key() {
    serve(async |client| {
        let reply = client.get("/search?words=a", &["x-tenant: one"]).await;
        reply.is(202, "a");
        assert_eq!(reply.header("x-orders"), Some("0"));
        client.get("/search?words=a", &["x-tenant: one"]).await.is_limited(DAY);
        client.get("/search?words=b", &["x-tenant: one"]).await.is(202, "b");
        client.get("/search?words=a", &["x-tenant: two"]).await.is(202, "a");
        let reply = client.get("/search?words=a", &[]).await;
        reply.is(503, "a part of the key is `None`, or could not be formatted");
        assert_eq!(reply.header("retry-after"), None);
    });
}

#[test]
fn extractors_are_passed_to_the_fallback() {
    serve(async |client| {
        client.post("/orders", JSON, r#"["ann", 3]"#).await.is(201, "3 ordered");
        client.post("/orders", JSON, r#"["ann", 3]"#).await.is(202, "3 queued for ann, behind 1");
        client.post("/orders", JSON, r#"["ann", 2]"#).await.is(201, "2 ordered");
        client.post("/orders", JSON, r#"["bob", 6]"#).await.is(202, "6 queued for bob, behind 2");
    });
}

#[test]
fn stacked_limits_have_their_own_fallbacks() {
    serve(async |client| {
        client.get("/pages/1/a", &["x-user: ann"]).await.is(201, "a is 1");
        for _ in 0..5 {
            client.get("/pages/1/a", &["x-user: ann"]).await.is_limited(DAY);
        }
        client.get("/pages/1/b", &["x-user: bob"]).await.is(201, "b is 1");
        client.get("/pages/1/c", &["x-user: eve"]).await.is(201, "c is 1");
        client.get("/pages/1/d", &["x-user: dan"]).await.is(200, "no more of 1");
        client.get("/pages/2/d", &["x-user: dan"]).await.is(201, "d is 2");
        assert_eq!(client.get("/pages/2/e", &[]).await.status, 503);
    });
}

#[test]
fn axum_results_carry_the_refusal() {
    serve(async |client| {
        client.get("/profile", &["x-user: ann"]).await.is(200, "profile");
        client.get("/profile", &["x-user: ann"]).await.is_limited(60 * 60);
        assert_eq!(client.get("/profile", &[]).await.status, 503);
        client.get("/any", &[]).await.is(200, "7");
        client.get("/any", &[]).await.is_limited(60 * 60);
    });
}
