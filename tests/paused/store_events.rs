//! Log events about a store that fails, which are bounded and count what they leave out.

use std::time::Duration;

use ratelimits::{Error, FixedWindow, Registry, count_limit};
use tokio::time::{advance, sleep};

use crate::faulty_server::{Fault, FaultyServer};
use crate::log_capture::LogCapture;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// Makes a call a second, so many. Returns the warnings of this text, each with its fields.
async fn warnings(text: &str, calls: usize, mut call: impl AsyncFnMut()) -> Vec<String> {
    let log = LogCapture::default();
    // Of the thread, because refunds are sent by tasks of their own.
    let _subscribed = tracing::subscriber::set_default(log.clone());
    for _ in 0..calls {
        call().await;
        advance(SECOND).await;
    }
    let events = log.text();
    let warnings = events.split("level=").filter(|event| event.starts_with("WARN") && event.contains(text));
    warnings.map(str::to_owned).collect()
}

fn assert_each_has<const N: usize>(warnings: &[String], fields: [&str; N]) {
    assert_eq!(warnings.len(), N, "{warnings:#?}");
    for (warning, field) in warnings.iter().zip(fields) {
        assert!(warning.contains(&format!("{field}\n")), "{field} in {warning}");
    }
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_logged_once_a_minute() {
    let foreign = Fault::Error("WRONGTYPE Operation against a key holding the wrong kind of value");
    let registry = Registry::builder().over(FaultyServer::new(foreign));
    let limiters = ["uploads", "mails"].map(|name| registry.limiter(name, FixedWindow::new(9, DAY)).unwrap());
    for limiter in limiters {
        let call = async || drop(limiter.try_acquire("tenant-7").await.unwrap_err());
        let warnings = warnings("calls fail with a permanent store error", 130, call).await;
        assert_each_has(&warnings, ["calls=1", "calls=60", "calls=60"]);
        assert_each_has(&warnings, [&*format!("policy={}", limiter.name()); 3]);
        assert!(
            warnings.iter().all(|warning| warning.contains("WRONGTYPE") && !warning.contains("tenant-7"))
        );
    }
    assert!(registry.store_health().healthy, "it is no outage");
}

#[tokio::test(start_paused = true)]
async fn outages_are_logged_every_minute() {
    let registry = Registry::builder().over(FaultyServer::new(Fault::Refused));
    let limiter = registry.limiter("uploads", FixedWindow::new(1000, DAY)).unwrap();
    let call = async || drop(limiter.try_acquire("tenant-7").await.unwrap());
    let warnings = warnings("store ", 130, call).await;
    assert_each_has(
        &warnings,
        [
            "message=store unavailable; applying `on_store_error`",
            "message=store still unavailable",
            "message=store still unavailable",
        ],
    );
    assert_each_has(&warnings[1..], ["lasted=60s", "lasted=120s"]);
    assert_each_has(&warnings[1..], ["failed_decisions=61", "failed_decisions=121"]);
}

#[count_limit(1000, "1d", name = "logins", charge_when = |_| false, registry = registry)]
async fn login(registry: &Registry, server: &FaultyServer) -> Result<(), Error> {
    server.set(Fault::Error("OOM command not allowed when used memory > 'maxmemory'."));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn failed_refunds_are_logged_once_a_minute() {
    let server = FaultyServer::new(Fault::None);
    let registry = Registry::builder().over(server.clone());
    let call = async || {
        server.set(Fault::None);
        login(&registry, &server).await.unwrap();
        // Until the refund has failed.
        sleep(Duration::from_millis(1)).await;
    };
    let warnings = warnings("failed to refund charges", 130, call).await;
    assert_each_has(&warnings, ["refunds=1", "refunds=60", "refunds=60"]);
    assert_each_has(&warnings, ["policy=logins"; 3]);
}
