//! Arbitrary replies of a server.

use proptest::collection::vec;
use proptest::prelude::*;
use redis::{PushKind, Value, VerbatimFormat};

/// Integers, including the limits of what our parsers accept.
pub(crate) fn numbers() -> impl Strategy<Value = i64> + Clone {
    let limits = [i64::MIN, -1, 16_383, 16_384, 65_535, 65_536, 1 << 53, (1 << 53) + 1, i64::MAX];
    prop_oneof![4 => 0..4_i64, 1 => proptest::sample::select(limits.to_vec()), 1 => any::<i64>()]
}

/// Texts, including numbers and invalid UTF-8.
pub(crate) fn texts() -> impl Strategy<Value = Vec<u8>> + Clone {
    let known = ["", "?", "0", "0.5", "-0", "1e400", "NaN", "inf", "-1", "1_0", "OOM no memory", "WRONGTYPE"];
    prop_oneof![
        proptest::sample::select(known.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        vec(any::<u8>(), 0..8),
    ]
}

/// Any value, with nested ones.
pub(crate) fn values() -> impl Strategy<Value = Value> + Clone {
    let text = "[a-z?]{0,4}";
    let verbatim = |text| Value::VerbatimString { format: VerbatimFormat::Text, text };
    let leaf = prop_oneof![
        4 => numbers().prop_map(Value::Int),
        2 => texts().prop_map(Value::BulkString),
        1 => Just(Value::Nil),
        1 => Just(Value::Okay),
        1 => text.prop_map(Value::SimpleString),
        1 => text.prop_map(verbatim),
        1 => any::<f64>().prop_map(Value::Double),
        1 => any::<bool>().prop_map(Value::Boolean),
        1 => texts().prop_map(Value::BigNumber),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            4 => vec(inner.clone(), 0..6).prop_map(Value::Array),
            1 => vec(inner.clone(), 0..6).prop_map(Value::Set),
            1 => vec((inner.clone(), inner.clone()), 0..3).prop_map(Value::Map),
            1 => vec(inner.clone(), 0..3)
                .prop_map(|data| Value::Push { kind: PushKind::Other(String::from("a")), data }),
            1 => inner.prop_map(|data| Value::Attribute { data: Box::new(data), attributes: Vec::new() }),
        ]
    })
}
