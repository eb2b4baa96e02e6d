//! Outages that begin and end: how they are reported, and what they cost.

use std::time::Duration;

use ratelimits::OnStoreError::{Allow, Deny};
use ratelimits::{DecidedBy, FixedWindow, Limiter, Policy, Registry, TokenBucket};

use super::{ABSENT, DAY, absent, assert_store_error};
use crate::support::log_capture::LogCapture;
use crate::support::proxy::Proxy;
use crate::support::registries::LONG_DEADLINE;
use crate::support::server::Server;
use crate::support::until::until;

const WITHIN: Duration = Duration::from_secs(30);
const BEGINS: &str = "store unavailable; applying `on_store_error`";
const ENDS: &str = "store recovered";

#[track_caller]
fn assert_health(registry: &Registry, healthy: bool, outages: u64, failed_decisions: u64) {
    let health = registry.store_health();
    let numbers = (health.healthy, health.outages, health.failed_decisions);
    assert_eq!(numbers, (healthy, outages, failed_decisions));
}

/// A limiter on a dedicated server behind a proxy.
struct Fixture {
    registry: Registry,
    limiter: Limiter,
    proxy: Proxy,
    _server: Server,
}

async fn start(policy: impl Into<Policy>) -> Fixture {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let registry = Registry::builder().deadline(LONG_DEADLINE).connect_lazy(&proxy.url()).unwrap();
    let limiter = registry.limiter("a", policy).unwrap();
    Fixture { registry, limiter, proxy, _server: server }
}

async fn redis_decides(limiter: &Limiter) {
    until("Redis decides", WITHIN, async || match limiter.peek("a").await {
        Ok(decision) if decision.source == DecidedBy::Redis => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}

#[tokio::test]
async fn outage_is_logged_once_and_counted() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let registry = absent(Registry::builder());
    let limiter = registry.limiter("a", FixedWindow::new(5, DAY)).unwrap();
    assert_health(&registry, true, 0, 0);
    for i in 1..=5 {
        limiter.try_acquire("a").await.unwrap();
        assert_health(&registry, false, 1, i);
    }
    limiter.on_store_error(Allow).try_acquire("a").await.unwrap();
    assert_store_error(limiter.on_store_error(Deny).try_acquire("a").await);
    assert_health(&registry, false, 1, 7);
    // A look is no call.
    limiter.on_store_error(Deny).peek("a").await.unwrap_err();
    assert_eq!(log.messages(), ["limits are decided in Redis", BEGINS, "call was refused"]);
    assert_health(&Registry::in_memory(), true, 0, 0);
}

#[tokio::test]
async fn flapping_store_gives_no_fresh_burst() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let bucket = TokenBucket::new("1/h".parse().unwrap()).burst(5);
    let Fixture { registry, limiter, proxy, _server } = &start(bucket).await;
    let (mut in_process, mut in_redis) = (0, 0);
    for _ in 0..8 {
        for is_open in [false, true] {
            if is_open {
                proxy.listen().await;
                redis_decides(limiter).await;
            } else {
                proxy.cut().await;
            }
            for _ in 0..5 {
                match limiter.try_acquire("a").await {
                    Ok(decision) if decision.source == DecidedBy::Local => in_process += 1,
                    Ok(_) => in_redis += 1,
                    Err(error) => assert!(error.is_limited(), "{error}"),
                }
            }
        }
    }
    // Redis may also have charged a call whose reply was lost.
    assert!(in_process == 5 && (1..=5).contains(&in_redis), "{in_process} in process, {in_redis} in Redis");
    let health = registry.store_health();
    assert!(health.failed_decisions >= 8, "{health:?}");
    until("the store is healthy", WITHIN, async || {
        assert!(limiter.peek("a").await.is_ok());
        let health = registry.store_health();
        if health.healthy { Ok(()) } else { Err(format!("{health:?}")) }
    })
    .await;
    assert_eq!(log.messages().last().map(String::as_str), Some(ENDS));
    assert_eq!(limiter.peek("a").await.unwrap().source, DecidedBy::Redis);
}

#[tokio::test]
async fn outage_costs_one_capacity() {
    let Fixture { limiter, proxy, .. } = &start(FixedWindow::new(3, DAY)).await;
    for _ in 0..3 {
        assert_eq!(limiter.try_acquire("a").await.unwrap().source, DecidedBy::Redis);
    }
    // A refused call would be denied for a while.
    assert_eq!(limiter.peek("a").await.unwrap().remaining, 0);
    proxy.cut().await;
    for _ in 0..3 {
        assert_eq!(limiter.try_acquire("a").await.unwrap().source, DecidedBy::Local);
    }
    assert!(limiter.try_acquire("a").await.unwrap_err().is_limited());
    proxy.listen().await;
    redis_decides(limiter).await;
    assert!(limiter.try_acquire("a").await.unwrap_err().is_limited());
}

#[tokio::test]
async fn charges_are_not_refunded_in_the_other_store() {
    let Fixture { limiter, proxy, .. } = &start(FixedWindow::new(3, DAY)).await;
    let in_redis = limiter.try_acquire_n("a", 2).await.unwrap();
    proxy.cut().await;
    let in_process = limiter.try_acquire_n("a", 3).await.unwrap();
    assert_eq!((in_process.source, in_process.remaining), (DecidedBy::Local, 0));
    assert_store_error(in_redis.refund().await.map_err(Into::into));
    assert_eq!(limiter.peek("a").await.unwrap().remaining, 0);
    proxy.listen().await;
    in_process.refund().await.unwrap();
    redis_decides(limiter).await;
    assert_eq!(limiter.peek("a").await.unwrap().remaining, 1);
}

#[tokio::test]
async fn absent_store_does_not_prevent_start() {
    assert_store_error(Registry::connect(ABSENT).await);
    let registry = Registry::connect_lazy(ABSENT).unwrap();
    assert!(registry.store_health().healthy, "it has not been used yet");
}
