//! What is counted, against slow counts that are obvious.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::ladder::Ladder;
use super::sketch::{MAX_KEYS, Sketch};
use crate::algorithm::State;
use crate::base::property_tests::config;
use crate::base::random_numbers::random_numbers;
use crate::base::rate::Rate;
use crate::policy::{FixedWindow, LeakyBucket, Policy, TokenBucket};

const SECOND: u64 = 1_000_000;

/// A call: the hash of its key, its time, and its cost.
type Call = (u64, u64, u64);

fn policies() -> [Policy; 4] {
    let period = Duration::from_secs(3);
    [
        TokenBucket::new(Rate::per_second(2)).burst(5).into(),
        LeakyBucket::new(3, Rate::new(40, Duration::from_secs(60))).into(),
        FixedWindow::new(4, period).into(),
        FixedWindow::new(4, period).aligned().into(),
    ]
}

fn sketch(policy: Policy) -> Sketch {
    Sketch::new(Ladder::around(&policy.spec().unwrap()).unwrap())
}

fn count(sketch: &mut Sketch, (hash, time, cost): Call) -> bool {
    sketch.make_room_for(hash, time);
    sketch.count(hash, time, cost)
}

/// Returns how many calls a policy refuses, by the steps of the library.
fn refused(policy: Policy, calls: &[Call]) -> u64 {
    let spec = policy.spec().unwrap();
    let mut states = HashMap::<u64, Option<State>>::new();
    let refuses = |(hash, time, cost): &&Call| {
        let state = states.entry(*hash).or_default();
        let snapshot = spec.check(state.as_ref(), *time, *cost);
        let admitted = spec.verdict(snapshot, *time, *cost, 0).admitted;
        if admitted {
            spec.commit(state, snapshot, *time, *cost);
        }
        !admitted
    };
    calls.iter().filter(refuses).count() as u64
}

/// Asserts that each rung has refused as many calls as the policy that it is would have.
fn assert_exact(sketch: &Sketch, calls: &[Call]) {
    for (place, rung) in sketch.ladder.rungs().iter().enumerate() {
        let share = refused(rung.policy, calls) as f64 / calls.len() as f64;
        let found = sketch.refused(place);
        assert_eq!((found.share, found.error), (share, 0.0), "{:?}", rung.policy);
    }
    assert_eq!((sketch.calls, sketch.all_calls()), (calls.len() as u64, calls.len() as u64));
}

/// Returns random hashes.
fn random_hashes(random: &mut impl FnMut(u64) -> u64) -> impl Iterator<Item = u64> {
    std::iter::repeat_with(|| random(1 << 31) << 33 ^ random(1 << 31))
}

/// Calls of so many keys. The first ones of a list have many.
fn traffic(keys: usize, calls: usize, seed: u64) -> Vec<Call> {
    let mut random = random_numbers(seed);
    let hashes: Vec<u64> = random_hashes(&mut random).take(keys).collect();
    let mut time = 1_000 * SECOND;
    let call = |_| {
        time += random(8 * SECOND / keys as u64);
        let at = random(keys as u64) * random(keys as u64) / keys as u64;
        (hashes[at as usize], time, 1)
    };
    (0..calls).map(call).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn followed_calls_are_decided_as_by_the_policies_themselves(
        steps in prop::collection::vec((0..3u64, prop_oneof![0..3u64, 0..2 * SECOND], 1..4u64), 1..80),
    ) {
        let mut time = 1_000 * SECOND;
        let calls: Vec<Call> = steps.into_iter().map(|(key, step, cost)| {
            time += step;
            (key, time, cost)
        }).collect();
        for policy in policies() {
            let mut sketch = sketch(policy);
            calls.iter().for_each(|call| assert!(count(&mut sketch, *call)));
            assert_exact(&sketch, &calls);
        }
    }

    #[test]
    fn larger_numbers_refuse_no_more_calls_of_one_permit(
        steps in prop::collection::vec((0..2u64, prop_oneof![0..3u64, 0..SECOND]), 1..80),
    ) {
        for policy in policies() {
            let (mut sketch, mut time) = (sketch(policy), 1_000 * SECOND);
            for (key, step) in &steps {
                time += step;
                count(&mut sketch, (*key, time, 1));
            }
            let shares: Vec<f64> =
                (0..sketch.ladder.rungs().len()).map(|place| sketch.refused(place).share).collect();
            prop_assert!(shares.is_sorted_by(|smaller, larger| smaller >= larger), "{shares:?}");
        }
    }
}

