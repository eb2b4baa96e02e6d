//! Users who may not run one of the commands.

use std::collections::BTreeSet;
use std::slice;

use ratelimit_runtime::store::{Charge, Key, RedisStore};

use super::cases::{CASES, State};
use super::{COMMANDS, Fault, Fixture, Stored, is_permanent, lists, some_lists, text};
use crate::support::budget::budget;

#[tokio::test]
async fn documented_permissions_suffice() {
    let mut fixture = Fixture::start().await;
    fixture.store.ping().await.unwrap();
    for (round, state) in State::ALL.into_iter().enumerate() {
        for list in some_lists(round) {
            fixture.prepare(state).await;
            let outcome = fixture.store.decide(&list).await.unwrap();
            assert!(outcome.failed.is_empty(), "{outcome:?}");
            for case in &CASES {
                let index = list.iter().position(|charge| charge.key == case.key());
                let charge_id = index.map(|index| outcome.verdicts[index].charge_id);
                fixture.store.refund(&case.key(), &case.spec(), 1, charge_id).await.unwrap();
                fixture.store.refund(&case.key(), &case.spec(), 1, None).await.unwrap();
            }
            assert!(fixture.stored().await.iter().all(Stored::is_absent_or_expires));
            let peek = Charge { cost: 0, ..list[0].clone() };
            fixture.store.decide(&[peek]).await.unwrap();
            fixture.store.reset(&list[0].key).await.unwrap();
        }
    }
}

#[tokio::test]
async fn denied_command_leaves_decisions_atomic() {
    let mut fixture = Fixture::start().await;
    let mut needed = BTreeSet::new();
    for (round, denied) in COMMANDS.into_iter().enumerate() {
        let fault = Fault::denied(&[denied]);
        for state in State::ALL {
            for list in some_lists(round) {
                let context = format!("{denied} denied, {state:?}: {list:?}");
                fixture.prepare(state).await;
                if denied == "eval" {
                    fixture.send("SCRIPT FLUSH").await;
                }
                let (outcome, change) = fixture.during(&fault, async |store| store.decide(&list).await).await;
                match outcome {
                    Err(error) => {
                        change.assert_none(&context);
                        let text = text(&error);
                        assert!(is_denial(&text, denied) && !is_permanent(&error), "{context}: {text}");
                        needed.insert(denied);
                    }
                    Ok(outcome) => {
                        for (index, error) in &outcome.failed {
                            assert!(is_denial(&error.to_lowercase(), denied), "{context}: {error}");
                            assert!(list[*index].shadow);
                            needed.insert(denied);
                        }
                        change.assert_charged(&list, &outcome, state, &context);
                    }
                }
            }
        }
    }
    // Scripts can replace DEL with an expiry in the past.
    assert!(COMMANDS.iter().all(|command| needed.contains(command) == (*command != "del")), "{needed:?}");
}

#[tokio::test]
async fn two_denied_commands_leave_no_key_without_expiry() {
    let mut fixture = Fixture::start().await;
    let step = budget(23, 7) as usize;
    for (i, first) in COMMANDS.iter().enumerate().skip(2) {
        for (j, second) in COMMANDS.iter().enumerate().skip(i + 1) {
            let fault = Fault::denied(&[first, second]);
            for state in State::ALL {
                for list in lists().iter().skip(j % step).step_by(step) {
                    let context = format!("{first} and {second} denied, {state:?}: {list:?}");
                    fixture.prepare(state).await;
                    let decide = async |store: &RedisStore| store.decide(list).await;
                    let (Ok(outcome), change) = fixture.during(&fault, decide).await else { continue };
                    // A shadow that cannot be charged may not be restored either.
                    let has_shadow = list.iter().any(|charge| charge.shadow);
                    assert!(has_shadow || outcome.failed.is_empty(), "{context}: {outcome:?}");
                    if outcome.failed.is_empty() {
                        change.assert_charged(list, &outcome, state, &context);
                    }
                }
            }
        }
    }
}

/// The pass over plain states charges a log without `LLEN`, so it must do without when the next charge fails.
#[tokio::test]
async fn failed_list_gives_back_what_was_charged_before() {
    let mut fixture = Fixture::start().await;
    let charge = |name| CASES.iter().find(|case| case.name == name).expect("there is such a case").charge();
    for (charged, failed, denied) in [
        ("bucket", "fixed", "set"),
        ("log", "fixed", "set"),
        ("counter", "fixed", "set"),
        ("interval", "log", "rpush"),
        ("changing", "log", "rpush"),
        ("fixed", "log", "rpush"),
        ("aligned", "log", "rpush"),
    ] {
        // In a pause, none is admitted.
        for state in State::ALL.into_iter().filter(|state| *state != State::Paused) {
            let context = format!("{charged}, {state:?}: {denied} denied");
            fixture.prepare(state).await;
            let fault = Fault::denied(&["llen", denied]);
            let list = [charge(charged), charge(failed)];
            let (outcome, change) = fixture.during(&fault, async |store| store.decide(&list).await).await;
            assert!(outcome.is_err(), "{context}: {outcome:?}");
            change.assert_none(&context);
        }
    }
}

/// What the pass over plain states has found for another decision must not be given back to a key that is only read.
#[tokio::test]
async fn failed_list_leaves_keys_that_it_only_reads() {
    let mut fixture = Fixture::start().await;
    let charge = |name| CASES.iter().find(|case| case.name == name).expect("there is such a case").charge();
    let absent = [Charge { key: Key::raw("rl:absent"), ..charge("bucket") }];
    let list = [Charge { cost: 0, ..charge("bucket") }, charge("log"), charge("fixed")];
    fixture.prepare(State::Charged).await;
    let decide = async |store: &RedisStore| store.decide_many(&[&absent, &list]).await;
    let (outcomes, change) = fixture.during(&Fault::denied(&["set"]), decide).await;
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
    change.assert_none("set denied");
}

#[tokio::test]
async fn denied_command_leaves_refunds_atomic() {
    let mut fixture = Fixture::start().await;
    for denied in COMMANDS {
        let fault = Fault::denied(&[denied]);
        for state in State::ALL.into_iter().skip(1) {
            for case in &CASES {
                for by_receipt in [true, false] {
                    fixture.prepare_only(slice::from_ref(case), state).await;
                    let outcome = fixture.store.decide(&[case.charge()]).await.unwrap();
                    // With a later charge, the refund cannot just delete the key.
                    fixture.store.decide(&[case.charge()]).await.unwrap();
                    let charge_id = by_receipt.then(|| outcome.verdicts[0].charge_id);
                    let refund = async |store: &RedisStore| {
                        store.refund(&case.key(), &case.spec(), 1, charge_id).await
                    };
                    let context = format!("{denied} denied, {state:?}, {}, {by_receipt}", case.name);
                    let (refunded, change) = fixture.during(&fault, refund).await;
                    if let Err(error) = refunded {
                        change.assert_none(&context);
                        let text = text(&error);
                        assert!(is_denial(&text, denied), "{context}: {text}");
                    }
                }
            }
        }
    }
}

/// Returns whether the error reports that this command is denied. Redis 6.2 does not name the command of a script, so the
/// error names all that scripts need.
pub(super) fn is_denial(error: &str, command: &str) -> bool {
    ["noperm", "no permissions", "can't run this command or subcommand"]
        .iter()
        .any(|text| error.contains(text))
        && error.contains(command)
}
