//! What the limiters and libraries this follows get wrong, one test for each.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use ratelimit_runtime::store::{AlgorithmSpec, Charge, Key, Outcome, RedisStore, Store};

use crate::support::policies::{self, Pair, one_of_each};
use crate::support::registries::PATIENT;
use crate::support::scheduled::{Scheduled, on_each_store};
use crate::support::server::Server;

/// A second in microseconds.
const S: i64 = 1_000_000;

const TEN: Duration = Duration::from_secs(10);

async fn ask(store: &Scheduled, at: i64, name: &str, pair: &Pair, cost: u64) -> Outcome {
    store.set(at).await;
    store.decide(&[Charge { key: store.key(name), spec: pair.spec, cost, wait: 0, shadow: false }]).await
}

/// `EXPIRE` on every call: a window that somebody is always knocking at never ends.
#[tokio::test]
async fn a_window_ends_however_often_it_is_called() {
    on_each_store(async |store| {
        for aligned in [false, true] {
            let pair = policies::fixed_window(3, TEN, aligned).unwrap();
            let name = if aligned { "aligned" } else { "from the first call" };
            assert!(ask(&store, 0, name, &pair, 1).await.admitted);
            let first = store.held(&[name]).await.map(|held| held[0].clone().unwrap().expires);
            for tenth in 1..100 {
                let outcome = ask(&store, tenth * S / 10, name, &pair, 1).await;
                assert_eq!(outcome.admitted, tenth < 3);
                let now = store.held(&[name]).await.map(|held| held[0].clone().unwrap().expires);
                assert_eq!(now, first, "{name}");
            }
            assert!(ask(&store, 10 * S, name, &pair, 3).await.admitted, "{name}");
        }
    })
    .await;
}

/// A sorted set whose members are times: calls of one millisecond, or one microsecond, are one call.
#[tokio::test]
async fn calls_of_one_moment_are_not_one_call() {
    on_each_store(async |store| {
        for (name, pair) in one_of_each() {
            for call in 0..5 {
                assert_eq!(ask(&store, S, name, &pair, 1).await.admitted, call < 3, "{name}");
            }
        }
        for precision in [None, Some(Duration::from_secs(5))] {
            let pair = policies::sliding_window(3, TEN, precision).unwrap();
            let name = format!("one millisecond {precision:?}");
            for call in 0..5 {
                assert_eq!(ask(&store, S + call, &name, &pair, 1).await.admitted, call < 3, "{name}");
            }
        }
    })
    .await;
}

/// Charging calls that are refused: whoever keeps trying stays locked out.
#[tokio::test]
async fn refused_calls_are_not_counted() {
    on_each_store(async |store| {
        for (name, pair) in one_of_each() {
            assert!(ask(&store, 0, name, &pair, 3).await.admitted);
            let before = store.held(&[name]).await;
            let mut opens = None;
            for call in 0..50 {
                let refused = ask(&store, call, name, &pair, 2).await;
                assert!(!refused.admitted, "{name}");
                let retry_at = call + refused.verdicts[0].retry_after.expect("it fits one day") as i64;
                assert_eq!(*opens.get_or_insert(retry_at), retry_at, "{name}");
            }
            assert_eq!(store.held(&[name]).await, before, "{name}");
            let opens = opens.unwrap();
            assert!(!ask(&store, opens - 1, name, &pair, 2).await.admitted, "{name}");
            assert!(ask(&store, opens, name, &pair, 2).await.admitted, "{name}");
        }
    })
    .await;
}

/// Creating the key instead of charging it.
#[tokio::test]
async fn the_first_call_is_charged() {
    on_each_store(async |store| {
        for (name, pair) in one_of_each() {
            let first = ask(&store, 0, name, &pair, 2).await;
            assert_eq!(first.verdicts[0].remaining, 1, "{name}");
            assert_eq!(ask(&store, 0, name, &pair, 0).await.verdicts[0].remaining, 1, "{name}");
            // And the first after the state has ended.
            let later = ask(&store, 100 * S, name, &pair, 2).await;
            assert_eq!(later.verdicts[0].remaining, 1, "{name}");
            assert!(!ask(&store, 100 * S, name, &pair, 2).await.admitted, "{name}");
        }
    })
    .await;
}

