//! What stores keep of a pause: values and expiries in Redis, and what they tell calls that wait.

use std::time::Duration;

use ratelimit_runtime::store::{Charge, Outcome};

use crate::support::policies::{Pair, each_for, one_of_each, queue, token_bucket, warming_up};
use crate::support::test_store::{FOREVER, S};
use crate::support::test_store::{START, TestStore, on_each_store};

const NINE: Duration = Duration::from_secs(9);
const SECOND: Duration = Duration::from_secs(1);

/// Returns the value of a key in Redis, or the last element of its list.
async fn value(store: &TestStore, name: &str) -> Option<Vec<u8>> {
    const READ: &str = "
        if redis.call('TYPE', KEYS[1]).ok == 'list' then return redis.call('LINDEX', KEYS[1], -1) end
        return redis.call('GET', KEYS[1])";
    let mut connection = store.connection()?;
    let mut call = redis::cmd("EVAL");
    call.arg(READ).arg(1).arg(store.key_text(name));
    call.query_async(&mut connection).await.expect("the server responds")
}

async fn is_marked(store: &TestStore, name: &str) -> bool {
    value(store, name).await.is_some_and(|value| value.starts_with(b"paused: "))
}

/// Returns the pause of the key of a single charge: its end, as far as it is not over, and by how much slots have moved.
fn pause_of(outcome: &Outcome) -> Option<(i64, u64)> {
    let [(0, pause)] = outcome.paused[..] else { return None };
    Some(((pause.until - START) as i64, pause.moved))
}

async fn wait(store: &TestStore, at: i64, name: &str, pair: &Pair) -> Outcome {
    store.set_time(at).await;
    store.decide(&[Charge { wait: FOREVER as u64, ..store.charge(name, pair, 1) }]).await
}

