//! A master of a Cluster that is gone, until a replica has its slots.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::{Calls, OFTEN, recovers, store};
use crate::support::proxy::Proxy;
use crate::support::server::cluster::Cluster;
use crate::support::server::ports;

const TARGET: Duration = Duration::from_secs(1);

async fn begin(cluster: &Cluster, key: &str) -> Calls {
    let url = format!("redis+cluster://{}", cluster.addresses().join(","));
    Calls::begin(&store(&url), key, OFTEN).await
}

#[tokio::test]
async fn the_replica_of_a_master_that_was_killed_decides() {
    let cluster = Cluster::start().await;
    let calls = begin(&cluster, "a").await;
    let former = cluster.master_of("a").await;
    let down = Instant::now();
    former.kill();
    calls.fail_after(down).await;
    cluster.settles().await;
    recovers("a Cluster, a master killed", TARGET, Instant::now(), &calls).await;
}

#[tokio::test]
async fn the_replica_of_a_master_that_was_paused_decides() {
    let cluster = Cluster::start().await;
    let calls = begin(&cluster, "a").await;
    let former = cluster.master_of("a").await;
    let down = Instant::now();
    former.pause();
    calls.fail_after(down).await;
    cluster.settles().await;
    recovers("a Cluster, a master paused", TARGET, Instant::now(), &calls).await;
    let back = Instant::now();
    former.resume();
    former.follows().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    recovers("a Cluster, the former master back", TARGET, Instant::now(), &calls).await;
    calls.hold_after(back);
}

/// Whoever knew one node alone knows the others by now.
#[tokio::test]
async fn a_cluster_is_found_again_when_the_seed_is_gone() {
    let cluster = Cluster::start().await;
    let seed = cluster.master_of("a").await;
    let calls = Calls::begin(&store(&format!("redis+cluster://{}", seed.address())), "a", OFTEN).await;
    let down = Instant::now();
    seed.kill();
    calls.fail_after(down).await;
    cluster.settles().await;
    recovers("a Cluster, its only seed killed", TARGET, Instant::now(), &calls).await;
}

#[tokio::test]
async fn a_cluster_that_is_not_there_yet_is_left_in_peace_until_it_is() {
    let nobody = format!("127.0.0.1:{}", ports::free());
    let [one, other] = [Proxy::to(&nobody).await, Proxy::to(&nobody).await];
    let store = store(&format!("redis+cluster://{},{}", one.address(), other.address()));
    let began = Instant::now();
    let calls = Calls::begin_unanswered(&Handle::current(), &store, "a", OFTEN);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let most = 10 * (began.elapsed().as_secs() + 1);
    for seed in [&one, &other] {
        assert!(seed.accepted() <= most, "{} attempts to connect", seed.accepted());
    }
    let cluster = Cluster::start().await;
    one.set_target(&cluster.addresses()[0]);
    recovers("a Cluster that was not there", TARGET, Instant::now(), &calls).await;
}
