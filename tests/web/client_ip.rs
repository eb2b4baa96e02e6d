//! Which client a request counts for, behind proxies and without them.

use axum::Router;
use axum::routing::get;
use ratelimits::ClientIp;
use ratelimits::RequestContext;
use ratelimits::web::RateLimitLayer;

use crate::axum::serve;
use crate::client::Client;

/// The address that the request counts by.
pub(crate) async fn address() -> String {
    RequestContext::current().ip().map_or("none".into(), |ip| ip.to_string())
}

/// The connections of the tests are from 127.0.0.1.
pub(crate) fn behind<const N: usize>(trusted: [&str; N]) -> ClientIp {
    ClientIp::header("X-Forwarded-For", trusted).unwrap()
}

/// Asserts that a server without trusted proxies counts clients by their connections. Its `/` replies with [`address`].
pub(crate) async fn assert_headers_change_nothing(client: Client) {
    for spoofed in ["x-forwarded-for: 192.0.2.1", "forwarded: for=192.0.2.1", "x-real-ip: 192.0.2.1"] {
        assert_eq!(client.get("/", &[spoofed]).await.body, "127.0.0.1", "{spoofed}");
    }
}

/// Asserts that a server reads the header from 127.0.0.0/8 and 10.0.0.0/8. Its `/` replies with [`address`].
pub(crate) async fn assert_headers_are_read(client: Client) {
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

async fn serve_behind(client_ip: ClientIp) -> Client {
    serve(Router::new().route("/", get(address)).layer(RateLimitLayer::new().client_ip(client_ip))).await
}

#[tokio::test]
async fn headers_from_untrusted_peers_change_nothing() {
    for client_ip in [ClientIp::peer(), behind(["10.0.0.0/8"])] {
        assert_headers_change_nothing(serve_behind(client_ip).await).await;
    }
}

#[tokio::test]
async fn headers_are_read_through_trusted_proxies() {
    assert_headers_are_read(serve_behind(behind(["127.0.0.0/8", "10.0.0.0/8"])).await).await;
}
