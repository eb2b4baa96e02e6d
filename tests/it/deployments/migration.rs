//! Slots that move while they are used: no caller sees it, and every charge is kept once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratelimit_runtime::store::{Charge, Key, RedisStore, Store};
use ratelimits::{FixedWindow, Policy};
use tokio::task::JoinHandle;

use super::MINUTE;
use super::cluster::url;
use super::servers::{rights_in_a_cluster, set_user_of_the_guide};
use crate::support::registries::PATIENT;
use crate::support::server::cluster::Cluster;

const LIMIT: u64 = 1_000_000;

fn charges(keys: &[String], cost: u64) -> Vec<Charge> {
    let policy: Policy = FixedWindow::new(LIMIT, 60 * MINUTE).into();
    let spec = policy.spec().unwrap();
    let charge = |key: &String| Charge { key: Key::raw(key), spec, cost, wait: 0, shadow: false };
    keys.iter().map(charge).collect()
}

async fn remaining(store: &Store, keys: &[String]) -> Vec<u64> {
    let outcome = store.decide(&[&charges(keys, 0)]).await.remove(0).unwrap();
    outcome.verdicts.iter().map(|verdict| verdict.remaining).collect()
}

/// Decides on these keys, together, until it is told to stop, and says how often. No call may fail.
fn decide(store: &Store, keys: &[String], stop: &Arc<AtomicBool>) -> JoinHandle<u64> {
    let (store, charges, stop) = (store.clone(), charges(keys, 1), Arc::clone(stop));
    tokio::spawn(async move {
        let mut count = 0;
        while !stop.load(Ordering::Relaxed) {
            let outcome = store.decide(&[&charges]).await.remove(0).expect("nobody sees the slot move");
            assert!(outcome.admitted);
            count += 1;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        count
    })
}

fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("{{moves}}:{name}")).collect()
}

#[tokio::test]
async fn nobody_sees_a_slot_move_and_every_charge_is_kept_once() {
    let cluster = Cluster::start().await;
    let lazy = RedisStore::lazy(&url(&cluster.addresses())).unwrap();
    let store = Store::Redis(Arc::new(lazy.with_deadline(PATIENT)));
    // Some alone, and some together, which are at two masters for a while.
    let groups = [named(&["a"]), named(&["b"]), named(&["c", "d"]), named(&["e", "f", "g"])];
    let stop = Arc::new(AtomicBool::new(false));
    let deciding: Vec<_> = groups.iter().map(|keys| decide(&store, keys, &stop)).collect();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let migration = cluster.migrate("{moves}:a").await;
        while migration.move_keys(1).await > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        migration.finish().await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    stop.store(true, Ordering::Relaxed);
    for (keys, deciding) in groups.iter().zip(deciding) {
        let count = deciding.await.unwrap();
        assert!(count > 0);
        assert_eq!(remaining(&store, keys).await, vec![LIMIT - count; keys.len()], "{keys:?}");
    }
}

/// What is new goes to where the slot is going, and what is there stays until it moves.
#[tokio::test]
async fn a_slot_that_is_half_moved_is_decided_on_both_sides() {
    let cluster = Cluster::start().await;
    let lazy = RedisStore::lazy(&url(&cluster.addresses())).unwrap();
    let store = Store::Redis(Arc::new(lazy.with_deadline(PATIENT)));
    let [old, new] = [named(&["old"]), named(&["new"])];
    assert!(store.decide(&[&charges(&old, 1)]).await.remove(0).unwrap().admitted);
    let migration = cluster.migrate(&old[0]).await;
    for _ in 0..3 {
        for keys in [&old, &new] {
            assert!(store.decide(&[&charges(keys, 1)]).await.remove(0).unwrap().admitted);
        }
    }
    let there: u64 = {
        let mut pipe = redis::pipe();
        pipe.cmd("ASKING").ignore().cmd("EXISTS").arg(&new);
        let (there,) = pipe.query_async(&mut migration.to().connect().await).await.unwrap();
        there
    };
    assert_eq!(there, 1);
    assert_eq!(remaining(&store, &old).await, [LIMIT - 4]);
    migration.finish().await;
    assert_eq!(remaining(&store, &old).await, [LIMIT - 4]);
    assert_eq!(remaining(&store, &new).await, [LIMIT - 3]);
}

/// Of the rights that the guide names for a Cluster, the one is to learn of slots that have moved, the other to follow them
/// while they move.
#[tokio::test]
async fn a_user_that_may_what_the_guide_says_follows_a_slot_that_moves() {
    let cluster = Cluster::start().await;
    for node in cluster.nodes() {
        set_user_of_the_guide(node, &rights_in_a_cluster()).await;
    }
    let user = "redis+cluster://ratelimits:a-long-password@";
    let lazy = RedisStore::lazy(&url(&cluster.addresses()).replace("redis+cluster://", user)).unwrap();
    let store = Store::Redis(Arc::new(lazy.with_deadline(PATIENT)));
    let [old, new] = ["old", "new"].map(|name| vec![format!("rl:{{moves}}:{name}")]);
    assert!(store.decide(&[&charges(&old, 1)]).await.remove(0).unwrap().admitted);
    let migration = cluster.migrate(&old[0]).await;
    set_user_of_the_guide(migration.to(), &["-asking"]).await;
    let error = store.decide(&[&charges(&new, 1)]).await.remove(0).unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(format!("{error}: {cause}").contains("'asking'"), "it names the right: {error}: {cause}");
    set_user_of_the_guide(migration.to(), &["+asking"]).await;
    for keys in [&old, &new] {
        assert!(store.decide(&[&charges(keys, 1)]).await.remove(0).unwrap().admitted);
    }
    migration.finish().await;
    assert_eq!(remaining(&store, &old).await, [LIMIT - 2]);
    assert_eq!(remaining(&store, &new).await, [LIMIT - 1]);
}

/// A node that has not heard of the move yet is asked first.
#[tokio::test]
async fn a_slot_that_has_moved_is_followed_by_who_knew_where_it_was() {
    let cluster = Cluster::start().await;
    let lazy = RedisStore::lazy(&url(&cluster.addresses())).unwrap();
    let store = Store::Redis(Arc::new(lazy.with_deadline(PATIENT)));
    let keys = named(&["a", "b"]);
    for round in 1..=3 {
        assert!(store.decide(&[&charges(&keys, 1)]).await.remove(0).unwrap().admitted);
        cluster.migrate(&keys[0]).await.finish().await;
        assert_eq!(remaining(&store, &keys).await, [LIMIT - round; 2]);
    }
}
