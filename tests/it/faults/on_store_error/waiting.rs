//! Calls that wait during an outage wait in process.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use ratelimits::OnStoreError::Deny;
use ratelimits::{DecidedBy, FixedWindow, LeakyBucket, Policy, Rate, Registry, TokenBucket};

use super::{DAY, absent, assert_store_error};
use crate::support::log_capture::LogCapture;
use crate::support::proxy::Proxy;
use crate::support::registries::LONG_DEADLINE;
use crate::support::server::Server;
use crate::support::until::until;

const TICK: Duration = Duration::from_millis(100);

#[tokio::test]
async fn dropped_waiters_are_refunded() {
    let rate = Rate::new(1, DAY);
    let queue = LeakyBucket::new(1, rate).queue();
    for policy in
        [Policy::from(TokenBucket::new(rate).burst(1)), queue.into(), FixedWindow::new(1, DAY).into()]
    {
        let registry = absent(Registry::builder());
        let limiter = registry.limiter("a", policy).unwrap();
        limiter.acquire("a").await.unwrap();
        for _ in 0..3 {
            let waiting = limiter.clone();
            let call = tokio::spawn(async move { waiting.acquire("a").await });
            tokio::time::sleep(Duration::from_millis(30)).await;
            assert!(!call.is_finished(), "{policy:?}");
            call.abort();
            assert!(call.await.unwrap_err().is_cancelled());
            // The next call gets its slot.
            let reset_after = limiter.peek("a").await.unwrap().reset_after;
            assert!(reset_after <= DAY, "{policy:?}: {reset_after:?}");
        }
    }
}

/// Time spent waiting for Redis counts against the timeout.
#[tokio::test]
async fn timeout_includes_the_time_spent_on_redis() {
    let registry = absent(Registry::builder());
    let limiter = registry.limiter("a", TokenBucket::new(Rate::new(1, 10 * TICK)).burst(1)).unwrap();
    limiter.acquire("a").await.unwrap();
    // By the time it requests a slot, the next one is near enough, but it was not when the call was made.
    let mut call = pin!(limiter.acquire_timeout("a", 6 * TICK));
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    std::thread::sleep(7 * TICK);
    assert!(call.await.unwrap_err().is_limited());
    let mut call = pin!(limiter.acquire_timeout("a", 6 * TICK));
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(call.await.unwrap().source, DecidedBy::Local);
}

/// They waited for a window in Redis.
#[tokio::test]
async fn waiters_continue_in_process() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let registry = Registry::builder().deadline(LONG_DEADLINE).connect_lazy(&proxy.url()).unwrap();
    let window = registry.limiter("a", FixedWindow::new(2, 10 * TICK)).unwrap();
    window.try_acquire_n("a", 2).await.unwrap();
    let begin = Instant::now();
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let window = window.clone();
            tokio::spawn(async move { window.acquire("a").await })
        })
        .collect();
    tokio::time::sleep(5 * TICK).await;
    proxy.cut().await;
    let mut sources = Vec::new();
    for call in calls {
        let decision = call.await.unwrap().unwrap();
        assert!(decision.waited >= TICK, "{:?}", decision.waited);
        sources.push(decision.source);
    }
    assert_eq!(sources, [DecidedBy::Local; 4]);
    assert!(begin.elapsed() >= 19 * TICK, "two of them waited for a local window too");
}

#[tokio::test]
async fn failed_refunds_of_dropped_waiters_are_logged_once() {
    const WAITERS: usize = 200;
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let registry = Registry::builder().deadline(LONG_DEADLINE).connect_lazy(&proxy.url()).unwrap();
    let bucket = registry.limiter("a", TokenBucket::new(Rate::new(1, DAY)).burst(1)).unwrap();
    bucket.acquire("a").await.unwrap();
    let calls: Vec<_> = (0..WAITERS)
        .map(|_| {
            let bucket = bucket.clone();
            tokio::spawn(async move { bucket.acquire("a").await })
        })
        .collect();
    let count = |start: &str| log.messages().iter().filter(|message| message.starts_with(start)).count();
    until("all calls wait", Duration::from_secs(30), async || {
        let waiting = count("call is waiting");
        if waiting == WAITERS { Ok(()) } else { Err(format!("{waiting} do")) }
    })
    .await;
    proxy.cut().await;
    calls.iter().for_each(|call| call.abort());
    for call in calls {
        assert!(call.await.unwrap_err().is_cancelled());
    }
    until("a refund has failed", Duration::from_secs(30), async || match count("failed to refund") {
        0 => Err("none".to_owned()),
        _ => Ok(()),
    })
    .await;
    tokio::time::sleep(TICK).await;
    assert_eq!(count("failed to refund"), 1);
    drop(bucket.try_acquire("b").await);
    proxy.listen().await;
    until("the store is healthy", Duration::from_secs(30), async || {
        drop(bucket.peek("b").await);
        if registry.store_health().healthy { Ok(()) } else { Err("it is not".to_owned()) }
    })
    .await;
    assert!(log.text().contains(&format!("failed_refunds={WAITERS}")), "{}", log.text());
}

/// A call that waits in Redis is mirrored when it starts.
#[tokio::test]
async fn dropped_waiters_are_not_mirrored() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let registry = Registry::builder().deadline(LONG_DEADLINE).connect_lazy(&proxy.url()).unwrap();
    let bucket = registry.limiter("a", TokenBucket::new(Rate::new(1, DAY)).burst(2)).unwrap();
    let decided_by = async |source| {
        until("it decides", Duration::from_secs(30), async || {
            let decision = bucket.peek("a").await.unwrap();
            if decision.source == source { Ok(decision) } else { Err(format!("{decision:?}")) }
        })
        .await
    };
    proxy.cut().await;
    decided_by(DecidedBy::Local).await;
    proxy.listen().await;
    decided_by(DecidedBy::Redis).await;
    bucket.acquire_n("a", 2).await.unwrap();
    let waiting = bucket.clone();
    let call = tokio::spawn(async move { waiting.acquire("a").await });
    tokio::time::sleep(TICK).await;
    assert!(!call.is_finished());
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    proxy.cut().await;
    let decision = decided_by(DecidedBy::Local).await;
    assert_eq!(decision.remaining, 0);
    assert!(decision.reset_after <= 2 * DAY, "{:?}", decision.reset_after);
}

#[tokio::test]
async fn waiters_start_at_slots_reserved_in_redis() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let registry = Registry::builder().on_store_error(Deny).deadline(LONG_DEADLINE);
    let registry = registry.connect_lazy(&proxy.url()).unwrap();
    let bucket = registry.limiter("a", TokenBucket::new(Rate::new(1, 10 * TICK)).burst(1)).unwrap();
    bucket.acquire("a").await.unwrap();
    let waiting = bucket.clone();
    let call = tokio::spawn(async move { waiting.acquire("a").await });
    tokio::time::sleep(5 * TICK).await;
    proxy.cut().await;
    assert_store_error(bucket.acquire("a").await);
    assert_eq!(call.await.unwrap().unwrap().source, DecidedBy::Redis);
}
