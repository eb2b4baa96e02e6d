//! Conversions between rates, against exact arithmetic, and retries after a change of the rate.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::algorithm::AlgorithmSpec;
use crate::base::property_tests::config;
use crate::base::rate::Rate;
use crate::policy::{LeakyBucket, Policy, TokenBucket};

/// A rate of up to one permit per microsecond, and its exact pace.
fn rate() -> impl Strategy<Value = (Rate, u128, u128)> {
    (1..1_000_000_u64, 1..1_000_000_000_000_u64).prop_map(|(permits, micros)| {
        let micros = micros.max(permits);
        (Rate::new(permits, Duration::from_micros(micros)), u128::from(micros), u128::from(permits))
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn conversions_are_never_too_generous(
        (from, from_micros, from_permits) in rate(),
        (to, to_micros, to_permits) in rate(),
        micros in 0..1_u64 << 49,
    ) {
        let (from, to) = (from.micros_per_permit(), to.micros_per_permit());
        // The exact quotient is `dividend / divisor`.
        let (dividend, divisor) = (u128::from(micros) * to_micros * from_permits, to_permits * from_micros);
        let exact = dividend / divisor;
        let (least, most) = (rounded_down(micros, from, to), rounded_up(micros, from, to));
        if exact < 1 << 50 {
            prop_assert!(u128::from(most) * divisor >= dividend, "{most} of {exact}");
            prop_assert!(u128::from(most) <= exact + 3, "{most} of {exact}");
            prop_assert!(u128::from(least) * divisor <= dividend, "{least} of {exact}");
            prop_assert!(u128::from(least) + 3 >= exact, "{least} of {exact}");
        }
    }
}

#[test]
fn charges_at_an_earlier_rate_are_not_refunded() {
    let spec = |interval| {
        let spec = GcraSpec { kind: GcraKind::TokenBucket, interval, capacity: 1000 };
        AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec))
    };
    let (slow, fast, start) = (spec(100), spec(50), 1_000_000);
    for later in [0, 1, 99] {
        let (mut state, mut charged) = (None, Vec::new());
        for (now, spec) in [(start, slow), (start, fast), (start + later, slow)] {
            let snapshot = spec.check(state.as_ref(), now, 1);
            charged.push((spec, spec.verdict(snapshot, now, 1, 0).charge_id));
            spec.commit(&mut state, snapshot, now, 1);
        }
        for (spec, charge_id) in &charged[..2] {
            let before = state.clone();
            spec.refund(&mut state, start + later, 1, Some(*charge_id));
            assert_eq!(state, before, "{charge_id:?}");
        }
        let (spec, charge_id) = charged[2];
        spec.refund(&mut state, start + later, 1, Some(charge_id));
        let left = slow.check(state.as_ref(), start + later, 0)[0] - (start + later);
        assert!(left <= 200 - later, "{left}");
    }
}

/// Specs of the same kind, whose calls may change the rate.
fn specs() -> impl Strategy<Value = Vec<AlgorithmSpec>> {
    let numbers = prop::collection::vec((1..5_u64, 5..300_u64, 1..8_u64), 1..4);
    (0..4, numbers).prop_map(|(kind, numbers)| {
        let spec = |(permits, micros, capacity): (u64, u64, u64)| {
            let rate = Rate::new(permits, Duration::from_micros(permits * micros));
            let (bucket, funnel) = (TokenBucket::new(rate).burst(capacity), LeakyBucket::new(capacity, rate));
            let policy: Policy = match kind {
                0 => bucket.adjustable().into(),
                1 => bucket.borrow().adjustable().into(),
                2 => funnel.adjustable().into(),
                _ => funnel.queue().adjustable().into(),
            };
            policy.spec().unwrap()
        };
        numbers.into_iter().map(spec).collect()
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn retries_succeed_after_a_change_of_the_rate(
        specs in specs(),
        charges in prop::collection::vec(
            (0..300_u64, any::<prop::sample::Index>(), 1..6_u64, prop_oneof![Just(0), 0..2000_u64]),
            1..12,
        ),
        (last, cost, wait) in (any::<prop::sample::Index>(), 1..6_u64, prop_oneof![Just(0), 0..500_u64]),
    ) {
        let (mut state, mut now) = (None, 1_000_000);
        for (pause, spec, cost, wait) in charges {
            now += pause;
            let spec = spec.get(&specs);
            let snapshot = spec.check(state.as_ref(), now, cost);
            if spec.verdict(snapshot, now, cost, wait).admitted {
                spec.commit(&mut state, snapshot, now, cost);
            }
        }
        let spec = last.get(&specs);
        let verdict = |at, wait| spec.verdict(spec.check(state.as_ref(), at, cost), at, cost, wait);
        if let Some(retry_after) = verdict(now, wait).retry_after {
            let wait = if spec.waiting_room().is_some() { wait } else { 0 };
            prop_assert!(retry_after > 0);
            prop_assert!(verdict(now + retry_after, wait).admitted, "after {retry_after} µs with {spec:?}: {state:?}");
        }
    }
}
