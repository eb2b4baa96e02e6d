//! Permits that calls hold until they end. Redis believes them for some seconds, and no time matters otherwise.

use std::time::Duration;

use super::lane::Receipt;
use super::{
    Case, Lane, Outcome, Request, S, Step, case, case_of, ends, must_wait, never, on_each_lane,
    on_each_lane_in_process, takes,
};
use crate::model::UNKNOWN;
use crate::support::policies::{Pair, adjustable, holds, one_of_each, queue};

/// The largest number.
const MOST: u64 = 1_000_000_000_000;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("calls end in any order", holds(3)).steps([
            takes(0, 1, 2),
            takes(0, 1, 1),
            takes(S, 1, 0),
            must_wait(S, 1, 0),
            ends(S, 1),
            takes(0, 0, 1),
            takes(S, 1, 0),
            must_wait(S, 1, 0),
            ends(S, 2),
            ends(S, 0),
            takes(2 * S, 0, 2),
            ends(2 * S, 3),
            takes(2 * S, 0, 3),
            // A key that was free starts again.
            takes(2 * S, 2, 1),
            must_wait(3 * S, 2, 1),
            ends(3 * S, 4),
            takes(3 * S, 3, 0),
        ]),
        case("a call holds and frees what it costs", holds(10)).steps([
            takes(0, 7, 3),
            must_wait(0, 4, 3),
            takes(0, 3, 0),
            must_wait(0, 10, 0),
            ends(0, 0),
            takes(0, 6, 1),
            must_wait(0, 2, 1),
            ends(0, 1),
            takes(0, 4, 0),
        ]),
        case("a call that costs more than there is never starts", holds(3)).steps([
            never(0, 4, 3, 0),
            never(0, u64::MAX, 3, 0),
            takes(0, 2, 1),
            never(0, 4, 1, 0),
            must_wait(0, 3, 1),
            never(0, 1 << 53, 1, 0),
            takes(0, 1, 0),
        ]),
        case("peeks say what one call would get", holds(2)).steps([
            takes(0, 0, 2),
            takes(0, 1, 1),
            takes(0, 0, 1),
            takes(0, 1, 0),
            must_wait(0, 0, 0),
            ends(0, 0),
            takes(0, 0, 1),
        ]),
        case_of("each call compares with its own number", [holds(3), holds(1), holds(5)]).steps([
            takes(0, 2, 1),
            Step::UsePolicy(1),
            // More is held than it would admit.
            must_wait(0, 1, 0),
            must_wait(0, 0, 0),
            never(0, 2, 0, 0),
            Step::UsePolicy(2),
            takes(0, 3, 0),
            must_wait(0, 1, 0),
            Step::UsePolicy(0),
            must_wait(0, 1, 0),
            // Whatever number its call had.
            ends(0, 1),
            takes(0, 1, 0),
            ends(0, 0),
            Step::UsePolicy(1),
            must_wait(0, 1, 0),
            ends(0, 2),
            takes(0, 1, 0),
        ]),
        case("as many as there can be", holds(MOST)).steps([
            takes(0, MOST - 1, 1),
            must_wait(0, 2, 1),
            never(0, MOST + 1, 1, 0),
            takes(0, 1, 0),
            ends(0, 0),
            takes(0, 0, i128::from(MOST) - 1),
        ]),
    ]
}

/// Returns what is left of a key that three calls may hold.
async fn left(lane: &Lane, key: &str) -> i128 {
    lane.decide(0, &[Request::new(key, &holds(3).unwrap(), 0)]).await.remaining()[0]
}

fn held(outcome: &Outcome, charge: usize) -> Receipt {
    outcome.receipts[charge].expect("it was charged")
}

/// One of each kind that holds may stand beside, for three permits.
fn others() -> Vec<(&'static str, Pair)> {
    let changing = [
        ("queue", queue(2, 3, Duration::from_secs(9)).unwrap()),
        ("changing queue", adjustable::queue(2, 3, Duration::from_secs(9)).unwrap()),
    ];
    one_of_each().into_iter().chain(changing).collect()
}

