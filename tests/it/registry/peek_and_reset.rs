//! Looking at the state of a key, resetting it and refunding to it, on both stores.

use std::time::Duration;

use ratelimits::{FixedWindow, LeakyBucket, Policy, Rate, SlidingWindow, TokenBucket};

use super::{MINUTE, limiter};
use crate::support::registries::on_each_registry;

#[tokio::test]
async fn refund_and_reset() {
    on_each_registry(async |registry, _| {
        let limiter = limiter(&registry, "refunds", 5);
        let first = limiter.try_acquire_n("a", 3).await.unwrap();
        let _second = limiter.try_acquire("a").await.unwrap();
        first.refund().await.unwrap();
        assert_eq!(limiter.peek("a").await.unwrap().remaining, 4);
        limiter.refund("a", 100).await.unwrap();
        assert_eq!(limiter.peek("a").await.unwrap().remaining, 5);
        limiter.try_acquire_n("a", 5).await.unwrap();
        limiter.reset("a").await.unwrap();
        assert_eq!(limiter.peek("a").await.unwrap().remaining, 5);
    })
    .await;
}

#[tokio::test]
async fn peek_finds_what_a_call_would_get() {
    let day = 1440 * MINUTE;
    let policies: [Policy; 8] = [
        TokenBucket::new(Rate::new(3, day)).burst(3).into(),
        TokenBucket::new(Rate::new(3, day)).burst(3).interval_refill().into(),
        TokenBucket::new(Rate::new(3, day)).burst(3).adjustable().into(),
        LeakyBucket::draining(3, day).into(),
        FixedWindow::new(3, day).into(),
        FixedWindow::new(3, 3000 * day).aligned().into(),
        SlidingWindow::new(3, day).into(),
        SlidingWindow::new(3, day).precision(day / 24).into(),
    ];
    on_each_registry(async |registry, source| {
        for (i, policy) in policies.into_iter().enumerate() {
            let limiter = registry.limiter(&format!("peeked {i}"), policy).unwrap();
            for left in [3, 2, 1] {
                for _ in 0..2 {
                    let peeked = limiter.peek("a").await.unwrap();
                    assert_eq!((peeked.remaining, peeked.retry_after), (left, None), "{policy:?}");
                    assert!(peeked.policies()[0].admitted);
                }
                limiter.try_acquire("a").await.unwrap();
            }
            let peeked = limiter.peek("a").await.unwrap();
            assert_eq!((peeked.limit, peeked.remaining, peeked.source), (3, 0, source), "{policy:?}");
            assert!(!peeked.policies()[0].admitted, "{policy:?}");
            let refused = limiter.try_acquire("a").await.unwrap_err().retry_after().unwrap();
            assert!(peeked.retry_after.unwrap() >= refused && refused > Duration::ZERO, "{policy:?}");
            peeked.refund().await.unwrap();
            assert_eq!(limiter.peek("a").await.unwrap().remaining, 0, "{policy:?}");
        }
    })
    .await;
}

/// As it would if it did not wait.
#[tokio::test]
async fn peek_at_a_queue_finds_whether_a_call_would_have_to_wait() {
    on_each_registry(async |registry, _| {
        let policy = LeakyBucket::new(3, Rate::new(1, 60 * MINUTE)).queue();
        let limiter = registry.limiter("peeked queue", policy).unwrap();
        assert_eq!(limiter.peek("a").await.unwrap().retry_after, None);
        limiter.try_acquire("a").await.unwrap();
        let peeked = limiter.peek("a").await.unwrap();
        assert_eq!((peeked.remaining, peeked.policies()[0].admitted), (3, false));
        assert!(peeked.retry_after.unwrap() <= 60 * MINUTE);
    })
    .await;
}

#[tokio::test]
async fn reset_tells_whether_there_was_state() {
    let day = 1440 * MINUTE;
    let policies: [Policy; 5] = [
        TokenBucket::new(Rate::new(3, day)).burst(3).into(),
        TokenBucket::new(Rate::new(3, day)).burst(3).adjustable().into(),
        TokenBucket::new(Rate::new(3, day)).warmup(day).into(),
        FixedWindow::new(3, day).into(),
        SlidingWindow::new(3, day).into(),
    ];
    on_each_registry(async |registry, _| {
        for (i, policy) in policies.into_iter().enumerate() {
            let limiter = registry.limiter(&format!("states {i}"), policy).unwrap();
            assert!(!limiter.reset("a").await.unwrap(), "{policy:?}");
            limiter.try_acquire("a").await.unwrap();
            assert!(!limiter.reset("b").await.unwrap(), "{policy:?}");
            assert!(limiter.reset("a").await.unwrap(), "{policy:?}");
            limiter.peek("a").await.unwrap();
            assert!(!limiter.reset("a").await.unwrap(), "{policy:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn receipts_expire_on_reset() {
    let second = Duration::from_secs(1);
    let policies: [Policy; 4] = [
        FixedWindow::new(3, MINUTE).into(),
        FixedWindow::new(3, 60 * 24 * MINUTE).aligned().into(),
        SlidingWindow::new(3, MINUTE).into(),
        SlidingWindow::new(3, 1000 * second).precision(500 * second).into(),
    ];
    on_each_registry(async |registry, _| {
        for (i, policy) in policies.into_iter().enumerate() {
            let limiter = registry.limiter(&format!("reset {i}"), policy).unwrap();
            let before = limiter.try_acquire_n("a", 3).await.unwrap();
            limiter.reset("a").await.unwrap();
            limiter.try_acquire_n("a", 3).await.unwrap();
            before.refund().await.unwrap();
            assert!(limiter.try_acquire("a").await.unwrap_err().is_limited(), "{policy:?}");
        }
    })
    .await;
}

/// A bucket's state does not tell that it was reset: what `Limiter::reset` documents.
#[tokio::test]
async fn receipts_of_a_bucket_outlive_a_reset_by_one_capacity() {
    on_each_registry(async |registry, _| {
        let policy = TokenBucket::new(Rate::new(1, 60 * MINUTE)).burst(6);
        let limiter = registry.limiter("receipts", policy).unwrap();
        let mut receipts = Vec::new();
        for _ in 0..3 {
            receipts.push(limiter.try_acquire_n("a", 2).await.unwrap());
        }
        limiter.reset("a").await.unwrap();
        limiter.try_acquire_n("a", 6).await.unwrap();
        let mut admitted = 0;
        for receipt in receipts {
            receipt.refund().await.unwrap();
            while limiter.try_acquire("a").await.is_ok() {
                admitted += 1;
            }
        }
        assert!((1..=6).contains(&admitted), "{admitted}");
    })
    .await;
}

#[tokio::test]
async fn peek_and_zero_cost_have_no_receipt() {
    on_each_registry(async |registry, _| {
        let limiter = limiter(&registry, "peek", 5);
        limiter.try_acquire_n("a", 3).await.unwrap();
        limiter.peek("a").await.unwrap().refund().await.unwrap();
        limiter.try_acquire_n("a", 0).await.unwrap().refund().await.unwrap();
        assert_eq!(limiter.peek("a").await.unwrap().remaining, 2);
    })
    .await;
}
