//! Errors of annotated handlers as responses.

use std::net::SocketAddr;

use axum::Router;
use axum::http::Response;
use axum::response::IntoResponse;
use axum::routing::get;
use ratelimits::web::RateLimitLayer;
use ratelimits::{Error, count_limit, rate_limit};
use tokio::net::TcpListener;

use crate::client::Client;
use crate::registry::headers;
use crate::shared::{self, other_errors, user_of};

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

#[count_limit(1, "1h", name = "shared-daily", key = "<framework>:<@ip>")]
pub(crate) async fn daily(framework: &str) -> Result<String, Error> {
    Ok("done".into())
}

#[rate_limit(1.0, burst = 10, name = "shared \"upload\"", cost = pages(), key = "<framework>:<@ip>")]
pub(crate) async fn too_large(framework: &str) -> Result<String, Error> {
    Ok("done".into())
}

/// Not known to the compiler.
fn pages() -> u64 {
    11
}

#[tokio::test]
async fn shared_functions_are_limited() {
    let app = Router::new()
        .route("/address", get(async || shared::by_address("axum").await))
        .route("/user", get(async || shared::by_user("axum").await))
        .layer(RateLimitLayer::new().user(user_of));
    shared::assert_limited(serve(app).await).await;
}

/// Asserts what a server replies of which `/daily` and `/large` call the functions above, and `/user` calls
/// [`by_user`](shared::by_user).
pub(crate) async fn assert_refusals(client: Client) {
    let admitted = client.get("/daily", &[]).await;
    assert_eq!((admitted.status, admitted.body.as_str()), (200, "done"));
    let limited = client.get("/daily", &[]).await;
    assert_eq!(limited.status, 429);
    assert_eq!(limited.header("content-type"), Some("application/problem+json"));
    assert_eq!(
        limited.body,
        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
         \"title\":\"Request cannot be satisfied as assigned quota has been exceeded\",\"status\":429,\
         \"violated-policies\":[\"shared-daily\"]}"
    );
    let wait: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    assert!((3590..=3600).contains(&wait), "{wait}");

    let anonymous = client.get("/user", &[]).await;
    assert_eq!((anonymous.status, anonymous.header("retry-after")), (403, None));
    assert_eq!(anonymous.body, "{\"title\":\"The request needs a user\",\"status\":403}");

    let large = client.get("/large", &[]).await;
    assert_eq!((large.status, large.header("retry-after")), (413, None));
    assert_eq!(
        large.body,
        "{\"title\":\"The request costs more than its limit ever admits\",\"status\":413,\
         \"violated-policies\":[\"shared \\\"upload\\\"\"]}"
    );
}

/// Asserts that a body is a problem with the status and kind expected of the `index`th error of [`other_errors`], and returns the
/// status.
pub(crate) fn status_of_problem(index: usize, body: &[u8]) -> u16 {
    let expected =
        [(503, Some("temporary-reduced-capacity")), (500, None), (500, None), (403, None), (400, None)];
    let problem: serde_json::Value = serde_json::from_slice(body).unwrap();
    let kind = problem.get("type").map(|kind| kind.as_str().unwrap().split('#').next_back().unwrap());
    let status = problem["status"].as_u64().unwrap().try_into().unwrap();
    assert_eq!((status, kind), expected[index]);
    status
}

#[tokio::test]
async fn refusals_are_responses() {
    let app = Router::new()
        .route("/daily", get(async || daily("axum").await))
        .route("/user", get(async || shared::by_user("axum-refusals").await))
        .route("/large", get(async || too_large("axum").await))
        .layer(RateLimitLayer::new());
    assert_refusals(serve(app).await).await;
}

#[tokio::test]
async fn other_errors_are_responses() {
    for (index, error) in other_errors("axum").await.into_iter().enumerate() {
        let response: Response<_> = error.into_response();
        let (status, retry_after) = (response.status(), response.headers().get("retry-after").cloned());
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        assert_eq!(status, status_of_problem(index, &body));
        assert_eq!(retry_after, None);
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
