//! Paused keys in lists, as shadows, and in calls of several decisions.

use std::time::Duration;

use super::super::lane::on_each_lane;
use crate::conformance::{Outcome, Request};
use crate::support::policies::{one_of_each, queue, token_bucket};
use crate::support::test_store::{FOREVER, S};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn paused_key_refuses_the_whole_list() {
    on_each_lane(async |lane| {
        let policies = one_of_each();
        let all = |cost| -> Vec<Request<'_>> {
            policies.iter().map(|(name, pair)| Request::new(name, pair, cost)).collect()
        };
        assert!(lane.decide(0, &all(1)).await.admitted);
        for (i, (name, pair)) in policies.iter().enumerate() {
            lane.pause(0, name, pair, S).await;
            let refused = lane.decide(0, &all(1)).await;
            let step = format!("{name} in {}", lane.name());
            let unpaused: Vec<bool> = (0..policies.len()).map(|j| j > i).collect();
            assert_eq!((refused.admitted, refused.admits()), (false, unpaused), "{step}");
            let remaining: Vec<i128> = (0..policies.len()).map(|j| if j > i { 2 } else { 0 }).collect();
            assert_eq!(refused.remaining(), remaining, "{step}");
            assert_eq!(refused.verdicts[i].retry_after, Some(S.into()), "{step}");
            assert_eq!(lane.decide(0, &all(0)).await.remaining(), remaining, "{step}");
        }
        // All have the permit that is left of those that were paused.
        assert!(!lane.decide(S - 1, &all(1)).await.admitted);
        assert!(lane.decide(S, &all(1)).await.admitted);
    })
    .await;
}

#[tokio::test]
async fn paused_shadows_refuse_nothing_and_are_not_charged() {
    on_each_lane(async |lane| {
        let refusing = one_of_each()[3].1;
        for (name, pair) in one_of_each() {
            let other = format!("beside {name}");
            lane.pause(0, name, &pair, 2 * S).await;
            let before = lane.stored(&[name]).await;
            for request in [Request::shadow(name, &pair, 1), Request::shadow(name, &pair, 0)] {
                let outcome = lane.decide(S, &[Request::new(&other, &refusing, 1), request]).await;
                assert!(outcome.admitted, "{name}");
                assert_eq!(outcome.remaining()[1], 0, "{name}");
                assert_eq!(outcome.verdicts[1].wait, 0, "{name}");
            }
            let alone = lane.decide(S, &[Request::shadow(name, &pair, 1)]).await;
            let verdict = alone.verdicts[0];
            assert_eq!(
                (alone.admitted, verdict.admitted, verdict.retry_after),
                (true, false, Some(S.into()))
            );
            // It waits for nothing, as no shadow does.
            assert!(alone.receipts[0].is_none(), "{name}");
            assert_eq!(lane.stored(&[name]).await, before, "{name}");
            let after = lane.decide(2 * S, &[Request::shadow(name, &pair, 1)]).await;
            assert!(after.verdicts[0].admitted, "{name}");
        }
    })
    .await;
}

