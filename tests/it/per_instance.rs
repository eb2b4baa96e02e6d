//! Shares of a policy: together they admit no more than the policy, or up to one more call per instance if its capacity is
//! smaller than the number of instances.

use std::time::Duration;

use ratelimit_runtime::algorithm::{AlgorithmSpec, State};
use ratelimits::{FixedWindow, LeakyBucket, Policy, Rate, SlidingWindow, TokenBucket};

use crate::support::budget::budget;
use crate::support::random::Random;

const CALLS: usize = 100;
const START: u64 = 1_700_000_000_000_000;

/// A policy and its upper bound.
#[derive(Clone, Copy, Debug)]
struct Case {
    policy: Policy,
    bound: Bound,
    /// The permits that it admits at once.
    capacity: u64,
    /// The maximum cost of the calls.
    max_cost: u64,
}

/// The maximum of permits within a span of microseconds.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// `capacity + span · permits / period`, the capacity in microseconds of refill, plus this many calls of maximum cost.
    Bucket { capacity: u128, permits: u128, period: u128, calls: u128 },
    /// `burst + refill · (⌊span / period⌋ + 1)`
    Interval { burst: u128, refill: u128, period: u128 },
    /// `limit` for each window that the span touches.
    Fixed { limit: u128, period: u128, aligned: bool },
    /// `limit` in every interval of one period.
    Sliding { limit: u128, period: u128 },
}

#[derive(Clone, Copy, Debug)]
struct Grant {
    at: u64,
    cost: u64,
}

fn random_case(random: &mut Random) -> Case {
    let permits = random.between(1, 60);
    let period = Duration::from_millis(random.between(1, 40) * permits);
    let capacity = random.between(1, 40);
    let rate = Rate::new(permits, period);
    let bucket = TokenBucket::new(rate);
    let micros = |time: Duration| time.as_micros();
    let interval = micros(period).div_ceil(permits.into());
    let filled = |capacity: u64, calls| Bound::Bucket {
        capacity: u128::from(capacity) * interval,
        permits: permits.into(),
        period: micros(period),
        calls,
    };
    let max_cost = if random.percent(50) { 1 } else { random.between(1, capacity) };
    let case = |policy: Policy, bound, capacity| Case { policy, bound, capacity, max_cost };
    match random.below(9) {
        0 => case(bucket.burst(capacity).into(), filled(capacity, 0), capacity),
        1 => case(LeakyBucket::new(capacity, rate).into(), filled(capacity, 0), capacity),
        // One call at a time, however long the queue is.
        2 => case(LeakyBucket::new(capacity, rate).queue().into(), filled(0, 1), 1),
        3 => {
            // Each instance lends the cost of one call.
            let case = case(bucket.burst(capacity).borrow().into(), filled(capacity, 1), capacity);
            Case { capacity: if case.max_cost > 1 { 1 } else { capacity }, ..case }
        }
        4 => {
            let warmup = Duration::from_micros(random.between(1, 20) * interval as u64);
            case(bucket.warmup(warmup).into(), filled(0, 1), 1)
        }
        5 => {
            let bound =
                Bound::Interval { burst: capacity.into(), refill: permits.into(), period: micros(period) };
            case(bucket.interval_refill().burst(capacity).into(), bound, capacity)
        }
        kind @ 6..=7 => {
            let window = FixedWindow::new(capacity, period);
            let aligned = kind == 7;
            let bound = Bound::Fixed { limit: capacity.into(), period: micros(period), aligned };
            case(if aligned { window.aligned() } else { window }.into(), bound, capacity)
        }
        _ => {
            let window = SlidingWindow::new(capacity, period);
            let bound = Bound::Sliding { limit: capacity.into(), period: micros(period) };
            let window = if random.percent(50) { window } else { window.precision(period / 10) };
            case(window.into(), bound, capacity)
        }
    }
}

/// Simulates greedy callers of this many instances, with occasional pauses. Returns all grants in order.
fn simulate(spec: &AlgorithmSpec, instances: u32, max_cost: u64, random: &mut Random) -> Vec<Grant> {
    let share = spec.per_instance(instances);
    let mut states: Vec<Option<State>> = vec![None; instances as usize];
    let mut now = START + random.below(10_000_000);
    let mut grants = Vec::new();
    for _ in 0..CALLS {
        let instance = random.below(instances.into()) as usize;
        let greedy = random.percent(80);
        for state in if greedy { &mut states[..] } else { &mut states[instance..=instance] } {
            let cost = if max_cost == 1 { 1 } else { random.between(1, max_cost) };
            let wait = if random.percent(20) { random.below(200_000) } else { 0 };
            let snapshot = share.check(state.as_ref(), now, cost);
            let verdict = share.verdict(snapshot, now, cost, wait);
            if verdict.admitted {
                share.commit(state, snapshot, now, cost);
                grants.push(Grant { at: now + verdict.wait, cost });
            } else {
                share.undo(state, now);
            }
        }
        now += match random.below(10) {
            0..=2 => 0,
            3..=7 => random.below(30_000),
            8 => random.below(1_000_000),
            _ => random.below(20_000_000),
        };
    }
    grants.sort_by_key(|grant| grant.at);
    grants
}

