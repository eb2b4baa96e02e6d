//! Keys are state in Redis: their encoding never changes.

use proptest::collection::vec;
use proptest::prelude::*;
use siphasher::sip::SipHasher13;

use super::*;
use crate::base::property_tests::config;
use crate::key::{KeyHead, KeyParts};

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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn expected(parts: &[String], namespace: &str, head: Head<'_>) -> String {
    let Head { prefix, name, shape, function } = head;
    let text = parts.iter().map(|part| encoded(part, false)).collect::<Vec<_>>().join(":");
    let is_long = text.len() > 200;
    let tag = match function {
        Some(function) => encoded(function, true),
        None if parts.is_empty() => encoded(name, true),
        None if is_long => hex(&Sha256::digest(&text)[..8]),
        None => format!("{:016x}", SipHasher13::new().hash(text.as_bytes())),
    };
    let end = match is_long {
        _ if parts.is_empty() => String::new(),
        false => format!(":{text}"),
        true => format!(":~{}", hex(&Sha256::digest(&text)[..16])),
    };
    let [namespace, prefix, name] = [namespace, prefix, name].map(|piece| encoded(piece, true));
    format!("{namespace}:{prefix}:{name}:{shape}:{{{tag}}}{end}")
}

fn written(parts: &[String], namespace: &str, head: Head<'_>) -> String {
    let mut key = KeyText::new(&NamespaceText::new(namespace), &TextHead::new(head));
    let capacity = key.parts_at + USUAL_PARTS_LEN.max(2 * MAX_PARTS_LEN);
    for (i, part) in parts.iter().enumerate() {
        key.part(Plain::Text(part), i == 0);
        assert!(key.text.len() <= key.parts_at + MAX_PARTS_LEN);
        assert!(key.text.capacity() <= 2 * capacity, "{} bytes are kept", key.text.capacity());
    }
    String::from_utf8(key.finish(!parts.is_empty(), false)).unwrap()
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
        let head =
            Head { prefix: "sms", name: "app::send", shape: &"fw2-60000000", function: function.as_deref() };
        prop_assert_eq!(written(&parts, &namespace, head), expected(&parts, &namespace, head));
    }

    #[test]
    fn parts_of_all_types_are_their_texts(text in parts(), natural in any::<u64>(), integer in any::<i64>()) {
        let head = Head { prefix: "", name: "app::send", shape: &"fw2-60000000", function: None };
        let mut kept = KeyParts::default();
        let mut open = KeyHead::new(head).open();
        open.part(&natural, Some(&mut kept)).unwrap();
        open.part(&integer, Some(&mut kept)).unwrap();
        open.part(&format_args!("{text}{integer}"), Some(&mut kept)).unwrap();
        open.part(text.as_str(), Some(&mut kept)).unwrap();
        let key = TextHead::new(head).key(&NamespaceText::new("rl"), kept.all());
        let parts = [natural.to_string(), integer.to_string(), format!("{text}{integer}"), text];
        prop_assert_eq!(key, expected(&parts, "rl", head));
    }
}

#[test]
fn long_parts_are_hashed_in_one_pass_and_never_kept() {
    let head = Head { prefix: "", name: "app::send", shape: &"fw2-60000000", function: None };
    for part in ["x".repeat(1 << 20), ":".repeat(1 << 20), "é\n".repeat(1 << 19)] {
        let parts = [part];
        assert_eq!(written(&parts, "rl", head), expected(&parts, "rl", head));
    }
}
