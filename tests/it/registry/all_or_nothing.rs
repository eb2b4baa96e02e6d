//! Decisions of several limiters, on both stores.

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ratelimits::{Error, FixedWindow, Rate, Registry, SlidingWindow, TokenBucket};

use super::{MINUTE, limiter};
use crate::support::registries::on_each_registry;

#[tokio::test]
async fn acquire_all_is_all_or_nothing() {
    on_each_registry(async |registry, _| {
        let burst = registry.limiter("burst", TokenBucket::new(Rate::new(1, MINUTE)).burst(10)).unwrap();
        let daily = limiter(&registry, "daily", 2);
        let log = registry.limiter("log", SlidingWindow::new(3, MINUTE)).unwrap();
        let all = || [burst.charge("a"), daily.charge(("a", 7)), log.charge(())];
        let decision = registry.try_acquire_all(all()).await.unwrap();
        let names: Vec<_> = decision.policies().iter().map(|policy| &*policy.policy).collect();
        assert_eq!((names, decision.remaining), (vec!["burst", "daily", "log"], 1));
        registry.try_acquire_all(all()).await.unwrap();

        let Err(Error::Limited(limited)) = registry.try_acquire_all(all()).await else {
            panic!("not limited")
        };
        assert_eq!(limited.policy(), "daily");
        let remaining: Vec<_> = limited.decision().policies().iter().map(|policy| policy.remaining).collect();
        assert_eq!(remaining, [8, 0, 1]);
        assert_eq!(burst.peek("a").await.unwrap().remaining, 8);
        assert_eq!(log.peek(()).await.unwrap().remaining, 1);

        decision.refund().await.unwrap();
        registry.try_acquire_all(all()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn longest_retry_after_is_reported() {
    on_each_registry(async |registry, _| {
        let short = registry.limiter("short", FixedWindow::new(1, MINUTE)).unwrap();
        let long = registry.limiter("long", FixedWindow::new(1, 60 * MINUTE)).unwrap();
        let never = registry.limiter("never", FixedWindow::new(1, MINUTE / 2)).unwrap();
        let charge = |cost| [short.charge("a"), long.charge("a"), never.charge_n("b", cost)];
        registry.try_acquire_all(charge(1)).await.unwrap();
        let error = registry.try_acquire_all(charge(1)).await.unwrap_err();
        assert!(matches!(&error, Error::Limited(limited) if limited.policy() == "long"), "{error}");
        let error = registry.try_acquire_all(charge(2)).await.unwrap_err();
        assert!(matches!(&error, Error::Limited(limited) if limited.policy() == "never"), "{error}");
        assert_eq!(error.retry_after(), None);
    })
    .await;
}

#[tokio::test]
async fn charges_on_one_key_add_up() {
    on_each_registry(async |registry, _| {
        let limiter = limiter(&registry, "twice", 5);
        let charge = |cost| limiter.charge_n("a", cost);
        assert!(registry.try_acquire_all([charge(3), charge(3)]).await.unwrap_err().is_limited());
        let decision = registry.try_acquire_all([charge(2), charge(3)]).await.unwrap();
        assert_eq!(decision.remaining, 0);
        decision.refund().await.unwrap();
        assert_eq!(limiter.peek("a").await.unwrap().remaining, 5);

        let bucket = TokenBucket::new(Rate::new(1, MINUTE)).burst(10);
        let bucket = registry.limiter("bucket", bucket).unwrap();
        bucket.try_acquire_n("a", 10).await.unwrap();
        let error =
            registry.try_acquire_all([2, 2].map(|cost| bucket.charge_n("a", cost))).await.unwrap_err();
        // Until both fit.
        assert!(error.retry_after().is_some_and(|wait| wait > 3 * MINUTE), "{error}");

        let other = registry.limiter("twice", FixedWindow::new(9, MINUTE)).unwrap();
        let error = registry.try_acquire_all([charge(1), other.charge("a")]).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
    })
    .await;
}

#[tokio::test]
async fn empty_and_mixed_lists_are_invalid() {
    let (one, other) = (Registry::in_memory(), Registry::in_memory());
    let charges = [limiter(&one, "a", 1).charge(()), limiter(&other, "a", 1).charge(())];
    assert!(matches!(one.try_acquire_all(charges).await, Err(Error::Invalid(_))));
    assert!(matches!(one.try_acquire_all([]).await, Err(Error::Invalid(_))));
    // Also if the store of this one has a key of the same name.
    limiter(&one, "a", 2).try_acquire(()).await.unwrap();
    let single = limiter(&other, "a", 2).charge(());
    assert!(matches!(one.try_acquire_all([single]).await, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn all_that_a_list_has_taken_is_refunded() {
    on_each_registry(async |registry, _| {
        let limiters = ["first", "second"].map(|name| limiter(&registry, name, 5));
        for _ in 0..2 {
            let charges = limiters.each_ref().map(|limiter| limiter.charge_n("a", 3));
            registry.try_acquire_all(charges).await.unwrap().refund().await.unwrap();
            for limiter in &limiters {
                assert_eq!(limiter.peek("a").await.unwrap().remaining, 5);
            }
        }
    })
    .await;
}

#[test]
fn charges_are_asked_once_the_call_is_polled_and_not_kept() {
    let registry = Registry::in_memory();
    let limiter = limiter(&registry, "a", 5);
    let (asked, held) = (&Cell::new(0), Arc::new(()));
    let charges = || {
        let (held, limiter) = (Arc::clone(&held), &limiter);
        [1, 2].into_iter().map(move |n| {
            let _ = &held;
            asked.set(asked.get() + 1);
            limiter.charge_n((), n)
        })
    };
    drop(registry.try_acquire_all(charges()));
    assert_eq!(asked.get(), 0);
    let mut call = pin!(registry.try_acquire_all(charges()));
    let mut poll = || call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Ok(decision)) = poll() else { panic!("it is decided at once") };
    assert_eq!((asked.get(), decision.remaining, Arc::strong_count(&held)), (2, 2, 1));
    let again = catch_unwind(AssertUnwindSafe(|| poll().is_ready()));
    assert!(again.is_err(), "as an async function does");
    assert_eq!(asked.get(), 2);
}
