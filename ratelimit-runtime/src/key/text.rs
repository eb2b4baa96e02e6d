//! The text of a key in Redis.

use std::ops::Range;

use sha2::{Digest, Sha256};

use super::hash::Head;
use super::parts::PartsOfKey;
use super::plain::Plain;
use super::sip::siphash;

/// The maximum length of encoded parts in a key. Longer ones are replaced by their digest.
const MAX_PARTS_LEN: usize = 200;

/// The room for parts in a new key. Most are shorter.
const USUAL_PARTS_LEN: usize = 64;

/// In a head, the place of the digest, and what follows.
const DIGEST_PLACEHOLDER: &[u8] = b"0000000000000000";
const TAG_END: &[u8] = b"}:";

/// A namespace as it is in a key.
#[derive(Debug)]
pub(crate) struct NamespaceText {
    text: Vec<u8>,
    /// Whether the parts of all keys are replaced by their digest.
    hashes_parts: bool,
}

impl NamespaceText {
    pub(crate) fn new(namespace: &str) -> Self {
        let mut text = Vec::new();
        push_path(&mut text, namespace);
        text.push(b':');
        NamespaceText { text, hashes_parts: false }
    }

    /// Replaces the parts of all keys by their digest.
    pub(crate) fn hashing_parts(self, hashes_parts: bool) -> Self {
        NamespaceText { hashes_parts, ..self }
    }
}

#[cfg(all(feature = "overrides", feature = "redis"))]
impl NamespaceText {
    /// Returns the key of overrides in Redis. No key of a policy is like it, as they have more pieces.
    pub(crate) fn overrides_key(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned() + "overrides"
    }

    /// Returns the key of the log of overrides in Redis. In a Cluster it is where the overrides are.
    pub(crate) fn override_log_key(&self) -> String {
        let namespace = String::from_utf8_lossy(&self.text);
        format!("{namespace}{{{}}}:log", self.overrides_key())
    }

    /// Returns the key of the inventory in Redis.
    pub(crate) fn inventory_key(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned() + "inventory"
    }
}

/// What the keys of a policy begin with, after the namespace.
#[derive(Clone, Debug)]
pub(crate) struct TextHead {
    /// `prefix:name:shape:{tag}:`, where a digest is still missing.
    text: Vec<u8>,
    /// Where the name is in the text.
    name: Range<usize>,
    /// Whether the tag is a function instead of a digest.
    is_pinned_to_slot: bool,
}

impl TextHead {
    pub(crate) fn new(head: Head<'_>) -> Self {
        let mut text = Vec::with_capacity(96);
        push_path(&mut text, head.prefix);
        text.push(b':');
        let start = text.len();
        push_path(&mut text, head.name);
        let name = start..text.len();
        text.push(b':');
        text.extend_from_slice(head.shape.to_string().as_bytes());
        text.extend_from_slice(b":{");
        match head.function {
            Some(function) => push_path(&mut text, function),
            None => text.extend_from_slice(DIGEST_PLACEHOLDER),
        }
        text.extend_from_slice(TAG_END);
        TextHead { text, name, is_pinned_to_slot: head.function.is_some() }
    }
}

/// The text of a key that is being written: the head, and the encoded parts. If these are too long, they are hashed as they come,
/// and no more than the maximum is kept.
#[derive(Debug)]
struct KeyText {
    /// UTF-8.
    text: Vec<u8>,
    /// Where the name is in the text.
    name: Range<usize>,
    /// Where the parts begin, or the end of them that is not hashed yet.
    parts_at: usize,
    /// The digest of the parts before, if they are too long.
    long: Option<Box<Sha256>>,
    /// Where the digest belongs. `None` if the tag is a function.
    digest_at: Option<usize>,
}

impl TextHead {
    /// Returns whether the tag of all keys is a function.
    pub(crate) fn is_pinned_to_slot(&self) -> bool {
        self.is_pinned_to_slot
    }

    /// Returns the text of the key with this head and these parts.
    pub(crate) fn key(&self, namespace: &NamespaceText, parts: PartsOfKey<'_>) -> String {
        let mut key = KeyText::new(namespace, self);
        for (i, part) in parts.iter().enumerate() {
            key.part(part, i == 0);
        }
        let key = String::from_utf8(key.finish(!parts.is_empty(), namespace.hashes_parts));
        // It is UTF-8: escapes are ASCII, and texts are not cut within a character.
        key.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl PartsOfKey<'_> {
    /// Returns the digest that is the tag of keys with these parts, in 16 digits. Empty without parts.
    pub(crate) fn tag(self) -> String {
        let head = TextHead::new(Head { prefix: "", name: "", shape: &"", function: None });
        let key = head.key(&NamespaceText::new(""), self);
        key.split(['{', '}']).nth(1).unwrap_or_default().to_owned()
    }
}

impl KeyText {
    /// Starts a key with no parts.
    fn new(NamespaceText { text: namespace, .. }: &NamespaceText, head: &TextHead) -> Self {
        let parts_at = namespace.len() + head.text.len();
        let mut text = Vec::with_capacity(parts_at + USUAL_PARTS_LEN);
        text.extend_from_slice(namespace);
        text.extend_from_slice(&head.text);
        let name = namespace.len() + head.name.start..namespace.len() + head.name.end;
        let digest_at =
            (!head.is_pinned_to_slot).then(|| parts_at - TAG_END.len() - DIGEST_PLACEHOLDER.len());
        KeyText { text, name, parts_at, long: None, digest_at }
    }

