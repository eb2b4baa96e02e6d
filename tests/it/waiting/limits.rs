//! Timeouts that are too short, and more callers than may wait.

use std::time::Duration;

use ratelimits::{Error, FixedWindow, Policy, Rate, Registry, TokenBucket};

use super::{AcquireFuture, CountingServer, acquire, poll, warm_up};
use crate::support::random::Random;
use crate::support::registries::LONG_DEADLINE;

#[tokio::test]
async fn short_timeouts_cost_one_call_and_no_permits() {
    let server = CountingServer::start().await;
    let bucket = TokenBucket::new(Rate::new(1, Duration::from_secs(60))).burst(2);
    let mut random = Random::new(7);
    for (name, policy) in [("a", bucket), ("b", bucket.interval_refill()), ("c", bucket.borrow())] {
        server.flush().await;
        let limiter = server.registry().limiter(name, policy).unwrap();
        warm_up(&limiter).await;
        limiter.try_acquire_n((), 2).await.unwrap();
        // Others wait meanwhile.
        let mut waiting: Vec<AcquireFuture> = (0..20).map(|_| acquire(&limiter, 1)).collect();
        let calls = server.calls().await;
        waiting.iter_mut().for_each(|call| assert!(poll(call).is_pending()));
        server.wait_for_calls(calls + 20).await;
        let (held, calls) = (server.stored().await, server.calls().await);
        let tries: Vec<_> = (0..1000)
            .map(|_| {
                let (limiter, cost) = (limiter.clone(), random.between(1, 2));
                let timeout = Duration::from_millis(random.between(1, 5000));
                tokio::spawn(async move { limiter.acquire_n_timeout((), cost, timeout).await })
            })
            .collect();
        for call in tries {
            let error = call.await.unwrap().unwrap_err();
            assert!(error.is_limited() && error.retry_after() > Some(Duration::from_secs(5)), "{error}");
        }
        assert_eq!((server.stored().await, server.calls().await), (held, calls + 1000));
    }
}

#[tokio::test]
async fn max_waiters_is_enforced() {
    let server = CountingServer::start().await;
    let minute = Duration::from_secs(60);
    let policies: [Policy; 2] =
        [TokenBucket::new(Rate::new(1, minute)).burst(1).into(), FixedWindow::new(1, minute).into()];
    for (i, policy) in policies.into_iter().enumerate() {
        let registry = Registry::builder()
            .max_waiters(3)
            .deadline(LONG_DEADLINE)
            .connect_lazy(&server.server.url())
            .unwrap();
        let limiter = registry.limiter(&format!("a{i}"), policy).unwrap();
        warm_up(&limiter).await;
        limiter.try_acquire(()).await.unwrap();
        let mut waiting: Vec<AcquireFuture> = (0..3).map(|_| acquire(&limiter, 1)).collect();
        waiting.iter_mut().for_each(|call| assert!(poll(call).is_pending()));
        // Until Redis has answered the first call for the window, for which the others wait.
        limiter.peek(()).await.unwrap();
        waiting.iter_mut().for_each(|call| assert!(poll(call).is_pending()));
        let error = limiter.acquire(()).await.unwrap_err();
        assert!(matches!(error, Error::Limited(_)) && error.retry_after().is_some(), "{error}");
        // One may wait once another is gone.
        waiting.pop();
        waiting.push(acquire(&limiter, 1));
        assert!(poll(&mut waiting[2]).is_pending());
        limiter.peek(()).await.unwrap();
        assert!(poll(&mut waiting[2]).is_pending());
        assert!(limiter.acquire(()).await.unwrap_err().is_limited());
    }
}
