use redis::RedisError;

use crate::support::client::{get, increment};
use crate::support::server::Server;
use crate::support::server::cluster::Cluster;

/// The code of an error, and the port to which it redirects.
fn redirect(error: &RedisError) -> (&str, u16) {
    let (address, _) = error.redirect_node().unwrap_or_default();
    let port = address.rsplit(':').next().and_then(|port| port.parse().ok());
    (error.code().unwrap_or_default(), port.unwrap_or_default())
}

async fn add(node: &Server, key: &str) -> Result<u64, RedisError> {
    increment(&mut node.connect().await, key).await
}

/// Follows an ASK.
async fn add_asking(node: &Server, key: &str) -> Result<u64, RedisError> {
    let mut pipe = redis::pipe();
    pipe.cmd("ASKING").ignore().cmd("INCR").arg(key);
    pipe.query_async::<(u64,)>(&mut node.connect().await).await.map(|(value,)| value)
}

#[tokio::test]
async fn slot_moves_while_in_use() {
    let cluster = Cluster::start().await;
    assert_eq!(cluster.addresses().len(), 6);
    let masters = cluster.masters().await;
    let mut slots: Vec<_> = masters.iter().flat_map(|master| master.slots.clone()).collect();
    slots.sort_unstable();
    assert_eq!(slots, [(0, 5460), (5461, 10921), (10922, 16383)]);
    assert_eq!(cluster.slot("{user}:a").await, 5474);

    let owner = cluster.master_of("{user}:a").await;
    for other in cluster.nodes().iter().filter(|node| node.port() != owner.port()) {
        let error = add(other, "{user}:a").await.unwrap_err();
        assert_eq!(redirect(&error), ("MOVED", owner.port()));
    }
    for key in ["{user}:a", "{user}:b", "{user}:c"] {
        assert_eq!(add(owner, key).await.unwrap(), 1);
    }

    let migration = cluster.migrate("{user}:a").await;
    let (from, to) = (migration.from, migration.to);
    assert_eq!(from.port(), owner.port());
    assert_eq!(add(from, "{user}:a").await.unwrap(), 2, "a key stays until it is moved");
    assert_eq!(redirect(&add(from, "{user}:new").await.unwrap_err()), ("ASK", to.port()));
    assert_eq!(redirect(&add(to, "{user}:new").await.unwrap_err()), ("MOVED", from.port()));
    assert_eq!(add_asking(to, "{user}:new").await.unwrap(), 1);

    assert_eq!(migration.move_keys(1).await, 1);
    let mut both = redis::cmd("MGET");
    both.arg(&["{user}:a", "{user}:b", "{user}:c"]);
    let split = both.query_async::<Vec<Option<u64>>>(&mut from.connect().await).await.unwrap_err();
    // Redis 6.2 sends the client to the target, which has not got all keys either.
    assert!(matches!(split.code(), Some("TRYAGAIN" | "ASK")), "{split}");

    migration.finish().await;
    assert_eq!(cluster.master_of("{user}:a").await.port(), to.port());
    for (key, value) in [("{user}:a", 3), ("{user}:b", 2), ("{user}:new", 2)] {
        assert_eq!(redirect(&add(from, key).await.unwrap_err()), ("MOVED", to.port()));
        assert_eq!(add(to, key).await.unwrap(), value);
    }
}

#[tokio::test]
async fn replica_of_killed_or_paused_master_is_promoted() {
    let cluster = Cluster::start_with_quick_failover().await;
    let former = cluster.master_of("a").await;
    add(former, "a").await.unwrap();
    former.replicated_to(cluster.replica_of(former)).await;
    former.kill();
    cluster.settles().await;
    let master = cluster.master_of("a").await;
    assert_ne!(master.port(), former.port());
    assert_eq!(add(master, "a").await.unwrap(), 2);

    former.restart().await;
    former.follows().await;
    cluster.settles().await;
    let error = get(&mut former.connect().await, "a").await.unwrap_err();
    assert_eq!(redirect(&error), ("MOVED", master.port()));

    master.pause();
    cluster.settles().await;
    assert_eq!(cluster.master_of("a").await.port(), former.port());
    assert_eq!(add(former, "a").await.unwrap(), 3);
    master.resume();
    master.follows().await;
}
