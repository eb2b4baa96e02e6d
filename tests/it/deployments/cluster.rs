//! A Redis Cluster: calls spread over its masters, and each decision stays on one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{Charge, Key, RedisStore, Store};
use ratelimits::{FixedWindow, Policy, Registry};

use super::{MINUTE, asked, builder, chain, refused_at, works_at};
use crate::support::registries::PATIENT;
use crate::support::server::Server;
use crate::support::server::cluster::Cluster;
use crate::support::server::ports;

pub(super) fn url(addresses: &[String]) -> String {
    format!("redis+cluster://{}", addresses.join(","))
}

/// How many scripts each master has been asked to run.
async fn scripts_run(cluster: &Cluster) -> Vec<u64> {
    let mut run = Vec::new();
    for (master, _) in cluster.masters().await {
        let mut info = redis::cmd("INFO");
        let told: String = info.arg("commandstats").query_async(&mut master.connect().await).await.unwrap();
        let calls = told.lines().filter_map(|line| {
            let calls = line.strip_prefix("cmdstat_eval")?.split_once(":calls=")?.1;
            calls.split(',').next()?.parse::<u64>().ok()
        });
        run.push(calls.sum());
    }
    run
}

fn charge(key: &str) -> Charge {
    let policy: Policy = FixedWindow::new(1000, 60 * MINUTE).into();
    Charge { key: Key::raw(key), spec: policy.spec().unwrap(), cost: 1, wait: 0, shadow: false }
}

fn store(url: &str) -> Store {
    Store::Redis(Arc::new(RedisStore::lazy(url).unwrap().with_deadline(PATIENT)))
}

#[tokio::test]
async fn a_cluster_works_by_any_of_its_nodes() {
    let cluster = Cluster::start().await;
    let addresses = cluster.addresses();
    works_at(&url(&addresses)).await;
    for address in &addresses {
        works_at(&url(std::slice::from_ref(address))).await;
    }

    let nobody = format!("127.0.0.1:{}", ports::free());
    works_at(&url(&[nobody.clone(), addresses[4].clone()])).await;
    let told = refused_at(&format!("redis+cluster://:secret@{nobody}")).await;
    assert!(told.contains("refused"), "{told}");
    // One that never answers stands beside one that does.
    let silent = Server::start();
    silent.pause();
    works_at(&url(&[silent.address(), addresses[0].clone()])).await;
}

#[tokio::test]
async fn a_user_works_at_every_node_of_a_cluster() {
    let cluster = Cluster::start().await;
    for node in cluster.nodes() {
        node.set_user("app", "s3cret", &["~*", "+@all"]).await;
    }
    let addresses = cluster.addresses().join(",");
    works_at(&format!("redis+cluster://app:s3cret@{addresses}")).await;
    let told = refused_at(&format!("redis+cluster://app:secret@{addresses}")).await;
    assert!(told.contains("WRONGPASS") || told.contains("authentication failed"), "{told}");
}

#[tokio::test]
async fn a_server_that_is_no_cluster_is_told() {
    let server = Server::start();
    let told = refused_at(&url(&[server.address()])).await;
    assert!(told.contains("cluster support disabled"), "{told}");
}

/// Whoever has just been told that nobody answers is not kept waiting to be told again.
#[tokio::test]
async fn a_cluster_that_is_absent_is_told_at_once() {
    let store = store(&url(&[format!("127.0.0.1:{}", ports::free())]));
    let began = Instant::now();
    for _ in 0..20 {
        store.decide(&[&[charge("a")]]).await.remove(0).unwrap_err();
    }
    let took = began.elapsed();
    assert!(took < PATIENT / 2, "{took:?}");
}

#[tokio::test]
async fn keys_spread_over_the_masters_evenly() {
    let cluster = Cluster::start().await;
    let registry = builder().connect(&url(&cluster.addresses())).await.unwrap();
    let limiter = registry.limiter("spread", FixedWindow::new(10, 60 * MINUTE)).unwrap();
    let before = scripts_run(&cluster).await;
    let keys = 6000;
    for key in 0..keys {
        asked(limiter.try_acquire(key, 1).await);
    }
    let after = scripts_run(&cluster).await;
    let run: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    println!("scripts a master: {run:?}");
    let even = keys / 3;
    assert!(run.iter().all(|run| run.abs_diff(even) * 10 <= even), "{run:?} of {keys}");
    // Each key was sent where it belongs at once, but for the script that each master had to learn.
    assert!(run.iter().sum::<u64>() <= keys + 3, "{run:?} of {keys}");
}

