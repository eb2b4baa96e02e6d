//! What responses tell about limits, read by an independent parser of structured fields.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::http::{HeaderMap, HeaderName};
use axum::routing::get;
use ratelimits::web::{HeaderFormat, RateLimitHeaders, RateLimitLayer};
use ratelimits::{Error, Registry, count_limit, rate_limit, retry_after, window_limit};
use sfv::{BareItem, Item, List, ListEntry, Parser};

use crate::axum::serve;
use crate::client::{Client, Reply};
use crate::registry::headers;
use crate::support::server::Server;

/// The items of a header by their names, with their parameters.
fn items(reply: &Reply, header: &str) -> HashMap<String, HashMap<String, i64>> {
    let list: List = Parser::new(reply.header(header).unwrap()).parse().unwrap();
    let item = |entry| {
        let ListEntry::Item(Item { bare_item: BareItem::String(name), params }) = entry else {
            panic!("{entry:?}")
        };
        let number = |value: &BareItem| value.as_integer().unwrap().into();
        (name.to_string(), params.iter().map(|(key, value)| (key.to_string(), number(value))).collect())
    };
    list.into_iter().map(item).collect()
}

/// What a client that reads only `RateLimit` is asked to wait.
fn asked(reply: &Reply) -> Option<Duration> {
    let value = reply.header("ratelimit").unwrap().parse().unwrap();
    retry_after(&HeaderMap::from_iter([(HeaderName::from_static("ratelimit"), value)]))
}

fn params<const N: usize>(params: [(&str, i64); N]) -> HashMap<String, i64> {
    params.map(|(key, value)| (key.to_owned(), value)).into()
}

#[rate_limit("10/min", burst = 5, name = "headers-bucket", key = framework)]
#[count_limit(2, "1h", name = "headers-window", key = framework)]
#[window_limit(1, "1h", name = "headers-shadow", key = framework, shadow)]
pub(crate) async fn two(framework: &str) -> Result<String, Error> {
    Ok("done".into())
}

/// Decides deep below the handler, and handles the refusal itself.
pub(crate) async fn handled(framework: &str) -> String {
    for _ in 0..3 {
        _ = two(framework).await;
    }
    "handled".into()
}

