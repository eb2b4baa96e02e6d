//! Holds in process: beside calls that wait, and after a reset.

use std::time::Duration;

use ratelimits::{ConcurrencyLimit, Error, Limiter, Registry, concurrency_limit, rate_limit};
use tokio::time::{advance, timeout};

#[rate_limit("1/s", burst = 1, key = user, name = "holds.rate", timeout = "5s")]
#[concurrency_limit(3, key = user, name = "holds.shadow", shadow)]
async fn call(user: &str, shadow: &Limiter) -> Result<u64, Error> {
    Ok(shadow.peek(user).await?.remaining)
}

#[tokio::test(start_paused = true)]
async fn shadow_beside_a_call_that_waits_is_released_once() {
    let registry = Registry::in_memory();
    let shadow = registry.policy("holds.shadow").unwrap().limiter().unwrap();
    let left = async || shadow.peek("ada").await.unwrap().remaining;
    let calls = async {
        let held = shadow.try_acquire("ada").await.unwrap();
        // All but the first one wait.
        for _ in 0..3 {
            assert_eq!(call("ada", &shadow).await.unwrap(), 1);
            assert_eq!(left().await, 2);
        }
        assert!(timeout(Duration::from_millis(500), call("ada", &shadow)).await.is_err());
        assert_eq!(left().await, 2, "a call was dropped while it waited");
        drop(held);
        assert_eq!(left().await, 3);
    };
    registry.scope(calls).await;
}

#[tokio::test(start_paused = true)]
async fn holds_from_before_a_reset_free_no_other_hold() {
    let exports = Registry::in_memory().limiter("exports", ConcurrencyLimit::new(2)).unwrap();
    let before = [exports.try_acquire("key").await.unwrap(), exports.try_acquire("key").await.unwrap()];
    assert!(exports.reset("key").await.unwrap());
    advance(Duration::from_micros(1)).await;
    let _after = [exports.try_acquire("key").await.unwrap(), exports.try_acquire("key").await.unwrap()];
    drop(before);
    assert_eq!(exports.peek("key").await.unwrap().remaining, 0);
}
