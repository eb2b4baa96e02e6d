//! Futures that are dropped before they complete are refunded.

use std::time::Duration;

use ratelimits::{FixedWindow, LeakyBucket, Policy, Rate, Registry, SlidingWindow, TokenBucket};
use tokio::runtime::{Builder, Runtime};

use super::{AcquireFuture, CountingServer, acquire, poll, warm_up};

const HOUR: Duration = Duration::from_secs(3600);

/// Returns policies, each with the permits to take until calls wait.
fn buckets() -> [(Policy, u64); 6] {
    let rate = Rate::new(3, HOUR);
    let bucket = TokenBucket::new(rate).burst(3);
    [
        (bucket.into(), 3),
        (bucket.interval_refill().into(), 3),
        (bucket.borrow().into(), 4),
        (TokenBucket::new(rate).warmup(HOUR).into(), 3),
        (LeakyBucket::new(5, rate).into(), 5),
        (LeakyBucket::new(5, rate).queue().into(), 3),
    ]
}

fn policies() -> Vec<(Policy, u64)> {
    let sliding = SlidingWindow::new(3, HOUR);
    let windows: [Policy; 3] =
        [FixedWindow::new(3, HOUR).into(), sliding.into(), sliding.precision(HOUR / 4).into()];
    buckets().into_iter().chain(windows.map(|window| (window, 3))).collect()
}

#[tokio::test]
async fn calls_dropped_before_the_reply_are_refunded() {
    let server = CountingServer::start().await;
    for (i, (policy, all)) in policies().into_iter().enumerate() {
        let limiter = server.registry().limiter(&format!("a{i}"), policy).unwrap();
        warm_up(&limiter).await;
        let before = server.calls().await;
        // A future that was never polled has sent nothing.
        drop((acquire(&limiter, 1), limiter.try_acquire(())));
        assert_eq!(server.calls().await, before);

        let tried = limiter.clone();
        let tried: AcquireFuture = Box::pin(async move { tried.try_acquire_n((), 2).await });
        for (round, mut call) in [tried, acquire(&limiter, 2)].into_iter().enumerate() {
            let before = server.calls().await;
            assert!(poll(&mut call).is_pending());
            drop(call);
            // The decision, and one refund.
            server.wait_for_calls(before + 2).await;
            let peeked = limiter.peek(()).await.unwrap();
            assert_eq!(peeked.reset_after, Duration::ZERO, "{round} of {policy:?}");
        }
        // A refused call is not refunded.
        limiter.try_acquire_n((), all).await.unwrap();
        let before = server.calls().await;
        let tried = limiter.clone();
        let mut refused: AcquireFuture = Box::pin(async move { tried.try_acquire_n((), 3).await });
        assert!(poll(&mut refused).is_pending());
        drop(refused);
        server.wait_for_calls(before + 1).await;
        tokio::task::yield_now().await;
        assert_eq!(server.calls().await, before + 1, "{policy:?}");
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Returns a call with a slot in an hour or more.
async fn waiting(server: &CountingServer, limiter: &ratelimits::Limiter) -> AcquireFuture {
    let before = server.calls().await;
    let mut call = acquire(limiter, 2);
    assert!(poll(&mut call).is_pending());
    server.wait_for_calls(before + 1).await;
    // The reply has arrived once that of a later request has.
    limiter.peek(()).await.unwrap();
    assert!(poll(&mut call).is_pending());
    call
}

#[tokio::test]
async fn waiting_calls_can_be_dropped_anywhere() {
    let server = CountingServer::start().await;
    for (i, (policy, all)) in buckets().into_iter().enumerate() {
        server.flush().await;
        let limiter = server.registry().limiter(&format!("a{i}"), policy).unwrap();
        warm_up(&limiter).await;
        limiter.try_acquire_n((), all).await.unwrap();
        let before_waiting = server.stored().await;
        for way in 0..4 {
            let call = waiting(&server, &limiter).await;
            let before = server.calls().await;
            match way {
                0 => drop(call),
                1 => std::thread::spawn(move || drop(call)).join().unwrap(),
                2 => std::thread::spawn(move || runtime().block_on(async { drop(call) })).join().unwrap(),
                _ => {
                    let task = tokio::spawn(call);
                    tokio::task::yield_now().await;
                    task.abort();
                }
            }
            server.wait_for_calls(before + 1).await;
            // Only the time of the last write differs, if the value has one.
            let state = |value: Option<String>| {
                let parts: Vec<String> = value.unwrap().split(' ').map(String::from).collect();
                let is_warmup = parts.len() == 3;
                parts.into_iter().take(if is_warmup { 2 } else { 1 }).collect::<Vec<_>>()
            };
            assert_eq!(state(server.stored().await), state(before_waiting.clone()), "{way} of {policy:?}");
        }
    }
}

#[test]
fn calls_can_be_dropped_after_their_runtime() {
    let first = runtime();
    let server = first.block_on(CountingServer::start());
    for (i, (policy, all)) in policies().into_iter().enumerate() {
        for redis in [false, true] {
            let registry = if redis { server.registry() } else { Registry::in_memory() };
            let limiter = registry.limiter(&format!("a{i}"), policy).unwrap();
            // One call that waits, and one that was just sent.
            let ended = runtime();
            let calls = ended.block_on(async {
                limiter.try_acquire_n((), all).await.unwrap();
                let mut calls = [acquire(&limiter, 1), acquire(&limiter, 2)];
                let _ = poll(&mut calls[0]);
                limiter.peek(()).await.unwrap();
                calls.iter_mut().for_each(|call| _ = poll(call));
                calls
            });
            drop(ended);
            let [one, other] = calls;
            drop(one);
            first.block_on(async { drop(other) });
            // The limiter still works on another runtime.
            first.block_on(async {
                limiter.reset(()).await.unwrap();
                assert_eq!(limiter.acquire(()).await.unwrap().waited, Duration::ZERO);
            });
        }
    }
}
