//! Several charges in one decision, and several decisions in one call.

use std::time::Duration;

use ratelimit_runtime::store::{Charge, Outcome};

use super::S;
use crate::model::Verdict;
use crate::support::policies::{self, Pair, one_of_each};
use crate::support::scheduled::{Scheduled, on_each_store};

const TEN: Duration = Duration::from_secs(10);

fn charge(store: &Scheduled, name: &str, pair: &Pair, cost: u64) -> Charge {
    Charge { key: store.key(name), spec: pair.spec, cost, wait: 0, shadow: false }
}

fn remaining(outcome: &Outcome) -> Vec<i128> {
    outcome.verdicts.iter().map(|verdict| Verdict::from(verdict).remaining).collect()
}

fn admitted(outcome: &Outcome) -> Vec<bool> {
    outcome.verdicts.iter().map(|verdict| verdict.admitted).collect()
}

#[tokio::test]
async fn a_list_is_charged_whole_or_not_at_all() {
    on_each_store(async |store| {
        let policies = one_of_each();
        let all = |cost| -> Vec<Charge> {
            policies.iter().map(|(name, pair)| charge(&store, name, pair, cost)).collect()
        };
        store.set(0).await;
        let first = store.decide(&all(1)).await;
        assert!(first.admitted);
        assert_eq!(remaining(&first), [2; 7]);
        // Each of them in turn is the only one that refuses.
        for i in 0..policies.len() {
            let mut charges = all(1);
            charges[i].cost = 3;
            let refused = store.decide(&charges).await;
            assert!(!refused.admitted);
            let expected: Vec<bool> = (0..policies.len()).map(|j| j != i).collect();
            assert_eq!(admitted(&refused), expected, "{}", policies[i].0);
            // Those that would admit have charged nothing either.
            assert_eq!(remaining(&refused), [2; 7]);
            assert!(refused.verdicts.iter().all(|verdict| verdict.retry_after.is_some() != verdict.admitted));
        }
        assert_eq!(remaining(&store.decide(&all(0)).await), [2; 7]);
        assert_eq!(remaining(&store.decide(&all(2)).await), [0; 7]);
    })
    .await;
}

#[tokio::test]
async fn decisions_of_one_call_see_each_other_in_order() {
    on_each_store(async |store| {
        for (name, pair) in one_of_each() {
            store.set(0).await;
            let one = [charge(&store, name, &pair, 1)];
            let two = [charge(&store, name, &pair, 2)];
            let look = [charge(&store, name, &pair, 0)];
            let other = [charge(&store, "another key", &pair, 3)];
            let decisions: [&[Charge]; 7] = [&two, &two, &look, &one, &other, &one, &look];
            let outcomes = store.store.decide(&decisions).await;
            let outcomes: Vec<Outcome> = outcomes.into_iter().map(|outcome| outcome.unwrap()).collect();
            let told: Vec<bool> = outcomes.iter().map(|outcome| outcome.admitted).collect();
            assert_eq!(told, [true, false, true, true, true, false, true], "{name}");
            let left: Vec<i128> = outcomes.iter().flat_map(remaining).collect();
            assert_eq!(left, [1, 1, 1, 0, 0, 0, 0], "{name}");
            assert!(outcomes.iter().all(|outcome| outcome.now == outcomes[0].now));
            store.store.reset(&store.key("another key")).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn decisions_of_one_call_may_have_different_lists() {
    on_each_store(async |store| {
        store.set(0).await;
        let [bucket, _, interval, window, _, log, _] = one_of_each().map(|(_, pair)| pair);
        let both = [charge(&store, "a", &bucket, 2), charge(&store, "b", &window, 1)];
        let refused =
            [charge(&store, "c", &log, 3), charge(&store, "b", &window, 2), charge(&store, "a", &bucket, 2)];
        let after = [
            charge(&store, "b", &window, 2),
            charge(&store, "c", &log, 3),
            charge(&store, "d", &interval, 1),
        ];
        let outcomes = store.store.decide(&[&both, &refused, &after]).await;
        let outcomes: Vec<Outcome> = outcomes.into_iter().map(|outcome| outcome.unwrap()).collect();
        assert_eq!(outcomes.iter().map(|outcome| outcome.admitted).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(admitted(&outcomes[1]), [true, true, false]);
        assert_eq!(remaining(&outcomes[2]), [0, 0, 2]);
    })
    .await;
}

#[tokio::test]
async fn no_decision_at_all_is_no_error() {
    on_each_store(async |store| assert!(store.store.decide(&[]).await.is_empty())).await;
}

/// Whoever looks is admitted, and so says nothing about the others: under a lowered limit a window counts more than it
/// would admit.
#[tokio::test]
async fn a_look_at_a_full_window_refuses_nobody() {
    on_each_store(async |store| {
        store.set(0).await;
        let bucket = one_of_each()[0].1;
        let windows = [
            ("window", [5, 2].map(|limit| policies::fixed_window(limit, TEN, false).unwrap())),
            ("log", [5, 2].map(|limit| policies::sliding_window(limit, TEN, None).unwrap())),
        ];
        for (name, [high, low]) in windows {
            assert!(store.decide(&[charge(&store, name, &high, 5)]).await.admitted);
            let key = format!("bucket beside the {name}");
            let outcome =
                store.decide(&[charge(&store, name, &low, 0), charge(&store, &key, &bucket, 2)]).await;
            assert!(outcome.admitted);
            let after = store.decide(&[charge(&store, &key, &bucket, 0)]).await;
            assert_eq!(remaining(&after), [1], "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_reset_key_starts_fresh() {
    on_each_store(async |store| {
        store.set(S).await;
        for (name, pair) in one_of_each() {
            assert!(store.decide(&[charge(&store, name, &pair, 3)]).await.admitted);
            store.store.reset(&store.key(name)).await.unwrap();
            let look = store.decide(&[charge(&store, name, &pair, 0)]).await;
            let verdict = Verdict::from(&look.verdicts[0]);
            assert_eq!((verdict.remaining, verdict.reset_after), (3, 0), "{name}");
        }
    })
    .await;
}
