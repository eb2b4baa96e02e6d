//! Which client a request counts for, behind proxies and without them.

use axum::Router;
use axum::routing::get;
use ratelimits::ClientIp;
use ratelimits::RequestContext;
use ratelimits::web::RateLimitLayer;

use crate::axum::serve;
use crate::client::Client;

async fn address() -> String {
    RequestContext::current().ip().map_or("none".into(), |ip| ip.to_string())
}

/// The connections of the tests are from 127.0.0.1.
async fn behind<const N: usize>(trusted: [&str; N]) -> Client {
    let client_ip = ClientIp::header("X-Forwarded-For", trusted).unwrap();
    serve(Router::new().route("/", get(address)).layer(RateLimitLayer::new().client_ip(client_ip))).await
}

#[tokio::test]
async fn headers_from_untrusted_peers_change_nothing() {
    let direct = serve(Router::new().route("/", get(address)).layer(RateLimitLayer::new())).await;
    for client in [direct, behind(["10.0.0.0/8"]).await] {
        for spoofed in ["x-forwarded-for: 192.0.2.1", "forwarded: for=192.0.2.1", "x-real-ip: 192.0.2.1"] {
            assert_eq!(client.get("/", &[spoofed]).await.body, "127.0.0.1", "{spoofed}");
        }
    }
}

#[tokio::test]
async fn headers_are_read_through_trusted_proxies() {
    let client = behind(["127.0.0.0/8", "10.0.0.0/8"]).await;
    for (lines, address) in [
        (["x-forwarded-for: 192.0.2.1"].as_slice(), "192.0.2.1"),
        (&["x-forwarded-for: 1.1.1.1, 192.0.2.1, 10.0.0.1, 10.0.0.2"], "192.0.2.1"),
        (
            &["x-forwarded-for: 1.1.1.1", "x-forwarded-for: 192.0.2.1", "x-forwarded-for: 10.0.0.1"],
            "192.0.2.1",
        ),
        (&["x-forwarded-for: 192.0.2.1:4711"], "192.0.2.1"),
        (&["x-forwarded-for: [2001:db8:1:2:3::4]:443, 10.0.0.1"], "2001:db8:1:2::"),
        (&["x-forwarded-for: ::ffff:192.0.2.1"], "192.0.2.1"),
        (&["x-forwarded-for: 1.1.1.1, unknown"], "none"),
        (&["x-forwarded-for: 1.1.1.1, \u{fffd}"], "none"),
        (&["x-forwarded-for: 10.0.0.9, 10.0.0.1"], "10.0.0.9"),
        (&[], "none"),
    ] {
        assert_eq!(client.get("/", lines).await.body, address, "{lines:?}");
    }
}
