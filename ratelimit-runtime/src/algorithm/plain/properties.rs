//! Plain steps and the full ones give the same result.

use proptest::prelude::*;

use super::state::MAX_LEAD;
use super::*;
use crate::algorithm::state::{AdjustableGcraState, FixedWindowState, State};
use crate::base::property_tests::config;
use crate::policy::{LeakyBucket, Policy, SlidingWindow, TokenBucket};

fn spec() -> impl Strategy<Value = AlgorithmSpec> {
    let kind = prop_oneof![Just(GcraKind::TokenBucket), Just(GcraKind::Meter), Just(GcraKind::Queue)];
    prop_oneof![
        (kind, 1..50u64, 1..8u64, any::<bool>()).prop_map(|(kind, interval, burst, adjustable)| {
            AlgorithmSpec::gcra(GcraSpec { kind, interval, capacity: interval * burst }, adjustable)
        }),
        (1..50u64, 1..300u64).prop_map(|(interval, capacity)| {
            let kind = GcraKind::Borrowing(Rate::new(1, Duration::from_micros(interval)));
            AlgorithmSpec::Gcra(GcraSpec { kind, interval, capacity })
        }),
        (0..8u64, 1..100u64, any::<bool>()).prop_map(|(limit, period, aligned)| {
            AlgorithmSpec::FixedWindow(FixedWindowSpec { limit, period, aligned })
        }),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn plain_steps_are_those_of_the_algorithm(
        spec in spec(),
        calls in prop::collection::vec((0..60u64, 1..10u64, 0..3u64, 0..20u64, 0..10u64), 1..30),
    ) {
        let steps = PlainSpec::of(&spec).unwrap();
        prop_assert_eq!(steps.spec(), spec);
        prop_assert_eq!(PlainSpec::of_words(steps.words()), Some(steps));
        let (mut state, mut now) = (None, 1000);
        for (elapsed, cost, refunded, later, credited) in calls {
            now += elapsed;
            let snapshot = spec.check(state.as_ref(), now, cost);
            let verdict = spec.verdict(snapshot, now, cost, 0);
            let lends = matches!(spec, AlgorithmSpec::Gcra(GcraSpec { kind: GcraKind::Borrowing(_), .. }));
            let plain = state.as_ref().and_then(|state| PlainState::of(state, &spec));
            prop_assert!(lends || plain.is_some() || state.is_none());
            if plain.is_some() {
                prop_assert_eq!(plain.and_then(|plain| plain.state(&spec)), state.clone());
            }
            let found = plain.or_else(|| state.is_none().then(|| steps.absent()));
            let step = found.and_then(|found| steps.decide(found, now, cost));
            if let Some(PlainStep { snapshot: read, .. }) = step {
                let looked = spec.peek(None, spec.check(state.as_ref(), now, 0), now);
                prop_assert_eq!(steps.peek(steps.limit(), read, now), looked);
            }
            if verdict.admitted {
                spec.commit(&mut state, snapshot, now, cost);
            }
            let has_debt = state.as_ref().is_some_and(|state| PlainState::of(state, &spec).is_none());
            prop_assert_eq!(step.is_none(), found.is_none() || lends && (has_debt || !verdict.admitted));
            if let Some(PlainStep { snapshot: read, admitted: is_admitted, after }) = step {
                prop_assert_eq!(read.full(&spec, now, cost), snapshot);
                prop_assert_eq!([is_admitted, after.is_some()], [verdict.admitted; 2]);
                let admitted = verdict.admitted;
                prop_assert_eq!(steps.verdict(steps.limit(), read, now, cost, admitted), verdict);
                if admitted {
                    prop_assert_eq!(after, PlainState::of(state.as_ref().unwrap(), &spec));
                }
            }
            now += later;
            // Of this charge, of one that was not made, or of one before a reset, beside other refunds.
            let credited = if credited == 1 { 1 } else { verdict.charge_id.credited };
            let charge_id = ChargeId { credited, ..verdict.charge_id };
            let refund = PlainRefund { spec: &steps, charge_id };
            let plain = state.as_ref().and_then(|state| PlainState::of(state, &spec));
            if let Some(plain) = plain
                && let Some(PlainStep { admitted: true, after, .. }) = refund.decide(plain, now, refunded)
            {
                spec.refund(&mut state, now, refunded, Some(charge_id));
                let live = |state: &State| spec.ends(state) > now;
                let left = after.unwrap_or(plain).state(&spec).filter(live);
                prop_assert_eq!(left.as_ref(), state.as_ref().filter(|state| live(state)));
            }
        }
    }

    #[test]
    fn aligned_windows_keep_all_numbers_or_are_not_plain(
        period in prop_oneof![1..100u64, 1..1u64 << 45],
        opened in 0..1u64 << 52,
        count in prop_oneof![1..100u64, 1..1u64 << 53],
    ) {
        let spec = AlgorithmSpec::FixedWindow(FixedWindowSpec { limit: 1, period, aligned: true });
        let state = State::FixedWindow(FixedWindowState::of_plain(opened, count));
        if let Some(plain) = PlainState::of(&state, &spec) {
            prop_assert_eq!(plain.state(&spec), Some(state));
        } else {
            prop_assert!(period.ilog2() + count.ilog2() >= 62);
        }
    }

    #[test]
    fn adjustable_buckets_keep_all_numbers_or_are_not_plain(
        tat in 1u64 << 37..1 << 53,
        lead in prop_oneof![0..100u64, MAX_LEAD - 5..MAX_LEAD + 5],
        pace in prop_oneof![1..100u64, MAX_PACE - 5..MAX_PACE + 5],
        fraction in prop_oneof![4 => Just(0.0), 1 => Just(0.5)],
        [credited, until, slot, changed] in prop::array::uniform4(prop_oneof![8 => Just(0), 1 => 1..100u64]),
    ) {
        let kind = GcraKind::TokenBucket;
        let spec = AlgorithmSpec::gcra(GcraSpec { kind, interval: 1, capacity: 1 }, true);
        let (written, whole) = (tat - lead, pace);
        let pace = whole as f64 + fraction;
        let bucket = AdjustableGcraState { tat, written, credited, until, slot, changed, pace };
        let state = State::AdjustableGcra(Box::new(bucket));
        if let Some(plain) = PlainState::of(&state, &spec) {
            prop_assert_eq!(plain.state(&spec), Some(state));
        } else {
            let has_more = credited + until + slot + changed > 0 || fraction > 0.0;
            prop_assert!(has_more || lead > MAX_LEAD || whole > MAX_PACE);
        }
    }

    #[test]
    fn states_from_the_future_are_not_plain(spec in spec(), cost in 1..10u64) {
        let mut state = None;
        spec.commit(&mut state, spec.check(None, 1000, 0), 1000, cost);
        let plain = PlainState::of(&state.unwrap(), &spec);
        let earlier = plain.and_then(|plain| PlainSpec::of(&spec)?.decide(plain, 1, cost));
        prop_assert!(earlier.is_none());
    }
}

#[test]
fn what_plain_steps_cannot_hold_is_not_plain() {
    let hour = Duration::from_secs(3600);
    let policies: [Policy; 5] = [
        TokenBucket::per_second(3).borrow().into(),
        TokenBucket::new(Rate::new(1, Duration::from_nanos(1_000_000_001))).burst(3).borrow().into(),
        TokenBucket::per_second(3).borrow().adjustable().into(),
        LeakyBucket::draining(10, hour).adjustable().into(),
        SlidingWindow::new(10, hour).into(),
    ];
    for policy in policies {
        assert_eq!(PlainSpec::of(&policy.spec().unwrap()), None, "{policy:?}");
    }
}
