//! Parses arbitrary slot maps.

use proptest::collection::vec;
use proptest::prelude::*;
use redis::Value;

use super::*;
use crate::base::property_tests::config;
use crate::store::redis::testing::test_values::{numbers, texts, values};

/// Values that are almost slot maps.
fn slot_maps() -> impl Strategy<Value = Value> {
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

fn check(reply: &Value) {
    let Ok(ranges) = parse(reply, "sender") else { return };
    assert!(!ranges.is_empty(), "{reply:?}");
    for range in ranges {
        assert!(range.first <= range.last && range.last < SLOTS, "{reply:?}");
        for address in range.replicas.iter().chain([&range.master]) {
            assert!(!matches!(&*address.host, "" | "?"), "{reply:?}");
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn parsed_slot_maps_are_valid(reply in prop_oneof![values(), slot_maps()]) {
        check(&reply);
    }

    #[test]
    fn every_key_has_a_slot(key in vec(prop_oneof![Just(b'{'), Just(b'}'), any::<u8>()], 0..12)) {
        prop_assert!(slot(&key) < SLOTS);
    }
}
