//! Refusals that no amount of waiting can help: `Error::is_unsatisfiable`.

use std::time::Duration;

use ratelimits::{
    DecidedBy, Error, FixedWindow, LeakyBucket, OnStoreError, Policy, Rate, Registry, RequestContext,
    SlidingWindow, TokenBucket, count_limit,
};

use crate::support::registries::on_each_registry;

const HOUR: Duration = Duration::from_secs(3600);

/// Every kind of policy, each with the largest cost that it can admit; `None` if that has no bound.
fn policies() -> [(Policy, Option<u64>); 11] {
    let rate = Rate::new(4, HOUR);
    let bucket = TokenBucket::new(rate).burst(4);
    [
        (bucket.into(), Some(4)),
        (TokenBucket::new(rate).burst_for(HOUR + HOUR / 2).into(), Some(6)),
        (bucket.interval_refill().into(), Some(4)),
        (bucket.borrow().into(), None),
        (TokenBucket::new(rate).warmup(HOUR).into(), None),
        (LeakyBucket::new(4, rate).into(), Some(4)),
        (LeakyBucket::new(4, rate).queue().into(), Some(5)),
        (FixedWindow::new(4, HOUR).into(), Some(4)),
        // Ends years from now.
        (FixedWindow::new(4, 3650 * 24 * HOUR).aligned().into(), Some(4)),
        (SlidingWindow::new(4, HOUR).into(), Some(4)),
        (SlidingWindow::new(4, HOUR).precision(HOUR / 4).into(), Some(4)),
    ]
}

/// Asserts that the error is limited, and whether that is for ever.
fn assert_limited(error: &Error, never: bool) {
    assert!(error.is_limited(), "{error}");
    assert_eq!((error.is_unsatisfiable(), error.retry_after().is_none()), (never, never), "{error}");
}

#[tokio::test]
async fn only_costs_that_never_fit_are_never() {
    on_each_registry(async |registry, _| {
        for (i, (policy, largest)) in policies().into_iter().enumerate() {
            let limiter = registry.limiter(&format!("never {i}"), policy).unwrap();
            let fits = largest.unwrap_or(9);
            for timeout in [Duration::ZERO, HOUR / 8, Duration::MAX] {
                for cost in largest.map(|largest| [largest + 1, 1 << 53, u64::MAX]).into_iter().flatten() {
                    let error = limiter.acquire_n_timeout("unused", cost, timeout).await.unwrap_err();
                    assert_limited(&error, true);
                }
            }
            limiter.acquire_n_timeout("used", fits, Duration::ZERO).await.unwrap();
            for cost in 1..=fits {
                for timeout in [Duration::ZERO, HOUR / 8] {
                    assert_limited(
                        &limiter.acquire_n_timeout("used", cost, timeout).await.unwrap_err(),
                        false,
                    );
                }
            }
            for cost in largest.map(|largest| [largest + 1, u64::MAX]).into_iter().flatten() {
                assert_limited(&limiter.try_acquire_n("used", cost).await.unwrap_err(), true);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn full_queues_and_too_many_waiters_are_not_never() {
    let registry = Registry::builder().max_waiters(1).in_memory();
    let rate = Rate::new(1, HOUR);
    let waiting = registry.limiter("bucket", TokenBucket::new(rate).burst(1)).unwrap();
    waiting.try_acquire(()).await.unwrap();
    let waiter = tokio::spawn({
        let waiting = waiting.clone();
        async move { waiting.acquire(()).await }
    });
    while waiting.peek(()).await.unwrap().reset_after <= HOUR {
        tokio::task::yield_now().await;
    }
    assert_limited(&waiting.acquire(()).await.unwrap_err(), false);
    waiter.abort();

    let queue = Registry::in_memory().limiter("queue", LeakyBucket::new(2, rate).queue()).unwrap();
    queue.try_acquire(()).await.unwrap();
    let waiters = [(); 2].map(|()| {
        let queue = queue.clone();
        tokio::spawn(async move { queue.acquire(()).await })
    });
    while queue.peek(()).await.unwrap().remaining > 0 {
        tokio::task::yield_now().await;
    }
    assert_limited(&queue.acquire(()).await.unwrap_err(), false);
    assert_limited(&queue.acquire_n((), 4).await.unwrap_err(), true);
    waiters.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn stacks_report_the_policy_that_never_fits() {
    on_each_registry(async |registry, _| {
        let small = registry.limiter("small", FixedWindow::new(2, HOUR / 60)).unwrap();
        let large = registry.limiter("large", FixedWindow::new(9, 24 * HOUR)).unwrap();
        let call = |cost| registry.try_acquire_all([large.charge_n((), 9), small.charge_n((), cost)]);
        call(2).await.unwrap();
        assert_limited(&call(2).await.unwrap_err(), false);
        let error = call(3).await.unwrap_err();
        assert_limited(&error, true);
        assert!(matches!(&error, Error::Limited(limited) if limited.policy() == "small"), "{error}");
        // Two charges of one key, of which each alone would fit.
        let twice = [small.charge("a"), small.charge_n("a", 2)];
        assert_limited(&registry.try_acquire_all(twice).await.unwrap_err(), true);
    })
    .await;
}

#[count_limit(1, "1h", key_type = USER, cost = cost)]
#[count_limit(2, "1h", cost = cost + 9, shadow)]
async fn with_shadow(cost: u64) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn shadows_are_not_never() {
    on_each_registry(async |registry, _| {
        let call = |cost| registry.scope(RequestContext::new().with_user("ann").scope(with_shadow(cost)));
        call(1).await.unwrap();
        assert_limited(&call(1).await.unwrap_err(), false);
        assert_limited(&call(2).await.unwrap_err(), true);
    })
    .await;
}

#[tokio::test]
async fn shares_of_a_policy_are_not_never() {
    let builder = Registry::builder().instances(4).on_store_error(OnStoreError::Local);
    let registry = builder.connect_lazy("redis://127.0.0.1:1").unwrap();
    let limiter = registry.limiter("a", FixedWindow::new(8, HOUR)).unwrap();
    assert_eq!(limiter.try_acquire_n((), 2).await.unwrap().source, DecidedBy::Local);
    assert_limited(&limiter.try_acquire(()).await.unwrap_err(), false);
    let exceeds_the_share = limiter.try_acquire_n((), 3).await.unwrap_err();
    assert!(matches!(exceeds_the_share, Error::Store(_)) && !exceeds_the_share.is_unsatisfiable());
    assert_limited(&limiter.try_acquire_n((), 9).await.unwrap_err(), true);
}

#[tokio::test]
async fn calls_that_need_a_change_are_never() {
    let registry = Registry::in_memory();
    let missing = registry.scope(with_shadow(1)).await.unwrap_err();
    assert!(matches!(missing, Error::MissingKey(_)) && missing.is_unsatisfiable() && !missing.is_limited());
    let invalid = registry.limiter("a", FixedWindow::new(0, HOUR)).unwrap_err();
    assert!(matches!(invalid, Error::Invalid(_)) && invalid.is_unsatisfiable() && !invalid.is_limited());
}
