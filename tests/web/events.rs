//! What the layer logs about requests.

use axum::Router;
use axum::routing::get;
use ratelimits::web::RateLimitLayer;
use ratelimits::{Error, RequestContext, count_limit};

use crate::axum::serve;
use crate::client::Client;
use crate::client_ip::behind;
use crate::layer::who;
use crate::log_capture::LogCapture;
use crate::shared::once;

#[count_limit(9, "1h", key_type = IP, name = "events-by-address")]
async fn by_address() -> Result<String, Error> {
    Ok("done".into())
}

#[count_limit(limit = limit, period = "1h", name = "events-invalid")]
async fn invalid(limit: i64) -> Result<String, Error> {
    Ok("done".into())
}

async fn serve_with(layer: RateLimitLayer) -> Client {
    let outside = get(by_address);
    let app = Router::new()
        .route("/", get(who))
        .route("/limited", get(by_address))
        .route("/invalid", get(async || invalid(-1).await));
    serve(app.layer(layer).route("/outside", outside)).await
}

/// The events of this message.
fn count(log: &LogCapture, message: &str) -> usize {
    log.messages().iter().filter(|logged| *logged == message).count()
}

#[tokio::test]
async fn ignored_headers_are_logged_once() {
    const MESSAGE: &str = "a header about the client is ignored, as its connection is not trusted";
    for header in ["x-forwarded-for: 192.0.2.1", "forwarded: for=192.0.2.1", "x-real-ip: 192.0.2.1"] {
        for (layer, logged) in [
            (RateLimitLayer::new(), 1),
            (RateLimitLayer::new().client_ip(behind(["10.0.0.0/8"])), 1),
            (RateLimitLayer::new().client_ip(behind(["127.0.0.0/8"])), 0),
        ] {
            let log = LogCapture::default();
            let _guard = tracing::subscriber::set_default(log.clone());
            let client = serve_with(layer).await;
            client.get("/", &[]).await;
            assert_eq!(count(&log, MESSAGE), 0);
            for _ in 0..3 {
                client.get("/", &[header]).await;
            }
            assert_eq!(count(&log, MESSAGE), logged, "{header}");
            assert!(!log.text().contains("192.0.2.1"), "{}", log.text());
        }
    }
}

#[tokio::test]
async fn unnamed_clients_are_logged_if_a_key_needs_them() {
    const MESSAGE: &str = "trusted proxies send requests without a client address";
    let proxied = || RateLimitLayer::new().client_ip(behind(["127.0.0.0/8"]));
    let by_layer = proxied().limit(once("events-layer"), |_| RequestContext::current().ip());
    for (layer, path, logged) in [(proxied(), "/", 0), (proxied(), "/limited", 1), (by_layer, "/", 1)] {
        let log = LogCapture::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let client = serve_with(layer).await;
        for _ in 0..3 {
            client.get(path, &[]).await;
        }
        assert_eq!(count(&log, MESSAGE), logged, "{}", log.text());
    }
}

#[tokio::test]
async fn a_layer_inside_another_does_not_count_the_proxy() {
    let outer = RateLimitLayer::new().client_ip(behind(["127.0.0.0/8"]));
    let app = Router::new().route("/", get(who)).layer(RateLimitLayer::new()).layer(outer);
    assert_eq!(serve(app).await.get("/", &[]).await.body, "None None");
}

#[tokio::test]
async fn faults_of_the_program_are_warnings() {
    const MESSAGE: &str = "calls are refused, as their policy cannot decide them";
    for (path, policy, error) in [
        (
            "/outside",
            "events-by-address",
            "no client address to use as the key; add `.layer(RateLimitLayer::new())`",
        ),
        ("/invalid", "events-invalid", "`limit` is negative"),
    ] {
        let log = LogCapture::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let client = serve_with(RateLimitLayer::new()).await;
        assert_eq!(client.get(path, &[]).await.status, 500);
        let text = log.text();
        let warning = text.split("level=").find(|event| event.contains(MESSAGE)).expect(&text);
        assert!(warning.starts_with("WARN") && warning.contains(&format!("policy={policy}\n")), "{warning}");
        assert!(warning.contains(error), "{warning}");
    }
}
