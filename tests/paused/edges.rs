//! What a timeout, a full line and a cost of nothing come to.

use std::time::Duration;

use ratelimits::{
    Error, FixedWindow, LeakyBucket, Limiter, Policy, Rate, Registry, SlidingWindow, Source, TokenBucket,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, advance, sleep};

use crate::calls::{at_once, take_all};
use crate::random::Random;

const SECOND: Duration = Duration::from_secs(1);

fn buckets() -> [Policy; 5] {
    let bucket = TokenBucket::new(Rate::new(3, SECOND));
    [
        bucket.burst(2).into(),
        bucket.burst(2).interval_refill().into(),
        bucket.burst(2).borrow().into(),
        bucket.warmup(SECOND).into(),
        LeakyBucket::new(20, Rate::new(3, SECOND)).queue().into(),
    ]
}

fn all() -> Vec<Policy> {
    let windows = [FixedWindow::new(2, SECOND).into(), Policy::from(SlidingWindow::new(2, SECOND))];
    buckets().into_iter().chain(windows).collect()
}

fn wait(limiter: &Limiter, calls: usize) -> Vec<JoinHandle<(Duration, Duration)>> {
    at_once(calls, || {
        let limiter = limiter.clone();
        async move { limiter.acquire((), 1).await.unwrap().waited }
    })
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_fit_is_refused_at_once_and_takes_nothing() {
    let mut random = Random::seeded();
    for policy in buckets() {
        let limiter = Registry::in_memory().limiter("a", policy).unwrap();
        let waiting = wait(&limiter, 10);
        tokio::task::yield_now().await;
        for _ in 0..1000 {
            advance(Duration::from_micros(random.below(100))).await;
            let (begin, before) = (Instant::now(), limiter.peek(()).await.unwrap());
            let cost = random.between(1, 2);
            let wait = limiter.try_acquire((), cost).await.unwrap_err().retry_after().unwrap();
            let short = Duration::from_micros(random.below(wait.as_micros() as u64));
            // A queue tells when there is room, and has some.
            let queue = matches!(policy, Policy::LeakyBucket(_));
            let error = limiter.acquire_timeout((), cost, short).await.unwrap_err();
            assert!(
                error.is_limited() && (queue || error.retry_after() == Some(wait)),
                "{policy:?}: {error}"
            );
            let after = limiter.peek(()).await.unwrap();
            assert_eq!((before.remaining, before.reset_after), (after.remaining, after.reset_after));
            assert_eq!(begin.elapsed(), Duration::ZERO);
        }
        // One that just fits waits for just so long.
        let wait = limiter.try_acquire((), 1).await.unwrap_err().retry_after().unwrap();
        assert_eq!(limiter.acquire_timeout((), 1, wait).await.unwrap().waited, wait);
        for call in waiting {
            call.await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn so_many_wait_and_no_more() {
    for policy in all() {
        let registry = Registry::builder().max_waiters(3).in_memory();
        let limiter = registry.limiter("a", policy).unwrap();
        take_all(&limiter).await;
        let mut waiting = Vec::new();
        // Several may be done at once.
        let three = async |waiting: &mut Vec<JoinHandle<(Duration, Duration)>>| {
            tokio::task::yield_now().await;
            waiting.retain(|call| !call.is_finished());
            waiting.extend(wait(&limiter, 3 - waiting.len()));
            tokio::task::yield_now().await;
        };
        three(&mut waiting).await;
        let refused = async || {
            let error = limiter.acquire((), 1).await.unwrap_err();
            assert!(error.is_limited(), "{policy:?}: {error}");
            error.retry_after().unwrap()
        };
        let begin = Instant::now();
        let truth = refused().await;
        assert!(truth > Duration::ZERO);
        assert_eq!(begin.elapsed(), Duration::ZERO, "{policy:?}");
        // It counts for all keys, and lets pass who need not wait.
        limiter.acquire("another", 1).await.unwrap();

        // Room when one is dropped,
        waiting.pop().unwrap().abort();
        three(&mut waiting).await;
        refused().await;
        // and when one is done.
        waiting.remove(0).await.unwrap();
        three(&mut waiting).await;
        let truth = refused().await;
        if !is_window(&policy) {
            for call in waiting {
                call.abort();
            }
            // A lone caller that comes back then gets in.
            sleep(truth).await;
            limiter.try_acquire((), 1).await.unwrap();
        }
    }
}

fn is_window(policy: &Policy) -> bool {
    matches!(policy, Policy::FixedWindow(_) | Policy::SlidingWindow(_))
}

#[tokio::test(start_paused = true)]
async fn nobody_may_wait_where_no_waiters_are_allowed() {
    for policy in all() {
        let limiter = Registry::builder().max_waiters(0).in_memory().limiter("a", policy).unwrap();
        // Who need not wait may come as one that would.
        assert_eq!(limiter.acquire((), 1).await.unwrap().waited, Duration::ZERO, "{policy:?}");
        take_all(&limiter).await;
        let begin = Instant::now();
        let wait = limiter.acquire((), 1).await.unwrap_err().retry_after().unwrap();
        assert_eq!(begin.elapsed(), Duration::ZERO, "{policy:?}");
        advance(wait).await;
        assert_eq!(limiter.acquire((), 1).await.unwrap().waited, Duration::ZERO, "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cost_of_nothing_waits_for_nobody_and_one_too_high_is_refused_at_once() {
    for policy in all() {
        let limiter = Registry::in_memory().limiter("a", policy).unwrap();
        take_all(&limiter).await;
        let begin = Instant::now();
        assert_eq!(limiter.acquire((), 0).await.unwrap().source, Source::Skipped);
        let Some(most) = policy.spec().unwrap().max_cost() else { continue };
        let before = limiter.peek(()).await.unwrap();
        let error = limiter.acquire((), most + 1).await.unwrap_err();
        assert!(matches!(error, Error::Limited(_)) && error.retry_after().is_none(), "{policy:?}: {error}");
        let after = limiter.peek(()).await.unwrap();
        assert_eq!((before.remaining, before.reset_after), (after.remaining, after.reset_after));
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_are_served_in_order_and_told_how_long_they_waited() {
    for policy in buckets() {
        let policy = match policy {
            Policy::LeakyBucket(_) => LeakyBucket::new(100, Rate::new(3, SECOND)).queue().into(),
            other => other,
        };
        let limiter = Registry::in_memory().limiter("a", policy).unwrap();
        limiter.peek(()).await.unwrap();
        let calls = at_once(100, || {
            let limiter = limiter.clone();
            async move {
                let slot = limiter.try_acquire((), 1).await;
                let slot = slot.map_or_else(|error| error.retry_after().unwrap(), |free| free.waited);
                if slot.is_zero() {
                    return Duration::ZERO;
                }
                let waited = limiter.acquire((), 1).await.unwrap().waited;
                assert_eq!(waited, slot);
                waited
            }
        });
        let mut last = (Duration::ZERO, Duration::ZERO);
        for call in calls {
            let (waited, at) = call.await.unwrap();
            // Timers come once in a millisecond.
            assert!(at >= waited && at <= waited + Duration::from_millis(1), "{policy:?}: {waited:?} {at:?}");
            assert!(waited >= last.0 && at >= last.1);
            last = (waited, at);
        }
        assert!(last.0 > 20 * SECOND);
    }
}
