//! Trouble that comes and goes: what is told of it, and what it costs.

use std::time::Duration;

use ratelimits::OnStoreError::{Allow, Deny};
use ratelimits::{FixedWindow, Limiter, Registry, Source, StoreHealth, TokenBucket};

use super::{DAY, NOBODY, absent, assert_store};
use crate::support::proxy::Proxy;
use crate::support::registries::PATIENT;
use crate::support::server::Server;
use crate::support::told::Told;
use crate::support::until::until;

const WITHIN: Duration = Duration::from_secs(30);
const BEGINS: &str = "the store does not decide; until it does, `on_store_error` says what becomes of calls";
const ENDS: &str = "the store decides again";

fn numbers(health: StoreHealth) -> (bool, u64, u64) {
    (health.healthy, health.outages, health.failed_decisions)
}

fn messages(told: &Told) -> Vec<String> {
    told.events().into_iter().map(|(_, message)| message).collect()
}

/// Ends all connections, and refuses those that are to come.
pub(super) async fn cut(proxy: &Proxy) {
    proxy.refuse().await;
    proxy.reset().await;
}

async fn decided_there(limiter: &Limiter) {
    until("Redis decides", WITHIN, async || match limiter.peek("a").await {
        Ok(decision) if decision.source == Source::Redis => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}

#[tokio::test]
async fn is_told_once_and_counted() {
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(told.clone());
    let registry = absent(Registry::builder());
    let limiter = registry.limiter("a", FixedWindow::new(5, DAY)).unwrap();
    assert_eq!(numbers(registry.store_health()), (true, 0, 0));
    for i in 1..=5 {
        limiter.try_acquire("a", 1).await.unwrap();
        assert_eq!(numbers(registry.store_health()), (false, 1, i));
    }
    limiter.on_store_error(Allow).try_acquire("a", 1).await.unwrap();
    assert_store(limiter.on_store_error(Deny).try_acquire("a", 1).await);
    assert_eq!(numbers(registry.store_health()), (false, 1, 7));
    assert_eq!(messages(&told), [BEGINS]);
    assert_eq!(numbers(Registry::in_memory().store_health()), (true, 0, 0));
}

#[tokio::test]
async fn that_flaps_gives_no_fresh_burst() {
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(told.clone());
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let registry = Registry::builder().deadline(PATIENT).connect_lazy(&proxy.url()).unwrap();
    let limiter = registry.limiter("a", TokenBucket::new("1/h".parse().unwrap()).burst(5)).unwrap();
    let (mut here, mut there) = (0, 0);
    for _ in 0..8 {
        for is_open in [false, true] {
            if is_open {
                proxy.listen().await;
                decided_there(&limiter).await;
            } else {
                cut(&proxy).await;
            }
            for _ in 0..5 {
                match limiter.try_acquire("a", 1).await {
                    Ok(decision) if decision.source == Source::Local => here += 1,
                    Ok(_) => there += 1,
                    Err(error) => assert!(error.is_limited(), "{error}"),
                }
            }
        }
    }
    // What is charged by a call whose answer is lost is charged there.
    assert!(here == 5 && (1..=5).contains(&there), "{here} here and {there} there");
    let health = registry.store_health();
    assert!(health.failed_decisions >= 8, "{health:?}");
    until("all is well", WITHIN, async || {
        assert!(limiter.peek("a").await.is_ok());
        let health = registry.store_health();
        if health.healthy { Ok(()) } else { Err(format!("{health:?}")) }
    })
    .await;
    assert_eq!(messages(&told).last().map(String::as_str), Some(ENDS));
    assert_eq!(limiter.peek("a").await.unwrap().source, Source::Redis);
}

#[tokio::test]
async fn costs_one_capacity_at_the_most() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let registry = Registry::builder().deadline(PATIENT).connect_lazy(&proxy.url()).unwrap();
    let limiter = registry.limiter("a", FixedWindow::new(3, DAY)).unwrap();
    for _ in 0..3 {
        assert_eq!(limiter.try_acquire("a", 1).await.unwrap().source, Source::Redis);
    }
    assert!(limiter.try_acquire("a", 1).await.unwrap_err().is_limited());
    cut(&proxy).await;
    for _ in 0..3 {
        assert_eq!(limiter.try_acquire("a", 1).await.unwrap().source, Source::Local);
    }
    assert!(limiter.try_acquire("a", 1).await.unwrap_err().is_limited());
    proxy.listen().await;
    decided_there(&limiter).await;
    assert!(limiter.try_acquire("a", 1).await.unwrap_err().is_limited());
}

#[tokio::test]
async fn a_charge_made_in_redis_is_not_given_back_here() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let registry = Registry::builder().deadline(PATIENT).connect_lazy(&proxy.url()).unwrap();
    let limiter = registry.limiter("a", FixedWindow::new(3, DAY)).unwrap();
    let there = limiter.try_acquire("a", 2).await.unwrap();
    cut(&proxy).await;
    let here = limiter.try_acquire("a", 3).await.unwrap();
    assert_eq!((here.source, here.remaining), (Source::Local, 0));
    assert_store(there.refund().await.map_err(Into::into));
    assert_eq!(limiter.peek("a").await.unwrap().remaining, 0);
    proxy.listen().await;
    here.refund().await.unwrap();
    decided_there(&limiter).await;
    assert_eq!(limiter.peek("a").await.unwrap().remaining, 1);
}

#[tokio::test]
async fn is_no_reason_not_to_start() {
    assert_store(Registry::connect(NOBODY).await);
    let registry = Registry::connect_lazy(NOBODY).unwrap();
    assert!(registry.store_health().healthy, "nobody has asked it yet");
}
