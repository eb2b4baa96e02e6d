//! Errors of annotated handlers as responses.

use std::net::SocketAddr;

use axum::Router;
use axum::http::Response;
use axum::response::IntoResponse;
use axum::routing::get;
use ratelimits::web::RateLimitLayer;
use ratelimits::{Error, MissingKey, Policy, Registry, TokenBucket, count_limit, rate_limit};
use tokio::net::TcpListener;

use crate::client::Client;
use crate::registry::headers;

/// Serves the app with the addresses of connections.
pub(crate) async fn serve(app: Router) -> Client {
    // Installs the registry of the process.
    _ = headers();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client(listener.local_addr().unwrap());
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async { axum::serve(listener, service).await });
    client
}

#[count_limit(1, "1h", name = "axum-daily", key_type = IP)]
async fn daily() -> Result<String, Error> {
    Ok("done".into())
}

#[rate_limit(1.0, key_type = USER)]
async fn for_users() -> Result<String, Error> {
    Ok("done".into())
}

#[rate_limit(1.0, burst = 10, name = "axum \"upload\"", cost = pages(), key_type = IP)]
async fn too_large() -> Result<String, Error> {
    Ok("done".into())
}

/// Not known to the compiler.
fn pages() -> u64 {
    11
}

#[tokio::test]
async fn refusals_are_responses() {
    let app = Router::new()
        .route("/daily", get(daily))
        .route("/users", get(for_users))
        .route("/large", get(too_large))
        .layer(RateLimitLayer::new());
    let client = serve(app).await;
    let admitted = client.get("/daily", &[]).await;
    assert_eq!((admitted.status, admitted.body.as_str()), (200, "done"));
    let limited = client.get("/daily", &[]).await;
    assert_eq!(limited.status, 429);
    assert_eq!(limited.header("content-type"), Some("application/problem+json"));
    assert_eq!(
        limited.body,
        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
         \"title\":\"Request cannot be satisfied as assigned quota has been exceeded\",\"status\":429,\
         \"violated-policies\":[\"axum-daily\"]}"
    );
    let wait: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    assert!((3590..=3600).contains(&wait), "{wait}");

    let anonymous = client.get("/users", &[]).await;
    assert_eq!((anonymous.status, anonymous.header("retry-after")), (403, None));
    assert_eq!(anonymous.body, "{\"title\":\"The request needs a user\",\"status\":403}");

    let large = client.get("/large", &[]).await;
    assert_eq!((large.status, large.header("retry-after")), (413, None));
    assert_eq!(
        large.body,
        "{\"title\":\"The request costs more than its limit ever admits\",\"status\":413,\
         \"violated-policies\":[\"axum \\\"upload\\\"\"]}"
    );
}

#[tokio::test]
async fn other_errors_are_responses() {
    let nowhere = Registry::builder().on_store_error(ratelimits::OnStoreError::Deny);
    let registry = nowhere.connect_lazy("redis://127.0.0.1:1").unwrap();
    let limiter = registry.limiter("axum-nowhere", TokenBucket::per_second(1)).unwrap();
    let failed = limiter.try_acquire((), 1).await.unwrap_err();
    let zero: Policy = TokenBucket::per_second(1).burst(0).into();
    let invalid = registry.limiter("axum-invalid", zero).unwrap_err();
    for (error, status, kind) in [
        (failed, 503, Some("temporary-reduced-capacity")),
        (invalid, 500, None),
        (MissingKey::Ip.into(), 500, None),
        (MissingKey::User.into(), 403, None),
        (MissingKey::Part.into(), 400, None),
    ] {
        let text = error.to_string();
        let response: Response<_> = error.into_response();
        assert_eq!(response.status(), status, "{text}");
        assert_eq!(response.headers().get("retry-after"), None);
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["status"], status);
        let found = problem.get("type").map(|kind| kind.as_str().unwrap().split('#').next_back().unwrap());
        assert_eq!(found, kind);
    }
}

#[count_limit(1, "1h", key_type = IP)]
async fn unnamed() -> Result<String, Error> {
    Ok("done".into())
}

#[tokio::test]
async fn responses_name_no_modules() {
    let client =
        serve(Router::new().route("/", get(unnamed)).layer(RateLimitLayer::new().headers(headers()))).await;
    for status in [200, 429] {
        let reply = client.get("/", &[]).await;
        assert_eq!(reply.status, status);
        assert!(!format!("{reply:?}").contains("unnamed"), "{reply:?}");
    }
}
