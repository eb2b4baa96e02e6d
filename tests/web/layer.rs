//! What the layer does to requests and responses.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::{Stream, StreamExt, stream};
use ratelimits::web::{PeerAddr, RateLimitLayer};
use ratelimits::{ClientIp, Error, FixedWindow, Limiter, Registry, RequestContext, TokenBucket, count_limit};
use tokio::net::TcpListener;

use crate::axum::serve;
use crate::client::Client;
use crate::shared::{once, user_of};

#[count_limit(2, "1h", key = "<framework>:<@user>:<@ip>")]
pub(crate) async fn row(framework: &'static str) -> Result<String, Error> {
    Ok(String::from("row "))
}

/// Rows until one is refused, made while the body is sent.
pub(crate) fn rows(framework: &'static str) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let rows = stream::repeat_with(move || row(framework)).then(|row| row).map(|row| match row {
        Ok(text) => text,
        Err(error) => format!("{:?} ", error.is_limited()),
    });
    rows.take(3).map(|text| Ok(text.into()))
}

/// Two rows, made by tasks.
pub(crate) async fn spawned(framework: &'static str) -> String {
    let rows = [(), ()].map(|()| RequestContext::current().spawn(row(framework)));
    let [one, other] = rows.map(async |row| row.await.unwrap().unwrap());
    one.await + &other.await
}

/// Asserts what a server replies that sends [`rows`] as `/rows`, and [`spawned`] as `/spawned`.
pub(crate) async fn assert_caller_is_known(client: Client) {
    for user in ["x-user: ann", "x-user: bob"] {
        assert_eq!(client.get("/rows", &[user]).await.chunks(), "row row true ");
    }
    assert_eq!(client.get("/spawned", &["x-user: eve"]).await.body, "row row ");
}

#[tokio::test]
async fn streamed_bodies_and_tasks_know_the_caller() {
    let app = Router::new()
        .route("/rows", get(async || Body::from_stream(rows("axum"))))
        .route("/spawned", get(async || spawned("axum").await))
        .layer(RateLimitLayer::new().user(user_of));
    assert_caller_is_known(serve(app).await).await;
}

async fn authenticate(request: Request, next: Next) -> Response {
    let user = request.headers().get("x-user").and_then(|user| user.to_str().ok()).map(str::to_owned);
    match user {
        Some(user) => RequestContext::current().with_user(user).scope(next.run(request)).await,
        None => next.run(request).await,
    }
}

pub(crate) async fn who() -> String {
    let context = RequestContext::current();
    format!("{:?} {:?}", context.ip().map(|ip| ip.to_string()), context.user())
}

/// Asserts what a server replies of which `/` is [`who`] behind authentication by `x-user`.
pub(crate) async fn assert_user_is_added(client: Client) {
    assert_eq!(client.get("/", &["x-user: ann"]).await.body, "Some(\"127.0.0.1\") Some(\"ann\")");
    assert_eq!(client.get("/", &["x-user:  "]).await.body, "Some(\"127.0.0.1\") None");
    assert_eq!(client.get("/", &[]).await.body, "Some(\"127.0.0.1\") None");
}

#[tokio::test]
async fn authentication_adds_the_user() {
    let app = Router::new().route("/", get(who)).layer(from_fn(authenticate)).layer(RateLimitLayer::new());
    assert_user_is_added(serve(app).await).await;
}

pub(crate) async fn upload(body: Bytes) -> String {
    body.len().to_string()
}

/// Asserts that a server limits POST requests to [`once`] an hour, by their addresses.
pub(crate) async fn assert_limits_before_bodies_are_read(client: Client) {
    // Not charged, as a browser asks before it sends the request.
    let preflight = ["origin: https://a.example", "access-control-request-method: POST"];
    assert_eq!(client.send("OPTIONS", "/", &preflight).await.status, 405);
    assert_eq!(client.send("POST", "/", &["content-length: 0"]).await.body, "0");
    // The body never comes.
    let refused = client.send("POST", "/", &["content-length: 1000", preflight[0]]).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.header("access-control-expose-headers"), Some("retry-after"));
    assert!(refused.body.contains("-uploads"), "{refused:?}");
    // Browsers send no such preflight.
    for other in
        ["authorization: Bearer x", "cookie: x=y", "content-type: application/grpc", "content-length: 1"]
    {
        let disguised = client.send("OPTIONS", "/", &[preflight[0], preflight[1], other]).await;
        assert_eq!(disguised.status, 429, "{other}");
    }
}

