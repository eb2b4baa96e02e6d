//! Retries that are spread.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::routing::get;
use ratelimits::web::{RateLimitLayer, RateLimitMiddleware};
use ratelimits::{Error, FixedWindow, Registry, RequestContext, count_limit};

use crate::axum::serve;
use crate::client::{Client, Reply};
use crate::registry::headers;
use crate::shared::once;

const HOUR: u64 = 3600;

#[count_limit(1, "1h", name = "spread-window", key = framework)]
pub(crate) async fn hourly(framework: &str) -> Result<String, Error> {
    Ok("done".into())
}

/// The seconds that a response tells in `RateLimit`.
fn window(reply: &Reply) -> u64 {
    reply.header("ratelimit").unwrap().rsplit_once(";t=").unwrap().1.parse().unwrap()
}

/// Asserts what a server that may double delays tells clients which `/` refuses for an hour after the first one.
pub(crate) async fn assert_spread(client: Client) {
    let admitted = client.get("/", &[]).await;
    // An admitted client is told the state of its window.
    assert!(admitted.status == 200 && window(&admitted) <= HOUR, "{admitted:?}");
    let mut told = HashSet::new();
    for _ in 0..20 {
        let refused = client.get("/", &[]).await;
        assert_eq!(refused.status, 429);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let (seconds, reset) = (refused.seconds(), refused.header("x-ratelimit-reset").unwrap());
        assert!((HOUR - 60..=2 * HOUR).contains(&seconds), "{seconds}");
        // Each is rounded, and was told a moment before.
        assert!(window(&refused).abs_diff(seconds) <= 1, "{refused:?}");
        assert!(reset.parse::<u64>().unwrap().abs_diff(now + seconds) <= 60, "{refused:?}");
        told.insert(seconds);
    }
    assert!(told.len() > 10 && told.iter().any(|seconds| *seconds > HOUR + 60), "{told:?}");
}

#[tokio::test]
async fn refused_clients_are_told_different_times() {
    let layer = RateLimitLayer::new().headers(headers()).spread(1.0).unwrap();
    let app = Router::new().route("/", get(async || hourly("axum").await)).layer(layer);
    assert_spread(serve(app).await).await;
}

/// Asserts that a server spreads the retries of those whom a limit of [`once`] an hour refuses.
pub(crate) async fn assert_own_limit_is_spread(client: Client) {
    assert_eq!(client.get("/", &[]).await.status, 200);
    let mut told = HashSet::new();
    for _ in 0..20 {
        told.insert(client.get("/", &[]).await.seconds());
    }
    assert!(told.len() > 10 && told.iter().all(|seconds| *seconds <= 2 * HOUR), "{told:?}");
}

#[tokio::test]
async fn refusals_by_the_layer_are_spread() {
    let layer = RateLimitLayer::new().limit(once("spread-layer"), |_| Some(())).spread(1.0).unwrap();
    assert_own_limit_is_spread(serve(Router::new().route("/", get("done")).layer(layer)).await).await;
}

/// Calls [`hourly`] in a context of its own.
async fn in_another_context() -> Result<String, Error> {
    let result = RequestContext::new().with_user("ann").scope(hourly("context")).await;
    if let Err(error) = &result {
        assert!(error.retry_after().unwrap().as_secs() <= HOUR, "the error itself is exact");
    }
    result
}

#[tokio::test]
async fn contexts_below_the_layer_keep_its_spread() {
    let layer = RateLimitLayer::new().spread(1.0).unwrap();
    let client = serve(Router::new().route("/", get(in_another_context)).layer(layer)).await;
    assert_own_limit_is_spread(client).await;
}

#[tokio::test]
async fn outermost_spread_decides() {
    let [outer, inner] = [0.0, 1.0].map(|fraction| RateLimitLayer::new().spread(fraction).unwrap());
    let app = Router::new().route("/", get(async || hourly("nested").await)).layer(inner).layer(outer);
    let client = serve(app).await;
    assert_eq!(client.get("/", &[]).await.status, 200);
    for _ in 0..5 {
        assert!(client.get("/", &[]).await.seconds() <= HOUR);
    }
}

/// Of a tenth of five seconds, a header can tell nothing.
#[tokio::test]
async fn spread_of_less_than_a_second_changes_no_header() {
    let limit = Registry::in_memory().limiter("spread-short", FixedWindow::new(1, Duration::from_secs(5)));
    let layer = RateLimitLayer::new().limit(limit.unwrap(), |_| Some(())).spread(0.1).unwrap();
    let client = serve(Router::new().route("/", get("done")).layer(layer)).await;
    for _ in 0..5 {
        let reply = client.get("/", &[]).await;
        assert!(reply.status == 200 || reply.seconds() <= 5, "{reply:?}");
    }
}

#[test]
fn spread_is_a_fraction() {
    for fraction in [-0.1, 1.1, f64::INFINITY, f64::NAN] {
        let invalid = RateLimitLayer::new().spread(fraction).unwrap_err();
        assert_eq!(invalid, RateLimitMiddleware::new().spread(fraction).unwrap_err());
        assert_eq!(invalid.to_string(), "`spread` is not between 0 and 1; write a fraction such as 0.1");
    }
}
