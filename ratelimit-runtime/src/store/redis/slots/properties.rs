//! Whatever a server tells of its slots.

use proptest::collection::vec;
use proptest::prelude::*;
use redis::Value;

use super::super::values::{numbers, texts, values};
use super::*;

/// What is nearly a map.
fn maps() -> impl Strategy<Value = Value> {
    let int = || numbers().prop_map(Value::Int);
    let host = prop_oneof![4 => texts().prop_map(Value::BulkString), 1 => Just(Value::Nil), 1 => values()];
    let node = (host, int()).prop_map(|(host, port)| Value::Array(vec![host, port]));
    let node = prop_oneof![8 => node, 1 => values()];
    let range = (int(), int(), vec(node, 0..3)).prop_map(|(first, last, nodes)| {
        let mut parts = vec![first, last];
        parts.extend(nodes);
        Value::Array(parts)
    });
    vec(prop_oneof![16 => range, 1 => values()], 0..3).prop_map(Value::Array)
}

fn is_a_map_or_an_error(reply: &Value) {
    let Ok(ranges) = ranges(reply, "asked") else { return };
    assert!(!ranges.is_empty(), "{reply:?}");
    for range in ranges {
        assert!(range.first <= range.last && range.last < SLOTS, "{reply:?}");
        for (host, _) in range.replicas.iter().chain([&range.master]) {
            assert!(!matches!(&**host, "" | "?"), "{reply:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn any_reply_is_a_map_or_an_error(reply in prop_oneof![values(), maps()]) {
        is_a_map_or_an_error(&reply);
    }

    #[test]
    fn every_key_has_a_slot(key in vec(prop_oneof![Just(b'{'), Just(b'}'), any::<u8>()], 0..12)) {
        prop_assert!(slot(&key) < SLOTS);
    }
}