/// Asserts what a server tells of which `/` calls [`two`], and `/handled` calls [`handled`].
pub(crate) async fn assert_tightest(client: Client) {
    let policies = HashMap::from([
        ("headers-bucket".to_owned(), params([("q", 5), ("w", 30)])),
        ("headers-window".to_owned(), params([("q", 2), ("w", 3600)])),
    ]);
    let admitted = client.get("/", &["origin: https://a.example"]).await;
    assert_eq!(admitted.status, 200);
    assert_eq!(items(&admitted, "ratelimit-policy"), policies);
    // One of two is less than four of five.
    assert_eq!(items(&admitted, "ratelimit")["headers-window"], params([("r", 1), ("t", 3600)]));
    assert_eq!(admitted.header("x-ratelimit-limit"), Some("2"));
    assert_eq!(admitted.header("x-ratelimit-remaining"), Some("1"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let reset: u64 = admitted.header("x-ratelimit-reset").unwrap().parse().unwrap();
    assert!((now + 3500..=now + 3601).contains(&reset), "{reset} at {now}");
    assert_eq!(
        admitted.header("access-control-expose-headers"),
        Some("ratelimit-policy, ratelimit, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset")
    );

    // Refused below, though not by the handler.
    let handled = client.get("/handled", &[]).await;
    assert_eq!((handled.status, handled.header("retry-after")), (200, None));
    assert_eq!(items(&handled, "ratelimit")["headers-window"]["r"], 0);
    assert_eq!(handled.header("access-control-expose-headers"), None);

    let limited = client.get("/", &[]).await;
    assert_eq!(limited.status, 429);
    assert_eq!(items(&limited, "ratelimit-policy"), policies);
    let told = &items(&limited, "ratelimit")["headers-window"];
    // A retry after the header's time is admitted.
    assert_eq!((told["r"], told["t"]), (0, limited.header("retry-after").unwrap().parse().unwrap()));
    assert_eq!(asked(&limited), Some(Duration::from_secs(told["t"].try_into().unwrap())));
    assert_eq!(asked(&admitted), None);
}

#[tokio::test]
async fn headers_are_about_the_tightest_policy() {
    let app = Router::new()
        .route("/", get(async || two("axum").await))
        .route("/handled", get(async || handled("axum").await))
        .layer(RateLimitLayer::new().headers(headers()));
    assert_tightest(serve(app).await).await;
}

/// Asserts what a server tells of which `/` makes no decision.
pub(crate) async fn assert_no_headers(client: Client) {
    let reply = client.get("/", &["origin: https://a.example"]).await;
    assert_eq!(reply.status, 200);
    assert!(!format!("{reply:?}").contains("ratelimit"), "{reply:?}");
    assert_eq!(reply.header("access-control-expose-headers"), None);
}

#[tokio::test]
async fn responses_without_decisions_have_no_headers() {
    let app = Router::new().route("/", get(async || "free")).layer(RateLimitLayer::new().headers(headers()));
    assert_no_headers(serve(app).await).await;
}

#[tokio::test]
async fn layers_around_each_other_tell_of_the_same_decisions() {
    let layer = || RateLimitLayer::new().headers(headers());
    let client = serve(Router::new().route("/", get(nested)).layer(layer()).layer(layer())).await;
    let reply = client.get("/", &[]).await;
    assert_eq!(items(&reply, "ratelimit")["headers-nested"]["r"], 2);
}

#[count_limit(3, "1h", name = "headers-nested", key_type = IP)]
async fn nested() -> Result<String, Error> {
    Ok("done".into())
}

#[count_limit(2, "1h", name = "headers-refund", charge_when = |_| false)]
async fn refunded() -> Result<String, Error> {
    Ok("done".into())
}

/// Checks that the response has a charge as left again that is given back on this registry.
async fn assert_left_again(headers: RateLimitHeaders, registry: Registry) {
    let handler = move || {
        let registry = registry.clone();
        async move { registry.scope(refunded()).await }
    };
    let app = Router::new().route("/", get(handler)).layer(RateLimitLayer::new().headers(headers));
    let reply = serve(app).await.get("/", &[]).await;
    assert_eq!((reply.status, items(&reply, "ratelimit")["headers-refund"]["r"]), (200, 2));
}

/// The refund is then on its way.
#[tokio::test]
async fn refunded_charges_are_left_again() {
    let server = Server::start();
    let headers = RateLimitHeaders::new([HeaderFormat::Draft11]);
    let registry = Registry::builder().observer(headers.observer()).deadline(Duration::from_secs(10));
    let registry = registry.connect(&server.url()).await.unwrap();
    assert_left_again(headers, registry).await;
}

#[tokio::test]
async fn charges_that_are_refunded_in_process_are_left_again() {
    let headers = RateLimitHeaders::new([HeaderFormat::Draft11]);
    let registry = Registry::builder().observer(headers.observer()).in_memory();
    assert_left_again(headers, registry).await;
}

#[rate_limit("1000/min", burst = 500, key_type = IP)]
#[count_limit(3, "1h", key_type = IP)]
async fn unnamed() -> Result<String, Error> {
    Ok("done".into())
}

#[tokio::test]
async fn both_headers_are_about_the_same_policy() {
    let client =
        serve(Router::new().route("/", get(unnamed)).layer(RateLimitLayer::new().headers(headers()))).await;
    let reply = client.get("/", &[]).await;
    assert_eq!(items(&reply, "ratelimit-policy")["default"], params([("q", 3), ("w", 3600)]));
    assert_eq!(items(&reply, "ratelimit")["default"]["r"], 2);
}
