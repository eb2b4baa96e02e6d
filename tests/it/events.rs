//! Log events.

use ratelimits::{Error, FixedWindow, Registry, count_limit};

use crate::support::log_capture::LogCapture;

#[count_limit(1, "1d", shadow)]
async fn on_trial() -> Result<(), Error> {
    Ok(())
}

/// [`LogCapture`] asserts this of all events that any test captures, and `clippy.toml` of the others.
#[tokio::test]
async fn events_have_the_target_of_the_facade() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let _ = Registry::unlimited();
    let absent = Registry::connect_lazy("redis://127.0.0.1:1").unwrap();
    let window = FixedWindow::new(1, std::time::Duration::from_secs(60));
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
            "shadow policy would have limited this call",
        ]
    );
    let text = log.text();
    assert!(text.contains("policy=it::events::on_trial\nalgorithm=fixed window\n"), "{text}");
}
