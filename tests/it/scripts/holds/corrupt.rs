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
    let sum = |total: f64, soonest: f64, ends: f64| [total, soonest, ends].map(f64::to_le_bytes).concat();
    let (own, other) = (super::pack([1, 2]), super::pack([3, 1]));
    let share = |value: Vec<u8>| (own.clone(), value);
    let mut wrong: Vec<(Vec<u8>, Vec<u8>)> = vec![share(b"secret-value".to_vec()), share(Vec::new())];
    for number in [-1.0, 1.5, f64::NAN, f64::INFINITY, 9_007_199_254_740_994.0] {
        wrong.push(share(numbers(number, until, 0.0, 0.0)));
        wrong.push(share(numbers(1.0, number, 0.0, 0.0)));
        wrong.push(share(numbers(1.0, until, number, 0.0)));
        wrong.push(share(numbers(1.0, until, 0.0, number)));
        wrong.push((b"sum".to_vec(), sum(number, until, until / 1e6)));
        wrong.push((b"sum".to_vec(), sum(2.0, number, until / 1e6)));
        wrong.push((b"sum".to_vec(), sum(2.0, until, number)));
    }
    wrong.extend([share(numbers(1.0, century, 0.0, 0.0)), share(numbers(1.0, until, 0.0, 2.0))]);
    let right = sum(2.0, until, (until / 1e6).floor() + 1.0);
    let texts = [b"secret-value".to_vec(), Vec::new(), right[1..].to_vec(), [&right[..], b"more"].concat()];
    wrong.extend(texts.map(|text| (b"sum".to_vec(), text)));
    wrong.extend(
        [sum(2.0, century, until / 1e6), sum(2.0, until, century / 1e6)].map(|sum| (b"sum".to_vec(), sum)),
    );
    let mut states: Vec<Vec<(Vec<u8>, Vec<u8>)>> = wrong
        .into_iter()
        .map(|wrong| vec![(b"sum".to_vec(), right.clone()), share(live.clone()), wrong])
        .collect();
    // Those that are only found when all is read.
    let mixed = |more: (Vec<u8>, Vec<u8>)| {
        vec![(b"sum".to_vec(), sum(2.0, 1.0, until / 1e6)), share(live.clone()), more]
    };
    states.push(mixed((other.clone(), numbers(0.5, until, 0.0, 0.0))));
    states.push(mixed((other, numbers(1.0, century, 0.0, 0.0))));
    states.push(mixed((b"user".to_vec(), b"secret-value".to_vec())));
    states.push(vec![(b"user".to_vec(), b"secret-value".to_vec())]);
    states.push(vec![share(live.clone())]);
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
                matches!(action, Action::Say(Message::Release(_), _) | Action::Peek | Action::Shadow);
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