    /// Adds a part.
    fn part(&mut self, part: Plain<'_>, is_first: bool) {
        if !is_first {
            self.push(b":");
        }
        match part {
            Plain::Integer(integer) => self.push(integer.write(&mut [0; 20])),
            Plain::Text(text) => escape(text, false, |text| self.push(text)),
        }
    }

    /// Returns the key.
    fn finish(mut self, has_parts: bool, hashes_parts: bool) -> Vec<u8> {
        if !has_parts {
            self.end_with_tag();
        } else if let Some(long) = self.long.take() {
            let digest = self.replace_parts(*long);
            if let Some(at) = self.digest_at {
                self.text.copy_within(digest..digest + DIGEST_PLACEHOLDER.len(), at);
            }
        } else {
            if let Some(at) = self.digest_at {
                // Without a secret, as all processes compute the same. Callers who try keys can choose slots anyway.
                let digest = siphash(&self.text[self.parts_at..]).to_be_bytes();
                let places = self.text[at..].as_chunks_mut().0;
                places.iter_mut().zip(digest).for_each(|(place, byte)| *place = hex(byte, LOWER));
            }
            if hashes_parts {
                self.replace_parts(Sha256::default());
            }
        }
        self.text
    }

    /// Ends a key that has no parts. Its tag is the name, if it is not a function.
    fn end_with_tag(&mut self) {
        if let Some(at) = self.digest_at {
            self.text.truncate(at);
            self.text.extend_from_within(self.name.clone());
            self.text.push(b'}');
        } else {
            self.text.truncate(self.parts_at - 1);
        }
    }

    /// Replaces the parts by their digest, the first half of which is the tag if they are too long. Returns where it is.
    fn replace_parts(&mut self, before: Sha256) -> usize {
        let digest = before.chain_update(&self.text[self.parts_at..]).finalize();
        self.text.truncate(self.parts_at);
        self.text.push(b'~');
        let start = self.text.len();
        digest[..16].iter().for_each(|byte| self.text.extend_from_slice(&hex(*byte, LOWER)));
        start
    }

    /// Adds encoded text.
    fn push(&mut self, text: &[u8]) {
        let KeyText { text: key, parts_at, long, .. } = self;
        if key.len() - *parts_at + text.len() > MAX_PARTS_LEN {
            let long = long.get_or_insert_default();
            long.update(&key[*parts_at..]);
            key.truncate(*parts_at);
            if text.len() > MAX_PARTS_LEN {
                long.update(text);
                return;
            }
        }
        key.extend_from_slice(text);
    }
}

fn push_path(key: &mut Vec<u8>, path: &str) {
    escape(path, true, |text| key.extend_from_slice(text));
}

/// Escapes control characters and those with a meaning in a key. In a path, `::` becomes `/` to keep names readable.
fn escape(text: &str, path: bool, mut push: impl FnMut(&[u8])) {
    let mut text = text.as_bytes();
    loop {
        let (plain, rest) = text.split_at(plain_len(text, path));
        push(plain);
        text = match rest {
            [] => return,
            [b':', b':', after @ ..] if path => {
                push(b"/");
                after
            }
            _ => {
                let (special, after) = rest.split_at(special_len(rest, path));
                for byte in special {
                    let [high, low] = hex(*byte, UPPER);
                    push(&[b'%', high, low]);
                }
                after
            }
        };
    }
}

/// Returns the length of the text before the first special character.
fn plain_len(text: &[u8], path: bool) -> usize {
    let mut at = 0;
    while let Some(plain) = text[at..].iter().position(|byte| MAY_BE_SPECIAL[usize::from(*byte)]) {
        at += plain;
        if special_len(&text[at..], path) > 0 {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// Returns the length of the special character that the text starts with, or 0 if it starts with another.
fn special_len(text: &[u8], path: bool) -> usize {
    match text {
        [b'/', ..] => usize::from(path),
        // The control characters above ASCII.
        [0xc2, 0x80..=0x9f, ..] => 2,
        [0xc2, ..] | [] => 0,
        [byte, ..] => usize::from(MAY_BE_SPECIAL[usize::from(*byte)]),
    }
}

/// The first bytes of special characters, in a path or not.
const MAY_BE_SPECIAL: [bool; 256] = {
    let (mut special, mut byte) = ([false; 256], 0);
    while byte < 256 {
        special[byte] =
            matches!(byte as u8, 0..=b' ' | 0x7f | b'%' | b'/' | b':' | b'{' | b'}' | b'~' | 0xc2);
        byte += 1;
    }
    special
};

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

fn hex(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [byte >> 4, byte & 0xf].map(|digit| digits[usize::from(digit)])
}

#[cfg(test)]
mod properties;
