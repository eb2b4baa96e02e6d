//! Keys are state in Redis: their encoding never changes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::name::Name;
use crate::property_tests::config;

/// The encoding, in a simple form.
fn encoded(text: &str, path: bool) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if path && char == ':' && chars.next_if_eq(&':').is_some() {
            out.push('/');
        } else if "%:{}~ ".contains(char) || char.is_control() || (path && char == '/') {
            char.to_string().bytes().for_each(|byte| out += &format!("%{byte:02X}"));
        } else {
            out.push(char);
        }
    }
    out
}

fn digest(text: &str, bytes: usize) -> String {
    Sha256::digest(text)[..bytes].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn expected(parts: &[String], head: &Head<'_>) -> String {
    let encode = |piece: &dyn Display| encoded(&piece.to_string(), true);
    let Head { namespace, prefix, name, shape, .. } = head;
    let text = parts.iter().map(|part| encoded(part, false)).collect::<Vec<_>>().join(":");
    let tag = match head.function {
        Some(function) => encode(function),
        None if parts.is_empty() => encode(name),
        None => digest(&text, 8),
    };
    let end = match text.len() {
        _ if parts.is_empty() => String::new(),
        0..=200 => format!(":{text}"),
        _ => format!(":~{}", digest(&text, 16)),
    };
    format!("{}:{}:{}:{shape}:{{{tag}}}{end}", encode(namespace), encode(prefix), encode(name))
}

fn written(parts: &[String], head: &Head<'_>) -> String {
    let mut text = PartsText::default();
    for part in parts {
        text.part(part).unwrap();
        assert!(text.text.capacity() <= 2 * MAX_PARTS_LEN, "{} bytes are kept", text.text.capacity());
    }
    text.key(head).unwrap()
}

/// Text of a part, often of a length around the maximum, with everything that is escaped.
fn parts() -> impl Strategy<Value = String> {
    let piece = || prop_oneof![3 => "[a-z:/{}%~ é¡\\x00-\\x1f\u{7f}-\u{9f}]{0,6}", 1 => any::<String>()];
    prop_oneof![
        3 => piece(),
        1 => (piece(), 0..120_usize).prop_map(|(piece, times)| piece.repeat(times)),
        1 => (piece(), 190..210_usize).prop_map(|(piece, len)| piece + &"x".repeat(len)),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn encoding_is_the_same_however_long_the_parts_are(
        parts in vec(parts(), 0..5),
        namespace in "[a-z:/{} ]{0,6}",
        function in proptest::option::of("[a-z:/<>]{0,12}"),
    ) {
        let head = Head {
            namespace: &namespace,
            prefix: "sms",
            name: &Name::Static("app::send"),
            shape: &"fw1-60000000",
            function: function.as_ref().map(|function| function as &dyn Display),
        };
        prop_assert_eq!(written(&parts, &head), expected(&parts, &head));
    }
}

#[test]
fn long_parts_are_hashed_in_one_pass_and_never_kept() {
    let head = Head {
        namespace: "rl",
        prefix: "",
        name: &Name::Static("app::send"),
        shape: &"fw1-60000000",
        function: None,
    };
    for part in ["x".repeat(1 << 20), ":".repeat(1 << 20), "é\n".repeat(1 << 19)] {
        let parts = [part];
        assert_eq!(written(&parts, &head), expected(&parts, &head));
    }
}
