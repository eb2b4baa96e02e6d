//! Calls by numbers that change on the keys of a literal bucket keep the bound of the largest numbers, and refunds return
//! nothing twice.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::algorithm::AlgorithmSpec;
use crate::base::property_tests::config;
use crate::base::rate::Rate;
use crate::policy::{FixedWindow, LeakyBucket, Policy, TokenBucket};

/// The numbers of a bucket: permits, the microseconds in which they refill, and burst.
type Numbers = (u64, u64, u64);

const START: u64 = 1_000_000;

fn numbers() -> impl Strategy<Value = Vec<Numbers>> {
    let one = (1..3_u64, prop_oneof![20..30_u64, 2..100_u64], prop_oneof![3 => 6..8_u64, 1 => 1..8_u64]);
    prop::collection::vec(one.prop_map(|(permits, micros, burst)| (permits, permits * micros, burst)), 2..4)
}

/// Returns the spec as written, which is the first, and the others on its keys.
fn specs(policy: impl Fn(Numbers) -> Policy, numbers: &[Numbers]) -> Vec<AlgorithmSpec> {
    let specs: Vec<_> = numbers.iter().map(|numbers| policy(*numbers).spec().unwrap()).collect();
    specs.iter().map(|spec| AlgorithmSpec::changed(&specs[0], spec)).collect()
}

fn token_bucket((permits, micros, burst): Numbers) -> TokenBucket {
    TokenBucket::new(Rate::new(permits, Duration::from_micros(micros))).burst(burst)
}

/// What happens after a pause: a call, or the refund of an earlier one.
type Step = (u64, Index, Option<u64>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![3 => Just(0), 2 => 0..20_u64, 2 => 0..400_u64];
    let cost = prop_oneof![3 => (1..8_u64).prop_map(Some), 1 => Just(None)];
    prop::collection::vec((pause, any::<Index>(), cost), 1..60)
}

/// Returns the permits missing from a bucket.
fn missing(spec: &AlgorithmSpec, state: Option<&State>, now: u64) -> f64 {
    match state {
        Some(State::Gcra(bucket)) => {
            let AlgorithmSpec::Gcra(spec) = spec else { unreachable!("a literal bucket") };
            bucket.tat.saturating_sub(now) as f64 / spec.interval as f64
        }
        Some(State::AdjustableGcra(bucket)) => bucket.tat.saturating_sub(now) as f64 / bucket.pace,
        Some(State::IntervalBucket(_)) => spec.check(state, now, 0)[1] as f64,
        _ => 0.0,
    }
}

/// Makes the steps. Returns when each admitted call was made, and the permits that it took and did not get back.
fn admitted(specs: &[AlgorithmSpec], steps: &[Step]) -> Vec<(u64, f64)> {
    let (mut state, mut now, mut calls) = (None, START, Vec::new());
    let mut receipts = Vec::new();
    for (pause, index, cost) in steps {
        now += pause;
        match cost {
            Some(cost) => {
                let spec = index.get(specs);
                let snapshot = spec.check(state.as_ref(), now, *cost);
                let verdict = spec.verdict(snapshot, now, *cost, 0);
                if verdict.admitted {
                    spec.commit(&mut state, snapshot, now, *cost);
                    receipts.push((calls.len(), spec, *cost, verdict.charge_id));
                    calls.push((now, *cost as f64));
                }
            }
            None if !receipts.is_empty() => {
                let (call, spec, cost, charge_id) = receipts.remove(index.index(receipts.len()));
                let before = missing(&specs[0], state.as_ref(), now);
                spec.refund(&mut state, now, cost, Some(charge_id));
                calls[call].1 -= before - missing(&specs[0], state.as_ref(), now);
            }
            None => {}
        }
        // A key expires once its state has ended.
        state = state.filter(|state| specs[0].ends(state) > now);
    }
    calls
}

/// Checks every interval, given the most permits within a span of microseconds.
fn check(calls: &[(u64, f64)], most: impl Fn(u64) -> f64) -> Result<(), TestCaseError> {
    for (i, (first, _)) in calls.iter().enumerate() {
        let mut sum = 0.0;
        for (last, permits) in &calls[i..] {
            sum += permits;
            let most = most(last - first);
            prop_assert!(sum <= most + 1e-6, "{sum} of {most} from {first} to {last}: {calls:?}");
        }
    }
    Ok(())
}

/// Returns the largest rate, in permits per microsecond.
fn fastest(numbers: &[Numbers]) -> f64 {
    numbers.iter().map(|(permits, micros, _)| *permits as f64 / *micros as f64).fold(0.0, f64::max)
}

fn largest_burst(numbers: &[Numbers]) -> f64 {
    numbers.iter().map(|(.., burst)| *burst).max().unwrap_or(0) as f64
}

