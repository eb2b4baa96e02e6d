//! Trouble that comes and goes: what is told of it, and what it costs.

use std::time::{Duration, Instant};

use ratelimits::OnStoreError::{Allow, Deny};
use ratelimits::{FixedWindow, Registry, Source, StoreHealth, TokenBucket};

use super::{DAY, NOBODY, absent, assert_store};
use crate::support::gate::Gate;
use crate::support::server::Server;
use crate::support::told::Told;

const BEGINS: &str = "the store does not decide; until it does, `on_store_error` says what becomes of calls";
const ENDS: &str = "the store decides again";

fn numbers(health: StoreHealth) -> (bool, u64, u64) {
    (health.is_well, health.troubles, health.unanswered)
}

fn messages(told: &Told) -> Vec<String> {
    told.events().into_iter().map(|(_, message)| message).collect()
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
async fn that_flaps_gives_no_fresh_burst_and_is_told_as_one() {
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(told.clone());
    let server = Server::start();
    let gate = Gate::to(&server).await;
    let registry = Registry::builder().connect_lazy(gate.url()).unwrap();
    let limiter = registry.limiter("a", TokenBucket::new("1/h".parse().unwrap()).burst(5)).unwrap();
    let begin = Instant::now();
    let (mut here, mut there) = (0, 0);
    for _ in 0..8 {
        for is_open in [false, true] {
            if is_open {
                gate.open();
                while limiter.peek("a").await.unwrap().source == Source::Local {
                    assert!(begin.elapsed() < Duration::from_secs(30));
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            } else {
                gate.close();
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
    assert!(health.unanswered >= 8, "{health:?}");
    if begin.elapsed() < Duration::from_secs(1) {
        assert_eq!((health.is_well, health.troubles), (false, 1));
        assert_eq!(messages(&told), [BEGINS]);
    }
    gate.open();
    while !registry.store_health().is_well {
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert!(limiter.peek("a").await.is_ok());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(messages(&told).last().map(String::as_str), Some(ENDS));
    assert_eq!(limiter.peek("a").await.unwrap().source, Source::Redis);
}

#[tokio::test]
async fn costs_one_capacity_at_the_most() {
    let server = Server::start();
    let gate = Gate::to(&server).await;
    let registry = Registry::builder().connect_lazy(gate.url()).unwrap();
    let limiter = registry.limiter("a", FixedWindow::new(3, DAY)).unwrap();
    for _ in 0..3 {
        assert_eq!(limiter.try_acquire("a", 1).await.unwrap().source, Source::Redis);
    }
    assert!(limiter.try_acquire("a", 1).await.unwrap_err().is_limited());
    gate.close();
    for _ in 0..3 {
        assert_eq!(limiter.try_acquire("a", 1).await.unwrap().source, Source::Local);
    }
    assert!(limiter.try_acquire("a", 1).await.unwrap_err().is_limited());
    gate.open();
    while limiter.peek("a").await.unwrap().source == Source::Local {}
    assert!(limiter.try_acquire("a", 1).await.unwrap_err().is_limited());
}

#[tokio::test]
async fn a_charge_made_in_redis_is_not_given_back_here() {
    let server = Server::start();
    let gate = Gate::to(&server).await;
    let registry = Registry::builder().connect_lazy(gate.url()).unwrap();
    let limiter = registry.limiter("a", FixedWindow::new(3, DAY)).unwrap();
    let there = limiter.try_acquire("a", 2).await.unwrap();
    gate.close();
    let here = limiter.try_acquire("a", 3).await.unwrap();
    assert_eq!((here.source, here.remaining), (Source::Local, 0));
    assert_store(there.refund().await);
    assert_eq!(limiter.peek("a").await.unwrap().remaining, 0);
    gate.open();
    here.refund().await.unwrap();
    while limiter.peek("a").await.unwrap().source == Source::Local {}
    assert_eq!(limiter.peek("a").await.unwrap().remaining, 1);
}

#[tokio::test]
async fn is_no_reason_not_to_start() {
    assert_store(Registry::connect(NOBODY).await);
    let registry = Registry::connect_lazy(NOBODY).unwrap();
    assert!(registry.store_health().is_well, "nobody has asked it yet");
}
