//! Decisions of cost 0 alone: what calls of cost 1 would get, without a trace.

use std::time::Duration;

use super::{Lane, Request, S, on_each_lane};
use crate::model::Verdict;
use crate::support::policies::{Pair, adjustable, each_for, one_of_each};

/// Peeks twice, and checks that this changes nothing.
async fn peek(lane: &Lane, at: i64, key: &str, pair: &Pair) -> Verdict {
    let before = lane.stored(&[key]).await;
    let step = format!("{key} at {at} in {}", lane.name());
    let [first, second, shadow] =
        [Request::new(key, pair, 0), Request::new(key, pair, 0), Request::shadow(key, pair, 0)];
    let first = lane.decide(at, &[first]).await;
    let second = lane.decide(at, &[second]).await;
    let shadow = lane.decide(at, &[shadow]).await;
    assert!(first.receipts[0].is_none(), "{step}");
    assert_eq!((first.admitted, &first.verdicts), (second.admitted, &second.verdicts), "{step}");
    assert_eq!(first.admitted, first.verdicts[0].admitted, "{step}");
    assert_eq!((shadow.admitted, &shadow.verdicts), (true, &first.verdicts), "{step}");
    assert_eq!(lane.stored(&[key]).await, before, "{step}");
    first.verdicts[0]
}

async fn call(lane: &Lane, at: i64, key: &str, pair: &Pair) -> Verdict {
    lane.decide(at, &[Request::new(key, pair, 1)]).await.verdicts[0]
}

#[tokio::test]
async fn peeks_tell_what_a_call_gets() {
    let nine = Duration::from_secs(9);
    let changing = [
        ("changing-queue", adjustable::queue(3, 3, nine).unwrap()),
        ("changing-debt", adjustable::borrowing(3, nine, 3).unwrap()),
    ];
    on_each_lane(async |lane| {
        for (name, pair) in each_for(3, nine).into_iter().chain(changing) {
            let fresh = peek(&lane, 0, name, &pair).await;
            assert_eq!((fresh.admitted, fresh.retry_after, fresh.reset_after), (true, None, 0), "{name}");
            // A bucket that warms up lends from the first call on.
            let mut calls = 0;
            let refused = loop {
                let peeked = peek(&lane, 0, name, &pair).await;
                let called = call(&lane, 0, name, &pair).await;
                let answer = |verdict: Verdict| (verdict.admitted, verdict.retry_after);
                assert_eq!(answer(peeked), answer(called), "{name} after {calls}");
                if !called.admitted {
                    // Nothing was charged, so even the rest is the same.
                    assert_eq!(peeked, called, "{name} after {calls}");
                    break called;
                }
                assert!(peeked.remaining > 0 || name.ends_with("debt") || name == "borrowing", "{name}");
                calls += 1;
            };
            assert!(calls >= 1);
            let then = refused.retry_after.expect("one permit comes back") as i64;
            let early = peek(&lane, then - 1, name, &pair).await;
            assert_eq!((early.admitted, early.retry_after), (false, Some(1)), "{name}");
            assert!(peek(&lane, then, name, &pair).await.admitted, "{name}");
            assert!(call(&lane, then, name, &pair).await.admitted, "{name}");
        }
    })
    .await;
}

/// A call would move such a state to now.
#[tokio::test]
async fn peeks_leave_a_state_from_the_future() {
    on_each_lane(async |lane| {
        for (name, pair) in one_of_each() {
            let exhausted = lane.decide(100 * S, &[Request::new(name, &pair, 3)]).await;
            assert!(exhausted.admitted);
            let peeked = peek(&lane, 50 * S, name, &pair).await;
            assert_eq!(peeked, call(&lane, 50 * S, name, &pair).await, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn each_peek_of_a_list_is_about_its_own_key() {
    on_each_lane(async |lane| {
        let policies = one_of_each();
        for (name, pair) in &policies {
            let keys = [format!("{name}, full"), format!("{name}, partly used")];
            let [full, partly] = &keys;
            assert!(lane.decide(0, &[Request::new(full, pair, 3)]).await.admitted);
            assert!(lane.decide(0, &[Request::new(partly, pair, 1)]).await.admitted);
            let list = [Request::new(full, pair, 0), Request::new(partly, pair, 0)];
            let peeked = lane.decide(0, &list).await;
            assert_eq!((peeked.admitted, peeked.admits()), (false, vec![false, true]), "{name}");
            assert_eq!(peeked.remaining(), [0, 2], "{name}");
            // Beside a charge, a cost of 0 refuses nothing.
            let list = [Request::new(full, pair, 0), Request::new(partly, pair, 1)];
            let charged = lane.decide(0, &list).await;
            assert_eq!((charged.admitted, charged.admits()), (true, vec![true, true]), "{name}");
            assert_eq!(charged.verdicts[0].retry_after, None, "{name}");
            assert_eq!(charged.remaining(), [0, 1], "{name}");
        }
        let names = policies.each_ref().map(|(name, pair)| (format!("{name}, full"), pair));
        let all: Vec<_> = names.iter().map(|(name, pair)| Request::new(name, pair, 0)).collect();
        let peeked = lane.decide(0, &all).await;
        assert!(peeked.verdicts.iter().all(|verdict| !verdict.admitted && verdict.retry_after.is_some()));
    })
    .await;
}
