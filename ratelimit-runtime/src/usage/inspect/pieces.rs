//! The pieces of a key's text.

use std::fmt::Display;

use crate::key::missing_key::MissingKey;
use crate::key::{Head, KeyHead, KeyParts, NamespaceText, TextHead};

/// The pieces of a key, encoded as they are in Redis.
///
/// ```
/// use ratelimit_runtime::inspect::{KeyPieces, Parts, path_of};
///
/// let key = KeyPieces::split("rl:sms:app/send:tb1-200000-2000000:{d556d08fdfb3f7d6}:u1:7").unwrap();
/// assert_eq!((path_of(key.prefix), path_of(key.name)), ("sms".to_owned(), "app::send".to_owned()));
/// assert_eq!((key.shape, key.head), ("tb1-200000-2000000", "sms:app/send:tb1-200000-2000000"));
/// assert_eq!(key.parts(), Parts::Texts(vec!["u1".to_owned(), "7".to_owned()]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPieces<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The prefix, name and shape: keys with the same are states of the same policy.
    pub head: &'a str,
    /// The prefix, often empty.
    pub prefix: &'a str,
    /// The name of the policy.
    pub name: &'a str,
    /// The algorithm, the version of its layout, and the numbers that belong to the state.
    pub shape: &'a str,
    /// What stands in braces.
    tag: &'a str,
    /// The parts, if there are any, or their digest.
    pub encoded_parts: Option<&'a str>,
}

/// The parts of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parts {
    /// As the program wrote them.
    Texts(Vec<String>),
    /// The digest of parts that are too long for a key, as it is there.
    Digest(String),
}

impl<'a> KeyPieces<'a> {
    /// Splits the text of a key. Returns `None` if it is not that of a policy's state.
    #[must_use]
    pub fn split(text: &'a str) -> Option<Self> {
        let mut pieces = text.splitn(6, ':');
        let mut next = || pieces.next();
        let (namespace, prefix, name, shape, tag) = (next()?, next()?, next()?, next()?, next()?);
        let encoded_parts = next();
        let head = &text[namespace.len() + 1..][..prefix.len() + name.len() + shape.len() + 2];
        let tag = tag.strip_prefix('{').and_then(|tag| tag.strip_suffix('}'))?;
        Some(KeyPieces { namespace, head, prefix, name, shape, tag, encoded_parts })
    }

    /// Returns what all keys of the policy share a slot by: the function, or the name if they have no parts. `None` if the tag is a
    /// digest of the parts.
    #[must_use]
    pub fn function(&self) -> Option<String> {
        let is_digest = self.tag.len() == 16 && self.tag.bytes().all(|byte| byte.is_ascii_hexdigit());
        (!is_digest).then(|| path_of(self.tag))
    }

    /// Returns the parts as the program wrote them.
    #[must_use]
    pub fn parts(&self) -> Parts {
        match self.encoded_parts {
            None => Parts::Texts(Vec::new()),
            Some(digest) if digest.starts_with('~') => Parts::Digest(digest.to_owned()),
            Some(parts) => Parts::Texts(parts.split(':').map(|part| decoded(part, false)).collect()),
        }
    }
}

/// Returns a namespace, prefix or name as the program wrote it.
#[must_use]
pub fn path_of(encoded: &str) -> String {
    decoded(encoded, true)
}

/// Returns the text of a key with these pieces, whose tag is the function, or without one what the library chooses.
///
/// # Errors
///
/// None for the texts that it is given.
pub fn key_text(
    namespace: &str,
    prefix: &str,
    name: &str,
    shape: &dyn Display,
    function: Option<&str>,
    parts: &[String],
) -> Result<String, MissingKey> {
    let (head, mut kept) = (Head { prefix, name, shape, function }, KeyParts::default());
    let mut open = KeyHead::new(head).open();
    parts.iter().try_for_each(|part| open.part(part, Some(&mut kept)))?;
    Ok(TextHead::new(head).key(&NamespaceText::new(namespace), kept.all()))
}

/// Undoes the encoding of a piece. In a path, `/` stands for `::`.
fn decoded(piece: &str, path: bool) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(piece.len()), piece.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match (byte, hex(after)) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'/', _) if path => bytes.extend_from_slice(b"::"),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| piece.to_owned())
}

/// Returns the byte of two hexadecimal digits at the start.
fn hex(bytes: &[u8]) -> Option<u8> {
    let [high, low] = bytes.first_chunk::<2>()?.map(|digit| char::from(digit).to_digit(16));
    Some((high? * 16 + low?) as u8)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::base::property_tests::config;

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn pieces_of_a_key_are_what_it_was_made_of(
            namespace in "[a-z:/{} é]{0,6}",
            prefix in any::<String>(),
            name in "[a-z:/<>%# ]{0,12}",
            function in proptest::option::of("[a-z:]{0,8}"),
            parts in vec(any::<String>(), 0..4),
        ) {
            let text =
                key_text(&namespace, &prefix, &name, &"fw2-60000000", function.as_deref(), &parts).unwrap();
            let key = KeyPieces::split(&text).unwrap();
            prop_assert_eq!([key.namespace, key.prefix, key.name].map(path_of), [namespace, prefix, name]);
            prop_assert_eq!(key.shape, "fw2-60000000");
            let tag = function.or_else(|| parts.is_empty().then(|| path_of(key.name)));
            prop_assert_eq!(key.function(), tag);
            match key.parts() {
                Parts::Texts(texts) => prop_assert_eq!(texts, parts),
                Parts::Digest(digest) => {
                    prop_assert!(digest.len() == 33 && parts.concat().len() > 60, "{digest} of {parts:?}");
                }
            }
        }

        #[test]
        fn no_text_is_too_strange_to_split(text in any::<String>(), tail in "[:{}~%/a-f0-9]{0,40}") {
            for text in [&text, &tail, &format!("rl::a:b:{{c}}:{tail}")] {
                if let Some(key) = KeyPieces::split(text) {
                    let _ = (key.parts(), path_of(key.name));
                }
            }
        }
    }

    #[test]
    fn other_keys_are_not_split() {
        for text in ["", "rl", "rl:a:b:c", "rl:a:b:c:d", "rl:a:b:c:d:{e}", "rl:a:b:c:{d"] {
            assert_eq!(KeyPieces::split(text), None, "{text}");
        }
    }
}
