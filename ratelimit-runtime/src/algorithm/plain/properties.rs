//! Plain steps and the full ones give the same result.

use proptest::prelude::*;

use super::*;
use crate::algorithm::{ChargeId, Verdict};
use crate::base::property_tests::config;

fn spec() -> impl Strategy<Value = AlgorithmSpec> {
    let kind = prop_oneof![Just(GcraKind::TokenBucket), Just(GcraKind::Meter)];
    prop_oneof![
        (kind, 1..50u64, 1..8u64).prop_map(|(kind, interval, burst)| {
            AlgorithmSpec::Gcra(GcraSpec { kind, interval, capacity: interval * burst })
        }),
        (0..8u64, 1..100u64).prop_map(|(limit, period)| {
            AlgorithmSpec::FixedWindow(FixedWindowSpec { limit, period, aligned: false })
        }),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn plain_steps_are_those_of_the_algorithm(
        spec in spec(),
        calls in prop::collection::vec((0..60u64, 1..10u64), 1..30),
    ) {
        let steps = spec.plain().unwrap();
        let (mut state, mut now) = (None, 1000);
        for (elapsed, cost) in calls {
            now += elapsed;
            let snapshot = spec.check(state.as_ref(), now, cost);
            let verdict = spec.verdict(snapshot, now, cost, 0);
            let plain = state.as_ref().map(|state| PlainState::of(state, &spec).unwrap());
            prop_assert_eq!(plain.map(|plain| plain.state(&spec)), state.clone());
            let step = plain.map(|plain| steps.decide(plain, now, cost).unwrap());
            if verdict.admitted {
                spec.commit(&mut state, snapshot, now, cost);
            }
            if let Some(PlainStep { snapshot: read, after }) = step {
                prop_assert_eq!(read.full(), snapshot);
                prop_assert_eq!(after.is_some(), verdict.admitted);
                prop_assert_eq!(steps.limit(), verdict.limit);
                let Verdict { admitted, remaining, retry_after, reset_after, charge_id, .. } = verdict;
                let ChargeId { at, .. } = charge_id;
                let expected = PlainVerdict { remaining, retry_after, reset_after, at };
                prop_assert_eq!(steps.verdict(read, now, cost, admitted), expected);
                prop_assert_eq!(charge_id, ChargeId { at, ..ChargeId::default() });
                if admitted {
                    prop_assert_eq!(after, PlainState::of(state.as_ref().unwrap(), &spec));
                }
            }
        }
    }

    #[test]
    fn states_from_the_future_are_not_plain(spec in spec(), cost in 1..10u64) {
        let mut state = None;
        spec.commit(&mut state, spec.check(None, 1000, 0), 1000, cost);
        let plain = PlainState::of(&state.unwrap(), &spec);
        let earlier = plain.and_then(|plain| spec.plain()?.decide(plain, 1, cost));
        prop_assert!(earlier.is_none());
    }
}