#[tokio::test]
async fn holds_beside_another_policy_are_taken_with_it_or_not() {
    on_each_lane(async |lane| {
        let three = holds(3).unwrap();
        for (name, pair) in others() {
            for is_first in [true, false] {
                let (key, other) = (format!("held beside {name} {is_first}"), format!("{name} {is_first}"));
                let list = |cost, beside| {
                    let mut list = [Request::new(&key, &three, cost), Request::new(&other, &pair, beside)];
                    if !is_first {
                        list.reverse();
                    }
                    list
                };
                let at = |charge: usize| if is_first { charge } else { 1 - charge };
                let first = lane.decide(0, &list(2, 1)).await;
                assert!(first.admitted, "{key}");
                assert_eq!(first.remaining()[at(0)], 1, "{key}");
                let before = lane.decide(0, &[Request::new(&other, &pair, 0)]).await.verdicts;
                // Refused by the holds.
                let refused = lane.decide(0, &list(2, 1)).await;
                assert!(!refused.admitted && refused.receipts.iter().all(Option::is_none), "{key}");
                assert_eq!(refused.verdicts[at(0)].retry_after, Some(UNKNOWN), "{key}");
                assert_eq!(lane.decide(0, &[Request::new(&other, &pair, 0)]).await.verdicts, before, "{key}");
                // Refused by the other.
                let refused = lane.decide(0, &list(1, 4)).await;
                assert!(!refused.admitted && refused.verdicts[at(0)].admitted, "{key}");
                assert_eq!(refused.remaining()[at(0)], 1, "{key}");
                assert_eq!(left(&lane, &key).await, 1, "{key}");
                // Never possible.
                let never = lane.decide(0, &list(4, 1)).await;
                assert_eq!((never.admitted, never.verdicts[at(0)].retry_after), (false, None), "{key}");
                // The end of the call gives nothing back of the other.
                lane.release(0, &key, &three, 2, held(&first, at(0))).await;
                assert_eq!(left(&lane, &key).await, 3, "{key}");
                assert_eq!(lane.decide(0, &[Request::new(&other, &pair, 0)]).await.verdicts, before, "{key}");
            }
        }
    })
    .await;
}

/// Time stands still: the holds after the reset begin in the same microsecond as those before it.
#[tokio::test]
async fn calls_from_before_a_reset_release_no_later_holds() {
    on_each_lane_in_process(async |lane| {
        let three = holds(3).unwrap();
        let two = [Request::new("reset", &three, 2)];
        let forgotten = lane.decide(0, &two).await;
        lane.reset("reset").await;
        assert_eq!(left(&lane, "reset").await, 3);
        let after = lane.decide(0, &two).await;
        lane.release(0, "reset", &three, 2, held(&forgotten, 0)).await;
        assert_eq!(left(&lane, "reset").await, 1);
        lane.release(0, "reset", &three, 2, held(&after, 0)).await;
        assert_eq!(left(&lane, "reset").await, 3);
    })
    .await;
}

#[tokio::test]
async fn shadows_hold_what_fits_and_refuse_nothing() {
    on_each_lane(async |lane| {
        let (three, window) = (holds(3).unwrap(), one_of_each()[3].1);
        let alone = lane.decide(0, &[Request::shadow("shadow", &three, 2)]).await;
        assert_eq!((alone.admitted, alone.admits(), alone.remaining()), (true, vec![true], vec![1]));
        let exceeds = lane.decide(0, &[Request::shadow("shadow", &three, 2)]).await;
        assert_eq!((exceeds.admitted, exceeds.admits(), exceeds.remaining()), (true, vec![false], vec![1]));
        assert!(exceeds.receipts[0].is_none());
        // Beside one that admits the call, and one that refuses it.
        let list =
            |cost| [Request::shadow("shadow", &three, 1), Request::new("window in shadow", &window, cost)];
        let refused = lane.decide(0, &list(4)).await;
        assert_eq!((refused.admitted, left(&lane, "shadow").await), (false, 1));
        let beside = lane.decide(0, &list(1)).await;
        assert_eq!((beside.admitted, left(&lane, "shadow").await), (true, 0));
        let exceeds = lane.decide(0, &list(1)).await;
        assert_eq!((exceeds.admitted, exceeds.admits()), (true, vec![false, true]));
        // Calls that can be refused find what shadows hold.
        let refused = lane.decide(0, &[Request::new("shadow", &three, 1)]).await;
        assert!(!refused.admitted);
        lane.release(0, "shadow", &three, 2, held(&alone, 0)).await;
        lane.release(0, "shadow", &three, 1, held(&beside, 0)).await;
        assert_eq!(left(&lane, "shadow").await, 3);
    })
    .await;
}

