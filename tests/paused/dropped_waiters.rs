//! Randomly dropped waiters leave the state as if they had never called. `RATELIMITS_SEED` repeats a failed run.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ratelimit_runtime::algorithm::State;
use ratelimit_runtime::store::{AlgorithmSpec, Verdict};
use ratelimits::{Decision, Error, LeakyBucket, Limiter, Policy, Rate, Registry, TokenBucket};
use tokio::time::{Instant, advance};

use crate::budget::budget;
use crate::random::Random;
use crate::rate_bound;

/// Per run.
const CALLS: usize = 120;

pub(super) type Acquiring = Pin<Box<dyn Future<Output = Result<Decision, Error>>>>;

/// A call in the model.
struct Call {
    made: u64,
    cost: u64,
    slot: u64,
    dropped: bool,
    pending: Option<Acquiring>,
}

struct Simulation {
    limiter: Limiter,
    spec: AlgorithmSpec,
    /// The nanoseconds of one permit, rounded down.
    permit: u64,
    begin: Instant,
    calls: Vec<Call>,
}

/// Returns a policy, the highest cost to call it with, and the nanoseconds of one permit.
pub(super) fn policy(random: &mut Random) -> (Policy, u64, u64) {
    let burst = random.between(1, 10);
    let (permits, micros) = (random.between(1, 5), random.between(10_000, 3_000_000));
    let rate = Rate::new(permits, Duration::from_micros(micros));
    let (policy, max_cost) = match random.below(5) {
        0 => (TokenBucket::new(rate).burst(burst).into(), burst.min(4)),
        1 => (TokenBucket::new(rate).burst(burst).interval_refill().into(), burst.min(4)),
        2 => (TokenBucket::new(rate).burst(burst).borrow().into(), 4),
        3 => (TokenBucket::new(rate).warmup(Duration::from_millis(random.between(1, 9000))).into(), 4),
        _ => (LeakyBucket::new(random.between(4, 60), rate).queue().into(), 4),
    };
    (policy, max_cost, micros * 1000 / permits)
}

/// Replays the calls that were not dropped and decides another one.
fn verdict(spec: &AlgorithmSpec, calls: &[Call], now: u64, cost: u64) -> Verdict {
    let mut state: Option<State> = None;
    for Call { made, cost, .. } in calls.iter().filter(|call| !call.dropped) {
        let snapshot = spec.check(state.as_ref(), *made, *cost);
        spec.commit(&mut state, snapshot, *made, *cost);
    }
    spec.verdict(spec.check(state.as_ref(), now, cost), now, cost, u64::MAX)
}

impl Simulation {
    fn now(&self) -> u64 {
        self.begin.elapsed().as_micros() as u64
    }

    fn call(&mut self, cost: u64) {
        let (now, limiter) = (self.now(), self.limiter.clone());
        let expected = verdict(&self.spec, &self.calls, now, cost);
        let mut pending: Acquiring = Box::pin(async move { limiter.acquire_n((), cost).await });
        match poll(&mut pending) {
            Poll::Ready(Err(error)) => {
                assert!(!expected.admitted && error.is_limited(), "{error} {expected:?}");
                assert_eq!(error.retry_after(), expected.retry_after.map(Duration::from_micros));
            }
            polled => {
                assert!(expected.admitted, "at {now}: {expected:?}");
                assert_eq!(polled.is_ready(), expected.wait == 0, "at {now}: {expected:?}");
                let pending = polled.is_pending().then_some(pending);
                let slot = now + expected.wait;
                self.calls.push(Call { made: now, cost, slot, dropped: false, pending });
            }
        }
    }

    /// Polls all waiters, which must be served at their slots and not before.
    fn serve(&mut self) {
        let now = self.now();
        for call in &mut self.calls {
            let Some(pending) = &mut call.pending else { continue };
            if let Poll::Ready(decision) = poll(pending) {
                assert!(call.slot <= now, "at {now} before {}", call.slot);
                assert_eq!(decision.unwrap().waited, Duration::from_micros(call.slot - call.made));
                call.pending = None;
            }
        }
    }