/// Limits that are kept in the store from a key's first call on, whatever the program says later.
#[tokio::test]
async fn numbers_are_those_of_the_call() {
    on_each_store(async |store| {
        let limits = [3, 5, 2];
        let windows = [
            ("fixed window", limits.map(|limit| policies::fixed_window(limit, TEN, false))),
            ("aligned window", limits.map(|limit| policies::fixed_window(limit, TEN, true))),
            ("log", limits.map(|limit| policies::sliding_window(limit, TEN, None))),
            ("counter", limits.map(|limit| policies::sliding_window(limit, TEN, Some(TEN / 10)))),
        ];
        let told = |outcome: Outcome| {
            let verdict = outcome.verdicts[0];
            (verdict.admitted, verdict.limit, verdict.remaining)
        };
        for (name, window) in windows {
            let [three, five, two] = window.map(Option::unwrap);
            assert_eq!(told(ask(&store, 0, name, &three, 3).await), (true, 3, 0), "{name}");
            assert_eq!(told(ask(&store, 0, name, &three, 1).await), (false, 3, 0), "{name}");
            assert_eq!(told(ask(&store, 0, name, &five, 1).await), (true, 5, 1), "{name}");
            assert_eq!(told(ask(&store, 0, name, &two, 1).await), (false, 2, 0), "{name}");
        }
    })
    .await;
}

/// Other numbers of a bucket, or another period, are another state: a key says what shapes what it holds.
#[test]
fn a_key_tells_the_numbers_that_shape_its_state() {
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

/// `INCR` first and `EXPIRE` if that made the key, or a period rounded down to 0 s: a key that stays for ever.
#[tokio::test]
async fn every_key_has_an_expiry() {
    let server = Server::shared();
    let store = RedisStore::lazy(&server.url()).unwrap().with_deadline(PATIENT);
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
                // A key that is gone has none; -1 is one that stays.
                assert_ne!(ttl, -1, "{pair:?}");
                assert!(ttl <= verdict.reset_after as i64 / 1000 + 1001, "{ttl} {verdict:?} {pair:?}");
                assert!(ttl > 0 || verdict.reset_after == 0 || period < TEN, "{pair:?}");
            }
        }
    }
}

/// The caller's clock as the limiter's: a caller whose clock is wrong is limited wrongly, and so are all others.
#[tokio::test]
async fn no_clients_clock_is_asked() {
    // Decades away from whatever clock this machine has.
    on_each_store(async |store| {
        for start in [-1_600_000_000 * S, 0, 3_000_000_000 * S] {
            for (name, pair) in one_of_each() {
                let name = format!("{name} {start}");
                assert!(ask(&store, start, &name, &pair, 3).await.admitted);
                let refused = ask(&store, start, &name, &pair, 1).await;
                let wait = refused.verdicts[0].retry_after.unwrap() as i64;
                assert!((1..=15 * S).contains(&wait), "{name} {wait}");
                assert!(!ask(&store, start + wait - 1, &name, &pair, 1).await.admitted, "{name}");
                assert!(ask(&store, start + wait, &name, &pair, 1).await.admitted, "{name}");
            }
        }
    })
    .await;
}

