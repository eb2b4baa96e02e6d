//! Redis Cluster: calls spread over the masters, and each decision is made by one.

use std::time::{Duration, Instant};

use ratelimit_runtime::store::Charge;
use ratelimits::{FixedWindow, Limiter, Registry};

use super::{LOGIN_ERRORS, MINUTE, builder, connect_error, decided, works_at};
use crate::support::registries::LONG_DEADLINE;
use crate::support::server::cluster::Cluster;
use crate::support::server::{Server, ports};
use crate::support::store::{self, chain, decide, store_with_deadline};

fn url(seeds: &[&str]) -> String {
    format!("redis+cluster://{}", seeds.join(","))
}

fn charge(key: &str) -> Charge {
    store::charge(key, 1000)
}

fn limiter(registry: &Registry, name: &str) -> Limiter {
    registry.limiter(name, FixedWindow::new(10, 60 * MINUTE)).unwrap()
}

/// How many scripts each master was asked to run.
async fn script_calls(cluster: &Cluster) -> Vec<u64> {
    let mut script_calls = Vec::new();
    for master in cluster.masters().await {
        let stats: String = master.node.command(&["INFO", "commandstats"]).await;
        let calls = stats.lines().filter_map(|line| {
            let calls = line.strip_prefix("cmdstat_eval")?.split_once(":calls=")?.1;
            calls.split(',').next()?.parse::<u64>().ok()
        });
        script_calls.push(calls.sum());
    }
    script_calls
}

#[tokio::test]
async fn any_node_serves_as_seed() {
    let cluster = Cluster::shared().await;
    works_at(&cluster.url()).await;
    let addresses = cluster.addresses();
    for address in &addresses {
        works_at(&url(&[address])).await;
    }

    let absent = format!("127.0.0.1:{}", ports::free());
    works_at(&url(&[&absent, &addresses[4]])).await;
    let error = connect_error(&format!("redis+cluster://:secret@{absent}")).await;
    assert!(error.contains("refused"), "{error}");
    let silent = Server::start();
    silent.pause();
    works_at(&url(&[&silent.address(), &addresses[0]])).await;
}

#[tokio::test]
async fn user_logs_in_at_every_node() {
    let cluster = Cluster::shared().await;
    for node in cluster.nodes() {
        node.set_user("app", "s3cret", &["~*", "+@all"]).await;
    }
    works_at(&cluster.url().replace("://", "://app:s3cret@")).await;
    let error = connect_error(&cluster.url().replace("://", "://app:secret@")).await;
    assert!(LOGIN_ERRORS.iter().any(|login_error| error.contains(login_error)), "{error}");
}

#[tokio::test]
async fn server_without_cluster_support_is_an_error() {
    let server = Server::start();
    let error = connect_error(&url(&[&server.address()])).await;
    assert!(error.contains("cluster support disabled; the server belongs to no Redis Cluster"), "{error}");
}

#[tokio::test]
async fn absent_cluster_fails_fast() {
    let store = store_with_deadline(&url(&[&format!("127.0.0.1:{}", ports::free())]), LONG_DEADLINE);
    let start = Instant::now();
    for _ in 0..20 {
        decide(&store, &charge("a")).await.unwrap_err();
    }
    let took = start.elapsed();
    assert!(took < LONG_DEADLINE / 2, "{took:?}");
}

/// On a cluster of its own, to count script calls.
#[tokio::test]
async fn keys_spread_evenly_and_stay_in_one_slot() {
    let cluster = Cluster::start().await;
    let registry = builder().connect(&cluster.url()).await.unwrap();
    assert_keys_spread_evenly(&cluster, &registry).await;
    assert_cross_slot_error_is_not_sent(&cluster, &registry).await;
}