#[tokio::test]
async fn several_keys_of_one_tag_are_one_decision() {
    let cluster = Cluster::start().await;
    let registry = builder().connect(&url(&cluster.addresses())).await.unwrap();
    let limiters = ["minute", "hour", "day"].map(|name| limiter(&registry, name));
    for key in ["a", "b", "c", "d"] {
        let charges = limiters.iter().map(|limiter| limiter.charge(key, 1));
        assert_eq!(asked(registry.try_acquire_all(charges).await).policies().len(), 3);
    }
    // Keys of different parts have the tag of the function.
    let [minute, hour, _] = limiters.map(|limiter| limiter.function("app::send"));
    asked(registry.try_acquire_all([minute.charge("a", 1), hour.charge("b", 1)]).await);
}

#[tokio::test]
async fn keys_in_different_slots_are_refused_unsent() {
    let cluster = Cluster::start().await;
    let registry = builder().connect(&url(&cluster.addresses())).await.unwrap();
    let [minute, hour] = ["minute", "hour"].map(|name| limiter(&registry, name));
    asked(minute.try_acquire("a", 1).await);
    let before = scripts_run(&cluster).await;
    let error = registry.try_acquire_all([minute.charge("a", 1), hour.charge("b", 1)]).await.unwrap_err();
    let told = chain(&error);
    assert!(!error.is_limited(), "{told}");
    assert!(told.contains("different slots") && told.contains("`.function(…)`"), "{told}");
    assert_eq!(scripts_run(&cluster).await, before);
    assert_eq!(asked(minute.peek("a").await).remaining, 9);
}

#[tokio::test]
async fn several_lists_at_once_go_each_to_its_master() {
    let cluster = Cluster::start().await;
    let store = store(&url(&cluster.addresses()));
    let lists: Vec<Vec<Charge>> = (0..30)
        .map(|i| vec![charge(&format!("{{{}}}:a", i % 15)), charge(&format!("{{{}}}:b", i % 15))])
        .collect();
    let lists: Vec<&[Charge]> = lists.iter().map(Vec::as_slice).collect();
    let outcomes = store.decide(&lists).await;
    for (i, outcome) in outcomes.into_iter().enumerate() {
        let outcome = outcome.unwrap();
        // Those on the same keys are decided in their order.
        let left = if i < 15 { 999 } else { 998 };
        assert!(outcome.verdicts.iter().all(|verdict| verdict.remaining == left), "{i}: {outcome:?}");
    }
}

/// A list on a master that is gone, and one that could never be decided, are nobody else's trouble.
#[tokio::test]
async fn a_list_that_fails_leaves_the_others_decided() {
    let cluster = Cluster::start().await;
    let lazy = RedisStore::lazy(&url(&cluster.addresses())).unwrap();
    let store = Store::Redis(Arc::new(lazy.with_deadline(Duration::from_secs(2))));
    let keys = ["a", "b", "c"];
    let mut owners = Vec::new();
    for key in keys {
        owners.push(cluster.master_of(key).await.port());
        store.decide(&[&[charge(key)]]).await.remove(0).unwrap();
    }
    assert_ne!(owners[0], owners[1]);
    cluster.master_of("a").await.pause();
    let split = [charge("a"), charge("b")];
    let outcomes = store.decide(&[&[charge("a")], &[charge("b")], &split, &[charge("b")]]).await;
    let told: Vec<_> = outcomes
        .iter()
        .map(|outcome| outcome.as_ref().ok().map(|outcome| outcome.verdicts[0].remaining))
        .collect();
    assert_eq!(told, [None, Some(998), None, Some(997)], "{outcomes:?}");
}

fn limiter(registry: &Registry, name: &str) -> ratelimits::Limiter {
    registry.limiter(name, FixedWindow::new(10, MINUTE)).unwrap()
}