/// The line is the fastest bucket.
#[tokio::test]
async fn calls_for_several_buckets_start_together_after_a_pause() {
    let slow = token_bucket(1, SECOND, 3).unwrap();
    let line = token_bucket(2, SECOND, 4).unwrap();
    let large = token_bucket(1, SECOND, 5).unwrap();
    on_each_lane(async |lane| {
        let keys = |round| ["slow", "line", "large"].map(|key| format!("{key} {round}"));
        let decide = async |at, keys: &[String; 3], max_wait: i64| {
            let pairs = [&slow, &line, &large];
            let list = [0, 1, 2].map(|i| Request {
                max_wait: max_wait as u64,
                ..Request::new(&keys[i], pairs[i], u64::from(max_wait > 0))
            });
            lane.decide(at, &list).await
        };
        let answers = |outcome: &Outcome| -> Vec<_> {
            let verdicts = outcome.verdicts.iter();
            verdicts.map(|it| (it.wait / 1000, it.remaining, it.reset_after / 1000)).collect()
        };
        let first = keys(1);
        lane.pause(0, &first[1], &line, 10 * S).await;
        let outcome = decide(0, &first, FOREVER).await;
        assert!(outcome.admitted);
        assert_eq!(answers(&outcome), [(10_000, 2, 11_000), (10_000, 0, 12_000), (10_000, 4, 11_000)]);

        // Nothing is left of the first key's pause by the slot.
        let second = keys(2);
        lane.pause(0, &second[0], &slow, 8 * S).await;
        lane.pause(0, &second[1], &line, 10 * S).await;
        let outcome = decide(0, &second, FOREVER).await;
        assert!(outcome.admitted);
        assert_eq!(answers(&outcome), [(10_000, 0, 11_000), (10_000, 0, 12_000), (10_000, 4, 11_000)]);

        // Lacks 11 s of refill after 15 s, so it is ready at 22 s. The line would give the slot at 10.5 s.
        lane.pause(0, &second[2], &large, 15 * S).await;
        let refused = decide(S, &second, FOREVER).await;
        assert_eq!(refused.admits(), [true, true, false]);
        assert_eq!(refused.remaining(), [0, 0, 0]);
        assert_eq!(refused.verdicts[2].retry_after, Some(11_500_000));
        assert_eq!(decide(S, &second, 0).await.remaining(), [0, 0, 0]);
    })
    .await;
}

#[tokio::test]
async fn queue_is_the_line_of_a_paused_bucket() {
    let bucket = token_bucket(1, SECOND, 3).unwrap();
    let line = queue(4, 1, SECOND).unwrap();
    on_each_lane(async |lane| {
        let list = [("bucket", &bucket), ("queue", &line)]
            .map(|(key, pair)| Request { max_wait: FOREVER as u64, ..Request::new(key, pair, 1) });
        lane.pause(0, "bucket", &bucket, 2 * S).await;
        // The queue's slot is now, when the bucket is not ready.
        let refused = lane.decide(0, &list).await;
        assert_eq!(refused.admits(), [false, true]);
        assert_eq!(refused.verdicts[0].retry_after, Some(2 * i128::from(S)));
        lane.pause(0, "queue", &line, 2 * S).await;
        for wait in [2, 3, 4] {
            let outcome = lane.decide(0, &list).await;
            assert!(outcome.admitted, "{wait}");
            assert!(outcome.verdicts.iter().all(|verdict| verdict.wait == wait * i128::from(S)), "{wait}");
        }
        assert!(!lane.decide(0, &list).await.admitted);
    })
    .await;
}

#[tokio::test]
async fn one_call_decides_about_paused_keys_and_others() {
    on_each_lane(async |lane| {
        for (name, pair) in one_of_each() {
            let (paused, free) = (format!("{name}, paused"), format!("{name}, free"));
            let both = |cost| [Request::new(&free, &pair, cost), Request::new(&paused, &pair, cost)];
            let one = [Request::new(&free, &pair, 1)];
            let refused = [Request::new(&paused, &pair, 1)];
            let shadow = [Request::shadow(&paused, &pair, 1), Request::new(&free, &pair, 1)];
            lane.pause(0, &paused, &pair, S).await;
            let lists: [&[Request<'_>]; 6] = [&both(1), &one, &refused, &shadow, &both(0), &one];
            let outcomes = lane.decide_lists(0, &lists).await;
            let admitted: Vec<bool> = outcomes.iter().map(|outcome| outcome.admitted).collect();
            assert_eq!(admitted, [false, true, false, true, false, true], "{name} in {}", lane.name());
            let remaining: Vec<i128> = outcomes.iter().flat_map(Outcome::remaining).collect();
            assert_eq!(remaining, [3, 0, 2, 0, 0, 1, 1, 0, 0], "{name} in {}", lane.name());
            // After the pause, the first decision leaves a plain value for the next.
            let outcomes = lane.decide_lists(S, &[&refused, &refused, &refused, &refused]).await;
            let admitted = outcomes.iter().filter(|outcome| outcome.admitted).count();
            let is_window = pair.model.is_window();
            assert_eq!(admitted, if is_window { 3 } else { 1 }, "{name} in {}", lane.name());
        }
    })
    .await;
}