#[tokio::test]
async fn layer_limits_before_bodies_are_read() {
    let layer = RateLimitLayer::new().limit(once("layer-uploads"), |_| RequestContext::current().ip());
    let client = serve(Router::new().route("/", post(upload)).layer(layer)).await;
    assert_limits_before_bodies_are_read(client).await;
}

/// Asserts that a server takes 10 bytes an hour, by the length that requests announce.
pub(crate) async fn assert_limits_by_cost(client: Client) {
    for (length, status) in [(4, 200), (7, 429), (6, 200), (0, 200), (1, 429), (11, 413)] {
        assert_eq!(client.post("/", &[], &"x".repeat(length)).await.status, status, "{length}");
    }
}

/// A limiter of 10 bytes an hour.
pub(crate) fn ten_bytes(name: &str) -> Limiter {
    Registry::in_memory().limiter(name, FixedWindow::new(10, Duration::from_secs(3600))).unwrap()
}

#[tokio::test]
async fn layer_limits_by_cost() {
    let layer = RateLimitLayer::new().limit_cost(ten_bytes("layer-bytes"), |request| {
        Some(((), request.headers.get("content-length")?.to_str().ok()?.parse().ok()?))
    });
    assert_limits_by_cost(serve(Router::new().route("/", post(upload)).layer(layer)).await).await;
}

/// Asserts that a server limits each user to [`once`] an hour, and refuses requests without one.
pub(crate) async fn assert_refuses_without_a_key(client: Client) {
    assert_eq!(client.get("/", &[]).await.status, 400);
    assert_eq!(client.get("/", &["x-user: ann"]).await.status, 200);
    assert_eq!(client.get("/", &["x-user: ann"]).await.status, 429);
    assert_eq!(client.get("/", &["x-user: bob"]).await.status, 200);
}

#[tokio::test]
async fn layer_refuses_requests_without_a_key() {
    let layer = RateLimitLayer::new().limit(once("layer-tenants"), user_of);
    assert_refuses_without_a_key(serve(Router::new().route("/", get(who)).layer(layer)).await).await;
}

#[count_limit(1, "1h", key_type = IP)]
pub(crate) async fn by_address() -> Result<String, Error> {
    Ok("done".into())
}

#[tokio::test]
async fn requests_without_an_address_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client(listener.local_addr().unwrap());
    let app = Router::new().route("/", get(by_address)).layer(RateLimitLayer::new());
    // Without `into_make_service_with_connect_info`.
    tokio::spawn(async { axum::serve(listener, app).await });
    for _ in 0..2 {
        let reply = client.get("/", &[]).await;
        assert_eq!((reply.status, reply.body.contains("type")), (500, false), "{reply:?}");
    }
}

#[tokio::test]
async fn peer_addresses_can_be_inserted() {
    let add = async |mut request: Request, next: Next| {
        request.extensions_mut().insert(PeerAddr("192.0.2.1:4711".parse().unwrap()));
        next.run(request).await
    };
    let app = Router::new().route("/", get(who)).layer(RateLimitLayer::new()).layer(from_fn(add));
    assert_eq!(serve(app).await.get("/", &[]).await.body, "Some(\"192.0.2.1\") None");
}

#[tokio::test]
async fn layers_add_to_the_context_of_those_around_them() {
    let client_ip = ClientIp::header("x-forwarded-for", ["127.0.0.0/8"]).unwrap();
    let outer = RateLimitLayer::new().client_ip(client_ip).user(user_of);
    let app = Router::new().route("/", get(who)).layer(RateLimitLayer::new()).layer(outer);
    let reply = serve(app).await.get("/", &["x-user: ann", "x-forwarded-for: 192.0.2.9"]).await;
    assert_eq!(reply.body, "Some(\"192.0.2.9\") Some(\"ann\")");
}

#[tokio::test]
async fn limits_that_are_off_need_no_key() {
    let off = Registry::unlimited().limiter("layer-off", TokenBucket::per_second(1)).unwrap();
    let app = Router::new().route("/", get(who)).layer(RateLimitLayer::new().limit(off, user_of));
    let client = serve(app).await;
    for _ in 0..2 {
        assert_eq!(client.get("/", &[]).await.status, 200);
    }
}
