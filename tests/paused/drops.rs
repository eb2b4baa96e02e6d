//! Calls that wait are dropped at random, from the middle of the line too: what is left is what would be, had the dropped
//! ones never been made. A failure names its seed: `RATELIMITS_SEED` repeats the run.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ratelimit_runtime::algorithm::State;
use ratelimit_runtime::store::{AlgorithmSpec, Verdict};
use ratelimits::{Decision, Error, LeakyBucket, Limiter, Policy, Rate, Registry, TokenBucket};
use tokio::time::{Instant, advance};

use crate::bound;
use crate::random::Random;

/// In all, over all policies.
const DROPS: usize = 10_000;

/// Those that share a time before they are compared pair by pair.
const CALLS: usize = 120;

pub(super) type Acquiring = Pin<Box<dyn Future<Output = Result<Decision, Error>>>>;

/// A call as the model has it.
struct Call {
    made: u64,
    cost: u64,
    slot: u64,
    /// Gone while it waits, so that it might never have been made.
    dropped: bool,
    waits: Option<Acquiring>,
}

struct World {
    limiter: Limiter,
    spec: AlgorithmSpec,
    /// The nanoseconds of one permit, rounded down.
    permit: u64,
    begin: Instant,
    calls: Vec<Call>,
}

/// A policy, the most that a call of it costs, and the nanoseconds of one permit.
pub(super) fn policy(random: &mut Random) -> (Policy, u64, u64) {
    let burst = random.between(1, 10);
    let (permits, micros) = (random.between(1, 5), random.between(10_000, 3_000_000));
    let rate = Rate::new(permits, Duration::from_micros(micros));
    let (policy, costliest) = match random.below(5) {
        0 => (TokenBucket::new(rate).burst(burst).into(), burst.min(4)),
        1 => (TokenBucket::new(rate).burst(burst).interval_refill().into(), burst.min(4)),
        2 => (TokenBucket::new(rate).burst(burst).borrow().into(), 4),
        3 => (TokenBucket::new(rate).warmup(Duration::from_millis(random.between(1, 9000))).into(), 4),
        _ => (LeakyBucket::new(random.between(4, 60), rate).queue().into(), 4),
    };
    (policy, costliest, micros * 1000 / permits)
}

/// The state after these calls, had there been no others, and what it says at this time of a call of this cost.
fn told(spec: &AlgorithmSpec, calls: &[Call], now: u64, cost: u64) -> Verdict {
    let mut state: Option<State> = None;
    for Call { made, cost, .. } in calls.iter().filter(|call| !call.dropped) {
        let snapshot = spec.check(state.as_ref(), *made, *cost);
        spec.commit(&mut state, snapshot, *made, *cost);
    }
    spec.verdict(spec.check(state.as_ref(), now, cost), now, cost, u64::MAX)
}

impl World {
    fn now(&self) -> u64 {
        self.begin.elapsed().as_micros() as u64
    }

    fn call(&mut self, cost: u64) {
        let (now, limiter) = (self.now(), self.limiter.clone());
        let expected = told(&self.spec, &self.calls, now, cost);
        let mut waits: Acquiring = Box::pin(async move { limiter.acquire((), cost).await });
        match poll(&mut waits) {
            Poll::Ready(Err(error)) => {
                assert!(!expected.admitted && error.is_limited(), "{error} {expected:?}");
                assert_eq!(error.retry_after(), expected.retry_after.map(Duration::from_micros));
            }
            polled => {
                assert!(expected.admitted, "at {now}: {expected:?}");
                assert_eq!(polled.is_ready(), expected.wait == 0, "at {now}: {expected:?}");
                let waits = polled.is_pending().then_some(waits);
                let slot = now + expected.wait;
                self.calls.push(Call { made: now, cost, slot, dropped: false, waits });
            }
        }
    }

    /// Those that wait are served at their slots, and not before.
    fn serve(&mut self) {
        let now = self.now();
        for call in &mut self.calls {
            let Some(waits) = &mut call.waits else { continue };
            if let Poll::Ready(decision) = poll(waits) {
                assert!(call.slot <= now, "at {now} before {}", call.slot);
                assert_eq!(decision.unwrap().waited, Duration::from_micros(call.slot - call.made));
                call.waits = None;
            }
        }
    }