#[test]
fn keys_that_are_like_new_ones_make_room() {
    for policy in policies() {
        let (mut sketch, mut random) = (sketch(policy), random_numbers(7));
        let longest = sketch.ladder.longest;
        let mut calls = Vec::new();
        // A crowd comes, and is gone when the next one comes, or comes again.
        for crowd in 0..12u64 {
            for _ in 0..4_000 {
                let key = (crowd % 8 * 600 + random(600)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                calls.push((key, (1 + crowd) * (longest + SECOND), 1));
            }
        }
        calls.iter().for_each(|call| assert!(count(&mut sketch, *call)));
        assert_eq!(sketch.threshold(), u64::MAX);
        assert_exact(&sketch, &calls);
    }
}

#[test]
fn shares_of_more_keys_than_are_followed_are_within_their_errors() {
    for (seed, policy) in (1..).zip(policies().into_iter().cycle().take(8)) {
        let calls = traffic(10_000, 150_000, seed);
        let mut sketch = sketch(policy);
        for call in &calls {
            count(&mut sketch, *call);
            assert!(sketch.keys() <= MAX_KEYS);
        }
        assert!(sketch.threshold() < u64::MAX / 4, "nearly all keys are followed");
        assert!(sketch.all_calls().abs_diff(150_000) < 15_000);
        let rungs = sketch.ladder.rungs();
        let exact = |place: usize| refused(rungs[place].policy, &calls) as f64 / 150_000.0;
        for place in (0..rungs.len()).step_by(6) {
            let (found, exact) = (sketch.refused(place), exact(place));
            let off = (found.share - exact).abs();
            assert!(off < 3.0 * found.error + 0.001, "{seed}, {:?}: {found:?} {exact}", rungs[place].policy);
        }
        // The smallest rung is at most three steps, or 1.7 times, above what all keys would tell.
        let place = sketch.smallest(0.001).unwrap();
        let [chosen, less] = [place, place - 4].map(exact);
        assert!(chosen < 0.0015 && less > 0.001, "{seed}, {:?}: {chosen} {less}", rungs[place].policy);
    }
}

#[test]
fn keys_with_many_calls_stay() {
    let daily = FixedWindow::new(100, Duration::from_secs(86_400)).into();
    let mut sketch = sketch(daily);
    let mut random = random_numbers(3);
    let busy: Vec<u64> = random_hashes(&mut random).take(20).collect();
    for (time, other) in (1..100_000).zip(random_hashes(&mut random)) {
        count(&mut sketch, (other, time, 1));
        assert!(count(&mut sketch, (busy[time as usize % 20], time, 1)), "{time}");
    }
    assert!(sketch.keys() <= MAX_KEYS);
    assert!(sketch.above_threshold().count() >= 15);
    let all = 2.0 * 99_999.0;
    assert!((sketch.all_calls() as f64 / all - 1.0).abs() < 0.1, "{}", sketch.all_calls());
    // Those of busy keys beyond the limit.
    let place = sketch
        .ladder
        .rungs()
        .iter()
        .position(|rung| rung.policy == FixedWindow::new(100, Duration::from_secs(86_400)).into());
    let exact = (99_999.0 - 20.0 * 100.0) / all;
    assert!((sketch.refused(place.unwrap()).share / exact - 1.0).abs() < 0.1);
}
