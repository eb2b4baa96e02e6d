//! What a node says of all nodes.

use redis::FromRedisValue;

use crate::support::server::Server;

#[derive(Debug, PartialEq)]
pub(super) struct Member {
    pub(super) port: u16,
    pub(super) handshakes: bool,
    master: bool,
    failed: bool,
    /// The first and last of each range.
    pub(super) slots: Vec<(u16, u16)>,
}

impl Member {
    pub(super) fn serves(&self) -> bool {
        self.master && !self.failed && !self.slots.is_empty()
    }

    pub(super) fn has(&self, slot: u16) -> bool {
        self.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot))
    }
}

/// The answer to a CLUSTER command.
pub(super) async fn ask<T: FromRedisValue>(node: &Server, arguments: &[&str]) -> T {
    let answer = redis::cmd("CLUSTER").arg(arguments).query_async(&mut node.connect().await).await;
    answer.unwrap_or_else(|error| panic!("CLUSTER {arguments:?}: {error}"))
}

pub(super) async fn seen_by(node: &Server) -> Vec<Member> {
    let text: String = ask(node, &["NODES"]).await;
    text.lines().map(|line| member(line).unwrap_or_else(|| panic!("no member: {line}"))).collect()
}

/// From `id ip:port@bus flags master pings pongs epoch link slots…`, where slots that move stand in brackets.
fn member(line: &str) -> Option<Member> {
    let fields: Vec<_> = line.split(' ').collect();
    let flags: Vec<_> = fields.get(2)?.split(',').collect();
    let range = |range: &&str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    Some(Member {
        port: fields.get(1)?.split([':', '@']).nth(1)?.parse().ok()?,
        handshakes: flags.contains(&"handshake"),
        master: flags.contains(&"master"),
        failed: flags.contains(&"fail") || flags.contains(&"fail?"),
        slots: fields.iter().skip(8).filter_map(range).collect(),
    })
}
