//! Several charges in one decision, and several decisions in one call.

use std::time::Duration;

use super::{Outcome, Request, S, on_each_lane};
use crate::support::policies::{self, one_of_each};

const TEN: Duration = Duration::from_secs(10);

#[tokio::test]
async fn lists_are_charged_all_or_nothing() {
    on_each_lane(async |lane| {
        let policies = one_of_each();
        let all = |cost| -> Vec<Request<'_>> {
            policies.iter().map(|(name, pair)| Request::new(name, pair, cost)).collect()
        };
        let first = lane.decide(0, &all(1)).await;
        assert!(first.admitted);
        assert_eq!(first.remaining(), [2; 10]);
        for i in 0..policies.len() {
            let mut requests = all(1);
            requests[i].cost = 3;
            let refused = lane.decide(0, &requests).await;
            assert!(!refused.admitted);
            let expected: Vec<bool> = (0..policies.len()).map(|j| j != i).collect();
            assert_eq!(refused.admits(), expected, "{}", policies[i].0);
            assert_eq!(refused.remaining(), [2; 10]);
            assert!(refused.verdicts.iter().all(|verdict| verdict.retry_after.is_some() != verdict.admitted));
        }
        assert_eq!(lane.decide(0, &all(0)).await.remaining(), [2; 10]);
        assert_eq!(lane.decide(0, &all(2)).await.remaining(), [0; 10]);
    })
    .await;
}

#[tokio::test]
async fn decisions_in_one_call_are_made_in_order() {
    on_each_lane(async |lane| {
        for (name, pair) in one_of_each() {
            let [peek, one, two] = [0, 1, 2].map(|cost| [Request::new(name, &pair, cost)]);
            let other = [Request::new("another key", &pair, 3)];
            let outcomes = lane.decide_lists(0, &[&two, &two, &peek, &one, &other, &one, &peek]).await;
            let admitted: Vec<bool> = outcomes.iter().map(|outcome| outcome.admitted).collect();
            assert_eq!(admitted, [true, false, true, true, true, false, false], "{name}");
            let remaining: Vec<i128> = outcomes.iter().flat_map(Outcome::remaining).collect();
            assert_eq!(remaining, [1, 1, 1, 0, 0, 0, 0], "{name}");
            lane.reset("another key").await;
        }
    })
    .await;
}

#[tokio::test]
async fn decisions_in_one_call_may_have_different_lists() {
    on_each_lane(async |lane| {
        let [bucket, _, interval, window, _, log, ..] = one_of_each().map(|(_, pair)| pair);
        let both = [Request::new("a", &bucket, 2), Request::new("b", &window, 1)];
        let refused =
            [Request::new("c", &log, 3), Request::new("b", &window, 2), Request::new("a", &bucket, 2)];
        let after =
            [Request::new("b", &window, 2), Request::new("c", &log, 3), Request::new("d", &interval, 1)];
        let outcomes = lane.decide_lists(0, &[&both, &refused, &after]).await;
        assert_eq!(outcomes.iter().map(|outcome| outcome.admitted).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(outcomes[1].admits(), [true, true, false]);
        assert_eq!(outcomes[2].remaining(), [0, 0, 2]);
    })
    .await;
}

/// A policy after one that refuses the call says by itself whether it admits a call that waits.
#[tokio::test]
async fn waits_are_judged_after_a_refusal() {
    on_each_lane(async |lane| {
        let policies = one_of_each();
        let [bucket, _, interval, .., changing, changing_refill, _] = &policies;
        assert!(lane.decide(0, &[Request::new("full", &bucket.1, 3)]).await.admitted);
        for ((name, pair), wait) in
            [(bucket, 3 * S), (interval, 10 * S), (changing, 3 * S), (changing_refill, 10 * S)]
        {
            assert!(lane.decide(0, &[Request::new(name, pair, 3)]).await.admitted);
            for (max_wait, admits) in [(wait - 1, false), (wait, true)] {
                let waiting = Request { max_wait: max_wait as u64, ..Request::new(name, pair, 1) };
                let outcome = lane.decide(0, &[Request::new("full", &bucket.1, 1), waiting]).await;
                assert_eq!(outcome.admits(), [false, admits], "{name} within {max_wait}");
            }
        }
    })
    .await;
}

/// More than Lua's stack holds values.
#[tokio::test]
async fn list_may_have_thousands_of_charges() {
    on_each_lane(async |lane| {
        let [bucket, _, interval, window, _, log, _, changing, _, settled] =
            one_of_each().map(|(_, pair)| pair);
        for pairs in [&[bucket][..], &[bucket, interval, window, log, changing, settled]] {
            let keys: Vec<String> = (0..9000).map(|i| format!("{i} of {}", pairs.len())).collect();
            let all = |cost| -> Vec<Request<'_>> {
                let pairs = pairs.iter().cycle();
                keys.iter().zip(pairs).map(|(key, pair)| Request::new(key, pair, cost)).collect()
            };
            let mut refused = all(1);
            refused[8999].cost = 2;
            let outcomes = lane.decide_lists(0, &[&all(2), &refused, &all(1)]).await;
            for (outcome, (admits_last, remaining)) in outcomes.iter().zip([(true, 1), (false, 1), (true, 0)])
            {
                assert_eq!(outcome.admitted, admits_last);
                assert!((0..9000).all(|i| outcome.verdicts[i].admitted == (i < 8999 || admits_last)));
                assert!(outcome.remaining().iter().all(|left| *left == remaining));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn an_empty_call_makes_no_decisions() {
    on_each_lane(async |lane| assert!(lane.decide_lists(0, &[]).await.is_empty())).await;
}

/// Under a lowered limit a window may count more than it would admit.
#[tokio::test]
async fn peeks_at_full_windows_refuse_nothing() {
    on_each_lane(async |lane| {
        let bucket = one_of_each()[0].1;
        let windows = [
            ("window", [5, 2].map(|limit| policies::fixed_window(limit, TEN, false).unwrap())),
            ("log", [5, 2].map(|limit| policies::sliding_window(limit, TEN, None).unwrap())),
        ];
        for (name, [high, low]) in windows {
            assert!(lane.decide(0, &[Request::new(name, &high, 5)]).await.admitted);
            let key = format!("bucket beside the {name}");
            let list = [Request::new(name, &low, 0), Request::new(&key, &bucket, 2)];
            assert!(lane.decide(0, &list).await.admitted);
            assert_eq!(lane.decide(0, &[Request::new(&key, &bucket, 0)]).await.remaining(), [1], "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn reset_keys_start_fresh() {
    on_each_lane(async |lane| {
        for (name, pair) in one_of_each() {
            assert!(lane.decide(S, &[Request::new(name, &pair, 3)]).await.admitted);
            lane.reset(name).await;
            let verdict = lane.decide(S, &[Request::new(name, &pair, 0)]).await.verdicts[0];
            assert_eq!((verdict.remaining, verdict.reset_after), (3, 0), "{name}");
        }
    })
    .await;
}
