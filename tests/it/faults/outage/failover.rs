//! A master that fails, and the replica that replaces it: the loss costs at most one capacity per key, and the new master is
//! found soon.

use std::time::Duration;

use crate::faults::load::{Load, Shape};
use crate::faults::{RECOVERS_WITHIN, unix_micros};
use crate::support::random::Random;
use crate::support::server::cluster::Cluster;
use crate::support::server::run;
use crate::support::server::sentinels::Sentinels;
use crate::support::store::{charge, decide, store, store_with_deadline};
use crate::support::until::until;

use super::fixture::LONG_DEADLINE;

const SHAPE: Shape = Shape { tasks: 3, keys: 20, full_after: Duration::from_secs(10) };
const MOMENT: Duration = Duration::from_millis(500);

async fn start(url: &str) -> Load {
    let load = Load::start(store(url), &Random::seeded(), SHAPE);
    load.recovers().await;
    load
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_through_sentinel_failovers() {
    let sentinels = Sentinels::start().await;
    let load = start(&sentinels.url()).await;
    tokio::time::sleep(MOMENT).await;
    let former = sentinels.master().await;
    former.kill();
    let killed = unix_micros();
    let master = sentinels.master_after(former).await;
    load.recovers().await;
    tokio::time::sleep(MOMENT).await;

    former.restart().await;
    former.follows().await;
    master.pause();
    let paused = unix_micros();
    sentinels.master_after(master).await;
    load.recovers().await;
    // It executes what was sent to it before the pause, but its replies go nowhere.
    master.resume();
    master.follows().await;
    load.recovers().await;
    load.finish(&[killed, paused], |_| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_through_a_cluster_failover() {
    let cluster = Cluster::start_with_quick_failover().await;
    let load = start(&cluster.url()).await;
    tokio::time::sleep(MOMENT).await;
    let former = cluster.master_of("{0}").await;
    let mut lost = Vec::new();
    for key in 0..SHAPE.keys {
        if cluster.master_of(&format!("{{{key}}}")).await.port() == former.port() {
            lost.push(key);
        }
    }
    assert!(lost.len() < SHAPE.keys as usize, "the other masters have keys too");
    former.kill();
    let loss = unix_micros();
    cluster.settles().await;
    load.recovers().await;
    tokio::time::sleep(MOMENT).await;
    load.finish(&[loss], |key| lost.contains(&key)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreplicated_charges_are_admitted_again() {
    let cluster = Cluster::start_with_quick_failover().await;
    let store = store_with_deadline(&cluster.url(), LONG_DEADLINE);
    let charge = charge("{0}", 5);
    let admitted = async || decide(&store, &charge).await.map(|remaining| remaining.is_some());
    let master = cluster.master_of("{0}").await;
    let replica = cluster.replica_of(master);
    for _ in 0..2 {
        assert_eq!(admitted().await, Ok(true));
    }
    master.replicated_to(replica).await;
    replica.pause();
    // An open link would buffer the next charges for the replica.
    let killed: i64 = run(&mut master.connect().await, &["CLIENT", "KILL", "TYPE", "replica"]).await;
    assert_eq!(killed, 1);
    for _ in 0..3 {
        assert_eq!(admitted().await, Ok(true));
    }
    assert_eq!(admitted().await, Ok(false));
    master.kill();
    replica.resume();
    cluster.settles().await;
    let mut again = u64::from(until("the replica decides", RECOVERS_WITHIN, admitted).await);
    while admitted().await == Ok(true) {
        again += 1;
    }
    assert_eq!(again, 3, "as many as were lost");
}