async fn assert_keys_spread_evenly(cluster: &Cluster, registry: &Registry) {
    let limiter = limiter(registry, "spread");
    let before = script_calls(cluster).await;
    let (keys, tasks) = (6000, 30);
    // The first calls load the script at each master.
    for key in 0..tasks {
        decided(limiter.try_acquire(key).await);
    }
    let calls = (0..tasks).map(|task| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            for key in (task..keys).step_by(tasks as usize).skip(1) {
                decided(limiter.try_acquire(key).await);
            }
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    let after = script_calls(cluster).await;
    let calls: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    println!("script calls by master: {calls:?}");
    let even = keys / 3;
    assert!(calls.iter().all(|calls| calls.abs_diff(even) * 10 <= even), "{calls:?} of {keys}");
    // No key was redirected, and each master loaded the script once.
    assert!(calls.iter().sum::<u64>() <= keys + 3, "{calls:?} of {keys}");
}

async fn assert_cross_slot_error_is_not_sent(cluster: &Cluster, registry: &Registry) {
    let [minute, hour] = ["minute", "hour"].map(|name| limiter(registry, name));
    decided(minute.try_acquire("a").await);
    let before = script_calls(cluster).await;
    let error = registry.try_acquire_all([minute.charge("a"), hour.charge("b")]).await.unwrap_err();
    let text = chain(&error);
    assert!(!error.is_limited(), "{text}");
    assert!(text.contains("different slots") && text.contains("`.function(…)`"), "{text}");
    assert_eq!(script_calls(cluster).await, before);
    assert_eq!(decided(minute.peek("a").await).remaining, 9);
}

#[tokio::test]
async fn keys_with_one_tag_are_one_decision() {
    let cluster = Cluster::shared().await;
    let registry = builder().connect(&cluster.url()).await.unwrap();
    let limiters = ["minute", "hour", "day"].map(|name| limiter(&registry, name));
    for key in ["a", "b", "c", "d"] {
        let charges = limiters.iter().map(|limiter| limiter.charge(key));
        assert_eq!(decided(registry.try_acquire_all(charges).await).policies().len(), 3);
    }
    // Different key parts share the tag of the function.
    let [minute, hour, _] = limiters.map(|limiter| limiter.function("app::send"));
    decided(registry.try_acquire_all([minute.charge("a"), hour.charge("b")]).await);
}

#[tokio::test]
async fn lists_go_to_their_masters_concurrently() {
    let cluster = Cluster::shared().await;
    let store = store_with_deadline(&cluster.url(), LONG_DEADLINE);
    let lists: Vec<Vec<Charge>> = (0..30)
        .map(|i| vec![charge(&format!("{{{}}}:a", i % 15)), charge(&format!("{{{}}}:b", i % 15))])
        .collect();
    let lists: Vec<&[Charge]> = lists.iter().map(Vec::as_slice).collect();
    let outcomes = store.decide_many(&lists).await;
    for (i, outcome) in outcomes.into_iter().enumerate() {
        let outcome = outcome.unwrap();
        // Lists with the same keys keep their order.
        let remaining = if i < 15 { 999 } else { 998 };
        assert!(outcome.verdicts.iter().all(|verdict| verdict.remaining == remaining), "{i}: {outcome:?}");
    }
}

/// One list goes to a paused master, another spans two slots.
#[tokio::test]
async fn failed_list_leaves_others_decided() {
    let cluster = Cluster::start().await;
    let store = store_with_deadline(&cluster.url(), Duration::from_secs(1));
    let mut owners = Vec::new();
    for key in ["a", "b", "c"] {
        owners.push(cluster.master_of(key).await.port());
        decide(&store, &charge(key)).await.unwrap();
    }
    assert_ne!(owners[0], owners[1]);
    cluster.master_of("a").await.pause();
    let split = [charge("a"), charge("b")];
    let outcomes = store.decide_many(&[&[charge("a")], &[charge("b")], &split, &[charge("b")]]).await;
    let remaining: Vec<_> =
        outcomes.iter().map(|outcome| Some(outcome.as_ref().ok()?.verdicts[0].remaining)).collect();
    assert_eq!(remaining, [None, Some(998), None, Some(997)], "{outcomes:?}");
}
