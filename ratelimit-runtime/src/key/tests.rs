use super::*;

#[derive(Clone, Copy, Debug)]
enum KeyForm {
    Hash,
    Text,
}

/// Prefix, name, shape and function.
type Pieces = (&'static str, &'static str, &'static str, Option<&'static str>);

const PIECES: Pieces = ("sms", "app::send", "fw2-60000000", None);

fn key<M>(form: KeyForm, parts: impl IntoKey<M>) -> Key {
    key_of(form, PIECES, parts)
}

fn key_of<M>(form: KeyForm, pieces: Pieces, parts: impl IntoKey<M>) -> Key {
    let (prefix, name, shape, function) = pieces;
    let head = Head { prefix, name, shape: &shape, function };
    let (kept, hash) = (KeyParts::of(&parts).unwrap(), KeyHead::new(head));
    let fingerprint = hash.fingerprint(&parts, None).unwrap();
    match form {
        KeyForm::Hash => Key::hashed(fingerprint, PolicyId::default()),
        KeyForm::Text => {
            let (namespace, head) = (NamespaceText::new("rl"), TextHead::new(head));
            Key::text(&namespace, &head, kept.all(), fingerprint, PolicyId::default())
        }
    }
}

fn text<M>(parts: impl IntoKey<M>) -> String {
    text_of(key(KeyForm::Text, parts))
}

fn text_of(key: Key) -> String {
    match key.0 {
        Repr::Text(text, _) => text,
        Repr::Hash(_) => unreachable!("the form is text"),
    }
}

#[test]
fn keys_are_readable() {
    assert_eq!(text(()), "rl:sms:app/send:fw2-60000000:{app/send}");
    assert_eq!(text(("u1", 7)), "rl:sms:app/send:fw2-60000000:{d556d08fdfb3f7d6}:u1:7");
}

/// They are state in Redis, so a change of one starts its limits afresh.
#[test]
fn tags_never_change() {
    let tag = |key: String| key[key.find('{').unwrap()..=key.find('}').unwrap()].to_owned();
    for (key, expected) in [
        (text(""), "{d1fba762150c532c}"),
        (text(7), "{f9f351e06189c5a2}"),
        (text("user-7"), "{ec60244a73503c84}"),
        (text("3f2b8c1e-5d4a-4f60-9b7e-0a1c2d3e4f50"), "{81c4e27a36a046ea}"),
        (text(("a:b", "é\n")), "{045618ef399365a9}"),
        (text("x".repeat(200)), "{e27ba1701482722b}"),
        (text("x".repeat(201)), "{84a0678c90937f5d}"),
    ] {
        assert_eq!(tag(key), expected);
    }
}

#[test]
fn one_head_serves_all_namespaces() {
    let (prefix, name, shape, function) = PIECES;
    let head = Head { prefix, name, shape: &shape, function };
    let heads = KeyHeads::new(head);
    for (namespace, expected) in [("rl", "rl"), ("", ""), ("a:b::c", "a%3Ab/c")] {
        let namespace = NamespaceText::new(namespace);
        let key = |parts: &KeyParts| heads.text(head).key(&namespace, parts.all());
        let rest = "sms:app/send:fw2-60000000";
        assert_eq!(key(&KeyParts::default()), format!("{expected}:{rest}:{{app/send}}"));
        let with_part = format!("{expected}:{rest}:{{d556d08fdfb3f7d6}}:u1:7");
        assert_eq!(key(&KeyParts::of(&("u1", 7)).unwrap()), with_part);
    }
}

#[test]
fn tied_keys_have_the_function_as_tag() {
    for (name, function, tag) in [("app::send", "app::send", "app/send"), ("", "f", "f"), ("n", "", "")] {
        let key = |parts: &[&str]| {
            let head = Head { prefix: "", name, shape: &"s", function: Some(function) };
            let (mut kept, mut open) = (KeyParts::default(), KeyHead::new(head).open());
            parts.iter().for_each(|part| open.part(*part, Some(&mut kept)).unwrap());
            let head = TextHead::new(head);
            assert!(head.is_pinned_to_slot());
            head.key(&NamespaceText::new(""), kept.all())
        };
        let head = format!("::{}:s:{{{tag}}}", name.replace("::", "/"));
        assert_eq!(key(&[]), head.clone());
        assert_eq!(key(&["a", "b"]), format!("{head}:a:b"));
        let long = "x".repeat(201);
        let digest = "84a0678c90937f5dcf9994d5866668da";
        assert_eq!(key(&[&long]), format!("{head}:~{digest}"));
    }
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
            pieces.extend(["fw2-1", "fw2-2"].map(|shape| (prefix, name, shape, function)));
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
