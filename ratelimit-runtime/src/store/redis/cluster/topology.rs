//! The nodes of a Cluster, and the master of each slot.

use std::collections::HashMap;
use std::sync::Arc;

use redis::ConnectionInfo;

use super::slots::{NodeAddress, SLOTS, SlotRange};
use crate::store::redis::connect::Target;
use crate::store::redis::node::Node;
use crate::store::redis::url::with_host;

/// What is known of a Cluster.
pub(super) struct Topology {
    /// The login of every node, at any address.
    login: ConnectionInfo,
    nodes: HashMap<NodeAddress, Arc<ClusterNode>>,
    /// The master of each slot, by slot number.
    masters: Vec<Option<Arc<ClusterNode>>>,
}

/// A node, and its address in the Cluster.
pub(super) struct ClusterNode {
    pub(super) address: NodeAddress,
    pub(super) node: Arc<Node>,
}

/// Nodes by role.
pub(super) struct Roles {
    pub(super) masters: Vec<Arc<ClusterNode>>,
    pub(super) others: Vec<Arc<ClusterNode>>,
}

impl Topology {
    pub(super) fn new(login: ConnectionInfo) -> Self {
        Topology { login, nodes: HashMap::new(), masters: vec![None; usize::from(SLOTS)] }
    }

    pub(super) fn master(&self, slot: u16) -> Option<Arc<ClusterNode>> {
        self.masters[usize::from(slot)].clone()
    }

    pub(super) fn set_master(&mut self, slot: u16, address: NodeAddress) -> Arc<ClusterNode> {
        let master = self.node(address);
        self.masters[usize::from(slot)] = Some(Arc::clone(&master));
        master
    }

    /// Returns the node at this address, adding it if it is new.
    pub(super) fn node(&mut self, address: NodeAddress) -> Arc<ClusterNode> {
        let login = &self.login;
        let new = |address: &NodeAddress| {
            let node = Node::new(Target::Server(with_host(login, &address.host, address.port)));
            Arc::new(ClusterNode { address: address.clone(), node })
        };
        Arc::clone(self.nodes.entry(address).or_insert_with_key(new))
    }

    pub(super) fn contains(&self, address: &NodeAddress) -> bool {
        self.nodes.contains_key(address)
    }

    pub(super) fn roles(&self) -> Roles {
        // One for each range of slots.
        let mut masters: Vec<_> = self.masters.iter().flatten().collect();
        masters.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let is_master = |node: &Arc<ClusterNode>| masters.iter().any(|master| Arc::ptr_eq(master, node));
        let (masters, others) = self.nodes.values().cloned().partition(is_master);
        Roles { masters, others }
    }

    /// Adopts a slot map, and drops the nodes that are not in it.
    pub(super) fn update(&mut self, ranges: &[SlotRange]) {
        self.masters.fill(None);
        for range in ranges {
            let master = self.node(range.master.clone());
            let (first, last) = (usize::from(range.first), usize::from(range.last));
            self.masters[first..=last].fill(Some(master));
            for replica in &range.replicas {
                self.node(replica.clone());
            }
        }
        self.nodes.retain(|address, _| {
            ranges.iter().any(|range| range.master == *address || range.replicas.contains(address))
        });
    }
}
