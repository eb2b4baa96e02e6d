//! A slot on its way from one master to another.

use super::{Cluster, WITHIN, members};
use crate::support::server::Server;
use crate::support::until::until;

/// Left as it is, the slot stays half migrated: for keys that its master does not have, that one answers ASK.
#[derive(Debug)]
pub(crate) struct Migration<'a> {
    cluster: &'a Cluster,
    slot: u16,
    from: &'a Server,
    to: &'a Server,
}

impl Cluster {
    /// Opens the slot of a key at its master and at another one. No key moves yet.
    pub(crate) async fn migrate(&self, key: &str) -> Migration<'_> {
        let slot = self.slot(key).await;
        let from = self.owner(slot).await;
        let masters = self.masters().await;
        let to = masters.iter().map(|(master, _)| *master).find(|master| master.port() != from.port());
        let migration = Migration { cluster: self, slot, from, to: to.expect("there are three masters") };
        migration.set(migration.to, "IMPORTING", migration.from).await;
        migration.set(migration.from, "MIGRATING", migration.to).await;
        migration
    }
}

impl<'a> Migration<'a> {
    pub(crate) fn from(&self) -> &'a Server {
        self.from
    }

    pub(crate) fn to(&self) -> &'a Server {
        self.to
    }

    /// Moves at most so many of the slot's keys, and says how many it moved.
    pub(crate) async fn move_keys(&self, most: usize) -> usize {
        let (slot, most) = (self.slot.to_string(), most.to_string());
        let keys: Vec<String> = members::ask(self.from, &["GETKEYSINSLOT", &slot, &most]).await;
        if !keys.is_empty() {
            let mut command = redis::cmd("MIGRATE");
            command.arg("127.0.0.1").arg(self.to.port()).arg(&["", "0", "5000", "KEYS"]).arg(&keys);
            let moved: Result<(), _> = command.query_async(&mut self.from.connect().await).await;
            moved.expect("the other master takes them");
        }
        keys.len()
    }

    /// Moves the keys that are left and gives the slot to its new master, which all nodes then name.
    pub(crate) async fn finish(self) {
        while self.move_keys(100).await > 0 {}
        self.set(self.to, "NODE", self.to).await;
        self.set(self.from, "NODE", self.to).await;
        until("all nodes know where the slot is", WITHIN, async || {
            for node in &self.cluster.nodes {
                let seen = members::seen_by(node).await;
                let owner = seen.iter().find(|member| member.has(self.slot)).map(|member| member.port);
                if owner != Some(self.to.port()) {
                    return Err(format!("{} names {owner:?}", node.port()));
                }
            }
            Ok(())
        })
        .await;
    }

    async fn set(&self, at: &Server, state: &str, other: &Server) {
        let id: String = members::ask(other, &["MYID"]).await;
        members::ask::<()>(at, &["SETSLOT", &self.slot.to_string(), state, &id]).await;
    }
}