/// What a client sends does not depend on when it sends it.
#[tokio::test]
async fn no_clients_clock_is_sent() {
    let server = Server::start();
    let store = RedisStore::lazy(&server.url()).unwrap().with_deadline(PATIENT);
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
            // Each entry: its number, its time, its duration, the command and its arguments, and more.
            let redis::Value::Array(entries) = send(&["SLOWLOG", "GET", "-1"]).await else {
                panic!("no log")
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

/// One lock for all keys, which whoever comes releases: keys wait for each other, and two callers hold it at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_know_nothing_of_each_other() {
    const KEYS: usize = 16;
    on_each_store(async |store| {
        store.set(0).await;
        for (name, pair) in one_of_each() {
            let mut tasks = Vec::new();
            for call in 0..KEYS * 10 {
                let (store, key) = (store.store.clone(), store.key(&format!("{name} {}", call % KEYS)));
                tasks.push(tokio::spawn(async move { (call % KEYS, take(&store, key, pair.spec).await) }));
            }
            let mut admitted = [0; KEYS];
            for task in tasks {
                let (key, got_in) = task.await.unwrap();
                admitted[key] += usize::from(got_in);
            }
            assert_eq!(admitted, [3; KEYS], "{name}");
            // What is done to one of them is not done to another.
            store.store.reset(&store.key(&format!("{name} 0"))).await.unwrap();
            store.store.refund(&store.key(&format!("{name} 1")), &pair.spec, 1, None).await.unwrap();
            let mut left = Vec::new();
            for key in 0..4 {
                left.push(ask(&store, 0, &format!("{name} {key}"), &pair, 0).await.verdicts[0].remaining);
            }
            assert_eq!(left, [3, 1, 0, 0], "{name}");
        }
    })
    .await;
}

/// A caller that goes away in the middle leaves no lock behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_holds_nobody_up() {
    on_each_store(async |store| {
        store.set(0).await;
        for (name, pair) in one_of_each() {
            let key = store.key(name);
            for _ in 0..20 {
                let (store, key) = (store.store.clone(), key.clone());
                let task = tokio::spawn(async move { take(&store, key, pair.spec).await });
                tokio::task::yield_now().await;
                task.abort();
            }
            let look = ask(&store, 0, name, &pair, 0).await;
            let left = look.verdicts[0].remaining;
            let mut admitted = 0;
            while take(&store.store, key.clone(), pair.spec).await {
                admitted += 1;
            }
            // Calls that were on their way may have come after the look.
            assert!(admitted <= left, "{name}");
        }
    })
    .await;
}

async fn take(store: &Store, key: Key, spec: AlgorithmSpec) -> bool {
    store
        .decide(&[&[Charge { key, spec, cost: 1, wait: 0, shadow: false }]])
        .await
        .remove(0)
        .expect("the store answers")
        .admitted
}

/// Whole seconds for times: half a second is none, and a second and a half is one.
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
                assert!(ask(&store, 0, &name, &pair, 1).await.admitted, "{name}");
                let refused = ask(&store, 0, &name, &pair, 1).await;
                assert_eq!(refused.verdicts[0].retry_after, Some(micros as u64), "{name}");
                if micros > 1 {
                    let refused = ask(&store, micros - 1, &name, &pair, 1).await;
                    assert_eq!(refused.verdicts[0].retry_after, Some(1), "{name}");
                }
                assert!(ask(&store, micros, &name, &pair, 1).await.admitted, "{name}");
            }
        }
    })
    .await;
}

/// One limit after the other: a call that the second refuses has paid the first.
#[tokio::test]
async fn a_refused_call_has_paid_nowhere() {
    on_each_store(async |store| {
        let all = one_of_each();
        for (refusing, pair) in &all {
            let full = format!("full {refusing}");
            assert!(ask(&store, 0, &full, pair, 3).await.admitted);
            for (paying, other) in &all {
                let name = format!("{paying} beside {refusing}");
                assert!(ask(&store, 0, &name, other, 1).await.admitted);
                let before = store.held(&[&name, &full]).await;
                let mut list = [
                    Charge { key: store.key(&name), spec: other.spec, cost: 2, wait: 0, shadow: false },
                    Charge { key: store.key(&full), spec: pair.spec, cost: 1, wait: 0, shadow: false },
                ];
                for _ in 0..2 {
                    assert!(!store.decide(&list).await.admitted, "{name}");
                    list.reverse();
                }
                assert_eq!(store.held(&[&name, &full]).await, before, "{name}");
                assert!(ask(&store, 0, &name, other, 2).await.admitted, "{name}");
            }
        }
    })
    .await;
}

/// Indexes and locks beside the state, which nobody ever cleans up.
#[tokio::test]
async fn a_store_needs_no_key_but_its_own() {
    let store = Scheduled::redis(Arc::new(Server::start())).await;
    let mut connection = store.connection().unwrap();
    let before: u64 = redis::cmd("DBSIZE").query_async(&mut connection).await.unwrap();
    assert_eq!(before, 0);
    for (name, pair) in one_of_each() {
        ask(&store, 0, name, &pair, 1).await;
    }
    // Each with the record of its expiry, which the test keeps; and the clock.
    let after: u64 = redis::cmd("DBSIZE").query_async(&mut connection).await.unwrap();
    assert_eq!(after, 2 * 7 + 1);
}
