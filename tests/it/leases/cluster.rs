//! Leases in a Redis Cluster: two registries get exactly the limit, although slots move and masters fail.

use std::collections::HashMap;

use ratelimits::{FixedWindow, Limiter, Registry};
use tokio::task::JoinSet;

use super::{DAY, WITHIN, lease, registry, remaining, window};
use crate::support::registries::namespace;
use crate::support::server::cluster::Cluster;
use crate::support::until::until;

const LIMIT: u64 = 100;

struct Fixture<'a> {
    cluster: &'a Cluster,
    namespace: String,
    registries: [Registry; 2],
}

impl Fixture<'_> {
    fn of(cluster: &Cluster) -> Fixture<'_> {
        let namespace = namespace();
        let registries = [(); 2].map(|()| registry(&cluster.url(), &namespace));
        Fixture { cluster, namespace, registries }
    }

    fn limiter(&self) -> Limiter {
        self.registries[0].limiter("window", FixedWindow::new(LIMIT, DAY)).unwrap()
    }

    /// Calls on each registry this often, in turn. Returns how many calls were admitted.
    async fn call(&self, key: &str, times: u64) -> u64 {
        let mut admitted = 0;
        for _ in 0..times {
            for registry in &self.registries {
                admitted += u64::from(is_admitted(registry, key).await);
            }
        }
        admitted
    }

    /// The only key in Redis.
    async fn key(&self) -> String {
        let mut keys = Vec::<String>::new();
        for master in self.cluster.masters().await {
            let found: Vec<String> = master.node.command(&["KEYS", &format!("{}:*", self.namespace)]).await;
            keys.extend(found);
        }
        assert_eq!(keys.len(), 1, "{keys:?}");
        keys.remove(0)
    }
}

async fn is_admitted(registry: &Registry, key: &str) -> bool {
    match window(registry, key).await {
        Ok(()) => true,
        Err(error) if error.is_limited() => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_all_masters_get_exactly_the_limit() {
    const KEYS: u64 = 8;
    let cluster = Cluster::shared().await;
    let fixture = Fixture::of(&cluster);
    let mut calls = JoinSet::new();
    // More on each registry than the limit, so none keeps permits.
    for call in 0..2 * KEYS * (LIMIT + 10) {
        let (registry, key) = (fixture.registries[call as usize % 2].clone(), call / 2 % KEYS);
        calls.spawn(async move { (key, is_admitted(&registry, &format!("exact {key}")).await) });
    }
    let mut admitted = HashMap::new();
    for (key, is_admitted) in calls.join_all().await {
        *admitted.entry(key).or_insert(0) += u64::from(is_admitted);
    }
    assert!((0..KEYS).all(|key| admitted[&key] == LIMIT), "{admitted:?}");
}

#[tokio::test]
async fn resets_end_leases() {
    let cluster = Cluster::shared().await;
    let fixture = Fixture::of(&cluster);
    let (registry, limiter) = (&fixture.registries[0], fixture.limiter());
    for key in ["reset a", "reset b", "reset c", "reset d"] {
        lease(registry, key).await;
        limiter.reset(key).await.unwrap();
        window(registry, key).await.unwrap();
        assert_eq!(remaining(&limiter, key).await, LIMIT - 10);
    }
}

#[tokio::test]
async fn limit_is_exact_while_its_slot_moves() {
    let cluster = Cluster::shared().await;
    let fixture = Fixture::of(&cluster);
    let mut admitted = fixture.call("moves", 10).await;
    let migration = cluster.migrate(&fixture.key().await).await;
    admitted += fixture.call("moves", 10).await;
    assert_eq!(migration.move_keys(10).await, 1);
    admitted += fixture.call("moves", 10).await;
    migration.finish().await;
    assert_eq!(admitted, 60);
    admitted += fixture.call("moves", LIMIT).await;
    assert_eq!(admitted, LIMIT);
}

#[tokio::test]
async fn limit_is_exact_after_a_failover() {
    let cluster = Cluster::start_with_quick_failover().await;
    let fixture = Fixture::of(&cluster);
    let before = fixture.call("fails", 5).await;
    let (key, limiter) = (fixture.key().await, fixture.limiter());
    let master = cluster.master_of(&key).await;
    master.replicated_to(cluster.replica_of(master)).await;
    master.kill();
    // These come from the lease of each registry.
    let meanwhile = fixture.call("fails", 6).await;
    cluster.settles().await;
    until("the replica decides", WITHIN, async || {
        limiter.peek("fails").await.map_err(|error| error.to_string())
    })
    .await;
    let after = fixture.call("fails", LIMIT).await;
    assert_eq!((before, meanwhile, after), (10, 12, LIMIT - 22));
}
