//! Several attributes, and arguments of a call.

use ratelimits::{count_limit, rate_limit};
use tokio::task::yield_now;

use super::*;

#[rate_limit(1000, burst = 1000, key = key)]
#[concurrency_limit(1, key = key, name = "held")]
#[count_limit(2, "1d", key = key, fallback = |error| if error.is_limited() { Ok(0) } else { Err(error.into()) })]
async fn stacked(key: &str) -> AppResult<u8> {
    yield_now().await;
    Ok(1)
}

#[test]
fn a_refused_call_holds_and_is_charged_nothing() {
    isolated(async {
        let mut first = Box::pin(stacked("a"));
        assert!(poll(first.as_mut()).is_pending());
        // Refused by the hold, and not counted.
        for _ in 0..3 {
            assert_limited(stacked("a").await);
        }
        assert_eq!(first.await.unwrap(), 1);
        assert_eq!(stacked("a").await.unwrap(), 1);
        // Refused by the count, and no permit held.
        for _ in 0..3 {
            assert_eq!(stacked("a").await.unwrap(), 0);
            assert!(!is_held("a"));
        }
    });
}

#[concurrency_limit(3, key = key, cost = cost)]
async fn weighted(key: &str, cost: u64) -> AppResult<u64> {
    yield_now().await;
    Ok(cost)
}

#[concurrency_limit(most, key = key)]
async fn computed(key: &str, most: u64) -> AppResult<u64> {
    yield_now().await;
    Ok(most)
}

#[test]
fn costs_and_computed_numbers() {
    isolated(async {
        let mut two = Box::pin(weighted("a", 2));
        assert!(poll(two.as_mut()).is_pending());
        assert_limited(weighted("a", 2).await);
        assert_eq!(weighted("a", 1).await.unwrap(), 1);
        assert_eq!(two.await.unwrap(), 2);
        assert_eq!(weighted("a", 3).await.unwrap(), 3);
        assert!(weighted("a", 4).await.is_err_and(|error| error.is_limited()));
        // Each call compares with its own, and a lower one ends no call.
        let mut calls = [Box::pin(computed("a", 2)), Box::pin(computed("a", 2))];
        assert!(calls.iter_mut().all(|call| poll(call.as_mut()).is_pending()));
        assert_limited(computed("a", 1).await);
        assert_eq!(computed("a", 3).await.unwrap(), 3);
        let [first, second] = calls;
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (2, 2));
        assert_eq!(computed("a", 1).await.unwrap(), 1);
    });
}

#[concurrency_limit(1, key = key, name = "held", skip_when = skipped)]
async fn skipping(key: &str, skipped: bool) -> AppResult<bool> {
    yield_now().await;
    Ok(is_held(key))
}

#[concurrency_limit(1, key = key, shadow)]
async fn in_shadow(key: &str) -> AppResult<u8> {
    yield_now().await;
    Ok(1)
}

#[test]
fn skipped_calls_and_shadows() {
    isolated(async {
        assert!(!skipping("a", true).await.unwrap() && skipping("a", false).await.unwrap());
        let mut holding = Box::pin(skipping("a", false));
        assert!(poll(holding.as_mut()).is_pending());
        assert!(skipping("a", true).await.unwrap());
        assert_limited(skipping("a", false).await);
        drop(holding);
        let mut calls = [(); 3].map(|()| Box::pin(in_shadow("a")));
        assert!(calls.iter_mut().all(|call| poll(call.as_mut()).is_pending()));
        for call in calls {
            assert_eq!(call.await.unwrap(), 1);
        }
    });
}
