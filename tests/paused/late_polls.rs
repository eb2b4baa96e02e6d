//! Waiters that are polled late, in any order and between other operations never wait for longer than they were told.
//! `RATELIMITS_SEED` repeats a failed run.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ratelimits::{Decision, Error, Limiter, Registry, TokenBucket};
use tokio::time::{Instant, advance};

use crate::budget::budget;
use crate::dropped_waiters::{Acquiring, policy, poll};
use crate::random::Random;
use crate::rate_bound;

const SECOND: Duration = Duration::from_secs(1);

/// Per run.
const OPERATIONS: usize = 200;

struct Call {
    made: u64,
    cost: u64,
    /// How long it was told to wait, which is its timeout.
    wait: Duration,
    pending: Acquiring,
}

struct Simulation {
    limiter: Limiter,
    begin: Instant,
    waiting: Vec<Call>,
    /// The slots and costs of the calls that have started.
    started: Vec<(u64, u64)>,
    decisions: Vec<Decision>,
}

impl Simulation {
    fn now(&self) -> u64 {
        self.begin.elapsed().as_micros() as u64
    }

    /// Makes a call, which waits if it has to.
    async fn call(&mut self, cost: u64) {
        let (made, limiter) = (self.now(), self.limiter.clone());
        let wait = match limiter.try_acquire_n((), cost).await {
            Ok(decision) => {
                self.started.push((made, cost));
                return self.decisions.push(decision);
            }
            Err(error) => error.retry_after().expect("it fits"),
        };
        let mut pending: Acquiring = Box::pin(async move { limiter.acquire_n_timeout((), cost, wait).await });
        match poll(&mut pending) {
            Poll::Pending => self.waiting.push(Call { made, cost, wait, pending }),
            // A queue is full.
            Poll::Ready(result) => assert!(result.unwrap_err().is_limited()),
        }
    }

    /// Polls some waiters, in any order.
    fn poll_some(&mut self, random: &mut Random, percent: u64) {
        let mut rest = Vec::new();
        while !self.waiting.is_empty() {
            let picked = random.below(self.waiting.len() as u64) as usize;
            let mut call = self.waiting.swap_remove(picked);
            if !random.percent(percent) {
                rest.push(call);
                continue;
            }
            match poll(&mut call.pending) {
                Poll::Pending => rest.push(call),
                Poll::Ready(decision) => {
                    let decision = decision.unwrap();
                    assert!(decision.waited <= call.wait, "{:?}, not {:?}", decision.waited, call.wait);
                    let slot = call.made + decision.waited.as_micros() as u64;
                    assert!(slot <= self.now(), "at {} before {slot}", self.now());
                    self.started.push((slot, call.cost));
                    self.decisions.push(decision);
                }
            }
        }
        self.waiting = rest;
    }

    async fn change(&mut self, random: &mut Random) {
        match random.below(3) {
            0 => _ = self.limiter.reset(()).await.unwrap(),
            1 => self.limiter.refund((), random.between(1, 5)).await.unwrap(),
            _ => {
                if let Some(decision) = self.decisions.pop() {
                    decision.refund().await.unwrap();
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_never_move_back() {
    let seeded = Random::seeded();
    for run in 0..budget(300, 5_000) {
        let mut random = seeded.run(run);
        let (policy, max_cost, permit) = policy(&mut random);
        // With refunds and resets more calls start than the policy admits otherwise.
        let changes = random.percent(50);
        println!("run {run}: {policy:?}, changes: {changes}");
        let limiter = Registry::in_memory().limiter("a", policy).unwrap();
        limiter.peek(()).await.unwrap();
        let (begin, waiting, started, decisions) = (Instant::now(), Vec::new(), Vec::new(), Vec::new());
        let mut simulation = Simulation { limiter, begin, waiting, started, decisions };
        for _ in 0..OPERATIONS {
            match random.below(12) {
                0..4 => simulation.call(random.between(1, max_cost)).await,
                4..6 if !simulation.waiting.is_empty() => {
                    let gone = random.below(simulation.waiting.len() as u64) as usize;
                    drop(simulation.waiting.swap_remove(gone));
                }
                6 => simulation.poll_some(&mut random, 30),
                7 => _ = simulation.limiter.peek(()).await.unwrap(),
                8 => advance(Duration::from_micros(random.below(3_000))).await,
                9 => advance(Duration::from_micros(random.below(3_000_000))).await,
                10 => advance(Duration::from_micros(random.below(30_000_000))).await,
                11 if changes => simulation.change(&mut random).await,
                _ => {}
            }
        }
        let end = simulation.waiting.iter().map(|call| call.made + call.wait.as_micros() as u64).max();
        advance(Duration::from_micros(end.unwrap_or(0).saturating_sub(simulation.now()))).await;
        // Tokio's timers have milliseconds.
        advance(Duration::from_millis(2)).await;
        simulation.poll_some(&mut random, 100);
        assert!(simulation.waiting.is_empty(), "a call waits for longer than it was told");
        if !changes {
            rate_bound::assert_within(&policy.spec().unwrap(), permit, simulation.started);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn look_at_unpolled_waiters_does_not_delay_others() {
    let limiter = Registry::in_memory().limiter("a", TokenBucket::per_second(1).burst(1)).unwrap();
    limiter.try_acquire(()).await.unwrap();
    let call = |seconds: u32| {
        let limiter = limiter.clone();
        let mut call: Acquiring =
            Box::pin(async move { limiter.acquire_timeout((), SECOND * seconds).await });
        assert!(poll(&mut call).is_pending());
        call
    };
    let [first, mut second, mut third] = [1, 2, 3].map(call);
    advance(SECOND / 10).await;
    drop(first);
    advance(SECOND * 26 / 10).await;
    assert_eq!(limiter.peek(()).await.unwrap().remaining, 0);
    assert!(poll(&mut third).is_pending());
    advance(SECOND * 3 / 10).await;
    for (call, waited) in [(&mut third, 3), (&mut second, 2)] {
        let Poll::Ready(decision) = poll(call) else { panic!("it waits beyond its timeout") };
        assert_eq!(decision.unwrap().waited, SECOND * waited);
    }
}

/// Asserts that one more poll of a finished call panics, as that of an async function does.
fn assert_finished(call: Pin<&mut impl Future<Output = Result<Decision, Error>>>) {
    let next = catch_unwind(AssertUnwindSafe(|| {
        drop(call.poll(&mut Context::from_waker(Waker::noop())));
    }));
    assert!(next.is_err());
}

#[tokio::test(start_paused = true)]
async fn finished_calls_are_not_made_again() {
    let limiter = Registry::in_memory().limiter("a", TokenBucket::per_second(1).burst(3)).unwrap();
    // Of a new key, and of one that is known.
    let mut first = pin!(limiter.try_acquire(()));
    first.as_mut().await.unwrap();
    assert_finished(first);
    let mut at_once = pin!(limiter.try_acquire(()));
    at_once.as_mut().await.unwrap();
    assert_finished(at_once);
    assert_eq!(limiter.peek(()).await.unwrap().remaining, 1);

    limiter.try_acquire(()).await.unwrap();
    let mut waiting = pin!(limiter.acquire(()));
    assert_eq!(waiting.as_mut().await.unwrap().waited, SECOND);
    assert_finished(waiting);

    let mut refused = pin!(limiter.try_acquire(()));
    assert!(refused.as_mut().await.unwrap_err().is_limited());
    advance(SECOND).await;
    assert_finished(refused);
    assert_eq!(limiter.peek(()).await.unwrap().remaining, 1);
}
