//! A user who may not run one of the commands.

use std::collections::BTreeSet;

use ratelimit_runtime::store::{Charge, Outcome};

use super::cases::CASES;
use super::{Bench, COMMANDS, Held, is_defect, lists, text};

#[tokio::test]
async fn the_least_user_may_do_everything() {
    let mut bench = Bench::start().await;
    bench.store.ping().await.unwrap();
    for state in ["nothing", "charged", "ended", "future"] {
        for list in lists() {
            bench.prepare(state).await;
            let outcome = bench.decide(&list).await.unwrap();
            assert!(outcome.failed.is_empty(), "{outcome:?}");
            for case in &CASES {
                let charge_id = list.iter().position(|charge| charge.key == case.key());
                let charge_id = charge_id.map(|at| outcome.verdicts[at].charge_id);
                bench.store.refund(&case.key(), &case.spec(), 1, charge_id).await.unwrap();
                bench.store.refund(&case.key(), &case.spec(), 1, None).await.unwrap();
            }
            assert!(bench.held().await.iter().all(|(dump, at)| dump.is_empty() || *at > 0));
            let look = Charge { cost: 0, ..list[0].clone() };
            bench.decide(&[look]).await.unwrap();
            bench.store.reset(&list[0].key).await.unwrap();
        }
    }
}

#[tokio::test]
async fn whichever_command_is_denied_a_decision_is_charged_whole_or_not_at_all() {
    let mut bench = Bench::start().await;
    let mut missed = BTreeSet::new();
    for denied in COMMANDS {
        for state in ["nothing", "charged", "ended", "future"] {
            for (i, list) in lists().iter().enumerate() {
                let at = format!("{denied} denied, {state}, list {i}");
                bench.prepare(state).await;
                let before = bench.held().await;
                bench.send(&format!("ACL SETUSER least -{denied}")).await;
                let outcome = bench.decide(list).await;
                bench.send(&format!("ACL SETUSER least +{denied}")).await;
                let after = bench.held().await;
                assert!(after.iter().all(|(dump, at)| dump.is_empty() || *at > 0), "{at}: {after:?}");
                match outcome {
                    Err(error) => {
                        let told = text(&error).to_lowercase();
                        let named = told.contains("noperm") && told.contains(denied);
                        assert!(named && !is_defect(&error), "{at}: {told}");
                        assert!(!told.contains("rl:"), "{at}: {told}");
                        assert_eq!(before, after, "{at}: {told}");
                        missed.insert(denied);
                    }
                    Ok(outcome) => {
                        for (place, problem) in &outcome.failed {
                            assert!(problem.to_lowercase().contains(denied), "{at}: {problem}");
                            assert!(list[*place].shadow);
                            missed.insert(denied);
                        }
                        is_whole(list, &outcome, &before, &after, state, &at);
                    }
                }
            }
        }
    }
    // What DEL does an expiry in the past does too.
    assert!(COMMANDS.iter().all(|command| missed.contains(command) == (*command != "del")), "{missed:?}");
}

#[tokio::test]
async fn whichever_two_commands_are_denied_no_key_is_left_without_an_expiry() {
    let mut bench = Bench::start().await;
    for (i, first) in COMMANDS.iter().enumerate().skip(2) {
        for second in &COMMANDS[i + 1..] {
            for state in ["nothing", "charged", "ended", "future"] {
                for list in lists().iter().skip(i % 7).step_by(7) {
                    let at = format!("{first} and {second} denied, {state}: {list:?}");
                    bench.prepare(state).await;
                    let before = bench.held().await;
                    bench.send(&format!("ACL SETUSER least -{first} -{second}")).await;
                    let outcome = bench.decide(list).await;
                    bench.send(&format!("ACL SETUSER least +{first} +{second}")).await;
                    let after = bench.held().await;
                    assert!(after.iter().all(|(dump, at)| dump.is_empty() || *at > 0), "{at}: {after:?}");
                    if let Ok(outcome) = outcome {
                        // A shadow that cannot be charged may not be taken back either.
                        let shadows = list.iter().any(|charge| charge.shadow);
                        assert!(shadows || outcome.failed.is_empty(), "{at}: {outcome:?}");
                        if outcome.failed.is_empty() {
                            is_whole(list, &outcome, &before, &after, state, &at);
                        }
                    }
                }
            }
        }
    }
}

/// Every charge that counts was made, and no other.
pub(super) fn is_whole(
    list: &[Charge],
    outcome: &Outcome,
    before: &[Held],
    after: &[Held],
    state: &str,
    at: &str,
) {
    for (i, case) in CASES.iter().enumerate() {
        let place = list.iter().position(|charge| charge.key == case.key());
        let charged = place.is_some_and(|place| {
            let failed = outcome.failed.iter().any(|(failed, _)| *failed == place);
            outcome.admitted && outcome.verdicts[place].admitted && !failed
        });
        // A state from the future is moved to now in any case.
        let moved = state == "future" && place.is_some() && !charged;
        assert!(moved || (before[i] != after[i]) == charged, "{at}: {}, charged: {charged}", case.name);
    }
}

#[tokio::test]
async fn whichever_command_is_denied_a_refund_is_made_or_nothing_is() {
    let mut bench = Bench::start().await;
    for denied in COMMANDS {
        for state in ["charged", "ended", "future"] {
            for case in &CASES {
                for marked in [true, false] {
                    bench.prepare(state).await;
                    let outcome = bench.decide(&[case.charge()]).await.unwrap();
                    // Another charge behind it, so that some of the state has to stay.
                    bench.decide(&[case.charge()]).await.unwrap();
                    let charge_id = marked.then(|| outcome.verdicts[0].charge_id);
                    let before = bench.held().await;
                    bench.send(&format!("ACL SETUSER least -{denied}")).await;
                    let refunded = bench.store.refund(&case.key(), &case.spec(), 1, charge_id).await;
                    bench.send(&format!("ACL SETUSER least +{denied}")).await;
                    let after = bench.held().await;
                    let at = format!("{denied} denied, {state}, {}, marked: {marked}", case.name);
                    assert!(after.iter().all(|(dump, at)| dump.is_empty() || *at > 0), "{at}: {after:?}");
                    if let Err(error) = refunded {
                        let told = text(&error);
                        assert!(told.to_lowercase().contains(denied), "{at}: {told}");
                        assert_eq!(before, after, "{at}: {told}");
                    }
                }
            }
        }
    }
}
