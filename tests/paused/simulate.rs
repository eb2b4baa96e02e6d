//! The command `simulate` decides as a registry in process does.

#[path = "../../ratelimits-cli/src/simulate/key_states.rs"]
mod key_states;

use std::time::Duration;

use ratelimits::{
    Error, FixedWindow, LeakyBucket, Limiter, Policy, Rate, Registry, SlidingWindow, TokenBucket,
};
use tokio::time::advance;

use crate::budget::budget;
use crate::random::Random;
use key_states::{Charge, KeyStates};

const KEYS: u64 = 3;

/// A call, this long after the one before it.
#[derive(Debug)]
struct LoggedCall {
    after: Duration,
    key: usize,
}

fn random_log(random: &mut Random) -> Vec<LoggedCall> {
    let call = |i: u64| {
        let longest = random.pick(&[0, 1, 1_000, 150_000, 1_000_000, 5_000_000]);
        // The first call is at time 0 of the registry.
        let after = if i == 0 { 0 } else { random.between(0, longest) };
        LoggedCall { after: Duration::from_micros(after), key: random.below(KEYS) as usize }
    };
    (0..100).map(call).collect()
}

fn random_policy(random: &mut Random) -> Policy {
    let count = random.between(1, 8);
    let period = Duration::from_micros(random.pick(&[700_000, 1_000_000, 3_000_000]));
    let rate = Rate::new(count, period);
    let bucket = TokenBucket::new(rate);
    random.pick(&[
        bucket.into(),
        bucket.burst(count + 2).into(),
        bucket.burst_for(period * 2).into(),
        bucket.interval_refill().into(),
        bucket.borrow().into(),
        bucket.warmup(period).into(),
        FixedWindow::new(count, period).into(),
        FixedWindow::new(count, period).aligned().into(),
        SlidingWindow::new(count, period).into(),
        SlidingWindow::new(count, period).precision(period / 10).into(),
        LeakyBucket::new(count, rate).into(),
        LeakyBucket::draining(count, period).into(),
    ])
}

/// The states of all keys. Those that have ended are dropped now and then.
struct Simulation {
    charges: Vec<Charge>,
    now: u64,
    keys: [KeyStates; KEYS as usize],
}

impl Simulation {
    fn new(policies: impl IntoIterator<Item = (Policy, u64)>) -> Self {
        let charge = |(policy, cost): (Policy, u64)| Charge { spec: policy.spec().unwrap(), cost };
        let charges = policies.into_iter().map(charge).collect();
        Simulation { charges, now: 0, keys: Default::default() }
    }

    /// Returns how long each policy makes the call wait, or `None` if it is refused, and the permits that remain of each.
    fn decide(&mut self, call: &LoggedCall, sweep: bool) -> (Option<Duration>, Vec<u64>) {
        self.now += call.after.as_micros() as u64;
        let key = &mut self.keys[call.key];
        if sweep && key.end(&self.charges) <= self.now {
            *key = KeyStates::default();
        }
        let mut verdicts = Vec::new();
        let is_admitted = key.decide(&self.charges, self.now, &mut verdicts);
        let wait = verdicts.iter().map(|verdict| verdict.wait).max().unwrap();
        let remaining = verdicts.iter().map(|verdict| verdict.remaining).collect();
        (is_admitted.then_some(Duration::from_micros(wait)), remaining)
    }
}

fn limiters(policies: &[(Policy, u64)]) -> (Registry, Vec<Limiter>) {
    let registry = Registry::in_memory();
    let limiter =
        |(i, (policy, _)): (usize, &(Policy, u64))| registry.limiter(&format!("simulated-{i}"), *policy);
    let limiters = policies.iter().enumerate().map(limiter).collect::<Result<_, _>>().unwrap();
    (registry, limiters)
}

#[tokio::test(start_paused = true)]
async fn stacks_decide_alike() {
    let random = Random::seeded();
    for run in 0..budget(200, 10_000) {
        let mut random = random.run(run);
        let policies = (0..random.between(1, 3)).map(|_| (random_policy(&mut random), random.between(0, 3)));
        let policies: Vec<_> = policies.collect();
        let (registry, limiters) = limiters(&policies);
        let mut simulation = Simulation::new(policies.iter().copied());
        for (i, call) in random_log(&mut random).iter().enumerate() {
            advance(call.after).await;
            let charges =
                limiters.iter().zip(&policies).map(|(limiter, (_, cost))| limiter.charge_n(call.key, *cost));
            let decision = registry.try_acquire_all(charges).await;
            let (simulated, remaining) = simulation.decide(call, random.percent(50));
            let context = format!("run {run}, call {i} by {policies:?}");
            match decision {
                Ok(decision) => {
                    assert_eq!(simulated, Some(Duration::ZERO), "{context}");
                    let counted: Vec<_> = decision.policies().iter().map(|policy| policy.remaining).collect();
                    assert_eq!(counted, remaining, "{context}");
                }
                Err(Error::Limited(_)) => assert_eq!(simulated, None, "{context}"),
                Err(error) => panic!("{context}: {error}"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn queues_decide_alike() {
    let random = Random::seeded();
    for run in 0..budget(100, 5_000) {
        let mut random = random.run(run);
        let rate = Rate::new(random.between(1, 8), Duration::from_secs(1));
        let cost = random.between(1, 2);
        let policies = [(LeakyBucket::new(random.between(1, 8), rate).queue().into(), cost)];
        let (_registry, limiters) = limiters(&policies);
        let mut simulation = Simulation::new(policies);
        let mut calls = Vec::new();
        for call in random_log(&mut random) {
            advance(call.after).await;
            let limiter = limiters[0].clone();
            let acquiring = tokio::spawn(async move { limiter.acquire_n(call.key, cost).await });
            // The call takes its slot.
            tokio::task::yield_now().await;
            calls.push((acquiring, simulation.decide(&call, random.percent(50)).0));
        }
        for (i, (acquiring, simulated)) in calls.into_iter().enumerate() {
            let waited = match acquiring.await.unwrap() {
                Ok(decision) => Some(decision.waited),
                Err(Error::Limited(_)) => None,
                Err(error) => panic!("{error}"),
            };
            assert_eq!(waited, simulated, "run {run}, call {i} by {policies:?}");
        }
    }
}