#[tokio::test]
async fn calls_of_a_batch_hold_in_order() {
    on_each_lane(async |lane| {
        let three = holds(3).unwrap();
        let [peek, one, two, four] = [0, 1, 2, 4].map(|cost| [Request::new("batch", &three, cost)]);
        let other = [Request::new("other of the batch", &three, 3)];
        let outcomes = lane.decide_lists(0, &[&two, &two, &peek, &four, &one, &other, &one, &peek]).await;
        let admitted: Vec<bool> = outcomes.iter().map(|outcome| outcome.admitted).collect();
        assert_eq!(admitted, [true, false, true, false, true, true, false, false]);
        let remaining: Vec<i128> = outcomes.iter().flat_map(Outcome::remaining).collect();
        assert_eq!(remaining, [1, 1, 1, 1, 0, 0, 0, 0]);
        lane.release(0, "batch", &three, 2, held(&outcomes[0], 0)).await;
        assert_eq!(left(&lane, "batch").await, 2);
        lane.release(0, "batch", &three, 1, held(&outcomes[4], 0)).await;
        lane.release(0, "other of the batch", &three, 3, held(&outcomes[5], 0)).await;
        assert_eq!((left(&lane, "batch").await, left(&lane, "other of the batch").await), (3, 3));
    })
    .await;
}

#[tokio::test]
async fn calls_of_a_batch_that_hold_nothing_know_nothing_of_those_that_do() {
    on_each_lane(async |lane| {
        let three = holds(3).unwrap();
        let [_, _, interval, ..] = one_of_each().map(|(_, pair)| pair);
        let [peek, one] = [0, 1].map(|cost| [Request::new("batch", &three, cost)]);
        let held_before = lane.decide(0, &one).await;
        let full = [Request::new("interval", &interval, 3)];
        assert!(lane.decide(0, &full).await.admitted);
        let refused = [Request::new("interval", &interval, 1)];
        let outcomes = lane.decide_lists(0, &[&one, &peek, &peek]).await;
        let seen: Vec<_> =
            outcomes.iter().map(|outcome| (outcome.admitted, outcome.remaining()[0])).collect();
        assert_eq!(seen, [(true, 1), (true, 1), (true, 1)]);
        let others = lane.decide_lists(0, &[&one, &refused]).await;
        assert_eq!((others[0].admitted, others[1].admitted), (true, false));
        for outcome in [&held_before, &outcomes[0], &others[0]] {
            lane.release(0, "batch", &three, 1, held(outcome, 0)).await;
        }
        assert_eq!(left(&lane, "batch").await, 3);
    })
    .await;
}

#[tokio::test]
async fn calls_of_a_batch_may_have_different_lists_of_holds() {
    on_each_lane(async |lane| {
        let (three, one) = (holds(3).unwrap(), holds(1).unwrap());
        let [bucket, _, interval, window, _, log, ..] = one_of_each().map(|(_, pair)| pair);
        let both = [Request::new("a", &three, 2), Request::new("b", &one, 1)];
        let refused =
            [Request::new("log", &log, 1), Request::new("b", &one, 1), Request::new("a", &three, 1)];
        let mixed = [
            Request::new("bucket", &bucket, 1),
            Request::new("a", &three, 1),
            Request::new("interval", &interval, 1),
            Request::shadow("b", &one, 1),
        ];
        let after = [Request::new("window", &window, 3), Request::new("log", &log, 3)];
        let outcomes = lane.decide_lists(0, &[&both, &refused, &mixed, &after]).await;
        let admitted: Vec<bool> = outcomes.iter().map(|outcome| outcome.admitted).collect();
        assert_eq!(admitted, [true, false, true, true]);
        assert_eq!(outcomes[1].admits(), [true, false, true]);
        assert_eq!(outcomes[2].admits(), [true, true, true, false]);
        assert_eq!(outcomes[2].remaining(), [2, 0, 2, 0]);
        assert_eq!(outcomes[3].remaining(), [0, 0]);
        lane.release(0, "a", &three, 1, held(&outcomes[2], 1)).await;
        assert_eq!((left(&lane, "a").await, left(&lane, "b").await), (1, 2));
    })
    .await;
}

/// Several keys of one call are held until it ends.
#[tokio::test]
async fn call_holds_several_keys() {
    on_each_lane(async |lane| {
        let three = holds(3).unwrap();
        let list = [Request::new("first", &three, 1), Request::new("second", &three, 1)];
        let calls = lane.decide_lists(0, &[&list, &list, &list, &list]).await;
        let admitted: Vec<bool> = calls.iter().map(|outcome| outcome.admitted).collect();
        assert_eq!(admitted, [true, true, true, false]);
        for (ended, call) in calls[..3].iter().enumerate() {
            lane.release(0, "first", &three, 1, held(call, 0)).await;
            lane.release(0, "second", &three, 1, held(call, 1)).await;
            for key in ["first", "second"] {
                assert_eq!(left(&lane, key).await, ended as i128 + 1);
            }
        }
    })
    .await;
}
