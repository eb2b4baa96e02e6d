//! Pauses of keys in Redis: values that no limiter wrote, and users who may not run one of the commands.

use std::slice;

use ratelimit_runtime::store::{Charge, RedisStore};

use super::cases::{CASES, Case, State};
use super::permissions::is_denial;
use super::{COMMANDS, Fault, Fixture, is_permanent, text};

const HOUR: u64 = 3_600_000_000;

/// Stores these elements under a key, or a single one as its value.
async fn write(fixture: &mut Fixture, key: &str, elements: &[String], is_list: bool) {
    let mut command = redis::cmd(if is_list { "RPUSH" } else { "SET" });
    let _: () = command.arg(key).arg(elements).query_async(&mut fixture.admin).await.unwrap();
    let second = fixture.now().await / 1_000_000 + 1000;
    fixture.send(&format!("EXPIREAT {key} {second}")).await;
}

/// Checks that all that is done to a key fails, and changes nothing.
async fn assert_corrupt(fixture: &mut Fixture, case: &Case, context: &str) {
    let before = fixture.stored().await;
    let (key, spec, charge) = (case.key(), case.spec(), case.charge());
    let peek = Charge { cost: 0, ..charge.clone() };
    let other = CASES.iter().find(|other| other.name != case.name).expect("there are several").charge();
    let decided =
        fixture.store.decide_many(&[std::slice::from_ref(&charge), &[peek], &[other, charge.clone()]]).await;
    assert!(decided.iter().all(Result::is_err), "{context}: {decided:?}");
    let mut errors: Vec<_> = decided.into_iter().map(Result::unwrap_err).collect();
    // A list without charges has nothing to give back.
    errors.extend(fixture.store.refund(&key, &spec, 1, None).await.err());
    errors.push(fixture.store.pause(&key, &spec, HOUR).await.unwrap_err());
    for error in errors {
        let text = text(&error);
        let is_known = text.contains("not the state of a limiter") || text.contains("wrongtype");
        assert!(is_known && is_permanent(&error), "{context}: {text}");
    }
    assert_eq!(before, fixture.stored().await, "{context}");
}

#[tokio::test]
async fn corrupt_pauses_are_permanent_errors() {
    let mut fixture = Fixture::start().await;
    let huge = "9".repeat(400);
    let texts = [
        "paused".to_owned(),
        "paused: ".to_owned(),
        "paused: x".to_owned(),
        "paused: 1 2".to_owned(),
        "paused: 1 2 3".to_owned(),
        "paused:1 2 3 5".to_owned(),
        "paused: x 2 3 5".to_owned(),
        "paused: 1 -2 3 5".to_owned(),
        "paused: 1 2.5 3 5".to_owned(),
        format!("paused: {huge} 2 3 5"),
        format!("paused: 1 {huge} 3 5"),
        format!("paused: 1 2 {huge} 5"),
        "paused: 9007199254740999 2 3 5".to_owned(),
        // Beyond the longest time that anything takes.
        "paused: 1 9007199254740992 3 5".to_owned(),
        "paused: 1 2 3 secret-value".to_owned(),
        "paused: 1 2 3 paused: 1 2 3 5".to_owned(),
        "paused: 1 2 3 -5".to_owned(),
        "penalized: 1 2 3 5".to_owned(),
        "penalized: 1 2 3 1 2 1 5".to_owned(),
        "penalized: 1 2 3 x 0 1 5".to_owned(),
        "penalized: 1 2 3 1 0 -1 5".to_owned(),
        format!("penalized: 1 2 3 {huge} 0 1 5"),
        "penalized: 1 2 3 9 1 9007199254740992 5".to_owned(),
        "penalized: 1 2 3 1 1 1 secret-value".to_owned(),
    ];
    for case in &CASES {
        let key = case.text();
        let is_log = matches!(case.name, "log" | "counter");
        for element in &texts {
            for elements in [vec![element.clone()], vec!["0".into(), "1".into(), element.clone()]] {
                for is_list in [false, true] {
                    if !is_list && elements.len() > 1 {
                        continue;
                    }
                    fixture.prepare(State::Absent).await;
                    write(&mut fixture, &key, &elements, is_list).await;
                    let context = format!("{} over {elements:?}, a list: {is_list}", case.name);
                    assert_corrupt(&mut fixture, case, &context).await;
                }
            }
        }
        for elements in [&["paused: 1 2 3 "][..], &["paused: 1 2 3 5", "6"], &["0", "1", "paused: 1 2 3 "]] {
            let elements: Vec<String> = elements.iter().map(|element| (*element).to_owned()).collect();
            fixture.prepare(State::Absent).await;
            write(&mut fixture, &key, &elements, true).await;
            assert_corrupt(&mut fixture, case, &format!("{} over {elements:?}", case.name)).await;
        }
        // A pause and nothing else, which is over.
        fixture.prepare(State::Absent).await;
        write(&mut fixture, &key, &["paused: 1 1 0 ".to_owned() + if is_log { "7" } else { "" }], is_log)
            .await;
        assert!(fixture.store.decide(&[case.charge()]).await.unwrap().admitted, "{}", case.name);
    }
}

#[tokio::test]
async fn denied_command_leaves_pauses_atomic() {
    let mut fixture = Fixture::start().await;
    for denied in COMMANDS {
        let fault = Fault::denied(&[denied]);
        for state in State::ALL {
            for case in &CASES {
                fixture.prepare_only(slice::from_ref(case), state).await;
                let pause = async |store: &RedisStore| store.pause(&case.key(), &case.spec(), 2 * HOUR).await;
                let context = format!("{denied} denied, {state:?}, {}", case.name);
                let (paused, change) = fixture.during(&fault, pause).await;
                match paused {
                    Err(error) => {
                        change.assert_none(&context);
                        let text = text(&error);
                        assert!(is_denial(&text, denied), "{context}: {text}");
                    }
                    Ok(()) => {
                        let outcome =
                            fixture.store.decide(&[Charge { wait: 0, ..case.charge() }]).await.unwrap();
                        assert!(!outcome.admitted && outcome.paused.len() == 1, "{context}: {outcome:?}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn documented_permissions_suffice_for_pauses() {
    let mut fixture = Fixture::start().await;
    for state in State::ALL {
        fixture.prepare(state).await;
        for case in &CASES {
            let context = format!("{state:?}, {}", case.name);
            fixture.store.pause(&case.key(), &case.spec(), 2 * HOUR).await.unwrap();
            let outcome = fixture.store.decide(&[Charge { wait: 0, ..case.charge() }]).await.unwrap();
            assert!(!outcome.admitted, "{context}");
            fixture.store.refund(&case.key(), &case.spec(), 1000, None).await.unwrap();
            let outcome = fixture.store.decide(&[Charge { wait: 0, ..case.charge() }]).await.unwrap();
            assert!(!outcome.admitted, "{context}");
            assert!(fixture.store.reset(&case.key()).await.unwrap(), "{context}");
            let outcome = fixture.store.decide(&[case.charge()]).await.unwrap();
            assert!(outcome.admitted, "{context}");
        }
    }
}
