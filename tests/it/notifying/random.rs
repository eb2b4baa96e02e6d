//! Random calls of many keys, by many tasks and processes: each key that a decision has found past the share is told once.

use std::sync::Arc;

use ratelimits::{Error, Registry, count_limit, rate_limit, window_limit};
use tokio::task::JoinSet;

use super::{Events, Seen, all_asked};
use crate::support::budget::budget;
use crate::support::processes::{self, Child};
use crate::support::random::Random;
use crate::support::registries::namespace;
use crate::support::server::Server;

const PROCESSES: usize = 4;
const TASKS: u64 = 8;
const KEYS: u64 = 40;

/// What a call does.
#[derive(Clone, Copy, Debug)]
struct Called {
    key: u64,
    cost: u64,
    /// What it really uses; 0 is a refund.
    used: u64,
    /// The limit, if the policy computes it.
    limit: u64,
}

#[count_limit(10, "1h", key = call.key, cost = call.cost, notify_at = 0.8, name = "random.refunded",
    charge_when = |_| call.used > 0, registry = registry)]
async fn refunded(registry: &Registry, call: Called) -> Result<(), Error> {
    Ok(())
}

#[count_limit(10, "1000d", aligned, key = call.key, cost = call.cost, notify_at = 0.8, name = "random.settled",
    settle = |_| call.used, registry = registry)]
async fn settled(registry: &Registry, call: Called) -> Result<(), Error> {
    Ok(())
}

#[count_limit(call.limit, "1h", key = call.key, cost = call.cost, notify_at = 0.8, name = "random.computed",
    registry = registry)]
async fn computed(registry: &Registry, call: Called) -> Result<(), Error> {
    Ok(())
}

#[count_limit(10, "1h", key = call.key, cost = call.cost, notify_at = 0.8, name = "random.shadow", shadow,
    registry = registry)]
#[rate_limit("1/h", 10, key = call.key, cost = call.cost, notify_at = 0.8, name = "random.bucket",
    registry = registry)]
#[window_limit(10, "1h", key = call.key, notify_at = 0.8, name = "random.window", registry = registry)]
async fn stacked(registry: &Registry, call: Called) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("1/h", 10, key = call.key, cost = call.cost, notify_at = 0.8, name = "random.lent", borrow,
    settle = |_| call.used, registry = registry)]
async fn lent(registry: &Registry, call: Called) -> Result<(), Error> {
    Ok(())
}

/// Makes random calls, of keys that few or many of them have.
async fn make_calls(registry: &Registry, mut random: Random, calls: u64) {
    for _ in 0..calls {
        let key = random.below(KEYS);
        let call = Called {
            key,
            // Some keys are never full.
            cost: if key.is_multiple_of(4) { random.below(2) } else { random.between(1, 4) },
            used: random.below(6),
            limit: random.between(5, 100),
        };
        let result = match random.below(5) {
            0 => refunded(registry, call).await,
            1 => settled(registry, call).await,
            2 => computed(registry, call).await,
            3 => stacked(registry, call).await,
            _ => lent(registry, call).await,
        };
        assert!(result.as_ref().err().is_none_or(Error::is_limited), "{result:?}");
        if random.percent(20) {
            tokio::task::yield_now().await;
        }
    }
}

/// Returns `policy/key` of each key that was found past the share, and of each that observers were told of.
fn found_and_told(seen: &Seen) -> (Vec<String>, Vec<String>) {
    let Events { told, reached } = &*seen.0.lock().unwrap();
    let found = reached.iter().filter(|(_, is_reached)| **is_reached);
    (
        found.map(|((policy, key), _)| format!("{policy}/{key}")).collect(),
        told.iter().map(|told| format!("{}/{}", told.policy, told.key)).collect(),
    )
}

fn assert_told_once(mut found: Vec<String>, mut told: Vec<String>) {
    found.sort_unstable();
    found.dedup();
    told.sort_unstable();
    assert!(found.len() > 20, "{found:?}");
    assert_eq!(told, found);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_key_is_told_once_by_all_tasks_and_registries() {
    let (server, seeded) = (Server::shared(), Random::seeded());
    for round in 0..budget(4, 40) {
        let (seen, namespace) = (Seen::default(), namespace());
        // Registries that share a Redis, or one in process.
        let registries: Arc<[Registry]> = match round % 2 {
            0 => (0..PROCESSES)
                .map(|_| seen.builder_in(&namespace).connect_lazy(&server.url()).unwrap())
                .collect(),
            _ => [seen.builder().in_memory()].into(),
        };
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let (registries, random) = (Arc::clone(&registries), seeded.run(round * TASKS + task));
            tasks.spawn(async move {
                make_calls(&registries[task as usize % registries.len()], random, 150).await;
            });
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
        for registry in &*registries {
            all_asked(registry).await;
        }
        let (found, told) = found_and_told(&seen);
        assert_told_once(found, told);
    }
}

#[tokio::test]
async fn each_key_is_told_once_by_four_processes() {
    if let Some(child) = Child::from_env() {
        let seen = Seen::default();
        let registry = seen.builder_in("near").connect_lazy(&child.url).unwrap();
        let process = child.barrier("start", PROCESSES).await as u64;
        make_calls(&registry, Random::seeded().run(process), 600).await;
        all_asked(&registry).await;
        let (found, told) = found_and_told(&seen);
        let lines = found.iter().map(|key| format!("found {key}"));
        return child.report(lines.chain(told.iter().map(|key| format!("told {key}"))));
    }
    let server = Server::start();
    let lines =
        processes::run(&server, PROCESSES, module_path!(), "each_key_is_told_once_by_four_processes").await;
    assert!(lines.iter().all(|lines| lines.iter().any(|line| line.starts_with("told"))), "{lines:?}");
    let of = |start: &str| {
        let lines = lines.iter().flatten();
        lines.filter_map(|line| line.strip_prefix(start).map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_told_once(of("found "), of("told "));
}

/// Short windows, by the time of the server. Nothing comes back within one, so exactly one call of a window passes the share.
#[count_limit(10, "100ms", aligned, key = key, cost = cost, notify_at = 0.8, bind = decision, registry = registry)]
async fn short(registry: &Registry, key: u64, cost: u64) -> Result<bool, Error> {
    let used = decision.limit - decision.remaining;
    Ok(used >= 8 && used - cost < 8)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_window_is_told_once() {
    let (server, seeded) = (Server::shared(), Random::seeded());
    for on_redis in [true, false] {
        let (seen, namespace) = (Seen::default(), namespace());
        let in_memory = seen.builder().in_memory();
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let registry = match on_redis {
                true => seen.builder_in(&namespace).connect_lazy(&server.url()).unwrap(),
                false => in_memory.clone(),
            };
            let mut random = seeded.run(task);
            tasks.spawn(async move {
                let mut passed = 0;
                for _ in 0..budget(80, 3_000) {
                    let (key, cost) = (random.below(4), random.between(1, 3));
                    passed += match short(&registry, key, cost).await {
                        Ok(passes) => usize::from(passes),
                        Err(error) => {
                            tokio::time::sleep(error.retry_after().unwrap()).await;
                            0
                        }
                    };
                }
                passed
            });
        }
        let mut passed = 0;
        while let Some(task) = tasks.join_next().await {
            passed += task.unwrap();
        }
        assert!(passed > 4);
        all_asked(&in_memory).await;
        assert_eq!(seen.0.lock().unwrap().told.len(), passed);
    }
}
