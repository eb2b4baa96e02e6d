//! A cluster of three masters with a replica each.

mod members;
mod migration;

use std::time::Duration;

use self::members::Member;
use super::Server;
use crate::support::until::until;

const MASTERS: usize = 3;
const SLOTS: u16 = 16_384;
const WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Cluster {
    nodes: Vec<Server>,
}

impl Cluster {
    /// Returns when every node calls the cluster well, and every replica follows its master.
    pub(crate) async fn start() -> Cluster {
        let node = || {
            Server::start_with(&[
                "--cluster-enabled",
                "yes",
                "--cluster-node-timeout",
                "1000",
                // However long the machine kept a replica waiting, it can be promoted.
                "--cluster-replica-validity-factor",
                "0",
            ])
        };
        let cluster = Cluster { nodes: (0..2 * MASTERS).map(|_| node()).collect() };
        cluster.meet().await;
        let ids = cluster.ids().await;
        for (i, replica) in cluster.nodes[MASTERS..].iter().enumerate() {
            members::ask::<()>(replica, &["REPLICATE", &ids[i]]).await;
        }
        for replica in &cluster.nodes[MASTERS..] {
            replica.follows().await;
        }
        cluster.settles().await;
        cluster
    }

    /// Where all nodes are, as `host:port`, the masters of the beginning first.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(Server::address).collect()
    }

    /// The node that was made the replica of this one at the beginning.
    pub(crate) fn replica_of(&self, master: &Server) -> &Server {
        let at = self.nodes.iter().position(|node| node.port() == master.port()).expect("it is a node");
        &self.nodes[MASTERS + at]
    }

    pub(crate) fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The masters, each with its first and last slots, as the first node that lives says.
    pub(crate) async fn masters(&self) -> Vec<(&Server, Vec<(u16, u16)>)> {
        let node = self.nodes.iter().find(|node| node.lives()).expect("a node lives");
        let masters = members::seen_by(node).await.into_iter().filter(Member::serves);
        masters.map(|master| (self.node(master.port), master.slots)).collect()
    }

    /// The master that has a key's slot.
    pub(crate) async fn master_of(&self, key: &str) -> &Server {
        self.owner(self.slot(key).await).await
    }

    pub(crate) async fn slot(&self, key: &str) -> u16 {
        let node = self.nodes.iter().find(|node| node.lives()).expect("a node lives");
        members::ask(node, &["KEYSLOT", key]).await
    }

    /// Kills this master, and returns the replica that every living node then calls the master of its slots.
    pub(crate) async fn fail_over(&self, master: &Server) -> &Server {
        let masters = self.masters().await;
        let (_, slots) = masters.iter().find(|(node, _)| node.port() == master.port()).expect("a master");
        let slot = slots[0].0;
        master.kill();
        self.settles().await;
        self.owner(slot).await
    }

    /// Waits until the nodes that live call the cluster well and name the same living masters.
    pub(crate) async fn settles(&self) {
        until("the cluster is well", WITHIN, async || {
            let mut said = Vec::new();
            for node in self.nodes.iter().filter(|node| node.lives()) {
                let info: String = members::ask(node, &["INFO"]).await;
                if !info.contains("cluster_state:ok") {
                    return Err(format!("{}: {info}", node.port()));
                }
                let mut masters = members::seen_by(node).await;
                masters.retain(Member::serves);
                masters.sort_by_key(|member| member.port);
                said.push(masters);
            }
            let alive = said[0].iter().all(|master| self.node(master.port).lives());
            let whole = said[0].len() == MASTERS && said.iter().all(|masters| *masters == said[0]);
            if alive && whole { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await;
    }

    async fn owner(&self, slot: u16) -> &Server {
        let node = self.nodes.iter().find(|node| node.lives()).expect("a node lives");
        let mut seen = members::seen_by(node).await.into_iter();
        let owner = seen.find(|member| member.serves() && member.has(slot)).expect("every slot has a master");
        self.node(owner.port)
    }

    fn node(&self, port: u16) -> &Server {
        self.nodes.iter().find(|node| node.port() == port).expect("the nodes know no other")
    }

    /// Gives the slots to the masters, and makes all nodes know each other.
    async fn meet(&self) {
        let port = self.nodes[0].port().to_string();
        for (i, node) in self.nodes.iter().enumerate() {
            members::ask::<()>(node, &["SET-CONFIG-EPOCH", &(i + 1).to_string()]).await;
            if i < MASTERS {
                let first = |i: usize| (usize::from(SLOTS) * i / MASTERS) as u16;
                let slots: Vec<_> = (first(i)..first(i + 1)).map(|slot| slot.to_string()).collect();
                let slots = slots.iter().map(String::as_str);
                members::ask::<()>(node, &["ADDSLOTS"].into_iter().chain(slots).collect::<Vec<_>>()).await;
            }
            if i > 0 {
                members::ask::<()>(node, &["MEET", "127.0.0.1", &port]).await;
            }
        }
        until("the nodes know each other", WITHIN, async || {
            for node in &self.nodes {
                let seen = members::seen_by(node).await;
                if seen.len() < self.nodes.len() || seen.iter().any(|member| member.handshakes) {
                    return Err(format!("{} knows {seen:?}", node.port()));
                }
            }
            Ok(())
        })
        .await;
    }

    async fn ids(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for node in &self.nodes {
            ids.push(members::ask(node, &["MYID"]).await);
        }
        ids
    }
}
