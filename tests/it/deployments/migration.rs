//! Slots that move while in use: callers do not notice, and each charge is kept once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratelimit_runtime::store::{Charge, Store};
use tokio::task::JoinHandle;

use super::servers::{cluster_rights, set_user_of_the_guide};
use crate::support::registries::LONG_DEADLINE;
use crate::support::server::cluster::Cluster;
use crate::support::store::{charge, decide, store_with_deadline};

const LIMIT: u64 = 1_000_000;

fn store(cluster: &Cluster) -> Store {
    store_with_deadline(&cluster.url(), LONG_DEADLINE)
}

fn charges(keys: &[String], cost: u64) -> Vec<Charge> {
    keys.iter().map(|key| Charge { cost, ..charge(key, LIMIT) }).collect()
}

/// Decides on these keys together, and returns what remains of each.
async fn remaining(store: &Store, keys: &[String], cost: u64) -> Vec<u64> {
    let outcome = store.decide(&charges(keys, cost)).await.expect("the move goes unnoticed");
    assert!(outcome.admitted);
    outcome.verdicts.iter().map(|verdict| verdict.remaining).collect()
}

/// Decides on these keys together until it is stopped, and returns how often.
fn decide_until(stop: &Arc<AtomicBool>, store: &Store, keys: &[String]) -> JoinHandle<u64> {
    let (store, keys, stop) = (store.clone(), keys.to_vec(), Arc::clone(stop));
    tokio::spawn(async move {
        let mut count = 0;
        while !stop.load(Ordering::Relaxed) {
            remaining(&store, &keys, 1).await;
            count += 1;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        count
    })
}

/// Keys in the slot of a tag. Each test moves its own slot of the shared cluster.
fn keys(tag: &str, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("{{{tag}}}:{name}")).collect()
}

#[tokio::test]
async fn slot_moves_unnoticed_under_load() {
    let cluster = Cluster::shared().await;
    let store = store(&cluster);
    // Keys of one group may be at two masters for a while.
    let groups = [["a"].as_slice(), &["b"], &["c", "d"], &["e", "f", "g"]].map(|names| keys("load", names));
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = groups.iter().map(|keys| decide_until(&stop, &store, keys)).collect();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let migration = cluster.migrate("{load}").await;
        while migration.move_keys(1).await > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        migration.finish().await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    stop.store(true, Ordering::Relaxed);
    for (keys, task) in groups.iter().zip(tasks) {
        let count = task.await.unwrap();
        assert!(count > 0);
        assert_eq!(remaining(&store, keys, 0).await, vec![LIMIT - count; keys.len()], "{keys:?}");
    }
}

/// New keys go to the slot's target, existing ones stay until they are moved.
#[tokio::test]
async fn half_moved_slot_is_decided_on_both_sides() {
    let cluster = Cluster::shared().await;
    let store = store(&cluster);
    let [old, new] = [keys("half", &["old"]), keys("half", &["new"])];
    remaining(&store, &old, 1).await;
    let migration = cluster.migrate(&old[0]).await;
    for _ in 0..3 {
        for keys in [&old, &new] {
            remaining(&store, keys, 1).await;
        }
    }
    let mut pipe = redis::pipe();
    pipe.cmd("ASKING").ignore().cmd("EXISTS").arg(&new);
    let (exists,): (u64,) = pipe.query_async(&mut migration.to.connect().await).await.unwrap();
    assert_eq!(exists, 1);
    assert_eq!(remaining(&store, &old, 0).await, [LIMIT - 4]);
    migration.finish().await;
    assert_eq!(remaining(&store, &old, 0).await, [LIMIT - 4]);
    assert_eq!(remaining(&store, &new, 0).await, [LIMIT - 3]);
}

/// A batch cannot be decided while its keys are at two masters, but each of its keys can.
#[tokio::test]
async fn half_moved_slot_delays_no_batches() {
    let cluster = Cluster::shared().await;
    let store = store(&cluster);
    let keys = |kind: &str| (0..20).map(|i| format!("{{batch}}:{kind}{i}")).collect::<Vec<_>>();
    let (old, new) = (keys("old"), keys("new"));
    remaining(&store, &old, 1).await;
    let migration = cluster.migrate(&old[0]).await;
    let calls: Vec<_> = old
        .iter()
        .chain(&new)
        .map(|key| {
            let (store, key) = (store.clone(), vec![key.clone()]);
            tokio::spawn(async move { remaining(&store, &key, 1).await[0] })
        })
        .collect();
    let mut left = Vec::new();
    for call in calls {
        left.push(call.await.unwrap());
    }
    assert_eq!(left, [[LIMIT - 2; 20], [LIMIT - 1; 20]].concat());
    migration.finish().await;
    assert_eq!(remaining(&store, &old, 0).await, [LIMIT - 2; 20]);
}

/// The guide names a right for learning where slots are, and one for following them while they move.
#[tokio::test]
async fn guide_user_follows_a_moving_slot() {
    let cluster = Cluster::shared().await;
    for node in cluster.nodes() {
        set_user_of_the_guide(node, &cluster_rights()).await;
    }
    let url = cluster.url().replace("://", "://ratelimits:a-long-password@");
    let store = store_with_deadline(&url, LONG_DEADLINE);
    let [old, new] = ["old", "new"].map(|name| vec![format!("rl:{{guide}}:{name}")]);
    remaining(&store, &old, 1).await;
    let migration = cluster.migrate(&old[0]).await;
    set_user_of_the_guide(migration.to, &["-asking"]).await;
    let error = decide(&store, &charge(&new[0], LIMIT)).await.unwrap_err();
    assert!(error.contains("asking"), "it names the missing right: {error}");
    set_user_of_the_guide(migration.to, &["+asking"]).await;
    for keys in [&old, &new] {
        remaining(&store, keys, 1).await;
    }
    migration.finish().await;
    assert_eq!(remaining(&store, &old, 0).await, [LIMIT - 2]);
    assert_eq!(remaining(&store, &new, 0).await, [LIMIT - 1]);
}

/// A store that does not know of the move yet is redirected.
#[tokio::test]
async fn moved_slot_is_followed() {
    let cluster = Cluster::shared().await;
    let store = store(&cluster);
    let keys = keys("moved", &["a", "b"]);
    for round in 1..=3 {
        remaining(&store, &keys, 1).await;
        cluster.migrate(&keys[0]).await.finish().await;
        assert_eq!(remaining(&store, &keys, 0).await, [LIMIT - round; 2]);
    }
}
