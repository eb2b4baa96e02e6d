//! What the algorithms of the library admit.

use std::time::Duration;

use ratelimit_runtime::{
    CalendarPeriod, ConcurrencyLimit, FixedWindow, LeakyBucket, Policy, Rate, SlidingWindow, TokenBucket,
};

use super::super::Call;
use super::Logged;

/// Returns the calls with what the library decides at their times. Calls wait for a queue, and are then logged when they start.
pub(super) fn decided(policy: Policy, calls: &[Logged]) -> Vec<Logged> {
    let spec = policy.spec().unwrap();
    // Of a semaphore, what its calls hold.
    let (mut state, mut held) = (None, Vec::<Call>::new());
    let mut decide = |call: &Call| {
        let now = call.time / 1_000;
        if let Policy::ConcurrencyLimit(_) = policy {
            held.retain(|other| other.end > call.time);
            let permits = held.iter().map(|call| call.cost).sum::<u64>() + call.cost;
            let admitted = permits <= spec.max_cost().unwrap();
            held.extend(admitted.then_some(*call));
            return (*call, admitted);
        }
        let wait = if spec.waiting_room().is_some() { u64::MAX } else { 0 };
        let snapshot = spec.check(state.as_ref(), now, call.cost);
        let verdict = spec.verdict(snapshot, now, call.cost, wait);
        if verdict.admitted {
            spec.commit(&mut state, snapshot, now, call.cost);
        } else {
            spec.undo(&mut state, now);
        }
        let time = call.time + 1_000 * verdict.wait;
        (Call { time, ..*call }, verdict.admitted)
    };
    let mut decided: Vec<Logged> = calls.iter().map(|(call, _)| decide(call)).collect();
    decided.sort_by_key(|(call, _)| call.time);
    decided
}

/// Returns the calls that the library admits.
pub(super) fn admitted(policy: Policy, calls: &[Logged]) -> Vec<Logged> {
    decided(policy, calls).into_iter().filter(|(_, is_admitted)| *is_admitted).collect()
}

/// Returns more calls than a policy admits, some of them at once.
pub(super) fn busy(policy: Policy) -> Vec<Logged> {
    let begin = 1_800_000_000_000_000_000;
    let step = 10_000_000;
    // A call that finds a bucket with interval refill full begins a period, so the burst is used up at the end of it.
    let idle = if policy.spec().unwrap().to_string().starts_with("ib") { 99 } else { 0 };
    let call = |i: u64| {
        let time = begin + if i == 0 { 0 } else { step * (i / 20 + idle) };
        (Call { time, cost: 1, end: time + 5 * step }, true)
    };
    (0..20_000).map(call).collect()
}

/// Returns policies, and each with a permit less.
pub(super) fn with_one_less() -> Vec<(Policy, Policy)> {
    let (second, rate) = (Duration::from_secs(1), Rate::per_second(10));
    let each =
        |policy: fn(u64, Rate, Duration) -> Policy| (policy(10, rate, second), policy(9, rate, second));
    vec![
        each(|limit, rate, _| TokenBucket::new(rate).burst(limit).into()),
        each(|limit, rate, _| TokenBucket::new(rate).burst(limit).borrow().into()),
        each(|limit, _, _| TokenBucket::per_second(limit).warmup(Duration::from_secs(3)).into()),
        // Its first call in a period is one of the burst, so it gives one less than any bucket may.
        (
            TokenBucket::new(rate).burst(10).interval_refill().into(),
            TokenBucket::new(rate).burst(8).interval_refill().into(),
        ),
        each(|limit, rate, _| LeakyBucket::new(limit, rate).into()),
        each(|limit, _, _| LeakyBucket::new(5, Rate::per_second(limit)).queue().into()),
        each(|limit, _, period| FixedWindow::new(limit, period).into()),
        each(|limit, _, period| FixedWindow::new(limit, period).aligned().into()),
        each(|limit, _, _| FixedWindow::calendar(limit, CalendarPeriod::Day).into()),
        each(|limit, _, period| SlidingWindow::new(limit, period).into()),
        each(|limit, _, period| SlidingWindow::new(limit, period).precision(period / 10).into()),
        each(|limit, _, _| ConcurrencyLimit::new(limit).into()),
    ]
}
