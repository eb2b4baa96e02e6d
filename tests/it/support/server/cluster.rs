//! A cluster of three masters with a replica each.

mod members;
mod migration;

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Mutex;

use self::members::{Member, SlotRange, cluster};
use super::Server;
use crate::support::until::until;

const MASTERS: usize = 3;
const SLOTS: u16 = 16_384;
const WITHIN: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub(crate) struct Cluster {
    nodes: Vec<Server>,
}

#[derive(Debug)]
pub(crate) struct Master<'a> {
    pub(crate) node: &'a Server,
    pub(crate) slots: Vec<SlotRange>,
}

impl Cluster {
    /// The cluster that tests share if they keep its nodes running and move no slots but their own.
    pub(crate) async fn shared() -> Arc<Cluster> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        if let Some(cluster) = shared.upgrade() {
            return cluster;
        }
        let cluster = Arc::new(Cluster::start().await);
        *shared = Arc::downgrade(&cluster);
        cluster
    }

    /// Returns once every node reports that the cluster is up, and every replica follows its master. A busy machine, which stops
    /// a node for seconds, causes no failover.
    pub(crate) async fn start() -> Cluster {
        Cluster::start_with(Duration::from_secs(15)).await
    }

    /// As [`start`](Self::start), but a replica soon replaces a master that does not answer.
    pub(crate) async fn start_with_quick_failover() -> Cluster {
        Cluster::start_with(Duration::from_secs(1)).await
    }

    async fn start_with(node_timeout: Duration) -> Cluster {
        let node_timeout = node_timeout.as_millis().to_string();
        let node = || {
            Server::start_with(&[
                "--cluster-enabled",
                "yes",
                "--cluster-node-timeout",
                &node_timeout,
                // A replica that a busy machine delayed can still be promoted.
                "--cluster-replica-validity-factor",
                "0",
            ])
        };
        let started = Cluster { nodes: (0..2 * MASTERS).map(|_| node()).collect() };
        started.meet().await;
        let (masters, replicas) = started.nodes.split_at(MASTERS);
        for (master, replica) in masters.iter().zip(replicas) {
            let id: String = cluster(master, &["MYID"]).await;
            cluster::<()>(replica, &["REPLICATE", &id]).await;
        }
        for replica in replicas {
            replica.follows().await;
        }
        started.settles().await;
        started
    }

    /// The addresses of all nodes as `host:port`, those of the initial masters first.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(Server::address).collect()
    }

    /// The URL with all nodes as seeds.
    pub(crate) fn url(&self) -> String {
        format!("redis+cluster://{}", self.addresses().join(","))
    }

    /// The initial replica of an initial master.
    pub(crate) fn replica_of(&self, master: &Server) -> &Server {
        let index = self.nodes.iter().position(|node| node.port() == master.port()).expect("it is a node");
        &self.nodes[MASTERS + index]
    }

    pub(crate) fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The masters, as the first live node sees them.
    pub(crate) async fn masters(&self) -> Vec<Master<'_>> {
        let masters = members::seen_by(self.live_node()).await.into_iter().filter(Member::serves);
        masters.map(|master| Master { node: self.node(master.port), slots: master.slots }).collect()
    }

    /// The master of a key's slot.
    pub(crate) async fn master_of(&self, key: &str) -> &Server {
        self.owner(self.slot(key).await).await
    }

    pub(crate) async fn slot(&self, key: &str) -> u16 {
        cluster(self.live_node(), &["KEYSLOT", key]).await
    }

    /// Waits until all live nodes report that the cluster is up and agree on live masters.
    pub(crate) async fn settles(&self) {
        until("the cluster is up", WITHIN, async || {
            let mut views = Vec::new();
            for node in self.nodes.iter().filter(|node| node.lives()) {
                let info: String = cluster(node, &["INFO"]).await;
                if !info.contains("cluster_state:ok") {
                    return Err(format!("{}: {info}", node.port()));
                }
                let mut masters = members::seen_by(node).await;
                masters.retain(Member::serves);
                masters.sort_by_key(|member| member.port);
                views.push(masters);
            }
            let live = views[0].iter().all(|master| self.node(master.port).lives());
            let agreed = views[0].len() == MASTERS && views.iter().all(|masters| *masters == views[0]);
            if live && agreed { Ok(()) } else { Err(format!("{views:?}")) }
        })
        .await;
    }

    async fn owner(&self, slot: u16) -> &Server {
        let mut members = members::seen_by(self.live_node()).await.into_iter();
        let owner = members.find(|member| member.serves() && member.has(slot));
        self.node(owner.expect("every slot has a master").port)
    }

    fn live_node(&self) -> &Server {
        self.nodes.iter().find(|node| node.lives()).expect("a node is live")
    }

    fn node(&self, port: u16) -> &Server {
        self.nodes.iter().find(|node| node.port() == port).expect("it is a node")
    }

    /// Assigns the slots to the masters, and introduces all nodes to each other.
    async fn meet(&self) {
        let port = self.nodes[0].port().to_string();
        for (i, node) in self.nodes.iter().enumerate() {
            cluster::<()>(node, &["SET-CONFIG-EPOCH", &(i + 1).to_string()]).await;
            if i < MASTERS {
                let first = |i: usize| (usize::from(SLOTS) * i / MASTERS) as u16;
                let slots: Vec<_> = (first(i)..first(i + 1)).map(|slot| slot.to_string()).collect();
                let slots = slots.iter().map(String::as_str);
                cluster::<()>(node, &["ADDSLOTS"].into_iter().chain(slots).collect::<Vec<_>>()).await;
            }
            if i > 0 {
                cluster::<()>(node, &["MEET", "127.0.0.1", &port]).await;
            }
        }
        until("the nodes know each other", WITHIN, async || {
            for node in &self.nodes {
                let members = members::seen_by(node).await;
                if members.len() < self.nodes.len() || members.iter().any(|member| member.in_handshake) {
                    return Err(format!("{} knows {members:?}", node.port()));
                }
            }
            Ok(())
        })
        .await;
    }
}