    /// Drops a call that waits for a slot to come. Those behind it move up, but for the time that has passed.
    fn drop_one(&mut self, random: &mut Random) -> bool {
        let now = self.now();
        let waits = |i: &usize| self.calls[*i].waits.is_some() && self.calls[*i].slot > now;
        let waiting: Vec<usize> = (0..self.calls.len()).filter(waits).collect();
        if waiting.is_empty() {
            return false;
        }
        let gone = random.pick(&waiting);
        self.calls[gone].waits = None;
        self.calls[gone].dropped = true;
        for i in gone + 1..self.calls.len() {
            if self.calls[i].waits.is_some() && !self.calls[i].dropped {
                let Call { made, cost, .. } = self.calls[i];
                let slot = made + told(&self.spec, &self.calls[..i], made, cost).wait;
                assert!(slot <= self.calls[i].slot, "nobody moves back");
                self.calls[i].slot = slot.max(now);
            }
        }
        // Whoever is told looks at once, and so those behind move up now.
        self.serve();
        true
    }

    async fn check(&self) {
        let (now, told) = (self.now(), told(&self.spec, &self.calls, self.now(), 0));
        let peeked = self.limiter.peek(()).await.unwrap();
        let expected = (told.remaining, Duration::from_micros(told.reset_after));
        assert_eq!((peeked.remaining, peeked.reset_after), expected, "at {now}");
    }

    /// What started stays within the bound of the policy, by the slots.
    fn bound(&self) {
        let started = self.calls.iter().filter(|call| !call.dropped);
        bound::holds(&self.spec, self.permit, started.map(|call| (call.slot, call.cost)).collect());
    }
}

pub(super) fn poll(waits: &mut Acquiring) -> Poll<Result<Decision, Error>> {
    waits.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_as_if_the_dropped_had_never_called() {
    let seeded = Random::seeded();
    let (mut drops, mut run) = (0, 0);
    while drops < DROPS {
        run += 1;
        assert!(run < 10 * DROPS as u64, "nobody waits, so that nobody can be dropped");
        let mut random = seeded.run(run);
        let (policy, costliest, permit) = policy(&mut random);
        let registry = Registry::in_memory();
        let limiter = registry.limiter("a", policy).unwrap();
        limiter.peek(()).await.unwrap();
        println!("run {run}: {policy:?}");
        let spec = policy.spec().unwrap();
        let mut world = World { limiter, spec, permit, begin: Instant::now(), calls: Vec::new() };
        // Keys of one registry know nothing of each other.
        let other = registry.limiter("b", policy).unwrap();
        other.acquire((), 1).await.unwrap();
        let alone = [Call { made: 0, cost: 1, slot: 0, dropped: false, waits: None }];
        while world.calls.len() < CALLS {
            match random.below(10) {
                0..4 => world.call(random.between(1, costliest)),
                4..7 => {
                    drops += usize::from(world.drop_one(&mut random));
                    world.check().await;
                }
                7 => advance(Duration::from_micros(random.below(3_000))).await,
                8 => advance(Duration::from_micros(random.below(3_000_000))).await,
                _ => {}
            }
            world.serve();
        }
        world.check().await;
        let expected = told(&spec, &alone, world.now(), 0).reset_after;
        assert_eq!(other.peek(()).await.unwrap().reset_after, Duration::from_micros(expected));
        let last = world.calls.iter().map(|call| call.slot).max().unwrap();
        while world.calls.iter().any(|call| call.waits.is_some()) {
            assert!(world.now() <= last + 1_000_000, "somebody waits for ever");
            advance(Duration::from_millis(random.between(1, 500))).await;
            world.serve();
            drops += usize::from(random.percent(20) && world.drop_one(&mut random));
        }
        world.check().await;
        world.bound();
    }
    println!("{drops} drops in {run} runs");
}
