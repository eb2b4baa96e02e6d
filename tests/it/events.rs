//! Log events.

use std::time::Duration;

use ratelimits::{Error, FixedWindow, Registry, SlidingWindow, count_limit};

use crate::support::log_capture::LogCapture;
use crate::support::registries::on;
use crate::support::server::Server;

const DAY: Duration = Duration::from_secs(86_400);

#[count_limit(1, "1d", shadow)]
async fn on_trial() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1d", key = key, name = "once", registry = registry)]
async fn once(registry: &Registry, key: u64) -> Result<(), Error> {
    Ok(())
}

/// On the fast lane and the general path, in Redis and by a denial of it.
#[tokio::test]
async fn each_refusal_is_logged() {
    let server = Server::shared();
    for (registry, source) in [(Registry::in_memory(), "Memory"), (on(&server), "Redis")] {
        let log = LogCapture::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let limiter = registry.limiter("window", SlidingWindow::new(1, DAY)).unwrap();
        for _ in 0..3 {
            _ = once(&registry, 1).await;
            _ = limiter.try_acquire(1, 1).await;
        }
        limiter.peek(1).await.unwrap();
        assert_eq!(log.messages(), ["call was limited"; 4]);
        let events = log.events();
        let policies: Vec<&str> = events.iter().map(|(policy, _)| policy.as_str()).collect();
        assert_eq!(policies, ["once", "window", "once", "window"]);
        let text = log.text();
        assert_eq!(text.matches(&format!("source={source}\n")).count(), 4, "{text}");
        assert_eq!(text.matches("retry_after=86").count(), 4, "{text}");
    }
}

/// [`LogCapture`] asserts this of all events that any test captures, and `clippy.toml` of the others.
#[tokio::test]
async fn events_have_the_target_of_the_facade() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let _ = Registry::unlimited();
    let absent = Registry::connect_lazy("redis://127.0.0.1:1").unwrap();
    let window = FixedWindow::new(1, Duration::from_secs(60));
    absent.limiter("a", window).unwrap().try_acquire("a", 1).await.unwrap();
    let registry = Registry::in_memory();
    for _ in 0..2 {
        registry.scope(on_trial()).await.unwrap();
    }
    assert_eq!(
        log.messages(),
        [
            "Registry::unlimited() is in use: all limits are off",
            "store unavailable; applying `on_store_error`",
            "shadow policy would have limited calls",
        ]
    );
    let text = log.text();
    assert!(text.contains("policy=it::events::on_trial\nalgorithm=fixed window\n"), "{text}");
}
