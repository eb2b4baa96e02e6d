//! What the layer does to requests and responses.

use std::convert::Infallible;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{StreamExt, stream};
use ratelimits::web::{PeerAddr, RateLimitLayer};
use ratelimits::{Error, RequestContext, context, count_limit};
use ratelimits::{FixedWindow, Limiter, Registry};
use tokio::net::TcpListener;

use crate::axum::serve;
use crate::client::Client;

const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

#[count_limit(2, "1h", key = "<@user>:<@ip>")]
async fn row() -> Result<String, Error> {
    Ok(String::from("row "))
}

/// Rows until one is refused, made while the body is sent.
async fn rows() -> Body {
    let rows = stream::repeat_with(row).then(|row| row).map(|row| match row {
        Ok(text) => text,
        Err(error) => format!("{:?} ", error.is_limited()),
    });
    Body::from_stream(rows.take(3).map(Ok::<_, Infallible>))
}

async fn spawned() -> Response {
    let rows = [context::spawn(row()), context::spawn(row())];
    let [one, other] = rows.map(async |row| row.await.unwrap().unwrap());
    (one.await + &other.await).into_response()
}

fn user_of(request: &axum::http::request::Parts) -> Option<String> {
    Some(request.headers.get("x-user")?.to_str().ok()?.to_owned())
}

#[tokio::test]
async fn streamed_bodies_and_tasks_know_the_caller() {
    let app = Router::new().route("/rows", get(rows)).route("/spawned", get(spawned));
    let client = serve(app.layer(RateLimitLayer::new().user(user_of))).await;
    for user in ["x-user: ann", "x-user: bob"] {
        assert_eq!(client.get("/rows", &[user]).await.chunks(), "row row true ");
    }
    assert_eq!(client.get("/spawned", &["x-user: eve"]).await.body, "row row ");
}

async fn authenticate(request: Request, next: Next) -> Response {
    let user = request.headers().get("x-user").and_then(|user| user.to_str().ok()).map(str::to_owned);
    match user {
        Some(user) => RequestContext::current().with_user(user).scope(next.run(request)).await,
        None => next.run(request).await,
    }
}

async fn who() -> String {
    let context = RequestContext::current();
    format!("{:?} {:?}", context.ip().map(|ip| ip.to_string()), context.user())
}

#[tokio::test]
async fn authentication_adds_the_user() {
    let app = Router::new().route("/", get(who)).layer(from_fn(authenticate)).layer(RateLimitLayer::new());
    let client = serve(app).await;
    assert_eq!(client.get("/", &["x-user: ann"]).await.body, "Some(\"127.0.0.1\") Some(\"ann\")");
    assert_eq!(client.get("/", &["x-user:  "]).await.body, "Some(\"127.0.0.1\") None");
    assert_eq!(client.get("/", &[]).await.body, "Some(\"127.0.0.1\") None");
}

fn once(name: &str) -> Limiter {
    Registry::in_memory().limiter(name, FixedWindow::new(1, HOUR)).unwrap()
}

async fn upload(body: Bytes) -> String {
    body.len().to_string()
}

#[tokio::test]
async fn layer_limits_before_bodies_are_read() {
    let layer = RateLimitLayer::new().limit(once("layer-uploads"), |_| RequestContext::current().ip());
    let client = serve(Router::new().route("/", post(upload)).layer(layer)).await;
    // Not charged, as a browser asks before it sends the request.
    let preflight = ["origin: https://a.example", "access-control-request-method: POST"];
    assert_eq!(client.send("OPTIONS", "/", &preflight).await.status, 405);
    assert_eq!(client.send("POST", "/", &["content-length: 0"]).await.body, "0");
    // The body never comes.
    let refused = client.send("POST", "/", &["content-length: 1000", preflight[0]]).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.header("access-control-expose-headers"), Some("retry-after"));
    assert!(refused.body.contains("layer-uploads"), "{refused:?}");
}

#[tokio::test]
async fn layer_refuses_requests_without_a_key() {
    let layer = RateLimitLayer::new().limit(once("layer-tenants"), user_of);
    let client = serve(Router::new().route("/", get(who)).layer(layer)).await;
    assert_eq!(client.get("/", &[]).await.status, 400);
    assert_eq!(client.get("/", &["x-user: ann"]).await.status, 200);
    assert_eq!(client.get("/", &["x-user: ann"]).await.status, 429);
    assert_eq!(client.get("/", &["x-user: bob"]).await.status, 200);
}

#[count_limit(1, "1h", key_type = IP)]
async fn by_address() -> Result<String, Error> {
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
