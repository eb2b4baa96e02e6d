//! Known bugs of other rate limiters, one test for each.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use ratelimit_runtime::store::{AlgorithmSpec, Charge, Key, Outcome, RedisStore, Store};

use crate::support::policies::{self, Pair, one_of_each};
use crate::support::registries::LONG_DEADLINE;
use crate::support::server::Server;
use crate::support::test_store::{S, TestStore, on_each_store};

const TEN: Duration = Duration::from_secs(10);

/// `EXPIRE` on every call: a window that is called all the time never ends.
#[tokio::test]
async fn calls_do_not_extend_a_window() {
    on_each_store(async |store| {
        for aligned in [false, true] {
            let pair = policies::fixed_window(3, TEN, aligned).unwrap();
            let name = if aligned { "aligned" } else { "from the first call" };
            assert!(store.decide_at(0, name, &pair, 1).await.admitted);
            let first = store.stored(&[name]).await.map(|stored| stored[0].clone().unwrap().expires_at);
            for tenth in 1..100 {
                let outcome = store.decide_at(tenth * S / 10, name, &pair, 1).await;
                assert_eq!(outcome.admitted, tenth < 3);
                let now = store.stored(&[name]).await.map(|stored| stored[0].clone().unwrap().expires_at);
                assert_eq!(now, first, "{name}");
            }
            assert!(store.decide_at(10 * S, name, &pair, 3).await.admitted, "{name}");
        }
    })
    .await;
}

/// A sorted set with times as members: calls in the same millisecond or microsecond count as one.
#[tokio::test]
async fn simultaneous_calls_are_all_counted() {
    on_each_store(async |store| {
        for (name, pair) in one_of_each() {
            for call in 0..5 {
                assert_eq!(store.decide_at(S, name, &pair, 1).await.admitted, call < 3, "{name}");
            }
        }
        for precision in [None, Some(Duration::from_secs(5))] {
            let pair = policies::sliding_window(3, TEN, precision).unwrap();
            let name = format!("one millisecond {precision:?}");
            for call in 0..5 {
                assert_eq!(store.decide_at(S + call, &name, &pair, 1).await.admitted, call < 3, "{name}");
            }
        }
    })
    .await;
}

/// Refused calls are charged: a caller that keeps retrying is locked out.
#[tokio::test]
async fn refused_calls_are_not_charged() {
    on_each_store(async |store| {
        for (name, pair) in one_of_each() {
            assert!(store.decide_at(0, name, &pair, 3).await.admitted);
            let before = store.stored(&[name]).await;
            let mut opens_at = None;
            for call in 0..50 {
                let refused = store.decide_at(call, name, &pair, 2).await;
                assert!(!refused.admitted, "{name}");
                let retry_at = call + refused.verdicts[0].retry_after.expect("the cost fits") as i64;
                assert_eq!(*opens_at.get_or_insert(retry_at), retry_at, "{name}");
            }
            assert_eq!(store.stored(&[name]).await, before, "{name}");
            let opens_at = opens_at.unwrap();
            assert!(!store.decide_at(opens_at - 1, name, &pair, 2).await.admitted, "{name}");
            assert!(store.decide_at(opens_at, name, &pair, 2).await.admitted, "{name}");
        }
    })
    .await;
}

/// The first call creates the key instead of charging it.
#[tokio::test]
async fn the_first_call_is_charged() {
    on_each_store(async |store| {
        for (name, pair) in one_of_each() {
            let first = store.decide_at(0, name, &pair, 2).await;
            assert_eq!(first.verdicts[0].remaining, 1, "{name}");
            assert_eq!(store.decide_at(0, name, &pair, 0).await.verdicts[0].remaining, 1, "{name}");
            // And the first call after the state has expired.
            let later = store.decide_at(100 * S, name, &pair, 2).await;
            assert_eq!(later.verdicts[0].remaining, 1, "{name}");
            assert!(!store.decide_at(100 * S, name, &pair, 2).await.admitted, "{name}");
        }
    })
    .await;
}

