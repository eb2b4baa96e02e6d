//! Refunds, resets and drops while calls wait never let two calls share a slot. `RATELIMITS_SEED` repeats a failed run.

use std::task::Poll;
use std::time::Duration;

use ratelimit_runtime::store::AlgorithmSpec;
use ratelimits::{Decision, FixedWindow, LeakyBucket, Policy, Rate, Registry, SlidingWindow, TokenBucket};
use tokio::time::{Instant, advance};

use crate::budget::budget;
use crate::dropped_waiters::{Acquiring, policy, poll};
use crate::random::Random;
use crate::rate_bound;

const CALLS: usize = 80;

struct Served {
    slot: u64,
    cost: u64,
    /// `None` once it is refunded.
    decision: Option<Decision>,
}

#[tokio::test(start_paused = true)]
async fn no_slot_is_granted_twice() {
    let seeded = Random::seeded();
    for run in 0..budget(60, 300) {
        let mut random = seeded.run(run);
        let (policy, max_cost, permit) = policy(&mut random);
        println!("run {run}: {policy:?}");
        let limiter = Registry::in_memory().limiter("a", policy).unwrap();
        limiter.peek(()).await.unwrap();
        let begin = Instant::now();
        let now = || begin.elapsed().as_micros() as u64;
        let mut waiting: Vec<(u64, u64, Acquiring)> = Vec::new();
        let mut served: Vec<Served> = Vec::new();
        // `since` is the last reset or unchecked refund: receipts from before it may refund what no longer counts.
        let (mut made, mut since) = (0, 0);
        let mut steps = 0;
        while made < CALLS || !waiting.is_empty() {
            steps += 1;
            assert!(steps < 1_000_000, "{} calls hang", waiting.len());
            match random.below(20) {
                0..8 if made < CALLS => {
                    made += 1;
                    let (limiter, cost) = (limiter.clone(), random.between(1, max_cost));
                    waiting.push((now(), cost, Box::pin(async move { limiter.acquire_n((), cost).await })));
                }
                8..10 if !waiting.is_empty() => {
                    let index = random.below(waiting.len() as u64) as usize;
                    if waiting[index].0 > since {
                        drop(waiting.remove(index));
                    }
                }
                10..12 if !served.is_empty() => {
                    let call = random.below(served.len() as u64) as usize;
                    let counts = served[call].slot > since;
                    if let Some(decision) = served[call].decision.take().filter(|_| counts) {
                        decision.refund().await.unwrap();
                    }
                }
                12 if random.percent(20) => {
                    match random.below(2) {
                        0 => _ = limiter.reset(()).await.unwrap(),
                        _ => limiter.refund((), random.between(1, 5)).await.unwrap(),
                    }
                    check(&mut served, &policy.spec().unwrap(), permit, since);
                    since = now();
                }
                _ => {
                    let max = random.pick(&[1_000, 100_000, 2_000_000]);
                    advance(Duration::from_micros(random.below(max))).await;
                }
            }
            waiting.retain_mut(|(made, cost, call)| match poll(call) {
                Poll::Pending => true,
                Poll::Ready(Err(error)) => {
                    assert!(error.is_limited(), "{error}");
                    false
                }
                Poll::Ready(Ok(decision)) => {
                    let slot = *made + decision.waited.as_micros() as u64;
                    assert!(slot <= now(), "served at {} before {slot}", now());
                    served.push(Served { slot, cost: *cost, decision: Some(decision) });
                    false
                }
            });
        }
        check(&mut served, &policy.spec().unwrap(), permit, since);
        // One microsecond more for the rounding of a bucket that warms up.
        let full = limiter.peek(()).await.unwrap().reset_after + Duration::from_micros(1);
        advance(full).await;
        assert_eq!(limiter.peek(()).await.unwrap().reset_after, Duration::ZERO);
    }
}

/// Checks the calls served since then, without the refunded ones.
fn check(served: &mut [Served], spec: &AlgorithmSpec, permit: u64, since: u64) {
    let counts = served.iter().filter(|call| call.slot > since && call.decision.is_some());
    rate_bound::assert_within(spec, permit, counts.map(|call| (call.slot, call.cost)).collect());
}

#[tokio::test(start_paused = true)]
async fn receipts_expire_on_reset() {
    let bucket = TokenBucket::per_second(1).burst(5);
    for policy in [bucket, bucket.interval_refill(), bucket.borrow()] {
        let limiter = Registry::in_memory().limiter("a", policy).unwrap();
        let before = limiter.try_acquire_n((), 5).await.unwrap();
        limiter.reset(()).await.unwrap();
        limiter.try_acquire(()).await.unwrap();
        before.refund().await.unwrap();
        assert_eq!(limiter.peek(()).await.unwrap().remaining, 4);
    }
}

#[tokio::test(start_paused = true)]
async fn expired_state_is_none_to_reset() {
    let second = Duration::from_secs(1);
    let bucket = TokenBucket::per_second(1).burst(5);
    let policies: [Policy; 6] = [
        bucket.into(),
        bucket.interval_refill().into(),
        bucket.adjustable().into(),
        FixedWindow::new(5, second).into(),
        SlidingWindow::new(5, second).into(),
        LeakyBucket::new(5, Rate::new(1, second)).queue().into(),
    ];
    for policy in policies {
        for micros in [1_000_000, 999_999] {
            let limiter = Registry::in_memory().limiter("a", policy).unwrap();
            assert!(!limiter.reset(()).await.unwrap(), "{policy:?}");
            limiter.try_acquire(()).await.unwrap();
            advance(Duration::from_micros(micros)).await;
            assert_eq!(limiter.reset(()).await.unwrap(), micros < 1_000_000, "{policy:?}");
            assert!(!limiter.reset(()).await.unwrap(), "{policy:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refunds_go_to_waiters() {
    let limiter = Registry::in_memory().limiter("a", TokenBucket::per_second(1).burst(2)).unwrap();
    let first = limiter.acquire_n((), 2).await.unwrap();
    let call = || {
        let limiter = limiter.clone();
        Box::pin(async move { limiter.acquire(()).await }) as Acquiring
    };
    let mut calls: Vec<Acquiring> = (0..5).map(|_| call()).collect();
    calls.iter_mut().for_each(|call| assert!(poll(call).is_pending()));
    let mut served = |seconds: u64| {
        calls.retain_mut(|call| match poll(call) {
            Poll::Ready(decision) => {
                assert_eq!(decision.unwrap().waited, Duration::from_secs(seconds));
                false
            }
            Poll::Pending => true,
        });
        calls.len()
    };
    assert_eq!(served(0), 5);
    // Two are due now, the others one second apart.
    first.refund().await.unwrap();
    assert_eq!(served(0), 3);
    advance(Duration::from_secs(1)).await;
    assert_eq!(served(1), 2);
    limiter.refund((), 1).await.unwrap();
    assert_eq!(served(1), 1);
    // The last waiter is served before calls that come after the reset.
    assert!(limiter.reset(()).await.unwrap());
    assert_eq!(served(1), 0);
    assert_eq!(limiter.try_acquire(()).await.unwrap().remaining, 0);
    assert!(limiter.try_acquire(()).await.is_err());
}
