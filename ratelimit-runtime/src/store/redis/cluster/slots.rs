//! The slots of a Redis Cluster: the slot of a key, and the nodes of each slot.

use redis::Value;

use crate::store::error::StoreError;

/// The number of slots.
pub(super) const SLOTS: u16 = 16384;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeAddress {
    pub(super) host: String,
    pub(super) port: u16,
}

/// Consecutive slots of one master.
#[derive(Debug, PartialEq)]
pub(super) struct SlotRange {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) master: NodeAddress,
    pub(super) replicas: Vec<NodeAddress>,
}

/// Returns the slot of a key: that of the text in its first braces, if there is any.
fn slot(key: &[u8]) -> u16 {
    let position = |bytes: &[u8], brace| bytes.iter().position(|byte| *byte == brace);
    let tag = position(key, b'{').map(|open| &key[open + 1..]);
    let tag = tag.and_then(|rest| Some(&rest[..position(rest, b'}')?])).filter(|tag| !tag.is_empty());
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// Returns the slot of all these keys.
pub(in crate::store::redis) fn common_slot(keys: &[&str]) -> Result<u16, StoreError> {
    let mut slots = keys.iter().map(|key| slot(key.as_bytes()));
    let first = slots.next().unwrap_or(0);
    if slots.any(|slot| slot != first) {
        return Err(StoreError::permanent(
            "the keys of one decision are in different slots of the Redis Cluster; give its limiters the same \
             `.function(…)` or the same key parts",
        ));
    }
    Ok(first)
}

/// Parses the reply to `CLUSTER SLOTS` of the node at the host `sender`: a node may not know its own hostname.
pub(super) fn parse(reply: &Value, sender: &str) -> Result<Vec<SlotRange>, StoreError> {
    let invalid = || StoreError::transient("invalid `CLUSTER SLOTS` reply");
    let Value::Array(ranges) = reply else { return Err(invalid()) };
    let ranges: Option<Vec<SlotRange>> = ranges.iter().map(|range| parse_range(range, sender)).collect();
    ranges.filter(|ranges| !ranges.is_empty()).ok_or_else(invalid)
}

fn parse_range(range: &Value, sender: &str) -> Option<SlotRange> {
    let Value::Array(parts) = range else { return None };
    let [first, last, master, replicas @ ..] = &parts[..] else { return None };
    let (first, last) = (parse_number(first)?, parse_number(last)?);
    let master = parse_address(master, sender)?;
    let replicas = replicas.iter().filter_map(|replica| parse_address(replica, sender)).collect();
    (first <= last && last < SLOTS).then_some(SlotRange { first, last, master, replicas })
}

fn parse_address(node: &Value, sender: &str) -> Option<NodeAddress> {
    let Value::Array(parts) = node else { return None };
    let [host, port, ..] = &parts[..] else { return None };
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        Value::VerbatimString { text, .. } => text,
        Value::Nil => "",
        _ => return None,
    };
    // A node that prefers hostnames replies `?` for one that has none.
    let host = if matches!(host, "" | "?") { sender } else { host };
    Some(NodeAddress { host: host.to_owned(), port: parse_number(port)? })
}

fn parse_number(value: &Value) -> Option<u16> {
    if let Value::Int(number) = value { u16::try_from(*number).ok() } else { None }
}

/// CRC-16/XMODEM, as in the Redis Cluster specification.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ u16::from(*byte) << 8,
            |crc, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
            },
        )
    })
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_match_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        // Replies of `CLUSTER KEYSLOT`.
        for (key, number) in [("foo", 12182), ("{user1000}.following", 3443), ("user1000", 3443)] {
            assert_eq!(slot(key.as_bytes()), number, "{key}");
        }
        // Only the first braces count, unless they are empty.
        assert_eq!(slot(b"a{b}{c}"), slot(b"b"));
        assert_ne!(slot(b"{}b"), slot(b"b"));
        assert_eq!(slot(b"a{b"), crc16(b"a{b") % SLOTS);
    }

    #[test]
    fn unknown_hostname_is_the_senders() {
        let text = |text: &str| Value::BulkString(text.into());
        let node = |host: Value, port| Value::Array(vec![host, Value::Int(port), text("id")]);
        let range = vec![Value::Int(0), Value::Int(5), node(Value::Nil, 7000), node(text("b"), 7001)];
        let ranges = parse(&Value::Array(vec![Value::Array(range)]), "a").unwrap();
        let address = |host: &str, port| NodeAddress { host: host.to_owned(), port };
        let (master, replicas) = (address("a", 7000), vec![address("b", 7001)]);
        assert_eq!(ranges, [SlotRange { first: 0, last: 5, master, replicas }]);
    }

    #[test]
    fn invalid_slot_maps_are_errors() {
        let int = |number| Value::Int(number);
        let node = || Value::Array(vec![Value::Nil, int(7000)]);
        for parts in [
            vec![],
            vec![int(0), int(5)],
            vec![int(5), int(0), node()],
            vec![int(0), int(16384), node()],
            vec![int(-1), int(5), node()],
            vec![int(0), int(5), int(7000)],
        ] {
            let reply = Value::Array(vec![Value::Array(parts)]);
            assert!(parse(&reply, "a").is_err(), "{reply:?}");
        }
        assert!(parse(&Value::Array(vec![]), "a").is_err());
        assert!(parse(&Value::Nil, "a").is_err());
    }
}
