//! In process, where a key has a count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ratelimits::{ConcurrencyLimit, Error, FixedWindow, Limiter, Registry, TokenBucket};
use tokio::task::JoinSet;

const DAY: Duration = Duration::from_secs(86_400);

fn limiter(max: u64) -> Limiter {
    Registry::in_memory().limiter("exports", ConcurrencyLimit::new(max)).unwrap()
}

async fn remaining(limiter: &Limiter) -> u64 {
    limiter.peek("key").await.unwrap().remaining
}

#[tokio::test]
async fn permits_are_held_until_the_decision_is_dropped() {
    let exports = limiter(3);
    let one = exports.try_acquire("key").await.unwrap();
    assert_eq!((one.limit, one.remaining), (3, 2));
    let two = exports.try_acquire_n("key", 2).await.unwrap();
    assert_eq!(two.remaining, 0);
    assert!(exports.try_acquire("key").await.unwrap_err().is_limited());
    assert!(exports.try_acquire("other").await.is_ok());
    drop(one);
    assert_eq!(remaining(&exports).await, 1);
    assert!(exports.try_acquire_n("key", 2).await.is_err());
    two.refund().await.unwrap();
    assert_eq!(remaining(&exports).await, 3);
}

#[tokio::test]
async fn nobody_knows_when_a_call_ends() {
    let exports = limiter(2);
    let _held = exports.try_acquire_n("key", 2).await.unwrap();
    let refused = exports.try_acquire("key").await.unwrap_err();
    assert!(refused.is_limited() && !refused.is_unsatisfiable() && refused.retry_after().is_none());
    let text = "limited by policy `exports` (semaphore); other calls have to end first";
    assert_eq!(refused.to_string(), text);
    let Error::Limited(limited) = refused else { panic!() };
    let decision = limited.decision();
    assert_eq!((decision.limit, decision.remaining, decision.retry_after), (2, 0, None));
    assert_eq!(decision.reset_after, Duration::ZERO);

    let never = exports.try_acquire_n("key", 3).await.unwrap_err();
    assert!(never.is_unsatisfiable() && never.retry_after().is_none());
    assert!(never.to_string().ends_with("the call costs more than the policy can ever admit"));
}

#[tokio::test]
async fn refusal_by_another_policy_holds_nothing() {
    let registry = Registry::in_memory();
    let exports = registry.limiter("exports", ConcurrencyLimit::new(2)).unwrap();
    let daily = registry.limiter("daily", FixedWindow::new(1, DAY)).unwrap();
    let burst = registry.limiter("burst", TokenBucket::per_second(1).burst(9).adjustable()).unwrap();
    let first = registry.try_acquire_all([exports.charge("key"), daily.charge("key")]).await.unwrap();
    for _ in 0..3 {
        let refused = registry.try_acquire_all([exports.charge("key"), daily.charge("key")]).await;
        assert!(refused.unwrap_err().retry_after().is_some());
    }
    assert_eq!(remaining(&exports).await, 1);
    // What is not known is longer than any time.
    let second = registry.try_acquire_all([exports.charge("key"), burst.charge("key")]).await.unwrap();
    let refused = registry.try_acquire_all([daily.charge("key"), exports.charge("key")]).await.unwrap_err();
    assert!(refused.retry_after().is_none() && !refused.is_unsatisfiable());
    assert_eq!(second.policies().len(), 2);
    drop((first, second));
    assert_eq!(remaining(&exports).await, 2);
    assert_eq!(remaining(&burst).await, 8);
}

#[tokio::test]
async fn lists_hold_their_permits_until_their_decision_is_dropped() {
    let registry = Registry::in_memory();
    let exports = registry.limiter("exports", ConcurrencyLimit::new(2)).unwrap();
    let daily = registry.limiter("daily", FixedWindow::new(9, DAY)).unwrap();
    let both = || registry.try_acquire_all([exports.charge("key"), daily.charge("key")]);
    let left = async || (remaining(&exports).await, remaining(&daily).await);
    // With new keys, and with keys that the store has.
    for used in 1..4 {
        let decision = both().await.unwrap();
        assert_eq!(left().await, (1, 9 - used));
        drop(decision);
        assert_eq!(left().await, (2, 9 - used));
        let decision = both().await.unwrap();
        assert_eq!(left().await, (1, 8 - used));
        decision.refund().await.unwrap();
        assert_eq!(left().await, (2, 9 - used));
    }
}

#[tokio::test]
async fn held_keys_are_not_evicted() {
    let registry = Registry::builder().max_keys(8).in_memory();
    let exports = registry.limiter("exports", ConcurrencyLimit::new(1)).unwrap();
    let mut held = Vec::new();
    for key in 0..64 {
        held.push(exports.try_acquire(key).await.unwrap());
    }
    for key in 0..64 {
        assert!(exports.try_acquire(key).await.is_err(), "{key}");
    }
}

#[tokio::test]
async fn waiting_calls_start_in_order_as_others_end() {
    let exports = limiter(1);
    let held = exports.try_acquire("key").await.unwrap();
    assert!(exports.acquire_timeout("key", Duration::from_millis(20)).await.unwrap_err().is_limited());
    let started = Arc::new(AtomicU64::new(0));
    let mut calls = JoinSet::new();
    for call in 0..50 {
        let (exports, started) = (exports.clone(), Arc::clone(&started));
        calls.spawn(async move {
            let decision = exports.acquire("key").await.unwrap();
            assert_eq!(started.fetch_add(1, Ordering::Relaxed), call);
            drop(decision);
        });
        tokio::task::yield_now().await;
    }
    assert_eq!(started.load(Ordering::Relaxed), 0);
    drop(held);
    while let Some(ended) = calls.join_next().await {
        ended.unwrap();
    }
    assert_eq!((started.load(Ordering::Relaxed), remaining(&exports).await), (50, 1));
}

#[tokio::test]
async fn calls_that_stop_waiting_hold_nothing() {
    let exports = limiter(1);
    for _ in 0..20 {
        let held = exports.try_acquire("key").await.unwrap();
        let waiting = tokio::spawn({
            let exports = exports.clone();
            async move { exports.acquire("key").await.map(drop) }
        });
        tokio::task::yield_now().await;
        drop(held);
        waiting.abort();
        let _ = waiting.await;
        assert_eq!(remaining(&exports).await, 1);
    }
}

#[test]
fn threads_never_hold_too_many() {
    let (exports, running) = (limiter(3), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut admitted = 0;
                while admitted < 2000 {
                    let Ok(decision) = exports.blocking_try_acquire("key") else { continue };
                    assert!(running.fetch_add(1, Ordering::SeqCst) < 3);
                    running.fetch_sub(1, Ordering::SeqCst);
                    drop(decision);
                    admitted += 1;
                }
            });
        }
    });
    assert!(exports.blocking_try_acquire_n("key", 3).is_ok());
}

#[tokio::test]
async fn what_makes_no_sense_for_holds_is_an_error() {
    let exports = limiter(1);
    let mut held = exports.try_acquire("key").await.unwrap();
    held.settle(0);
    assert_eq!(remaining(&exports).await, 0);
    let refunded = exports.refund("key", 1).await.unwrap_err().to_string();
    assert!(refunded.contains("a call releases its permits itself"), "{refunded}");
    let paused = exports.pause("key", Duration::from_secs(1)).await.unwrap_err().to_string();
    assert!(paused.contains("cannot be paused"), "{paused}");
    assert!(Registry::in_memory().limiter("none", ConcurrencyLimit::new(0)).is_err());
}
