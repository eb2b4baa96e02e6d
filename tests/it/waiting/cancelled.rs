//! Futures that are dropped before they are done, wherever that is, give back what they took.

use std::time::Duration;

use ratelimits::{FixedWindow, LeakyBucket, Policy, Rate, Registry, SlidingWindow, TokenBucket};
use tokio::runtime::{Builder, Runtime};

use super::{Calling, Counted, acquire, poll, warm};

const HOUR: Duration = Duration::from_secs(3600);

/// Policies, each with what has to be taken until calls wait.
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
async fn a_call_that_is_dropped_before_its_answer_gives_back_what_it_took() {
    let counted = Counted::start().await;
    for (i, (policy, all)) in policies().into_iter().enumerate() {
        let limiter = counted.registry().limiter(&format!("a{i}"), policy).unwrap();
        warm(&limiter).await;
        let before = counted.calls().await;
        // Never polled, it has never asked.
        drop((acquire(&limiter, 1), limiter.try_acquire((), 1)));
        assert_eq!(counted.calls().await, before);

        let tried = limiter.clone();
        let tried: Calling = Box::pin(async move { tried.try_acquire((), 2).await });
        for (round, mut call) in [tried, acquire(&limiter, 2)].into_iter().enumerate() {
            let before = counted.calls().await;
            assert!(poll(&mut call).is_pending());
            drop(call);
            // The decision, and one refund.
            counted.reaches(before + 2).await;
            let peeked = limiter.peek(()).await.unwrap();
            assert_eq!(peeked.reset_after, Duration::ZERO, "{round} of {policy:?}");
        }
        // Of one that is refused there is nothing to give back.
        limiter.try_acquire((), all).await.unwrap();
        let before = counted.calls().await;
        let tried = limiter.clone();
        let mut refused: Calling = Box::pin(async move { tried.try_acquire((), 3).await });
        assert!(poll(&mut refused).is_pending());
        drop(refused);
        counted.reaches(before + 1).await;
        tokio::task::yield_now().await;
        assert_eq!(counted.calls().await, before + 1, "{policy:?}");
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A call that has its slot in an hour or more.
async fn waiting(counted: &Counted, limiter: &ratelimits::Limiter) -> Calling {
    let before = counted.calls().await;
    let mut call = acquire(limiter, 2);
    assert!(poll(&mut call).is_pending());
    counted.reaches(before + 1).await;
    // Its answer has come when that of another one has that was asked later.
    limiter.peek(()).await.unwrap();
    assert!(poll(&mut call).is_pending());
    call
}

#[tokio::test]
async fn a_call_that_is_dropped_while_it_waits_gives_back_its_slot_from_anywhere() {
    let counted = Counted::start().await;
    for (i, (policy, all)) in buckets().into_iter().enumerate() {
        counted.forget().await;
        let limiter = counted.registry().limiter(&format!("a{i}"), policy).unwrap();
        warm(&limiter).await;
        limiter.try_acquire((), all).await.unwrap();
        let held = counted.held().await;
        for place in 0..4 {
            let call = waiting(&counted, &limiter).await;
            let before = counted.calls().await;
            match place {
                0 => drop(call),
                1 => std::thread::spawn(move || drop(call)).join().unwrap(),
                2 => std::thread::spawn(move || runtime().block_on(async { drop(call) })).join().unwrap(),
                _ => {
                    let task = tokio::spawn(call);
                    tokio::task::yield_now().await;
                    task.abort();
                }
            }
            counted.reaches(before + 1).await;
            // When it was written, where that is said, is all that differs.
            let said = |held: Option<String>| {
                let said: Vec<String> = held.unwrap().split(' ').map(String::from).collect();
                let warmth = said.len() == 3;
                said.into_iter().take(if warmth { 2 } else { 1 }).collect::<Vec<_>>()
            };
            assert_eq!(said(counted.held().await), said(held.clone()), "{place} of {policy:?}");
        }
    }
}

#[test]
fn a_call_outlives_its_runtime_and_is_dropped_then() {
    let first = runtime();
    let counted = first.block_on(Counted::start());
    for (i, (policy, all)) in policies().into_iter().enumerate() {
        for redis in [false, true] {
            let registry = if redis { counted.registry() } else { Registry::in_memory() };
            let limiter = registry.limiter(&format!("a{i}"), policy).unwrap();
            // One that waits, and one that was just sent.
            let ended = runtime();
            let calls = ended.block_on(async {
                limiter.try_acquire((), all).await.unwrap();
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
            // The limiter works on, on another runtime.
            first.block_on(async {
                limiter.reset(()).await.unwrap();
                assert_eq!(limiter.acquire((), 1).await.unwrap().waited, Duration::ZERO);
            });
        }
    }
}