    /// Drops a call that waits for a future slot. Later calls move up, but not into the past.
    fn drop_one(&mut self, random: &mut Random) -> bool {
        let now = self.now();
        let waits = |i: &usize| self.calls[*i].pending.is_some() && self.calls[*i].slot > now;
        let waiting: Vec<usize> = (0..self.calls.len()).filter(waits).collect();
        if waiting.is_empty() {
            return false;
        }
        let gone = random.pick(&waiting);
        self.calls[gone].pending = None;
        self.calls[gone].dropped = true;
        for i in gone + 1..self.calls.len() {
            if self.calls[i].pending.is_some() && !self.calls[i].dropped {
                let Call { made, cost, .. } = self.calls[i];
                let slot = made + verdict(&self.spec, &self.calls[..i], made, cost).wait;
                assert!(slot <= self.calls[i].slot, "a waiter moves back");
                self.calls[i].slot = slot.max(now);
            }
        }
        // Woken calls move up as soon as they are polled.
        self.serve();
        true
    }

    async fn check(&self) {
        let now = self.now();
        let expected = verdict(&self.spec, &self.calls, now, 0);
        let peeked = self.limiter.peek(()).await.unwrap();
        let expected = (expected.remaining, Duration::from_micros(expected.reset_after));
        assert_eq!((peeked.remaining, peeked.reset_after), expected, "at {now}");
    }

    /// Checks the calls that were not dropped against the policy's rate.
    fn check_rate(&self) {
        let started = self.calls.iter().filter(|call| !call.dropped);
        rate_bound::assert_within(
            &self.spec,
            self.permit,
            started.map(|call| (call.slot, call.cost)).collect(),
        );
    }
}

pub(super) fn poll(call: &mut Acquiring) -> Poll<Result<Decision, Error>> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn dropped_waiters_leave_no_trace() {
    let seeded = Random::seeded();
    let target = budget(2_000, 10_000);
    let (mut drops, mut run) = (0, 0);
    while drops < target {
        run += 1;
        assert!(run < 10 * target, "no call waits that could be dropped");
        let mut random = seeded.run(run);
        let (policy, max_cost, permit) = policy(&mut random);
        let registry = Registry::in_memory();
        let limiter = registry.limiter("a", policy).unwrap();
        limiter.peek(()).await.unwrap();
        println!("run {run}: {policy:?}");
        let spec = policy.spec().unwrap();
        let mut simulation = Simulation { limiter, spec, permit, begin: Instant::now(), calls: Vec::new() };
        // Another limiter of the registry is not affected.
        let other = registry.limiter("b", policy).unwrap();
        other.acquire(()).await.unwrap();
        let alone = [Call { made: 0, cost: 1, slot: 0, dropped: false, pending: None }];
        while simulation.calls.len() < CALLS {
            match random.below(10) {
                0..4 => simulation.call(random.between(1, max_cost)),
                4..7 => {
                    drops += u64::from(simulation.drop_one(&mut random));
                    simulation.check().await;
                }
                7 => advance(Duration::from_micros(random.below(3_000))).await,
                8 => advance(Duration::from_micros(random.below(3_000_000))).await,
                _ => {}
            }
            simulation.serve();
        }
        simulation.check().await;
        let expected = verdict(&spec, &alone, simulation.now(), 0).reset_after;
        assert_eq!(other.peek(()).await.unwrap().reset_after, Duration::from_micros(expected));
        let last = simulation.calls.iter().map(|call| call.slot).max().unwrap();
        while simulation.calls.iter().any(|call| call.pending.is_some()) {
            assert!(simulation.now() <= last + 1_000_000, "a call hangs");
            advance(Duration::from_millis(random.between(1, 500))).await;
            simulation.serve();
            drops += u64::from(random.percent(20) && simulation.drop_one(&mut random));
        }
        simulation.check().await;
        simulation.check_rate();
    }
    println!("{drops} drops in {run} runs");
}