#[tokio::test]
async fn paused_keys_expire_when_nothing_is_left_of_them() {
    on_each_store(async |store| {
        for (name, pair) in each_for(3, NINE) {
            for (calls, micros) in [(0, 1), (0, 500_000), (0, 3 * S), (1, 1), (1, 500_000), (1, 20 * S)] {
                let key = format!("{name} for {micros} after {calls}");
                if calls > 0 {
                    assert!(store.decide_at(0, &key, &pair, 1).await.admitted);
                }
                store.set_time(S / 2).await;
                store.pause(&key, &pair, micros as u64).await;
                let peeked = store.decide(&[store.charge(&key, &pair, 0)]).await;
                let end = START + (S / 2) as u64 + peeked.verdicts[0].reset_after;
                assert!(peeked.verdicts[0].reset_after >= micros as u64, "{key}");
                let Some(stored) = store.stored(&[&key]).await else { continue };
                let expires_at = stored[0].as_ref().expect("it is paused").expires_at * 1_000_000;
                assert!((end..=end + 1_000_000).contains(&expires_at), "{key}: {expires_at} after {end}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn refused_calls_and_shorter_pauses_leave_a_paused_key_as_it_is() {
    on_each_store(async |store| {
        for (name, pair) in each_for(3, NINE) {
            for calls in [0, 1] {
                let key = format!("{name} after {calls}");
                if calls > 0 {
                    assert!(store.decide_at(0, &key, &pair, 1).await.admitted);
                }
                store.set_time(S).await;
                store.pause(&key, &pair, 10_000_000).await;
                let before = (store.stored(&[&key]).await, value(&store, &key).await);
                for cost in [1, 0, 3, 100] {
                    let outcome = store.decide_at(2 * S, &key, &pair, cost).await;
                    assert_eq!(pause_of(&outcome).map(|pause| pause.0), Some(11 * S), "{key}");
                }
                store.pause(&key, &pair, 0).await;
                store.pause(&key, &pair, 9_000_000).await;
                assert_eq!(before, (store.stored(&[&key]).await, value(&store, &key).await), "{key}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn next_call_after_a_pause_leaves_a_plain_value() {
    on_each_store(async |store| {
        for (name, pair) in each_for(3, NINE) {
            for calls in [0, 1] {
                let key = format!("{name} after {calls}");
                if calls > 0 {
                    assert!(store.decide_at(0, &key, &pair, 1).await.admitted);
                }
                store.set_time(S).await;
                store.pause(&key, &pair, 10_000_000).await;
                let in_redis = store.connection().is_some();
                assert_eq!(is_marked(&store, &key).await, in_redis, "{key}");
                let peeked = store.decide_at(14 * S, &key, &pair, 0).await.verdicts[0];
                let then = 14 * S + peeked.retry_after.unwrap_or(0) as i64;
                assert!(store.decide_at(then, &key, &pair, 1).await.admitted, "{key}");
                assert!(!is_marked(&store, &key).await, "{key}");
                let peeked = store.decide_at(then, &key, &pair, 0).await;
                assert!(peeked.paused.is_empty(), "{key} in {}: {:?}", store.name, peeked.paused);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn reset_keys_are_not_paused() {
    on_each_store(async |store| {
        for (name, pair) in one_of_each() {
            assert!(store.decide_at(0, name, &pair, 1).await.admitted);
            store.pause(name, &pair, 10_000_000).await;
            let reset = async || store.store.reset(&store.key(name)).await.expect("the store responds");
            assert!(reset().await, "{name}");
            assert!(!reset().await, "{name}");
            let outcome = store.decide_at(S, name, &pair, 3).await;
            assert!(outcome.admitted && outcome.paused.is_empty(), "{name}");
            // Nothing but a pause is something to reset.
            store.reset(name).await;
            store.pause(name, &pair, 10_000_000).await;
            assert!(reset().await, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn moved_slots_are_known_until_the_last_has_come() {
    let buckets = [
        ("bucket", token_bucket(1, SECOND, 1)),
        ("changing bucket", crate::support::policies::adjustable::token_bucket(1, SECOND, 1)),
        ("settled bucket", crate::support::policies::adjustable::settled(1, SECOND, 1, false)),
        ("borrowing", crate::support::policies::borrowing(1, SECOND, Some(1))),
        ("queue", queue(40, 1, SECOND)),
        ("changing queue", crate::support::policies::adjustable::queue(40, 1, SECOND)),
        ("refill", crate::support::policies::interval_refill(1, SECOND, 1)),
        ("changing refill", crate::support::policies::adjustable::interval_refill(1, SECOND, 1)),
    ];
    on_each_store(async |store| {
        for (name, pair) in buckets {
            let pair = pair.expect("the policy is valid");
            let name = &format!("{name} in {}", store.name);
            store.set_time(0).await;
            // The last of them starts at 20 s.
            for second in 0..=20 {
                let outcome = wait(&store, 0, name, &pair).await;
                let wait = if name.starts_with("borrowing") { i64::max(second - 1, 0) } else { second };
                assert_eq!((outcome.admitted, outcome.wait()), (true, (wait * S) as u64), "{name}");
                assert!(outcome.paused.is_empty(), "{name}");
            }
            store.pause(name, &pair, 5_000_000).await;
            store.set_time(S).await;
            store.pause(name, &pair, 6_000_000).await;
            let peek = async |at| pause_of(&store.decide_at(at, name, &pair, 0).await);
            assert_eq!(peek(S).await, Some((7 * S, 7_000_000)), "{name}");
            // Calls that come after the pause forget nothing of it.
            let outcome = wait(&store, 8 * S, name, &pair).await;
            assert_eq!(pause_of(&outcome).map(|pause| pause.1), Some(7_000_000), "{name}");
            let outcome = wait(&store, 9 * S, name, &pair).await;
            assert_eq!(pause_of(&outcome).map(|pause| pause.1), Some(7_000_000), "{name}");
            // Another pause moves all of them, from 9 s to 11 s.
            store.pause(name, &pair, 2_000_000).await;
            let outcome = wait(&store, 12 * S, name, &pair).await;
            assert_eq!(pause_of(&outcome), Some((11 * S, 9_000_000)), "{name}");
            let slot = 12 * S + outcome.wait() as i64;
            assert_eq!(peek(slot - 1).await.map(|pause| pause.1), Some(9_000_000), "{name}");
            // The first call after that finds the pause, and none after it.
            store.decide_at(slot + S, name, &pair, 1).await;
            assert_eq!(peek(slot + S).await, None, "{name}");
        }
        let warming = warming_up(1, SECOND, SECOND).expect("the policy is valid");
        let first = wait(&store, 0, "warming", &warming).await;
        let second = wait(&store, 0, "warming", &warming).await;
        assert!(first.wait() == 0 && second.wait() > 0);
        store.pause("warming", &warming, 1000).await;
        let third = wait(&store, 2000, "warming", &warming).await;
        assert_eq!(pause_of(&third), Some((1000, 1000)));
        let slot = 2000 + third.wait() as i64;
        assert_eq!(pause_of(&store.decide_at(slot, "warming", &warming, 0).await), Some((1000, 1000)));
    })
    .await;
}