/// The limit of a key's first call is kept in the store.
#[tokio::test]
async fn each_call_uses_its_own_numbers() {
    on_each_store(async |store| {
        let limits = [3, 5, 2];
        let windows = [
            ("fixed window", limits.map(|limit| policies::fixed_window(limit, TEN, false))),
            ("aligned window", limits.map(|limit| policies::fixed_window(limit, TEN, true))),
            ("log", limits.map(|limit| policies::sliding_window(limit, TEN, None))),
            ("counter", limits.map(|limit| policies::sliding_window(limit, TEN, Some(TEN / 10)))),
        ];
        let summary = |outcome: Outcome| {
            let verdict = outcome.verdicts[0];
            (verdict.admitted, verdict.limit, verdict.remaining)
        };
        for (name, window) in windows {
            let [three, five, two] = window.map(Option::unwrap);
            assert_eq!(summary(store.decide_at(0, name, &three, 3).await), (true, 3, 0), "{name}");
            assert_eq!(summary(store.decide_at(0, name, &three, 1).await), (false, 3, 0), "{name}");
            assert_eq!(summary(store.decide_at(0, name, &five, 1).await), (true, 5, 1), "{name}");
            assert_eq!(summary(store.decide_at(0, name, &two, 1).await), (false, 2, 0), "{name}");
        }
    })
    .await;
}

/// State is shared between policies with different numbers: a key names the numbers that shape its state.
#[test]
fn keys_name_the_numbers_that_shape_their_state() {
    let seconds = Duration::from_secs;
    let shape = |pair: Option<Pair>| pair.unwrap().spec.to_string();
    let shapes = [
        policies::token_bucket(1, seconds(1), 3),
        policies::token_bucket(2, seconds(1), 3),
        policies::token_bucket(1, seconds(1), 4),
        policies::leaky_bucket(3, 1, seconds(1)),
        policies::interval_refill(1, seconds(1), 3),
        policies::interval_refill(2, seconds(1), 3),
        policies::interval_refill(1, seconds(2), 3),
        policies::interval_refill(1, seconds(1), 4),
        policies::fixed_window(3, seconds(1), false),
        policies::fixed_window(3, seconds(2), false),
        policies::fixed_window(3, seconds(2), true),
        policies::sliding_window(3, seconds(2), None),
        policies::sliding_window(3, seconds(4), None),
        policies::sliding_window(3, seconds(4), Some(seconds(1))),
        policies::sliding_window(3, seconds(4), Some(seconds(2))),
    ]
    .map(shape);
    assert_eq!(HashSet::from(shapes.clone()).len(), shapes.len(), "{shapes:?}");
    assert_eq!(shape(policies::fixed_window(9, seconds(1), false)), shapes[8]);
    assert_eq!(shape(policies::sliding_window(9, seconds(4), Some(seconds(2)))), shapes[14]);
}

/// `INCR`, then `EXPIRE` if that created the key, or a period rounded down to 0 s: the key never expires.
#[tokio::test]
async fn every_key_has_an_expiry() {
    let server = Server::shared();
    let store = RedisStore::lazy(&server.url()).unwrap().with_deadline(LONG_DEADLINE);
    let mut connection = server.connect().await;
    let micros = Duration::from_micros;
    for period in [micros(10), micros(999), micros(1500), micros(999_999), TEN, Duration::from_secs(86_400)] {
        let policies = [
            policies::token_bucket(3, period, 3),
            policies::leaky_bucket(3, 3, period),
            policies::interval_refill(3, period, 3),
            policies::fixed_window(3, period, false),
            policies::fixed_window(3, period, true),
            policies::sliding_window(3, period, None),
            policies::sliding_window(3, period * 2, Some(period)),
        ];
        for (i, pair) in policies.iter().enumerate().filter_map(|(i, pair)| Some((i, (*pair)?))) {
            let key = format!("expiry:{i}:{period:?}");
            for cost in [2, 1, 1, 3, 0, 4] {
                let charge = Charge { key: Key::raw(&key), spec: pair.spec, cost, wait: 0, shadow: false };
                let outcome = store.decide(&[charge]).await.unwrap();
                let verdict = outcome.verdicts[0];
                if cost == 1 {
                    store.refund(&Key::raw(&key), &pair.spec, 1, Some(verdict.charge_id)).await.unwrap();
                }
                let ttl: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
                // -2 is a key that is gone, -1 one without an expiry.
                assert_ne!(ttl, -1, "{pair:?}");
                assert!(ttl <= verdict.reset_after as i64 / 1000 + 1001, "{ttl} {verdict:?} {pair:?}");
                assert!(ttl > 0 || verdict.reset_after == 0 || period < TEN, "{pair:?}");
            }
        }
    }
}

