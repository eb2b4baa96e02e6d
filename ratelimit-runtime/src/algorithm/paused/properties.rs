//! What a pause leaves of any state, beside the same state without the pause.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::base::property_tests::config;
use crate::base::rate::Rate;
use crate::policy::{FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};

const START: u64 = 1_000_000;

fn spec() -> impl Strategy<Value = AlgorithmSpec> {
    (0..12usize, 1..5_u64, 1..60_u64, 1..8_u64).prop_map(|(kind, permits, micros, burst)| {
        let period = Duration::from_micros(permits * micros);
        let rate = Rate::new(permits, period);
        let (bucket, funnel) = (TokenBucket::new(rate).burst(burst), LeakyBucket::new(burst, rate));
        let policies: [Policy; 12] = [
            bucket.into(),
            funnel.into(),
            bucket.borrow().into(),
            funnel.queue().into(),
            bucket.interval_refill().into(),
            bucket.adjustable().into(),
            bucket.settled().into(),
            funnel.queue().adjustable().into(),
            bucket.interval_refill().adjustable().into(),
            TokenBucket::new(rate).warmup(period * 3).into(),
            FixedWindow::new(burst, period).into(),
            SlidingWindow::new(burst, period).into(),
        ];
        policies[kind].clone().spec().unwrap()
    })
}

/// Charges at some times after each other, which may wait.
fn charges() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    prop::collection::vec((0..80_u64, 1..4_u64, select(vec![0, 0, 50, 1000])), 0..12)
}

/// Returns the state after these charges, and the time.
fn charged(spec: &AlgorithmSpec, charges: &[(u64, u64, u64)]) -> (Option<State>, u64) {
    let (mut state, mut now) = (None, START);
    for (later, cost, wait) in charges {
        now += later;
        let snapshot = spec.check(state.as_ref(), now, *cost);
        if spec.verdict(snapshot, now, *cost, *wait).admitted {
            spec.commit(&mut state, snapshot, now, *cost);
        }
    }
    (state, now)
}

fn verdict(spec: &AlgorithmSpec, state: Option<&State>, now: u64, cost: u64, wait: u64) -> Verdict {
    let pause = AlgorithmSpec::pause_of(state, now);
    spec.verdict_in(pause, spec.check(state, now, cost), now, cost, wait)
}

