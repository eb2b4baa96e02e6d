use super::*;

#[derive(Clone, Copy, Debug)]
enum KeyForm {
    Hash,
    Text,
}

/// Prefix, name, shape and function.
type Pieces = (&'static str, &'static str, &'static str, Option<&'static str>);

const PIECES: Pieces = ("sms", "app::send", "fw1-60000000", None);

fn key<M>(form: KeyForm, parts: impl IntoKey<M>) -> Key {
    key_of(form, PIECES, parts)
}

fn key_of<M>(form: KeyForm, pieces: Pieces, parts: impl IntoKey<M>) -> Key {
    let (prefix, name, shape, function) = pieces;
    let head = Head { prefix, name, shape: &shape, function };
    let mut writer = match form {
        KeyForm::Hash => KeyWriter::hash(KeyHead::new(head)),
        KeyForm::Text => KeyWriter::text(&NamespaceText::new("rl"), &TextHead::new(head)),
    };
    parts.write(&mut writer);
    writer.finish().unwrap()
}

fn text<M>(parts: impl IntoKey<M>) -> String {
    match key(KeyForm::Text, parts).0 {
        Repr::Text(text) => text,
        Repr::Hash(_) => unreachable!("the form is text"),
    }
}

#[test]
fn keys_are_readable() {
    assert_eq!(text(()), "rl:sms:app/send:fw1-60000000:{app/send}");
    assert_eq!(text(("u1", 7)), "rl:sms:app/send:fw1-60000000:{d556d08fdfb3f7d6}:u1:7");
}

#[test]
fn hostile_parts_do_not_collide() {
    let long = "x".repeat(1 << 20);
    let longer = format!("{long}x");
    let parts = [
        "", ":", "::", "{", "}", "{}", "\0", "\n", "\r\n", "%", "%3A", "a:b", "a", "b", "~", "é", "\u{85}",
        "/", " ", "\u{ff}", &long, &longer,
    ];
    for form in [KeyForm::Text, KeyForm::Hash] {
        let mut seen = std::collections::HashMap::new();
        seen.insert(key(form, ()), String::from("()"));
        for a in parts {
            assert_eq!(seen.insert(key(form, a), format!("{a:?}")), None);
            for b in parts {
                assert_eq!(seen.insert(key(form, (a, b)), format!("{a:?} {b:?}")), None);
            }
        }
    }
}

#[test]
fn redis_keys_are_short_with_one_tag() {
    for part in ["x".repeat(1 << 20), "{}{}".repeat(50), "\n\0".repeat(3)] {
        let key = text(part);
        assert!(key.len() < 320, "{key}");
        assert_eq!((key.matches('{').count(), key.matches('}').count()), (1, 1), "{key}");
        assert!(!key.contains(char::is_control));
    }
}

#[test]
fn keys_are_one_in_process_where_they_are_in_redis() {
    let mut pieces = Vec::new();
    for (prefix, name) in [("", "a"), ("a", ""), ("a", "a"), ("1", "a"), ("a", "1"), ("", "a::b")] {
        for function in [None, Some("a"), Some("1"), Some("a::b")] {
            pieces.extend(["fw1-1", "fw1-2"].map(|shape| (prefix, name, shape, function)));
        }
    }
    let keys = pieces.into_iter().flat_map(|pieces| {
        let both = |key: &dyn Fn(KeyForm) -> Key| [key(KeyForm::Text), key(KeyForm::Hash)];
        [
            both(&|form| key_of(form, pieces, ())),
            both(&|form| key_of(form, pieces, "")),
            both(&|form| key_of(form, pieces, 1)),
            both(&|form| key_of(form, pieces, "1")),
            both(&|form| key_of(form, pieces, '1')),
            both(&|form| key_of(form, pieces, "01")),
            both(&|form| key_of(form, pieces, "a")),
            both(&|form| key_of(form, pieces, ("a",))),
            both(&|form| key_of(form, pieces, ("a", 1))),
            both(&|form| key_of(form, pieces, (String::from("a"), '1'))),
            both(&|form| key_of(form, pieces, ("a", ""))),
            both(&|form| key_of(form, pieces, ("", "a", 1_u128, "1"))),
        ]
    });
    let keys: Vec<_> = keys.collect();
    for [text, hash] in &keys {
        for [other_text, other_hash] in &keys {
            assert_eq!(text == other_text, hash == other_hash, "{text:?} {other_text:?}");
        }
    }
}
