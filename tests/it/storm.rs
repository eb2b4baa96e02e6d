//! A storm over Redis: its scripts are flushed every 50 ms and all clients are killed every 200 ms, while many decide on many
//! keys. What was admitted keeps every promise. `RATELIMITS_STORM_CALLS` makes it longer: so many decisions an algorithm.

mod otherwise;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratelimits::store::{Charge, Key, RedisStore, Store};
use redis::aio::MultiplexedConnection;
use tokio::time::{MissedTickBehavior, interval};

use crate::model;
use crate::support::given::Given;
use crate::support::policies::{self, Pair};
use crate::support::random::Random;
use crate::support::server::Server;

const TASKS: u64 = 64;
/// As many as make some of the calls too many, in either build.
const KEYS: u64 = if cfg!(debug_assertions) { 30 } else { 100 };
const CALLS: u64 = 6_000;

/// Each gives some 300 permits a second and key.
fn policies() -> [(&'static str, Pair); 10] {
    let (second, time) = (Duration::from_secs(1), Duration::from_millis(60));
    [
        ("token-bucket", policies::token_bucket(300, second, 20)),
        ("leaky-bucket", policies::draining_bucket(20, time)),
        ("borrowing", policies::borrowing(300, second, Some(20))),
        ("queue", policies::queue(20, 300, second)),
        ("warming-up", policies::warming_up(300, second, time)),
        ("interval-refill", policies::interval_refill(20, time, 20)),
        ("fixed-window", policies::fixed_window(20, time, false)),
        ("aligned-window", policies::fixed_window(20, time, true)),
        ("log", policies::sliding_window(20, time, None)),
        ("counter", policies::sliding_window(20, time, Some(Duration::from_millis(6)))),
    ]
    .map(|(name, pair)| (name, pair.expect("the policy is valid")))
}

/// A charge that was admitted, in microseconds of Redis.
#[derive(Clone, Copy, Debug)]
struct Admitted {
    cost: u64,
    now: u64,
    wait: u64,
    /// What a window tells its charges by: when it was opened.
    window: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_admitted_beyond_a_policy_while_scripts_are_flushed_and_clients_killed() {
    let server = Server::start();
    let storm = tokio::spawn(storm(server.connect().await));
    let store = Store::Redis(Arc::new(RedisStore::lazy(&server.url()).expect("the URL is right")));
    for (name, pair) in policies() {
        let (calls, failures, admitted) = decide(&store, name, pair).await;
        let count: usize = admitted.values().map(Vec::len).sum();
        println!("{name}: {calls} decisions, {count} admitted, {failures} not answered");
        assert!(count as u64 * 10 >= calls, "{name}: only {count} of {calls} were admitted");
        assert!(failures * 2 < calls, "{name}: {failures} of {calls} were not answered");
        for (key, admitted) in admitted {
            keeps(pair.model, &admitted).unwrap_or_else(|broken| panic!("{name}, key {key}: {broken}"));
        }
    }
    assert!(!storm.is_finished(), "the storm lasted");
}

/// Never ends.
async fn storm(mut connection: MultiplexedConnection) {
    let mut tick = interval(Duration::from_millis(50));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for count in 0_u64.. {
        tick.tick().await;
        let mut flush = redis::cmd("SCRIPT");
        let _: () = flush.arg("FLUSH").query_async(&mut connection).await.expect("an answer");
        if count % 4 == 0 {
            let mut kill = redis::cmd("CLIENT");
            kill.arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"]);
            let _: i64 = kill.query_async(&mut connection).await.expect("an answer");
        }
    }
}

/// How many decisions there were, how many of them failed, and what was admitted of each key.
async fn decide(store: &Store, name: &str, pair: Pair) -> (u64, u64, HashMap<u64, Vec<Admitted>>) {
    let calls =
        std::env::var("RATELIMITS_STORM_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(CALLS);
    let made = Arc::new(AtomicU64::new(0));
    let random = Random::seeded();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (store, name, made) = (store.clone(), name.to_owned(), Arc::clone(&made));
            let mut random = random.run(task);
            tokio::spawn(async move {
                let (mut failures, mut admitted) = (0, Vec::new());
                while made.fetch_add(1, Ordering::Relaxed) < calls {
                    let (key, cost) = (random.below(KEYS), random.between(1, 5));
                    let wait = random.pick(&[0, 0, 0, 20_000]);
                    let text = Key::raw(format!("{name}:{{{key}}}"));
                    let charge = Charge { key: text, rule: pair.rule, cost, wait, shadow: false };
                    match store.decide(&[&[charge]]).await.remove(0) {
                        Ok(outcome) if outcome.admitted => {
                            let verdict = &outcome.verdicts[0];
                            let (now, wait, window) = (outcome.now, verdict.wait, verdict.mark.at);
                            admitted.push((key, Admitted { cost, now, wait, window }));
                        }
                        Ok(_) => {}
                        Err(_) => {
                            failures += 1;
                            // While Redis is not asked a failure takes no time, and says nothing.
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                    }
                }
                (failures, admitted)
            })
        })
        .collect();
    let (mut failures, mut all) = (0, HashMap::<u64, Vec<Admitted>>::new());
    for task in tasks {
        let (failed, admitted) = task.await.expect("the task ends");
        failures += failed;
        admitted.into_iter().for_each(|(key, admitted)| all.entry(key).or_default().push(admitted));
    }
    (calls, failures, all)
}

/// Whether what was admitted of one key keeps the promise of its policy in every interval.
fn keeps(rule: model::Rule, admitted: &[Admitted]) -> Result<(), String> {
    match rule {
        model::Rule::Fixed { limit, period, .. } => {
            let mut windows = BTreeMap::<i128, (i128, i128)>::new();
            for charge in admitted {
                let (sum, last) = windows.entry(charge.window.into()).or_default();
                (*sum, *last) = (*sum + i128::from(charge.cost), (*last).max(charge.now.into()));
            }
            let aligned = matches!(rule, model::Rule::Fixed { aligned: true, .. });
            let start = |opened: i128| if aligned { opened - opened % period } else { opened };
            for (opened, (sum, last)) in &windows {
                if *sum > limit || *last >= start(*opened) + period {
                    return Err(format!("{sum} in the window of {opened}, the last at {last}"));
                }
            }
            let starts: Vec<i128> = windows.keys().map(|opened| start(*opened)).collect();
            match starts.windows(2).find(|pair| pair[1] - pair[0] < period) {
                Some(pair) => Err(format!("a window of {} within that of {}", pair[1], pair[0])),
                None => Ok(()),
            }
        }
        model::Rule::Sliding { limit, period, .. } => {
            let mut charges: Vec<(i128, i128)> =
                admitted.iter().map(|charge| (charge.now.into(), charge.cost.into())).collect();
            charges.sort_unstable();
            let (mut sum, mut first) = (0, 0);
            for (now, cost) in &charges {
                sum += cost;
                while charges[first].0 + period <= *now {
                    sum -= charges[first].1;
                    first += 1;
                }
                if sum > limit {
                    return Err(format!("{sum} in the period before {now}"));
                }
            }
            Ok(())
        }
        _ => {
            let mut given = Given::new(rule);
            for (id, Admitted { cost, now, wait, .. }) in admitted.iter().enumerate() {
                given.add(id, (*cost).into(), (*now).into(), (*wait).into());
            }
            given.check()
        }
    }
}
