//! Threads that block on a limiter, under a clock that only the test advances.

use std::time::Duration;

use ratelimits::{Decision, Error, FixedWindow, Limiter, Policy, Rate, Registry, SlidingWindow, TokenBucket};
use tokio::task::{JoinHandle, spawn_blocking, yield_now};
use tokio::time::advance;

use crate::log_capture::LogCapture;

const SECOND: Duration = Duration::from_secs(1);

fn block(limiter: &Limiter) -> JoinHandle<Result<Decision, Error>> {
    let limiter = limiter.clone();
    spawn_blocking(move || limiter.blocking_acquire(()))
}

/// Waits until this many seconds of permits are taken.
async fn reserved(limiter: &Limiter, seconds: u32) {
    while limiter.peek(()).await.unwrap().reset_after < SECOND * seconds {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn blocking_waiters_queue_with_awaiting_ones() {
    let limiter = Registry::in_memory().limiter("a", TokenBucket::per_second(1).burst(1)).unwrap();
    limiter.try_acquire(()).await.unwrap();
    let first = block(&limiter);
    reserved(&limiter, 2).await;
    let awaiting = limiter.clone();
    let second = tokio::spawn(async move { awaiting.acquire(()).await });
    reserved(&limiter, 3).await;
    let third = block(&limiter);
    reserved(&limiter, 4).await;
    for (i, call) in (1..).zip([first, second, third]) {
        assert!(!call.is_finished());
        advance(SECOND).await;
        assert_eq!(call.await.unwrap().unwrap().waited, SECOND * i);
    }
}

#[tokio::test(start_paused = true)]
async fn blocking_waiters_move_up() {
    let limiter = Registry::in_memory().limiter("a", TokenBucket::per_second(1).burst(1)).unwrap();
    limiter.try_acquire(()).await.unwrap();
    let awaiting = limiter.clone();
    let first = tokio::spawn(async move { awaiting.acquire(()).await });
    reserved(&limiter, 2).await;
    let second = block(&limiter);
    reserved(&limiter, 3).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    advance(SECOND).await;
    assert_eq!(second.await.unwrap().unwrap().waited, SECOND);
}

#[tokio::test(start_paused = true)]
async fn blocking_waiters_wait_for_windows() {
    let policies: [Policy; 3] = [
        FixedWindow::new(1, SECOND).into(),
        SlidingWindow::new(1, SECOND).into(),
        TokenBucket::new(Rate::new(1, SECOND)).interval_refill().into(),
    ];
    for policy in policies {
        let limiter = Registry::in_memory().limiter("a", policy).unwrap();
        limiter.try_acquire(()).await.unwrap();
        let log = LogCapture::default();
        let call = {
            let (limiter, log) = (limiter.clone(), log.clone());
            spawn_blocking(move || {
                tracing::subscriber::with_default(log, || limiter.blocking_acquire_timeout((), SECOND))
            })
        };
        while !log.messages().iter().any(|message| message == "call is waiting") {
            yield_now().await;
        }
        advance(SECOND).await;
        assert_eq!(call.await.unwrap().unwrap().waited, SECOND, "{policy:?}");
    }
}
