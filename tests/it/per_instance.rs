//! What the shares of several instances give together: no more than the policy, and where its capacity is less than there are
//! instances, one call an instance more.

use std::time::Duration;

use ratelimit_runtime::algorithm::{AlgorithmSpec, State};
use ratelimits::{FixedWindow, LeakyBucket, Policy, Rate, SlidingWindow, TokenBucket};

use crate::support::random::Random;

const RUNS: u64 = 300;
const CALLS: usize = 100;
const START: u64 = 1_700_000_000_000_000;

/// A policy, and what it promises.
#[derive(Clone, Copy, Debug)]
struct Case {
    policy: Policy,
    promise: Promise,
    /// The permits that it gives at once.
    capacity: u64,
    /// The most that a call costs.
    costliest: u64,
}

/// What may be given within a span, of microseconds and permits.
#[derive(Clone, Copy, Debug)]
enum Promise {
    /// `capacity + span / interval`, the capacity in microseconds, and so many calls of the greatest cost.
    Bucket { capacity: u128, permits: u128, period: u128, calls: u128 },
    /// `burst + refill · (⌊span / period⌋ + 1)`
    Interval { burst: u128, refill: u128, period: u128 },
    /// `limit` in every window, however many the span touches.
    Fixed { limit: u128, period: u128, aligned: bool },
    /// `limit` in every interval of the period.
    Sliding { limit: u128, period: u128 },
}

#[derive(Clone, Copy, Debug)]
struct Grant {
    at: u64,
    cost: u64,
}

fn case(random: &mut Random) -> Case {
    let permits = random.between(1, 60);
    let period = Duration::from_millis(random.between(1, 40) * permits);
    let capacity = random.between(1, 40);
    let rate = Rate::new(permits, period);
    let bucket = TokenBucket::new(rate);
    let micros = |time: Duration| time.as_micros();
    let interval = micros(period).div_ceil(permits.into());
    let filled = |capacity: u64, calls| Promise::Bucket {
        capacity: u128::from(capacity) * interval,
        permits: permits.into(),
        period: micros(period),
        calls,
    };
    let costliest = if random.percent(50) { 1 } else { random.between(1, capacity) };
    let case = |policy: Policy, promise, capacity| Case { policy, promise, capacity, costliest };
    match random.below(9) {
        0 => case(bucket.burst(capacity).into(), filled(capacity, 0), capacity),
        1 => case(LeakyBucket::new(capacity, rate).into(), filled(capacity, 0), capacity),
        // One call at a time, whatever the line is long.
        2 => case(LeakyBucket::new(capacity, rate).queue().into(), filled(0, 1), 1),
        3 => {
            // What all lend is one call of each.
            let case = case(bucket.burst(capacity).borrow().into(), filled(capacity, 1), capacity);
            Case { capacity: if case.costliest > 1 { 1 } else { capacity }, ..case }
        }
        4 => {
            let warmup = Duration::from_micros(random.between(1, 20) * interval as u64);
            case(bucket.warmup(warmup).into(), filled(0, 1), 1)
        }
        5 => {
            let promise =
                Promise::Interval { burst: capacity.into(), refill: permits.into(), period: micros(period) };
            case(bucket.interval_refill().burst(capacity).into(), promise, capacity)
        }
        kind @ 6..=7 => {
            let window = FixedWindow::new(capacity, period);
            let aligned = kind == 7;
            let promise = Promise::Fixed { limit: capacity.into(), period: micros(period), aligned };
            case(if aligned { window.aligned() } else { window }.into(), promise, capacity)
        }
        _ => {
            let window = SlidingWindow::new(capacity, period);
            let promise = Promise::Sliding { limit: capacity.into(), period: micros(period) };
            let window = if random.percent(50) { window } else { window.precision(period / 10) };
            case(window.into(), promise, capacity)
        }
    }
}

/// Callers of so many instances that ask for all they get, now and then after a pause.
fn grants(spec: &AlgorithmSpec, instances: u32, costliest: u64, random: &mut Random) -> Vec<Grant> {
    let share = spec.per_instance(instances);
    let mut states: Vec<Option<State>> = vec![None; instances as usize];
    let mut now = START + random.below(10_000_000);
    let mut grants = Vec::new();
    for _ in 0..CALLS {
        let instance = random.below(instances.into()) as usize;
        let greedy = random.percent(80);
        for state in if greedy { &mut states[..] } else { &mut states[instance..=instance] } {
            let cost = if costliest == 1 { 1 } else { random.between(1, costliest) };
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

/// Whether so much may be given from the first to the last of these grants, `more` beyond the promise.
fn is_kept(promise: Promise, first: u64, last: u64, sum: u128, more: u128, costliest: u64) -> bool {
    let span = u128::from(last - first);
    match promise {
        Promise::Bucket { capacity, permits, period, calls } => {
            // Of each call's parts a fraction of 1 µs is cut.
            let lent = calls * u128::from(costliest) + more;
            sum * period <= permits * (capacity + span + 2) + lent * period
        }
        Promise::Interval { burst, refill, period } => sum <= burst + refill * (span / period + 1) + more,
        Promise::Fixed { limit, period, aligned } => {
            let windows = if aligned {
                u128::from(last) / period - u128::from(first) / period + 1
            } else {
                span / period + 2
            };
            sum <= limit * windows + more
        }
        Promise::Sliding { limit, period } => sum <= limit * (span / period + 1) + more,
    }
}

#[test]
fn all_shares_together_give_no_more_than_the_policy() {
    let random = Random::seeded();
    let mut at_their_bound = 0;
    for run in 0..RUNS {
        let random = &mut random.run(run);
        let case = case(random);
        let instances = random.between(1, 25) as u32;
        let spec = case.policy.spec().unwrap();
        let more = if case.capacity < u64::from(instances) {
            u128::from(instances) * u128::from(case.costliest)
        } else {
            0
        };
        let grants = grants(&spec, instances, case.costliest, random);
        let (mut most, fault) = (0, |sum| {
            format!("run {run}: {sum} by {instances} of {case:?}, each {:?}", spec.per_instance(instances))
        });
        for (i, first) in grants.iter().enumerate() {
            let mut sum = 0;
            for last in &grants[i..] {
                sum += u128::from(last.cost);
                let kept = |more| is_kept(case.promise, first.at, last.at, sum, more, case.costliest);
                assert!(kept(more), "{}", fault(sum));
                most = most.max(if kept(0) { sum } else { u128::MAX });
            }
        }
        at_their_bound += u64::from(most == u128::MAX);
    }
    println!("in {at_their_bound} runs each instance had a call more");
    assert!(at_their_bound > 0);
}

#[test]
fn the_share_of_one_is_the_policy() {
    let random = Random::seeded();
    for run in 0..RUNS {
        let spec = case(&mut random.run(run)).policy.spec().unwrap();
        assert_eq!((spec.per_instance(1), spec.per_instance(0)), (spec, spec));
    }
}

#[test]
fn a_share_gives_a_permit_where_the_policy_does() {
    let random = Random::seeded();
    for run in 0..RUNS {
        let spec = case(&mut random.run(run)).policy.spec().unwrap();
        for instances in [2, 7, 1000, u32::MAX] {
            let share = spec.per_instance(instances);
            assert!(share.fits(1), "{share:?} of {spec:?}");
            assert!(!share.fits(spec.max_cost().map_or(u64::MAX, |most| most + 1)), "{share:?} of {spec:?}");
        }
    }
}

/// The extremes of every number that a policy can have, by as many instances as there can be.
#[test]
fn no_number_of_a_share_is_too_large() {
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