/// Returns what does not depend on when it is.
fn relative(verdict: Verdict) -> (bool, u64, u64, Option<u64>, u64) {
    (verdict.admitted, verdict.wait, verdict.remaining, verdict.retry_after, verdict.reset_after)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_call_starts_in_a_pause_and_retries_are_exact(
        spec in spec(),
        charges in charges(),
        (micros, elapsed) in (1..300_u64).prop_flat_map(|micros| (Just(micros), 0..micros)),
        (cost, wait) in (1..6_u64, select(vec![0, 0, 30, 200, 5000])),
    ) {
        let (mut state, now) = charged(&spec, &charges);
        spec.pause(&mut state, now, micros);
        let (at, end) = (now + elapsed, now + micros);
        let decided = verdict(&spec, state.as_ref(), at, cost, wait);
        prop_assert_eq!(decided.remaining, 0);
        if decided.admitted {
            prop_assert!(decided.wait >= end - at && decided.wait <= wait, "{decided:?}");
            // The next one is not before it.
            let snapshot = spec.check(state.as_ref(), at, cost);
            spec.commit(&mut state, snapshot, at, cost);
            let next = verdict(&spec, state.as_ref(), at, 1, u64::MAX / 4);
            prop_assert!(!next.admitted || next.wait >= decided.wait || cost > 1, "{next:?} after {decided:?}");
        } else if let Some(after) = decided.retry_after {
            let wait = if spec.queue().is_some() { wait } else { 0 };
            prop_assert!(after > 0);
            prop_assert!(verdict(&spec, state.as_ref(), at + after, cost, wait).admitted, "{decided:?}");
            prop_assert!(!verdict(&spec, state.as_ref(), at + after - 1, cost, wait).admitted, "{decided:?}");
        }
    }

    #[test]
    fn time_stands_still_for_buckets_and_not_for_windows(
        spec in spec(),
        charges in charges(),
        micros in 1..300_u64,
        (cost, wait) in (0..6_u64, select(vec![0, 30, 5000])),
    ) {
        let (state, now) = charged(&spec, &charges);
        let (mut paused, end) = (state.clone(), now + micros);
        spec.pause(&mut paused, now, micros);
        let after = verdict(&spec, paused.as_ref(), end, cost, wait);
        if !spec.reserves() {
            prop_assert_eq!(relative(after), relative(verdict(&spec, state.as_ref(), end, cost, wait)));
        } else if !matches!(spec, AlgorithmSpec::WarmingUp(_)) {
            let one = verdict(&spec, state.as_ref(), now, 1, 0);
            if one.admitted && spec.queue().is_none() {
                let one = verdict(&spec, paused.as_ref(), end, 1, 0);
                prop_assert_eq!((one.admitted, one.remaining), (true, 0));
            } else {
                prop_assert_eq!(relative(after), relative(verdict(&spec, state.as_ref(), now, cost, wait)));
            }
        }
    }

    #[test]
    fn receipts_of_buckets_are_worth_nothing_after_a_pause(
        spec in spec().prop_filter("a bucket", AlgorithmSpec::reserves),
        charges in charges(),
        (later, micros, after) in (0..40_u64, 1..300_u64, 0..300_u64),
        unchecked in 0..3_u64,
    ) {
        let (mut state, mut now, mut made) = (None, START, Vec::new());
        for (later, cost, wait) in charges {
            now += later;
            let snapshot = spec.check(state.as_ref(), now, cost);
            let verdict = spec.verdict(snapshot, now, cost, wait);
            if verdict.admitted {
                spec.commit(&mut state, snapshot, now, cost);
                made.push((cost, verdict.charge_id));
            }
        }
        now += later;
        if unchecked > 0 {
            spec.refund(&mut state, now, unchecked, None);
        }
        spec.pause(&mut state, now, micros);
        for at in [now, now + micros, now + micros + after] {
            for (cost, charge_id) in &made {
                let before = state.clone();
                spec.refund(&mut state, at, *cost, Some(*charge_id));
                prop_assert_eq!(&state, &before);
            }
        }
    }

    #[test]
    fn pauses_are_added_up_only_where_they_do_not_overlap(
        spec in spec(),
        charges in charges(),
        pauses in prop::collection::vec((0..100_u64, 0..200_u64), 1..6),
    ) {
        let (mut state, mut now) = charged(&spec, &charges);
        let (mut until, mut paused) = (0, 0);
        for (later, micros) in pauses {
            now += later;
            let end = now + micros;
            let before = state.clone();
            spec.pause(&mut state, now, micros);
            if end <= until.max(now) {
                prop_assert_eq!(&state, &before);
                continue;
            }
            paused += end - until.max(now);
            until = end;
            let pause = AlgorithmSpec::pause_of(state.as_ref(), now);
            prop_assert_eq!(pause, Some(Pause { until, moved: paused, ..Pause::default() }));
        }
    }

    #[test]
    fn penalties_are_kept_until_they_are_forgiven(
        spec in spec(),
        charges in charges(),
        (first, longer) in (1..100_u64, 0..100_u64),
    ) {
        let (mut state, now) = charged(&spec, &charges);
        let steps = [first, first + longer];
        prop_assert_eq!(spec.penalize(&mut state, now, &steps), Some(1));
        let forgiven = now + first + steps[1];
        let paused = state.as_ref().unwrap();
        prop_assert!(spec.ends(paused) >= forgiven);
        for (at, step) in [(now + first, 1), (forgiven - 1, 1), (forgiven, 0)] {
            prop_assert_eq!(AlgorithmSpec::pause_of(state.as_ref(), at).unwrap().step(at), step);
            prop_assert_eq!(spec.penalize(&mut state.clone(), at, &steps), None);
        }
        let at = now + first + 10_000;
        let snapshot = spec.check(state.as_ref(), at, 1);
        prop_assert!(spec.verdict(snapshot, at, 1, 0).admitted);
        spec.commit(&mut state, snapshot, at, 1);
        prop_assert_eq!(AlgorithmSpec::pause_of(state.as_ref(), at), None);
    }
}
