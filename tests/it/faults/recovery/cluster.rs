//! A cluster that loses a master.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::{Attempts, FREQUENT, Traffic, recovers};
use crate::support::proxy::Proxy;
use crate::support::server::cluster::Cluster;
use crate::support::server::ports;
use crate::support::store::store;

const TARGET: Duration = Duration::from_secs(1);

#[tokio::test]
async fn replicas_of_failed_masters_decide() {
    let cluster = Cluster::start_with_quick_failover().await;
    let former = cluster.master_of("a").await;
    // The nodes that the only seed names replace it.
    let traffic = Traffic::start(&format!("redis+cluster://{}", former.address())).await;
    let down = Instant::now();
    former.kill();
    traffic.failure_after(down).await;
    cluster.settles().await;
    recovers("cluster, only seed killed", TARGET, Instant::now(), &traffic).await;

    former.restart().await;
    former.follows().await;
    cluster.settles().await;
    let master = cluster.master_of("a").await;
    let down = Instant::now();
    master.pause();
    traffic.failure_after(down).await;
    cluster.settles().await;
    recovers("cluster, master paused", TARGET, Instant::now(), &traffic).await;
    let back = Instant::now();
    master.resume();
    master.follows().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    recovers("cluster, former master back", TARGET, Instant::now(), &traffic).await;
    traffic.assert_steady_after(back);
}

#[tokio::test]
async fn absent_cluster_gets_few_attempts() {
    let nowhere = format!("127.0.0.1:{}", ports::free());
    let [one, other] = [Proxy::to(&nowhere).await, Proxy::to(&nowhere).await];
    let store = store(&format!("redis+cluster://{},{}", one.address(), other.address()));
    let attempts = [Attempts::count(&one), Attempts::count(&other)];
    let traffic = Traffic::start_unanswered(&Handle::current(), &store, FREQUENT);
    // Takes two seconds.
    let cluster = Cluster::start().await;
    attempts.iter().for_each(Attempts::assert_few);
    one.set_target(&cluster.addresses()[0]);
    recovers("cluster, absent at first", TARGET, Instant::now(), &traffic).await;
}
