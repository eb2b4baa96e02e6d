//! Timeouts that are too short, and more callers than may wait, on Redis.

use std::time::Duration;

use ratelimits::{Error, FixedWindow, Policy, Rate, Registry, TokenBucket};

use super::{Calling, Counted, acquire, poll, warm};
use crate::support::random::Random;
use crate::support::registries::PATIENT;

#[tokio::test]
async fn a_wait_that_does_not_fit_is_one_round_trip_and_takes_nothing() {
    let counted = Counted::start().await;
    let bucket = TokenBucket::new(Rate::new(1, Duration::from_secs(60))).burst(2);
    let mut random = Random::new(7);
    for (name, policy) in [("a", bucket), ("b", bucket.interval_refill()), ("c", bucket.borrow())] {
        counted.forget().await;
        let limiter = counted.registry().limiter(name, policy).unwrap();
        warm(&limiter).await;
        limiter.try_acquire((), 2).await.unwrap();
        // Others wait meanwhile, and some come and go.
        let mut waiting: Vec<Calling> = (0..20).map(|_| acquire(&limiter, 1)).collect();
        let calls = counted.calls().await;
        waiting.iter_mut().for_each(|call| assert!(poll(call).is_pending()));
        counted.reaches(calls + 20).await;
        let (held, calls) = (counted.held().await, counted.calls().await);
        let tries: Vec<_> = (0..1000)
            .map(|_| {
                let (limiter, cost) = (limiter.clone(), random.between(1, 2));
                let timeout = Duration::from_millis(random.between(1, 5000));
                tokio::spawn(async move { limiter.acquire_timeout((), cost, timeout).await })
            })
            .collect();
        for tried in tries {
            let error = tried.await.unwrap().unwrap_err();
            assert!(error.is_limited() && error.retry_after() > Some(Duration::from_secs(5)), "{error}");
        }
        assert_eq!((counted.held().await, counted.calls().await), (held, calls + 1000));
    }
}

#[tokio::test]
async fn so_many_wait_and_no_more() {
    let counted = Counted::start().await;
    let minute = Duration::from_secs(60);
    let policies: [Policy; 2] =
        [TokenBucket::new(Rate::new(1, minute)).burst(1).into(), FixedWindow::new(1, minute).into()];
    for (i, policy) in policies.into_iter().enumerate() {
        let registry =
            Registry::builder().max_waiters(3).deadline(PATIENT).connect_lazy(&counted.server.url()).unwrap();
        let limiter = registry.limiter(&format!("a{i}"), policy).unwrap();
        warm(&limiter).await;
        limiter.try_acquire((), 1).await.unwrap();
        let mut waiting: Vec<Calling> = (0..3).map(|_| acquire(&limiter, 1)).collect();
        waiting.iter_mut().for_each(|call| assert!(poll(call).is_pending()));
        // Until the first at the window has its answer, which the others wait for.
        limiter.peek(()).await.unwrap();
        waiting.iter_mut().for_each(|call| assert!(poll(call).is_pending()));
        let error = limiter.acquire((), 1).await.unwrap_err();
        assert!(matches!(error, Error::Limited(_)) && error.retry_after().is_some(), "{error}");
        // Room when one is gone.
        waiting.pop();
        waiting.push(acquire(&limiter, 1));
        assert!(poll(&mut waiting[2]).is_pending());
        limiter.peek(()).await.unwrap();
        assert!(poll(&mut waiting[2]).is_pending());
        assert!(limiter.acquire((), 1).await.unwrap_err().is_limited());
    }
}
