//! The cluster as one node sees it.

use redis::FromRedisValue;

use crate::support::server::Server;

/// The first and last slot.
pub(crate) type SlotRange = (u16, u16);

#[derive(Debug, PartialEq)]
pub(super) struct Member {
    pub(super) port: u16,
    pub(super) in_handshake: bool,
    master: bool,
    failed: bool,
    pub(super) slots: Vec<SlotRange>,
}

impl Member {
    pub(super) fn serves(&self) -> bool {
        self.master && !self.failed && !self.slots.is_empty()
    }

    pub(super) fn has(&self, slot: u16) -> bool {
        self.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot))
    }
}

/// Runs a CLUSTER command.
pub(super) async fn cluster<T: FromRedisValue>(node: &Server, arguments: &[&str]) -> T {
    node.command(&[&["CLUSTER"], arguments].concat()).await
}

pub(super) async fn seen_by(node: &Server) -> Vec<Member> {
    let nodes: String = cluster(node, &["NODES"]).await;
    nodes.lines().map(|line| parse(line).unwrap_or_else(|| panic!("no member: {line}"))).collect()
}

/// Parses `id ip:port@bus flags master pings pongs epoch link slots…`, where migrating slots are in brackets.
fn parse(line: &str) -> Option<Member> {
    let fields: Vec<_> = line.split(' ').collect();
    let flags: Vec<_> = fields.get(2)?.split(',').collect();
    let range = |range: &&str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    Some(Member {
        port: fields.get(1)?.split([':', '@']).nth(1)?.parse().ok()?,
        in_handshake: flags.contains(&"handshake"),
        master: flags.contains(&"master"),
        failed: flags.contains(&"fail") || flags.contains(&"fail?"),
        slots: fields.iter().skip(8).filter_map(range).collect(),
    })
}
