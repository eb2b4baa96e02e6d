//! Calls that wait for a window queue up, and only the first of them retries.

use std::pin::pin;
use std::time::Duration;

use ratelimits::{
    Decision, Error, FixedWindow, Limiter, Policy, Registry, SlidingWindow, TokenBucket, count_limit,
    rate_limit,
};
use tokio::time::{Instant, advance, sleep, timeout};

use crate::concurrent::{Timed, acquire_all};
use crate::dropped_waiters::{Acquiring, poll};

const SECOND: Duration = Duration::from_secs(1);

fn windows() -> [Policy; 4] {
    let sliding = SlidingWindow::new(3, SECOND);
    let fixed = FixedWindow::new(3, SECOND);
    [fixed.into(), fixed.aligned().into(), sliding.into(), sliding.precision(SECOND / 4).into()]
}

fn limiter(policy: Policy) -> Limiter {
    Registry::in_memory().limiter("a", policy).unwrap()
}

/// Asserts that all calls are admitted, in order.
async fn assert_served_in_order(calls: impl IntoIterator<Item = Timed<Result<Decision, Error>>>) {
    let mut last = Duration::ZERO;
    for call in calls {
        let (decision, elapsed) = call.await.unwrap();
        decision.unwrap();
        assert!(elapsed >= last);
        last = elapsed;
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_are_served_in_order() {
    for policy in windows() {
        let limiter = limiter(policy);
        limiter.peek(()).await.unwrap();
        let mut last = Duration::ZERO;
        for (i, call) in acquire_all(&limiter, 100, Duration::MAX).into_iter().enumerate() {
            let (decision, elapsed) = call.await.unwrap();
            assert_eq!(decision.unwrap().waited, elapsed, "{policy:?}");
            // Three a second. The counter may refuse a little longer.
            let second = elapsed.as_secs() as usize;
            assert!(elapsed >= last && second >= i / 3, "{policy:?}: {i} at {elapsed:?}");
            if policy != windows()[3] {
                assert_eq!(second, i / 3, "{policy:?}: {i} at {elapsed:?}");
            }
            last = elapsed;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn timed_out_waiter_gets_exact_retry_after() {
    for policy in windows() {
        let limiter = limiter(policy);
        limiter.try_acquire_n((), 3).await.unwrap();
        // Three are served after one second and three after two, so the fifth is still queued after one and a half.
        let mut others = acquire_all(&limiter, 4, Duration::MAX);
        tokio::task::yield_now().await;
        let timed_out = acquire_all(&limiter, 1, SECOND * 3 / 2).remove(0);
        tokio::task::yield_now().await;
        others.extend(acquire_all(&limiter, 1, Duration::MAX));
        let (refused, elapsed) = timed_out.await.unwrap();
        let error = refused.unwrap_err();
        assert_eq!(elapsed, SECOND * 3 / 2, "{policy:?}");
        let Error::Limited(limited) = &error else { panic!("{policy:?}: {error}") };
        assert_eq!(limited.decision().waited, elapsed);
        let refused = limiter.try_acquire(()).await.unwrap_err();
        assert_eq!(error.retry_after().unwrap(), refused.retry_after().unwrap());
        assert_served_in_order(others).await;
    }
}

#[tokio::test(start_paused = true)]
async fn hopeless_calls_are_refused_at_once() {
    let limiter = limiter(FixedWindow::new(1, SECOND).into());
    limiter.try_acquire(()).await.unwrap();
    let first = acquire_all(&limiter, 1, Duration::MAX).remove(0);
    tokio::task::yield_now().await;
    let begin = Instant::now();
    let error = limiter.acquire_timeout((), SECOND / 2).await.unwrap_err();
    assert_eq!((begin.elapsed(), error.retry_after()), (Duration::ZERO, Some(SECOND)));
    let error = limiter.acquire_n((), 2).await.unwrap_err();
    assert_eq!((begin.elapsed(), error.retry_after()), (Duration::ZERO, None));
    first.await.unwrap().0.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropped_waiters_do_not_stop_the_queue() {
    for policy in windows() {
        let limiter = limiter(policy);
        limiter.try_acquire_n((), 3).await.unwrap();
        let mut calls = acquire_all(&limiter, 20, Duration::MAX);
        sleep(SECOND / 2).await;
        // The first, and some from the middle.
        for index in [16, 7, 3, 0] {
            calls.remove(index).abort();
        }
        assert_served_in_order(calls).await;
    }
}

#[tokio::test(start_paused = true)]
async fn refunds_and_resets_wake_the_queue() {
    let minute = 60 * SECOND;
    for policy in [FixedWindow::new(2, minute).into(), Policy::from(SlidingWindow::new(2, minute))] {
        let limiter = limiter(policy);
        let first = limiter.try_acquire_n((), 2).await.unwrap();
        let calls = acquire_all(&limiter, 7, Duration::MAX);
        sleep(SECOND).await;
        first.refund().await.unwrap();
        sleep(SECOND).await;
        limiter.refund((), 1).await.unwrap();
        sleep(SECOND).await;
        limiter.reset(()).await.unwrap();
        for (call, expected) in calls.into_iter().zip([1, 1, 2, 3, 3, 63, 63]) {
            assert_eq!(call.await.unwrap().0.unwrap().waited, SECOND * expected, "{policy:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn keys_queue_separately() {
    let limiter = limiter(FixedWindow::new(1, SECOND).into());
    let begin = Instant::now();
    let calls: Vec<_> = (0..200u32)
        .map(|i| {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.acquire(i % 50).await })
        })
        .collect();
    for (i, call) in calls.into_iter().enumerate() {
        let waited = call.await.unwrap().unwrap().waited;
        assert_eq!(waited.as_secs(), i as u64 / 50);
    }
    assert_eq!(begin.elapsed(), 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn unpolled_waiter_does_not_block_the_queue() {
    for policy in windows() {
        let limiter = limiter(policy);
        limiter.try_acquire_n((), 3).await.unwrap();
        let wait = limiter.try_acquire(()).await.unwrap_err().retry_after().unwrap();
        let unpolled = limiter.clone();
        let mut unpolled: Acquiring = Box::pin(async move { unpolled.acquire(()).await });
        assert!(poll(&mut unpolled).is_pending());
        for call in acquire_all(&limiter, 2, Duration::MAX) {
            let served = timeout(60 * SECOND, call).await;
            let (decision, elapsed) = served.unwrap_or_else(|_| panic!("{policy:?}: blocked")).unwrap();
            decision.unwrap();
            assert!(elapsed >= wait && elapsed <= wait + SECOND, "{policy:?}: {elapsed:?}");
        }
        drop(unpolled);
    }
}

#[tokio::test(start_paused = true)]
async fn newcomer_wakes_the_queue_after_a_refund() {
    let minute = 60 * SECOND;
    for policy in [FixedWindow::new(1, minute).into(), Policy::from(SlidingWindow::new(1, minute))] {
        let limiter = limiter(policy);
        let first = limiter.try_acquire(()).await.unwrap();
        let mut calls = acquire_all(&limiter, 1, Duration::MAX);
        sleep(SECOND).await;
        first.refund().await.unwrap();
        calls.extend(acquire_all(&limiter, 1, Duration::MAX));
        for (call, expected) in calls.into_iter().zip([SECOND, minute]) {
            let (decision, elapsed) = call.await.unwrap();
            assert_eq!((decision.unwrap().waited, elapsed), (expected, expected), "{policy:?}");
        }
    }
}

#[rate_limit("1/s", 1, timeout = "10s")]
#[count_limit(100, "1h")]
async fn bucket_and_window() -> Result<(), Error> {
    Ok(())
}

/// The bucket alone could reserve, but with the window beside it the call queues.
#[tokio::test(start_paused = true)]
async fn stacks_with_a_window_do_not_overtake_waiting_calls() {
    bucket_and_window().await.unwrap();
    let mut waiting = pin!(bucket_and_window());
    assert!(timeout(Duration::ZERO, &mut waiting).await.is_err());
    advance(SECOND).await;
    assert!(timeout(Duration::ZERO, bucket_and_window()).await.is_err());
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn newcomers_do_not_overtake_calls_that_wait_for_a_window() {
    for policy in windows() {
        let limiter = limiter(policy);
        limiter.acquire_n((), 3).await.unwrap();
        let mut waiting = pin!(limiter.acquire(()));
        assert!(timeout(Duration::ZERO, &mut waiting).await.is_err());
        advance(2 * SECOND).await;
        assert!(timeout(Duration::ZERO, limiter.acquire(())).await.is_err(), "{policy:?}");
        waiting.await.unwrap();
    }
}

#[rate_limit("1/s", 1, name = "queue.bucket", timeout = "1m")]
#[count_limit(100, "1h", name = "queue.window")]
async fn queues_for_the_bucket() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn queue_moves_up_when_a_reservation_is_dropped() {
    let registry = Registry::in_memory();
    let bucket = registry.limiter("queue.bucket", TokenBucket::per_second(1).burst(1)).unwrap();
    let bucket = bucket.function(concat!(module_path!(), "::queues_for_the_bucket"));
    bucket.try_acquire(()).await.unwrap();
    let mut reserved: Acquiring = Box::pin(async move { bucket.acquire(()).await });
    assert!(poll(&mut reserved).is_pending());

    let begin = Instant::now();
    let mut queued = pin!(registry.scope(queues_for_the_bucket()));
    assert!(timeout(SECOND / 2, &mut queued).await.is_err());
    drop(reserved);
    queued.await.unwrap();
    assert!(begin.elapsed() < SECOND * 3 / 2, "{:?}", begin.elapsed());
}