impl Case {
    /// Returns whether this sum of permits is allowed between two grants, with `extra` permits on top of the bound.
    fn allows(&self, sum: u128, first: &Grant, last: &Grant, extra: u128) -> bool {
        let (first, last) = (u128::from(first.at), u128::from(last.at));
        let span = last - first;
        match self.bound {
            Bound::Bucket { capacity, permits, period, calls } => {
                let extra = calls * u128::from(self.max_cost) + extra;
                // A call that warms up is in two parts, each truncated to microseconds.
                sum * period <= permits * (capacity + span + 2) + extra * period
            }
            Bound::Interval { burst, refill, period } => sum <= burst + refill * (span / period + 1) + extra,
            Bound::Fixed { limit, period, aligned } => {
                let windows = if aligned { last / period - first / period + 1 } else { span / period + 2 };
                sum <= limit * windows + extra
            }
            Bound::Sliding { limit, period } => sum <= limit * (span / period + 1) + extra,
        }
    }
}

fn runs() -> u64 {
    budget(300, 5000)
}

#[test]
fn shares_together_stay_within_policy() {
    let random = Random::seeded();
    let mut runs_with_extra = 0;
    for run in 0..runs() {
        let random = &mut random.run(run);
        let case = random_case(random);
        let instances = random.between(1, 25) as u32;
        let spec = case.policy.spec().unwrap();
        let extra = if case.capacity < u64::from(instances) {
            u128::from(instances) * u128::from(case.max_cost)
        } else {
            0
        };
        let grants = simulate(&spec, instances, case.max_cost, random);
        let mut uses_extra = false;
        for (i, first) in grants.iter().enumerate() {
            let mut sum = 0;
            for last in &grants[i..] {
                sum += u128::from(last.cost);
                assert!(
                    case.allows(sum, first, last, extra),
                    "run {run}: {sum} permits by {instances} instances of {case:?}, each {:?}",
                    spec.per_instance(instances)
                );
                uses_extra |= !case.allows(sum, first, last, 0);
            }
        }
        runs_with_extra += u64::from(uses_extra);
    }
    println!("{runs_with_extra} runs used the extra call per instance");
    assert!(runs_with_extra > 0);
}

#[test]
fn single_share_is_the_policy() {
    let random = Random::seeded();
    for run in 0..runs() {
        let spec = random_case(&mut random.run(run)).policy.spec().unwrap();
        assert_eq!((spec.per_instance(1), spec.per_instance(0)), (spec, spec));
    }
}

#[test]
fn shares_admit_one_permit() {
    let random = Random::seeded();
    for run in 0..runs() {
        let spec = random_case(&mut random.run(run)).policy.spec().unwrap();
        for instances in [2, 7, 1000, u32::MAX] {
            let share = spec.per_instance(instances);
            assert!(share.fits(1), "{share:?} of {spec:?}");
            let too_much = spec.max_cost().map_or(u64::MAX, |cost| cost + 1);
            assert!(!share.fits(too_much), "{share:?} of {spec:?}");
        }
    }
}

/// Uses the extremes of all numbers, with up to the maximum number of instances.
#[test]
fn extreme_shares_do_not_overflow() {
    const LONGEST: Duration = Duration::from_secs(3650 * 86_400);
    const MOST: u64 = 1_000_000_000_000;
    let slow = Rate::new(1, LONGEST);
    let odd = Rate::new(999_999_999_989, Duration::from_secs(9_999_999_999_999));
    let fast = Rate::new(1_000_000, Duration::from_secs(1));
    let mut policies: Vec<Policy> = Vec::new();
    for rate in [slow, odd, fast] {
        let bucket = TokenBucket::new(rate);
        for burst in [1, 31_536_000, 315_360_000_000_000] {
            policies.extend([Policy::from(bucket.burst(burst)), bucket.burst(burst).borrow().into()]);
            policies.push(bucket.burst(burst).interval_refill().into());
            policies.extend([
                Policy::from(LeakyBucket::new(burst, rate)),
                LeakyBucket::new(burst, rate).queue().into(),
            ]);
        }
        for time in [Duration::from_micros(1), LONGEST] {
            policies.extend([Policy::from(bucket.borrow().burst_for(time)), bucket.warmup(time).into()]);
        }
    }
    for limit in [1, 9_999, MOST] {
        for period in [Duration::from_micros(1000), LONGEST] {
            let (fixed, sliding) = (FixedWindow::new(limit, period), SlidingWindow::new(limit, period));
            policies.extend([Policy::from(fixed), fixed.aligned().into(), sliding.into()]);
            policies.extend([
                Policy::from(sliding.precision(period / 2)),
                sliding.precision(period / 1000).into(),
            ]);
        }
    }
    let mut shares = 0;
    for spec in policies.iter().filter_map(|policy| policy.spec().ok()) {
        assert_eq!(spec.per_instance(1), spec);
        for instances in [2, 3, 1000, u32::MAX] {
            let share = spec.per_instance(instances);
            let (mut state, mut now) = (None, START);
            for cost in [1, 1, u64::MAX, 1, share.max_cost().unwrap_or(5), 1, 3] {
                for wait in [0, LONGEST.as_micros() as u64] {
                    let snapshot = share.check(state.as_ref(), now, cost);
                    let verdict = share.verdict(snapshot, now, cost, wait);
                    if verdict.admitted {
                        share.commit(&mut state, snapshot, now, cost);
                        if cost == 3 {
                            share.refund(&mut state, now, cost, Some(verdict.charge_id));
                        }
                    } else {
                        share.undo(&mut state, now);
                    }
                    assert!(state.as_ref().is_none_or(|state| share.ends(state) < 1 << 53), "{share:?}");
                    now += verdict.retry_after.unwrap_or(1).min(LONGEST.as_micros() as u64);
                }
            }
            share.refund(&mut state, now, u64::MAX, None);
            shares += 1;
        }
    }
    assert!(shares > 150, "{shares}");
}
