//! Moving a slot from one master to another.

use tokio::sync::{Mutex, MutexGuard};

use super::members::{self, cluster};
use super::{Cluster, WITHIN};
use crate::support::server::Server;
use crate::support::until::until;

/// One slot moves at a time: the new owners of two may claim the same epoch, and nodes then disagree for a while.
static TURN: Mutex<()> = Mutex::const_new(());

/// A slot that is being moved. Until it is finished, its master answers ASK for keys that it does not have.
#[derive(Debug)]
pub(crate) struct Migration<'a> {
    cluster: &'a Cluster,
    slot: u16,
    pub(crate) from: &'a Server,
    pub(crate) to: &'a Server,
    _turn: MutexGuard<'static, ()>,
}

impl Cluster {
    /// Starts to move the slot of a key to another master. No key moves yet.
    pub(crate) async fn migrate(&self, key: &str) -> Migration<'_> {
        let turn = TURN.lock().await;
        let slot = self.slot(key).await;
        let from = self.owner(slot).await;
        let masters = self.masters().await;
        let to = masters.iter().map(|master| master.node).find(|master| master.port() != from.port());
        let to = to.expect("there are three masters");
        let migration = Migration { cluster: self, slot, from, to, _turn: turn };
        migration.set(migration.to, "IMPORTING", migration.from).await;
        migration.set(migration.from, "MIGRATING", migration.to).await;
        migration
    }
}

impl Migration<'_> {
    /// Moves at most this many of the slot's keys, and returns how many it moved.
    pub(crate) async fn move_keys(&self, max: usize) -> usize {
        let (slot, max) = (self.slot.to_string(), max.to_string());
        let keys: Vec<String> = cluster(self.from, &["GETKEYSINSLOT", &slot, &max]).await;
        if !keys.is_empty() {
            let port = self.to.port().to_string();
            let migrate = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            let command = migrate.into_iter().chain(keys.iter().map(String::as_str));
            self.from.command::<()>(&command.collect::<Vec<_>>()).await;
        }
        keys.len()
    }

    /// Moves the remaining keys and assigns the slot to its new master, then waits until all nodes agree.
    pub(crate) async fn finish(self) {
        while self.move_keys(100).await > 0 {}
        self.set(self.to, "NODE", self.to).await;
        self.set(self.from, "NODE", self.to).await;
        until("all nodes know the slot's new master", WITHIN, async || {
            for node in &self.cluster.nodes {
                let members = members::seen_by(node).await;
                let owner = members.iter().find(|member| member.has(self.slot)).map(|member| member.port);
                if owner != Some(self.to.port()) {
                    return Err(format!("{} names {owner:?}", node.port()));
                }
            }
            Ok(())
        })
        .await;
    }

    async fn set(&self, at: &Server, state: &str, other: &Server) {
        let id: String = cluster(other, &["MYID"]).await;
        cluster::<()>(at, &["SETSLOT", &self.slot.to_string(), state, &id]).await;
    }
}
