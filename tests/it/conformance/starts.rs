//! Calls that wait for several buckets, all of which count a call when it starts.

use std::time::Duration;

use super::lane::{Lane, Outcome, Request};
use super::{FOREVER, S, on_each_lane};
use crate::support::policies::{Pair, borrowing, queue, token_bucket};

const SECOND: Duration = Duration::from_secs(1);
const FIVE: Duration = Duration::from_secs(5);

fn line() -> Pair {
    queue(10, 1, SECOND).unwrap()
}

/// Decides a call of all these, for each of which it may wait so long.
async fn decide(lane: &Lane, at: i64, charges: &[(&str, &Pair, i64)]) -> Outcome {
    let request =
        |charge: &(_, _, i64)| Request { max_wait: charge.2 as u64, ..Request::new(charge.0, charge.1, 1) };
    lane.decide(at, &charges.iter().map(request).collect::<Vec<_>>()).await
}

fn waits(outcome: &Outcome) -> Vec<i64> {
    outcome.verdicts.iter().map(|verdict| verdict.wait as i64).collect()
}

#[tokio::test]
async fn buckets_are_charged_for_the_slot_of_the_line() {
    on_each_lane(async |lane| {
        let (line, slow) = (line(), token_bucket(1, FIVE, 1).unwrap());
        let call =
            async |at, user| decide(&lane, at, &[(user, &slow, FOREVER), ("line", &line, FOREVER)]).await;
        assert_eq!(waits(&call(0, "a").await), [0, 0]);
        for (slot, user) in [(S, "b"), (2 * S, "c")] {
            let waiting = call(0, user).await;
            assert!(waiting.admitted);
            assert_eq!(waits(&waiting), [slot, slot]);
            assert_eq!(waiting.verdicts[0].reset_after, (slot + 5 * S).into());
        }
        // Its own bucket is ready two seconds after the slot of the line.
        let late = call(0, "a").await;
        assert_eq!(late.admits(), [false, true]);
        assert_eq!(late.verdicts[0].retry_after, Some((2 * S).into()));
        // Each refills from its slot on.
        for (user, ready) in [("a", 5 * S), ("b", 6 * S), ("c", 7 * S)] {
            assert!(!lane.decide(ready - 1, &[Request::new(user, &slow, 1)]).await.admitted, "{user}");
            assert_eq!(waits(&call(ready, user).await), [0, 0], "{user}");
        }
    })
    .await;
}

#[tokio::test]
async fn line_is_the_fastest_bucket_that_may_wait() {
    on_each_lane(async |lane| {
        let [slow, fast] = [FIVE, SECOND].map(|time| token_bucket(1, time, 1).unwrap());
        let lends = borrowing(1, SECOND / 10, Some(1)).unwrap();
        let all = |wait| [("slow", &slow, wait), ("fast", &fast, FOREVER), ("lends", &lends, 0)];
        assert!(decide(&lane, 0, &all(0)).await.admitted);
        // One that does not let calls wait refuses.
        let refused = decide(&lane, 0, &all(0)).await;
        assert_eq!(refused.admits(), [false, true, true]);
        let late = decide(&lane, 100_000, &all(FOREVER)).await;
        assert_eq!(late.admits(), [false, true, true]);
        assert_eq!(late.verdicts[0].retry_after, Some((4 * S).into()));
        // Beside the slow one, the fast one is ready first, and takes nothing.
        let ready = decide(&lane, 5_000_000, &all(FOREVER)).await;
        assert_eq!(waits(&ready), [0, 0, 0]);
    })
    .await;
}

#[tokio::test]
async fn refunds_give_back_what_was_charged_for_a_slot() {
    on_each_lane(async |lane| {
        let (line, wide) = (line(), token_bucket(1, SECOND, 3).unwrap());
        let call = async || decide(&lane, 0, &[("line", &line, FOREVER), ("wide", &wide, 0)]).await;
        call().await;
        let (first, second) = (call().await, call().await);
        assert_eq!((waits(&first), waits(&second)), (vec![S, S], vec![2 * S, 2 * S]));
        // The permit is back once the slot, which nobody uses, has passed.
        lane.refund(0, "wide", &wide, 1, second.receipts[1]).await;
        let peek = async || lane.decide(2_000_000, &[Request::new("wide", &wide, 0)]).await.remaining();
        assert_eq!(peek().await, [3]);
        // The slot of the first is still known, so that what it took is not given back before it.
        lane.refund(2_000_000, "wide", &wide, 1, first.receipts[1]).await;
        assert_eq!(peek().await, [3]);
    })
    .await;
}

#[tokio::test]
async fn refunds_give_back_nothing_that_refills_before_the_slot() {
    on_each_lane(async |lane| {
        let (line, wide) = (line(), token_bucket(1, SECOND, 3).unwrap());
        let call = async || decide(&lane, 0, &[("line", &line, FOREVER), ("wide", &wide, 0)]).await;
        let (at_once, waiting) = (call().await, call().await);
        assert_eq!((waits(&at_once), waits(&waiting)), (vec![0, 0], vec![S, S]));
        // What the first took is back when the second starts.
        lane.refund(0, "wide", &wide, 1, at_once.receipts[1]).await;
        let started = lane.decide(S + 1, &[Request::new("wide", &wide, 0)]).await;
        assert_eq!(started.remaining(), [2]);
    })
    .await;
}
