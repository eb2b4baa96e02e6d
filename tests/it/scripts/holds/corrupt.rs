//! Keys that are no holds, and what holds cannot do.

use ratelimit_runtime::store::account::Message;

use super::failures::{ACTIONS, Action};
use super::{KEY, KIND, SECOND, Share, start};

#[tokio::test]
async fn keys_that_are_no_holds_are_errors() {
    let (mut fixture, mut user, all) = start().await;
    let now = fixture.now().await;
    let live = Share::new(2, now + 300 * SECOND).pack();
    let numbers = |permits: f64, until: f64, released: f64, reported: f64| {
        [permits, until, released, reported].map(f64::to_le_bytes).concat()
    };
    let until = (now + 300 * SECOND) as f64;
    let century = now as f64 + 100.0 * 365.0 * 86_400.0 * 1e6;
    let soonest = |soonest: f64| format!("{soonest:.0}").into_bytes();
    let mut wrong: Vec<(&str, Vec<u8>)> = vec![("1:2", b"secret-value".to_vec()), ("1:2", Vec::new())];
    for number in [-1.0, 1.5, f64::NAN, f64::INFINITY, 9_007_199_254_740_994.0] {
        wrong.push(("1:2", numbers(number, until, 0.0, 0.0)));
        wrong.push(("1:2", numbers(1.0, number, 0.0, 0.0)));
        wrong.push(("1:2", numbers(1.0, until, number, 0.0)));
        wrong.push(("1:2", numbers(1.0, until, 0.0, number)));
    }
    wrong.extend([("1:2", numbers(1.0, century, 0.0, 0.0)), ("1:2", numbers(1.0, until, 0.0, 2.0))]);
    for field in ["total", "soonest", "ends"] {
        for text in ["secret-value", "", "-1", "1.5", "nan", "inf", "9007199254740994"] {
            wrong.push((field, text.into()));
        }
    }
    wrong.extend([("soonest", soonest(century)), ("ends", soonest(century / 1e6))]);
    let mut states: Vec<Vec<(&str, Vec<u8>)>> = wrong
        .into_iter()
        .map(|wrong| {
            let right =
                [("total", b"2".to_vec()), ("soonest", soonest(until)), ("ends", soonest(until / 1e6))];
            right.into_iter().chain([("1:2", live.clone()), wrong]).collect()
        })
        .collect();
    // Those that are only found when all is read.
    let mixed = |more: (&'static str, Vec<u8>)| {
        let right = [("total", b"2".to_vec()), ("soonest", b"1".to_vec()), ("ends", soonest(until / 1e6))];
        right.into_iter().chain([("1:2", live.clone()), more]).collect()
    };
    states.push(mixed(("3:1", numbers(0.5, until, 0.0, 0.0))));
    states.push(mixed(("3:1", numbers(1.0, century, 0.0, 0.0))));
    states.push(mixed(("user", b"secret-value".to_vec())));
    states.push(vec![("user", b"secret-value".to_vec())]);
    states.push(vec![("1:2", live.clone())]);
    states.push(vec![("total", b"2".to_vec()), ("1:2", live.clone())]);
    let second = now / SECOND + 1000;
    let writes = states.into_iter().map(|fields| {
        let mut write = redis::cmd("HSET");
        write.arg(KEY).arg(&fields);
        write
    });
    let mut others = vec![redis::cmd("SET"), redis::cmd("RPUSH")];
    others.iter_mut().for_each(|write| {
        write.arg(KEY).arg("secret-value");
    });
    for write in writes.chain(others) {
        for (action, scripts) in
            ACTIONS.iter().flat_map(|action| all.iter().map(move |scripts| (*action, scripts)))
        {
            // A release has nothing to do with other shares.
            let context = format!("{action:?} of {:?}", String::from_utf8_lossy(&write.get_packed_command()));
            fixture.send("FLUSHALL").await;
            write.exec_async(&mut fixture.admin).await.unwrap();
            fixture.send(&format!("EXPIREAT {KEY} {second}")).await;
            let keys = [KEY.to_owned()];
            let before = fixture.stored_under(&keys).await;
            let result = action.run(scripts, &mut user).await;
            let after = fixture.stored_under(&keys).await;
            let ignores =
                matches!(action, Action::Say(Message::Release(..), _) | Action::Peek | Action::Shadow);
            match result {
                Err(error) => {
                    let is_named = error.starts_with("CORRUPT") || error.starts_with("WRONGTYPE");
                    assert!(is_named && !error.contains("secret-value"), "{context}: {error}");
                    assert_eq!(before, after, "{context}");
                }
                Ok(_) => assert!(ignores, "{context}"),
            }
        }
    }
}

#[tokio::test]
async fn holds_cannot_be_paused() {
    let (_fixture, mut user, all) = start().await;
    let text = all[0].correct(&mut user, KEY, -KIND, [SECOND, 0, 0, 0, 0, 0]).await.unwrap();
    assert_eq!(text, "ERR a concurrency limit cannot be paused");
}