#[test]
fn specs_stay_small() {
    assert!(size_of::<AlgorithmSpec>() <= 48, "{}", size_of::<AlgorithmSpec>());
}

#[test]
fn equal_numbers_change_nothing() {
    let [five, six] =
        [5, 6].map(|burst| Policy::from(TokenBucket::per_second(1).burst(burst)).spec().unwrap());
    let changed = AlgorithmSpec::changed(&five, &six);
    assert_eq!(AlgorithmSpec::changed(&five, &five), five);
    assert_eq!(AlgorithmSpec::changed(&changed, &five), five);
    assert_eq!(AlgorithmSpec::changed(&changed, &six), changed);
    assert_eq!(changed.to_string(), five.to_string());
}

#[test]
fn layout_is_plain_where_nothing_is_changed() {
    const LATER: u64 = START + 100_000_000;
    let spec = |bucket: TokenBucket| Policy::from(bucket).spec().unwrap();
    for policy in [TokenBucket::per_second(1), TokenBucket::per_second(1).interval_refill()] {
        let (as_written, larger) = (spec(policy.burst(5)), spec(policy.burst(6)));
        let changed = AlgorithmSpec::changed(&as_written, &larger);
        let charge = |spec: &AlgorithmSpec, state: &mut Option<State>, now| {
            let snapshot = spec.check(state.as_ref(), now, 1);
            spec.commit(state, snapshot, now, 1);
            state.clone()
        };
        let plain = charge(&as_written, &mut None, LATER);
        // A refund that returns nothing.
        let mut state = plain.clone();
        changed.refund(&mut state, LATER, 0, None);
        assert_eq!(state, plain);
        // A call by the numbers as written, long after one by others.
        let mut state = None;
        charge(&changed, &mut state, START);
        assert_eq!(charge(&as_written, &mut state, LATER), plain);
    }
}

#[test]
fn specs_that_keep_no_literal_state_are_replaced() {
    let spec = |policy: Policy| policy.spec().unwrap();
    let every = |seconds| {
        let rate = Rate::new(1, Duration::from_secs(seconds));
        spec(TokenBucket::new(rate).interval_refill().into())
    };
    let window = |limit| spec(FixedWindow::new(limit, Duration::from_secs(1)).into());
    let computed = |burst| spec(TokenBucket::per_second(1).burst(burst).adjustable().into());
    let meter = spec(LeakyBucket::new(5, Rate::per_second(1)).into());
    let queue = spec(LeakyBucket::new(5, Rate::per_second(1)).queue().into());
    for (as_written, to) in
        [(every(1), every(2)), (window(1), window(2)), (computed(1), computed(2)), (meter, queue)]
    {
        assert_eq!(AlgorithmSpec::changed(&as_written, &to), to);
    }
}

#[test]
fn share_of_changed_numbers_is_one_of_both() {
    let [as_written, to] = [10, 40].map(|burst| Policy::from(TokenBucket::per_second(burst)).spec().unwrap());
    let share = AlgorithmSpec::changed(&as_written, &to).per_instance(4);
    let [as_written, to] = [as_written, to].map(|spec| spec.per_instance(4));
    assert_eq!(share, AlgorithmSpec::changed(&as_written, &to));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn token_buckets_keep_the_bound_of_the_largest_numbers(numbers in numbers(), steps in steps()) {
        let specs = specs(|numbers| token_bucket(numbers).into(), &numbers);
        let (burst, rate) = (largest_burst(&numbers), fastest(&numbers));
        check(&admitted(&specs, &steps), |span| burst + rate * span as f64)?;
    }

    #[test]
    fn meters_keep_the_bound_of_the_largest_numbers(numbers in numbers(), steps in steps()) {
        let meter = |(permits, micros, capacity)| {
            LeakyBucket::new(capacity, Rate::new(permits, Duration::from_micros(micros))).into()
        };
        let (capacity, rate) = (largest_burst(&numbers), fastest(&numbers));
        check(&admitted(&specs(meter, &numbers), &steps), |span| capacity + rate * span as f64)?;
    }

    #[test]
    fn interval_buckets_keep_the_bound_of_the_largest_numbers(
        numbers in numbers(),
        period in 2..200_u64,
        steps in steps(),
    ) {
        let bucket = |(permits, _, burst)| token_bucket((permits, period, burst)).interval_refill().into();
        let refill = numbers.iter().map(|(permits, ..)| *permits).max().unwrap_or(0);
        let burst = largest_burst(&numbers);
        let most = |span: u64| burst + (refill * (span / period + 1)) as f64;
        check(&admitted(&specs(bucket, &numbers), &steps), most)?;
    }
}
