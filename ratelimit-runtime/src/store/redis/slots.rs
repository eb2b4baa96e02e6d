//! The slots of a Redis Cluster: which one a key has, and who has which.

use redis::Value;

use crate::error::store::StoreError;

/// So many there are.
pub(super) const SLOTS: u16 = 16384;

/// A host and a port.
pub(super) type Address = (String, u16);

/// Slots that one master has.
#[derive(Debug, PartialEq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) master: Address,
    pub(super) replicas: Vec<Address>,
}

/// The slot of a key: of the part in its first braces, if there is one.
fn slot(key: &[u8]) -> u16 {
    let position = |bytes: &[u8], brace| bytes.iter().position(|byte| *byte == brace);
    let tag = position(key, b'{').map(|open| &key[open + 1..]);
    let tag = tag.and_then(|rest| Some(&rest[..position(rest, b'}')?])).filter(|tag| !tag.is_empty());
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// The slot of all these keys.
pub(super) fn one_slot(keys: &[&str]) -> Result<u16, StoreError> {
    let mut slots = keys.iter().map(|key| slot(key.as_bytes()));
    let first = slots.next().unwrap_or(0);
    if slots.any(|slot| slot != first) {
        return Err(StoreError::permanent(
            "the keys of one decision lie in different slots of the Redis Cluster; give its limiters the same \
             `.function(…)`, or keys of the same parts",
        ));
    }
    Ok(first)
}

/// What `CLUSTER SLOTS` replies. A node that does not know its own host is at the one that was asked.
pub(super) fn ranges(reply: &Value, asked: &str) -> Result<Vec<Range>, StoreError> {
    let odd = || StoreError::transient("Redis tells nothing of a Cluster with slots");
    let Value::Array(ranges) = reply else { return Err(odd()) };
    let ranges: Option<Vec<Range>> = ranges.iter().map(|range| read(range, asked)).collect();
    ranges.filter(|ranges| !ranges.is_empty()).ok_or_else(odd)
}

fn read(range: &Value, asked: &str) -> Option<Range> {
    let Value::Array(parts) = range else { return None };
    let [first, last, master, replicas @ ..] = &parts[..] else { return None };
    let (first, last) = (number(first)?, number(last)?);
    let master = address(master, asked)?;
    let replicas = replicas.iter().filter_map(|replica| address(replica, asked)).collect();
    (first <= last && last < SLOTS).then_some(Range { first, last, master, replicas })
}

fn address(node: &Value, asked: &str) -> Option<Address> {
    let Value::Array(parts) = node else { return None };
    let [host, port, ..] = &parts[..] else { return None };
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        Value::VerbatimString { text, .. } => text,
        Value::Nil => "",
        _ => return None,
    };
    // `?` is what a node says that is told to have a name and has none.
    let host = if matches!(host, "" | "?") { asked } else { host };
    Some((host.to_owned(), number(port)?))
}

fn number(value: &Value) -> Option<u16> {
    if let Value::Int(number) = value { u16::try_from(*number).ok() } else { None }
}

/// CRC-16/XMODEM, as the specification of Redis Cluster has it.
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
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        // As `CLUSTER KEYSLOT` of Redis says.
        for (key, number) in [("foo", 12182), ("{user1000}.following", 3443), ("user1000", 3443)] {
            assert_eq!(slot(key.as_bytes()), number, "{key}");
        }
        // Only the first braces count, and empty ones do not.
        assert_eq!(slot(b"a{b}{c}"), slot(b"b"));
        assert_ne!(slot(b"{}b"), slot(b"b"));
        assert_eq!(slot(b"a{b"), crc16(b"a{b") % SLOTS);
    }

    #[test]
    fn a_node_may_not_know_its_host() {
        let text = |text: &str| Value::BulkString(text.into());
        let node = |host: Value, port| Value::Array(vec![host, Value::Int(port), text("id")]);
        let range = vec![Value::Int(0), Value::Int(5), node(Value::Nil, 7000), node(text("b"), 7001)];
        let told = ranges(&Value::Array(vec![Value::Array(range)]), "a").unwrap();
        let (master, replicas) = (("a".to_owned(), 7000), vec![("b".to_owned(), 7001)]);
        assert_eq!(told, [Range { first: 0, last: 5, master, replicas }]);
    }

    #[test]
    fn what_is_no_map_of_slots_is_an_error() {
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
            assert!(ranges(&reply, "a").is_err(), "{reply:?}");
        }
        assert!(ranges(&Value::Array(vec![]), "a").is_err());
        assert!(ranges(&Value::Nil, "a").is_err());
    }
}
