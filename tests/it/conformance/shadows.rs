//! Shadow charges: counted and reported, but they never refuse a call.

use super::{Lane, Request, S, on_each_lane};
use crate::support::policies::{Pair, one_of_each};
use crate::support::test_store::StoredValue;

/// Decides, and returns whether the call is admitted, and what each policy says with the remaining permits.
async fn decide(lane: &Lane, at: i64, requests: &[Request<'_>]) -> (bool, Vec<(bool, i128)>) {
    let outcome = lane.decide(at, requests).await;
    let verdicts = outcome.verdicts.iter().map(|verdict| (verdict.admitted, verdict.remaining)).collect();
    (outcome.admitted, verdicts)
}

async fn remaining(lane: &Lane, at: i64, key: &str, pair: &Pair) -> i128 {
    lane.decide(at, &[Request::new(key, pair, 0)]).await.verdicts[0].remaining
}

/// Takes all three permits.
async fn exhaust(lane: &Lane, at: i64, key: &str, pair: &Pair) {
    assert_eq!(decide(lane, at, &[Request::new(key, pair, 3)]).await, (true, vec![(true, 0)]));
}

#[tokio::test]
async fn shadows_are_charged_and_never_refuse() {
    on_each_lane(async |lane| {
        for (name, pair) in one_of_each() {
            let list = |cost| [Request::shadow(name, &pair, cost)];
            assert_eq!(decide(&lane, 0, &list(2)).await, (true, vec![(true, 1)]), "{name}");
            let before = lane.stored(&[name]).await;
            let outcome = lane.decide(S, &list(2)).await;
            let verdict = outcome.verdicts[0];
            assert_eq!((outcome.admitted, verdict.admitted, verdict.remaining), (true, false, 1), "{name}");
            assert_eq!(decide(&lane, S, &list(4)).await, (true, vec![(false, 1)]), "{name}");
            assert_eq!(decide(&lane, S, &list(0)).await, (true, vec![(true, 1)]), "{name}");
            assert_eq!(lane.stored(&[name]).await, before, "{name}");

            // `retry_after` is exact.
            let then = S + verdict.retry_after.expect("two permits come back") as i64;
            let early = lane.decide(then - 1, &list(2)).await.verdicts[0];
            assert_eq!((early.admitted, early.retry_after), (false, Some(1)), "{name}");
            assert!(lane.decide(then, &list(2)).await.verdicts[0].admitted, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn shadows_are_charged_only_if_the_call_is_admitted() {
    on_each_lane(async |lane| {
        let policies = one_of_each();
        for (i, (first, a)) in policies.iter().enumerate() {
            for (second, b) in &policies {
                let name = format!("{first} and {second}");
                let (full, free) = (format!("{name}, full"), format!("{name}, free"));
                exhaust(&lane, 0, &full, a).await;
                assert_eq!(decide(&lane, 0, &[Request::new(&free, b, 1)]).await, (true, vec![(true, 2)]));
                let before = lane.stored(&[&full, &free]).await;
                // In both orders, as one is checked before the other.
                let mut list = [Request::new(&full, a, 1), Request::shadow(&free, b, 1)];
                let mut expected = vec![(false, 0), (true, 2)];
                if i % 2 == 1 {
                    list.reverse();
                    expected.reverse();
                }
                assert_eq!(decide(&lane, 0, &list).await, (false, expected.clone()), "{name}");
                assert_eq!(lane.stored(&[&full, &free]).await, before, "{name}");
                assert_eq!(remaining(&lane, 0, &free, b).await, 2, "{name}");

                // With the roles swapped the call is admitted, and the full key stays as it is.
                for request in &mut list {
                    request.shadow = !request.shadow;
                }
                for (admitted, remaining) in &mut expected {
                    *remaining -= i128::from(*admitted);
                }
                assert_eq!(decide(&lane, 0, &list).await, (true, expected), "{name}");
                let after = lane.stored(&[&full, &free]).await;
                assert_eq!(
                    after.map(|stored| stored[0].clone()),
                    before.map(|stored| stored[0].clone()),
                    "{name}"
                );
                assert_eq!(remaining(&lane, 0, &free, b).await, 1, "{name}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn each_shadow_follows_its_own_policy() {
    on_each_lane(async |lane| {
        for turn in 0..7 {
            let mut policies = one_of_each();
            policies.rotate_left(turn);
            let keys = ["a", "b", "c", "d", "e", "f", "g"].map(|key| format!("{key} in turn {turn}"));
            for full in [1, 5] {
                exhaust(&lane, 0, &keys[full], &policies[full].1).await;
            }
            let costs = [1, 1, 2, 0, 3, 2, 2];
            let required = [false, false, true, false, true, false, false];
            let list: Vec<Request<'_>> = (0..7)
                .map(|i| {
                    let request = Request::new(&keys[i], &policies[i].1, costs[i]);
                    Request { shadow: !required[i], ..request }
                })
                .collect();
            let first = [(true, 2), (false, 0), (true, 1), (true, 3), (true, 0), (false, 0), (true, 1)];
            assert_eq!(decide(&lane, 0, &list).await, (true, first.to_vec()), "turn {turn}");
            // Now the required charges are refused, and so is the last shadow.
            let second = [(true, 2), (false, 0), (false, 1), (true, 3), (false, 0), (false, 0), (false, 1)];
            assert_eq!(decide(&lane, 0, &list).await, (false, second.to_vec()), "turn {turn}");
        }
    })
    .await;
}

#[tokio::test]
async fn shadows_from_the_future_are_moved_but_not_extended() {
    on_each_lane(async |lane| {
        let refusing = one_of_each()[3].1;
        for (name, pair) in one_of_each() {
            let (alone, beside, full) =
                (format!("{name} alone"), format!("{name} beside"), format!("{name} full"));
            let keys = [alone.as_str(), beside.as_str()];
            for key in keys {
                exhaust(&lane, 500 * S, key, &pair).await;
            }
            // The expected state: exhausted now.
            exhaust(&lane, 100 * S, name, &pair).await;
            exhaust(&lane, 100 * S, &full, &refusing).await;
            let expected = lane.decide(100 * S, &[Request::new(name, &pair, 1)]).await.verdicts;

            let outcome = lane.decide(100 * S, &[Request::shadow(&alone, &pair, 1)]).await;
            assert_eq!((outcome.admitted, &outcome.verdicts), (true, &expected), "{name}");
            let list = [Request::shadow(&beside, &pair, 1), Request::new(&full, &refusing, 1)];
            let outcome = lane.decide(100 * S, &list).await;
            assert_eq!((outcome.admitted, outcome.verdicts[0]), (false, expected[0]), "{name}");

            let before = lane.stored(&keys).await;
            let fresh = lane.stored(&[name]).await;
            let expires_at = |stored: &Option<Vec<Option<StoredValue>>>| {
                stored.as_ref().map(|stored| stored[0].as_ref().expect("a value").expires_at)
            };
            assert_eq!(expires_at(&before), expires_at(&fresh), "{name}");
            for key in keys {
                let outcome = lane.decide(101 * S, &[Request::shadow(key, &pair, 3)]).await;
                let verdict = outcome.verdicts[0];
                assert_eq!((outcome.admitted, verdict.admitted), (true, false), "{name}");
                assert_eq!(verdict.reset_after, expected[0].reset_after - i128::from(S), "{name}");
            }
            assert_eq!(lane.stored(&keys).await, before, "{name}");
            let end = 100 * S + expected[0].reset_after as i64;
            let list = [Request::shadow(&alone, &pair, 3)];
            assert_eq!(decide(&lane, end, &list).await, (true, vec![(true, 0)]), "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn one_call_mixes_lists_with_and_without_shadows() {
    on_each_lane(async |lane| {
        let [bucket, _, interval, window, _, log, ..] = one_of_each().map(|(_, pair)| pair);
        let one = [Request::new("a", &bucket, 2)];
        let both = [Request::shadow("a", &bucket, 2), Request::new("b", &window, 2)];
        let shadows = [
            Request::shadow("b", &window, 2),
            Request::shadow("c", &log, 2),
            Request::shadow("a", &bucket, 2),
        ];
        let refused = [Request::shadow("d", &interval, 2), Request::new("c", &log, 2)];
        let last = [Request::new("d", &interval, 2)];
        let outcomes = lane.decide_lists(0, &[&one, &both, &shadows, &refused, &last]).await;
        let expected: [(bool, &[bool]); 5] = [
            (true, &[true]),
            (true, &[false, true]),
            (true, &[false, true, false]),
            (false, &[true, false]),
            (true, &[true]),
        ];
        for (outcome, (admitted, verdicts)) in outcomes.iter().zip(expected) {
            assert_eq!((outcome.admitted, &*outcome.admits()), (admitted, verdicts));
        }
    })
    .await;
}