/// The caller's clock decides: a caller with a wrong clock disturbs all others.
#[tokio::test]
async fn decisions_ignore_the_clients_clock() {
    // Decades away from this machine's clock.
    on_each_store(async |store| {
        for start in [-1_600_000_000 * S, 0, 3_000_000_000 * S] {
            for (name, pair) in one_of_each() {
                let name = format!("{name} {start}");
                assert!(store.decide_at(start, &name, &pair, 3).await.admitted);
                let refused = store.decide_at(start, &name, &pair, 1).await;
                let wait = refused.verdicts[0].retry_after.unwrap() as i64;
                assert!((1..=15 * S).contains(&wait), "{name} {wait}");
                assert!(!store.decide_at(start + wait - 1, &name, &pair, 1).await.admitted, "{name}");
                assert!(store.decide_at(start + wait, &name, &pair, 1).await.admitted, "{name}");
            }
        }
    })
    .await;
}

/// A client's command does not depend on when it is sent.
#[tokio::test]
async fn commands_do_not_contain_the_clients_clock() {
    let server = Server::start();
    let store = RedisStore::lazy(&server.url()).unwrap().with_deadline(LONG_DEADLINE);
    let mut connection = server.connect().await;
    let mut send = async |command: &[&str]| -> redis::Value {
        let mut call = redis::Cmd::new();
        call.arg(command).query_async(&mut connection).await.unwrap()
    };
    for (name, pair) in one_of_each() {
        let charge = Charge { key: Key::raw(name), spec: pair.spec, cost: 1, wait: 0, shadow: false };
        store.decide(std::slice::from_ref(&charge)).await.unwrap();
        send(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]).await;
        let mut sent = Vec::new();
        for _ in 0..2 {
            send(&["SLOWLOG", "RESET"]).await;
            store.decide(std::slice::from_ref(&charge)).await.unwrap();
            // Each entry is an id, a time, a duration, the command with its arguments, and more.
            let redis::Value::Array(entries) = send(&["SLOWLOG", "GET", "-1"]).await else {
                panic!("no slow log")
            };
            let commands = entries.into_iter().filter_map(|entry| match entry {
                redis::Value::Array(parts) => parts.into_iter().nth(3),
                _ => None,
            });
            let calls: Vec<String> = commands.map(|command| format!("{command:?}")).collect();
            sent.push(calls.into_iter().filter(|call| call.contains("EVALSHA")).collect::<Vec<_>>());
            std::thread::sleep(Duration::from_millis(3));
        }
        send(&["CONFIG", "SET", "slowlog-log-slower-than", "-1"]).await;
        assert_eq!(sent[0].len(), 1, "{name}: {sent:?}");
        assert_eq!(sent[0], sent[1], "{name}");
    }
}

/// One lock for all keys, released by any caller: keys wait for each other, and two callers hold it at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_independent() {
    const KEYS: usize = 16;
    on_each_store(async |store| {
        store.set_time(0).await;
        for (name, pair) in one_of_each() {
            let mut tasks = Vec::new();
            for call in 0..KEYS * 10 {
                let (store, key) = (store.store.clone(), store.key(&format!("{name} {}", call % KEYS)));
                tasks.push(tokio::spawn(async move { (call % KEYS, take(&store, key, pair.spec).await) }));
            }
            let mut admitted = [0; KEYS];
            for task in tasks {
                let (key, is_admitted) = task.await.unwrap();
                admitted[key] += usize::from(is_admitted);
            }
            assert_eq!(admitted, [3; KEYS], "{name}");
            // A reset and a refund each change one key only.
            store.reset(&format!("{name} 0")).await;
            store.refund(&format!("{name} 1"), &pair, 1, None).await;
            let mut remaining = Vec::new();
            for key in 0..4 {
                remaining
                    .push(store.decide_at(0, &format!("{name} {key}"), &pair, 0).await.verdicts[0].remaining);
            }
            assert_eq!(remaining, [3, 1, 0, 0], "{name}");
        }
    })
    .await;
}

