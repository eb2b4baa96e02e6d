//! Refunds, resets and drops of every kind while others wait: never are two calls served for one slot. A failure names its
//! seed: `RATELIMITS_SEED` repeats the run.

use std::task::Poll;
use std::time::Duration;

use ratelimits::{Decision, Registry, TokenBucket};
use tokio::time::{Instant, advance};

use crate::bound;
use crate::drops::{Acquiring, policy, poll};
use crate::random::Random;

const RUNS: u64 = 300;
const CALLS: usize = 80;

/// A call that was served.
struct Served {
    slot: u64,
    cost: u64,
    /// Until it is given back.
    decision: Option<Decision>,
}

#[tokio::test(start_paused = true)]
async fn refunds_and_resets_give_no_slot_twice() {
    let seeded = Random::seeded();
    for run in 0..RUNS {
        let mut random = seeded.run(run);
        let (policy, costliest, permit) = policy(&mut random);
        println!("run {run}: {policy:?}");
        let limiter = Registry::in_memory().limiter("a", policy).unwrap();
        limiter.peek(()).await.unwrap();
        let begin = Instant::now();
        let now = || begin.elapsed().as_micros() as u64;
        let mut waiting: Vec<(u64, u64, Acquiring)> = Vec::new();
        let mut served: Vec<Served> = Vec::new();
        // When last more was given back than somebody had taken. Receipts from before may give back what was evicted.
        let (mut made, mut since) = (0, 0);
        let mut steps = 0;
        while made < CALLS || !waiting.is_empty() {
            steps += 1;
            assert!(steps < 1_000_000, "{} wait for ever", waiting.len());
            match random.below(20) {
                0..8 if made < CALLS => {
                    made += 1;
                    let (limiter, cost) = (limiter.clone(), random.between(1, costliest));
                    waiting.push((now(), cost, Box::pin(async move { limiter.acquire((), cost).await })));
                }
                // Some of them due, and not yet told.
                8..10 if !waiting.is_empty() => {
                    let of = random.below(waiting.len() as u64) as usize;
                    if waiting[of].0 > since {
                        drop(waiting.remove(of));
                    }
                }
                10..12 if !served.is_empty() => {
                    let of = random.below(served.len() as u64) as usize;
                    let known = served[of].slot > since;
                    if let Some(decision) = served[of].decision.take().filter(|_| known) {
                        decision.refund().await.unwrap();
                    }
                }
                12 if random.percent(20) => {
                    match random.below(2) {
                        0 => limiter.reset(()).await.unwrap(),
                        _ => limiter.refund((), random.between(1, 5)).await.unwrap(),
                    }
                    check(&mut served, &policy.spec().unwrap(), permit, since);
                    since = now();
                }
                _ => {
                    let most = random.pick(&[1_000, 100_000, 2_000_000]);
                    advance(Duration::from_micros(random.below(most))).await;
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
        // Nobody is left, and it ends. A bucket that warms up is told so but for the rounding of doubles.
        let full = limiter.peek(()).await.unwrap().reset_after + Duration::from_micros(1);
        advance(full).await;
        assert_eq!(limiter.peek(()).await.unwrap().reset_after, Duration::ZERO);
    }
}

/// Checks what was served since the last time that anything was given away. What was given back does not count.
fn check(served: &mut [Served], spec: &ratelimit_runtime::store::AlgorithmSpec, permit: u64, since: u64) {
    let counts = served.iter().filter(|call| call.slot > since && call.decision.is_some());
    bound::holds(spec, permit, counts.map(|call| (call.slot, call.cost)).collect());
}

/// As above, where the receipt says of more than the key then holds: it was not of this that it took.
#[tokio::test(start_paused = true)]
async fn a_receipt_from_before_a_reset_gives_back_nothing_of_what_came_after() {
    let bucket = TokenBucket::per_second(1).burst(5);
    for policy in [bucket, bucket.interval_refill(), bucket.borrow()] {
        let limiter = Registry::in_memory().limiter("a", policy).unwrap();
        let before = limiter.try_acquire((), 5).await.unwrap();
        limiter.reset(()).await.unwrap();
        limiter.try_acquire((), 1).await.unwrap();
        before.refund().await.unwrap();
        assert_eq!(limiter.peek(()).await.unwrap().remaining, 4);
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_what_is_given_back() {
    let limiter = Registry::in_memory().limiter("a", TokenBucket::per_second(1).burst(2)).unwrap();
    let first = limiter.acquire((), 2).await.unwrap();
    let call = || {
        let limiter = limiter.clone();
        Box::pin(async move { limiter.acquire((), 1).await }) as Acquiring
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
    // The first two have their slots now, the others come after a second each.
    first.refund().await.unwrap();
    assert_eq!(served(0), 3);
    advance(Duration::from_secs(1)).await;
    assert_eq!(served(1), 2);
    limiter.refund((), 1).await.unwrap();
    assert_eq!(served(1), 1);
    // Who comes after a reset comes after those who waited before it.
    limiter.reset(()).await.unwrap();
    assert_eq!(served(1), 0);
    assert_eq!(limiter.try_acquire((), 1).await.unwrap().remaining, 0);
    assert!(limiter.try_acquire((), 1).await.is_err());
}
