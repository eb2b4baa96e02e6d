//! Timeouts, `max_waiters`, and costs of zero or too much.

use std::time::Duration;

use ratelimits::{
    DecidedBy, Error, FixedWindow, LeakyBucket, Policy, Rate, Registry, SlidingWindow, TokenBucket,
};
use tokio::time::{Instant, advance, sleep};

use crate::concurrent::{Timed, acquire_all, exhaust, spawn_all};
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

#[tokio::test(start_paused = true)]
async fn too_short_timeouts_are_refused_uncharged() {
    let mut random = Random::seeded();
    for policy in buckets() {
        let limiter = Registry::in_memory().limiter("a", policy).unwrap();
        let waiting = acquire_all(&limiter, 10, Duration::MAX);
        tokio::task::yield_now().await;
        for _ in 0..1000 {
            advance(Duration::from_micros(random.below(100))).await;
            let (begin, before) = (Instant::now(), limiter.peek(()).await.unwrap());
            let cost = random.between(1, 2);
            let wait = limiter.try_acquire_n((), cost).await.unwrap_err().retry_after().unwrap();
            let short = Duration::from_micros(random.below(wait.as_micros() as u64));
            // The `retry_after` of a queue is the time until its line has room.
            let queue = matches!(policy, Policy::LeakyBucket(_));
            let error = limiter.acquire_n_timeout((), cost, short).await.unwrap_err();
            assert!(
                error.is_limited() && (queue || error.retry_after() == Some(wait)),
                "{policy:?}: {error}"
            );
            let after = limiter.peek(()).await.unwrap();
            assert_eq!((before.remaining, before.reset_after), (after.remaining, after.reset_after));
            assert_eq!(begin.elapsed(), Duration::ZERO);
        }
        // A wait that just fits is granted.
        let wait = limiter.try_acquire(()).await.unwrap_err().retry_after().unwrap();
        assert_eq!(limiter.acquire_timeout((), wait).await.unwrap().waited, wait);
        for call in waiting {
            call.await.unwrap().0.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn max_waiters_bounds_all_keys() {
    for policy in all() {
        let registry = Registry::builder().max_waiters(3).in_memory();
        let limiter = registry.limiter("a", policy).unwrap();
        exhaust(&limiter).await;
        let mut waiting = Vec::new();
        // Several may finish at the same time.
        let refill = async |waiting: &mut Vec<_>| {
            tokio::task::yield_now().await;
            waiting.retain(|call: &Timed<_>| !call.is_finished());
            waiting.extend(acquire_all(&limiter, 3 - waiting.len(), Duration::MAX));
            tokio::task::yield_now().await;
        };
        refill(&mut waiting).await;
        let refused = async || {
            let error = limiter.acquire(()).await.unwrap_err();
            assert!(error.is_limited(), "{policy:?}: {error}");
            error.retry_after().unwrap()
        };
        let begin = Instant::now();
        assert!(refused().await > Duration::ZERO);
        assert_eq!(begin.elapsed(), Duration::ZERO, "{policy:?}");
        // A call that need not wait passes.
        limiter.acquire("another").await.unwrap();

        // A dropped waiter frees its place, and so does one that is served.
        waiting.pop().unwrap().abort();
        refill(&mut waiting).await;
        refused().await;
        waiting.remove(0).await.unwrap().0.unwrap();
        refill(&mut waiting).await;
        let retry_after = refused().await;
        if !is_window(&policy) {
            for call in waiting {
                call.abort();
            }
            sleep(retry_after).await;
            limiter.try_acquire(()).await.unwrap();
        }
    }
}

fn is_window(policy: &Policy) -> bool {
    matches!(policy, Policy::FixedWindow(_) | Policy::SlidingWindow(_))
}

#[tokio::test(start_paused = true)]
async fn zero_max_waiters_refuse_every_wait() {
    for policy in all() {
        let limiter = Registry::builder().max_waiters(0).in_memory().limiter("a", policy).unwrap();
        assert_eq!(limiter.acquire(()).await.unwrap().waited, Duration::ZERO, "{policy:?}");
        exhaust(&limiter).await;
        let begin = Instant::now();
        let wait = limiter.acquire(()).await.unwrap_err().retry_after().unwrap();
        assert_eq!(begin.elapsed(), Duration::ZERO, "{policy:?}");
        advance(wait).await;
        assert_eq!(limiter.acquire(()).await.unwrap().waited, Duration::ZERO, "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn zero_and_unsatisfiable_costs_do_not_wait() {
    for policy in all() {
        let limiter = Registry::in_memory().limiter("a", policy).unwrap();
        exhaust(&limiter).await;
        let begin = Instant::now();
        assert_eq!(limiter.acquire_n((), 0).await.unwrap().source, DecidedBy::Skipped);
        let Some(max) = policy.spec().unwrap().max_cost() else { continue };
        let before = limiter.peek(()).await.unwrap();
        let error = limiter.acquire_n((), max + 1).await.unwrap_err();
        assert!(matches!(error, Error::Limited(_)) && error.retry_after().is_none(), "{policy:?}: {error}");
        let after = limiter.peek(()).await.unwrap();
        assert_eq!((before.remaining, before.reset_after), (after.remaining, after.reset_after));
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn waits_match_the_predicted_slots() {
    for policy in buckets() {
        let policy = match policy {
            Policy::LeakyBucket(_) => LeakyBucket::new(100, Rate::new(3, SECOND)).queue().into(),
            other => other,
        };
        let limiter = Registry::in_memory().limiter("a", policy).unwrap();
        limiter.peek(()).await.unwrap();
        let calls = spawn_all(100, || {
            let limiter = limiter.clone();
            async move {
                let slot = limiter.try_acquire(()).await;
                let slot = slot.map_or_else(|error| error.retry_after().unwrap(), |free| free.waited);
                if slot.is_zero() {
                    return Duration::ZERO;
                }
                let waited = limiter.acquire(()).await.unwrap().waited;
                assert_eq!(waited, slot);
                waited
            }
        });
        let mut last = (Duration::ZERO, Duration::ZERO);
        for call in calls {
            let (waited, at) = call.await.unwrap();
            // Timers have a resolution of one millisecond.
            assert!(at >= waited && at <= waited + Duration::from_millis(1), "{policy:?}: {waited:?} {at:?}");
            assert!(waited >= last.0 && at >= last.1);
            last = (waited, at);
        }
        assert!(last.0 > 20 * SECOND);
    }
}