/// A caller that is cancelled while it holds a lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_callers_block_no_others() {
    on_each_store(async |store| {
        store.set_time(0).await;
        for (name, pair) in one_of_each() {
            let key = store.key(name);
            for _ in 0..20 {
                let (store, key) = (store.store.clone(), key.clone());
                let task = tokio::spawn(async move { take(&store, key, pair.spec).await });
                tokio::task::yield_now().await;
                task.abort();
            }
            let remaining = store.decide_at(0, name, &pair, 0).await.verdicts[0].remaining;
            let mut admitted = 0;
            while take(&store.store, key.clone(), pair.spec).await {
                admitted += 1;
            }
            // Calls in flight may have arrived after the peek.
            assert!(admitted <= remaining, "{name}");
        }
    })
    .await;
}

async fn take(store: &Store, key: Key, spec: AlgorithmSpec) -> bool {
    store
        .decide(&[Charge { key, spec, cost: 1, wait: 0, shadow: false }])
        .await
        .expect("the store answers")
        .admitted
}

/// Times in whole seconds: half a second becomes none, a second and a half becomes one.
#[tokio::test]
async fn fractions_of_a_second_are_kept() {
    on_each_store(async |store| {
        for micros in [1, 999, 1_000, 1_001, 500_000, 999_999, 1_500_000, 59_999_999] {
            let period = Duration::from_micros(micros);
            let policies = [
                ("token bucket", policies::token_bucket(1, period, 1)),
                ("leaky bucket", policies::leaky_bucket(1, 1, period)),
                ("draining", policies::draining_bucket(1, period)),
                ("interval refill", policies::interval_refill(1, period, 1)),
                ("fixed window", policies::fixed_window(1, period, false)),
                ("log", policies::sliding_window(1, period, None)),
            ];
            for (name, pair) in policies {
                let (pair, name, micros) = (pair.unwrap(), format!("{name} {micros}"), micros as i64);
                assert!(store.decide_at(0, &name, &pair, 1).await.admitted, "{name}");
                let refused = store.decide_at(0, &name, &pair, 1).await;
                assert_eq!(refused.verdicts[0].retry_after, Some(micros as u64), "{name}");
                if micros > 1 {
                    let refused = store.decide_at(micros - 1, &name, &pair, 1).await;
                    assert_eq!(refused.verdicts[0].retry_after, Some(1), "{name}");
                }
                assert!(store.decide_at(micros, &name, &pair, 1).await.admitted, "{name}");
            }
        }
    })
    .await;
}

/// One limit after the other: a call that the second refuses has been charged by the first.
#[tokio::test]
async fn refused_stacks_charge_nothing() {
    on_each_store(async |store| {
        let all = one_of_each();
        for (refusing, pair) in &all {
            let full = format!("full {refusing}");
            assert!(store.decide_at(0, &full, pair, 3).await.admitted);
            for (charged, other) in &all {
                let name = format!("{charged} beside {refusing}");
                assert!(store.decide_at(0, &name, other, 1).await.admitted);
                let before = store.stored(&[&name, &full]).await;
                let mut list = [store.charge(&name, other, 2), store.charge(&full, pair, 1)];
                for _ in 0..2 {
                    assert!(!store.decide(&list).await.admitted, "{name}");
                    list.reverse();
                }
                assert_eq!(store.stored(&[&name, &full]).await, before, "{name}");
                assert!(store.decide_at(0, &name, other, 2).await.admitted, "{name}");
            }
        }
    })
    .await;
}

/// Indexes and locks beside the state that are never cleaned up.
#[tokio::test]
async fn stores_create_only_the_keys_of_their_state() {
    let store = TestStore::redis(Arc::new(Server::start())).await;
    let mut connection = store.connection().unwrap();
    let before: u64 = redis::cmd("DBSIZE").query_async(&mut connection).await.unwrap();
    assert_eq!(before, 0);
    for (name, pair) in one_of_each() {
        store.decide_at(0, name, &pair, 1).await;
    }
    // The test adds a record of each expiry, and the clock.
    let after: u64 = redis::cmd("DBSIZE").query_async(&mut connection).await.unwrap();
    assert_eq!(after, 2 * 10 + 1);
}
