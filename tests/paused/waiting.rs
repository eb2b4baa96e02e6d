//! Waiting in this process: exact, in order, and nothing lost.

use std::time::Duration;

use ratelimits::{FixedWindow, LeakyBucket, Rate, Registry, TokenBucket};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_bucket_is_waited_for_in_order() {
    let limiter = Registry::in_memory().limiter("a", TokenBucket::per_second(10).burst(1)).unwrap();
    let begin = Instant::now();
    let calls: Vec<_> = (0..5u32)
        .map(|i| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let waited = limiter.acquire((), 1).await.unwrap().waited;
                (i, waited, begin.elapsed())
            })
        })
        .collect();
    for call in calls {
        let (i, waited, at) = call.await.unwrap();
        assert_eq!((waited, at), (Duration::from_millis(100) * i, Duration::from_millis(100) * i));
    }
}

#[tokio::test(start_paused = true)]
async fn those_behind_a_dropped_call_move_up() {
    let limiter = Registry::in_memory().limiter("a", TokenBucket::per_second(10).burst(1)).unwrap();
    let begin = Instant::now();
    let calls: Vec<_> = (0..5u32)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let waited = limiter.acquire((), 1).await.unwrap().waited;
                (waited, begin.elapsed())
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(150)).await;
    calls[2].abort();
    let mut told = Vec::new();
    for call in calls {
        told.push(call.await.ok().map(|(waited, at)| (waited.as_millis(), at.as_millis())));
    }
    assert_eq!(told, [Some((0, 0)), Some((100, 100)), None, Some((200, 200)), Some((300, 300))]);
}

#[tokio::test(start_paused = true)]
async fn a_window_is_waited_for_in_turn() {
    let limiter = Registry::in_memory().limiter("a", FixedWindow::new(2, Duration::from_secs(1))).unwrap();
    let begin = Instant::now();
    let calls: Vec<_> = (0..5u32)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let waited = limiter.acquire((), 1).await.unwrap().waited;
                (waited, begin.elapsed())
            })
        })
        .collect();
    for (call, seconds) in calls.into_iter().zip([0, 0, 1, 1, 2]) {
        let (waited, at) = call.await.unwrap();
        assert_eq!((waited.as_millis(), at.as_millis()), (seconds * 1000, seconds * 1000));
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_lets_so_many_wait() {
    let queue = LeakyBucket::new(2, Rate::per_second(10)).queue();
    let limiter = Registry::in_memory().limiter("a", queue).unwrap();
    let (a, b, c, d) = tokio::join!(
        limiter.acquire((), 1),
        limiter.acquire((), 1),
        limiter.acquire((), 1),
        limiter.acquire((), 1)
    );
    let waited = |decision: Result<ratelimits::Decision, _>| decision.unwrap().waited.as_millis();
    assert_eq!((waited(a), waited(b), waited(c)), (0, 100, 200));
    assert_eq!(d.unwrap_err().retry_after(), Some(Duration::from_millis(100)));
}
