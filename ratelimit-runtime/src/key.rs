//! Injective key encoding.

mod downcast;
mod hash;
mod head;
mod plain;
mod sip;
mod text;

use std::fmt::Display;

pub(crate) use self::hash::{Fingerprint, KeyHasher, KeyHead};
pub(crate) use self::head::Head;
use self::text::PartsText;
use crate::error::missing_key::MissingKey;
use crate::policy_id::PolicyId;

/// A key: anything that is `Display`, a tuple of up to four such parts, or `()` for a single counter per policy.
///
/// Different tuples are different keys: `("a:b", "c")` and `("a", "b:c")` never share a counter. Only the text of a part counts,
/// not its type: `7` and `"7"` are the same key. A part whose `Display` fails refuses the call with
/// [`Error::MissingKey`](crate::Error::MissingKey). The compiler infers `M`.
///
/// ```
/// # use std::time::Duration;
/// # use ratelimits::{FixedWindow, Registry};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let messages = Registry::in_memory().limiter("messages", FixedWindow::new(1, Duration::from_secs(60)))?;
/// messages.try_acquire((), 1).await?; // one counter for all
/// messages.try_acquire(7, 1).await?; // one per user
/// messages.try_acquire((7, "lobby"), 1).await?; // one per user and room
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "not a key",
    note = "a key is anything that is `Display`, a tuple of such parts, or `()`"
)]
pub trait IntoKey<M> {
    /// Writes the parts of the key.
    #[doc(hidden)]
    fn write(&self, key: &mut KeyWriter);

    /// Hashes the parts of the key. Returns whether there are any, or an error if one could not be formatted.
    #[doc(hidden)]
    fn hash_parts(&self, key: &mut KeyHasher) -> Result<bool, MissingKey>;
}

impl<T: Display> IntoKey<kind::Part> for T {
    #[inline]
    fn write(&self, key: &mut KeyWriter) {
        key.part(self);
    }

    #[inline]
    fn hash_parts(&self, key: &mut KeyHasher) -> Result<bool, MissingKey> {
        key.part(self)?;
        Ok(true)
    }
}

impl IntoKey<kind::Unit> for () {
    #[inline]
    fn write(&self, _key: &mut KeyWriter) {}

    #[inline]
    fn hash_parts(&self, _key: &mut KeyHasher) -> Result<bool, MissingKey> {
        Ok(false)
    }
}

macro_rules! tuples {
    ($($($part:ident)*;)*) => {$(
        impl<$($part: Display),*> IntoKey<kind::Tuple> for ($($part,)*) {
            #[inline]
            fn write(&self, key: &mut KeyWriter) {
                #[expect(non_snake_case, reason = "each part is named after its type")]
                let ($($part,)*) = self;
                $(key.part($part);)*
            }

            #[inline]
            fn hash_parts(&self, key: &mut KeyHasher) -> Result<bool, MissingKey> {
                #[expect(non_snake_case, reason = "each part is named after its type")]
                let ($($part,)*) = self;
                $(key.part($part)?;)*
                Ok(true)
            }
        }
    )*};
}
tuples!(A; A B; A B C; A B C D;);

/// Markers for the implementations, which would otherwise overlap for the compiler.
pub(crate) mod kind {
    #[derive(Debug)]
    pub enum Part {}
    #[derive(Debug)]
    pub struct Optional<M>(std::marker::PhantomData<M>);
    #[derive(Debug)]
    pub enum Unit {}
    #[derive(Debug)]
    pub enum Tuple {}
}

/// A part of a key: anything that is `Display`, or an `Option` of it, where `None` is a [`MissingKey`].
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a key",
    label = "this cannot be written into a key",
    note = "a part of a key is anything that is `Display`, or an `Option` of it; use a field that is, like `<user.id>`"
)]
pub trait KeyPart<M> {
    fn write(&self, key: &mut KeyWriter) -> Result<(), MissingKey>;
    fn add_to(&self, key: &mut KeyHasher) -> Result<(), MissingKey>;
}

impl<T: Display + ?Sized> KeyPart<kind::Part> for T {
    #[inline]
    fn write(&self, key: &mut KeyWriter) -> Result<(), MissingKey> {
        key.part(self);
        Ok(())
    }

    #[inline]
    fn add_to(&self, key: &mut KeyHasher) -> Result<(), MissingKey> {
        key.part(self)
    }
}

// Of options and references to them, however deep: a destructured argument is borrowed during the decision.
#[diagnostic::do_not_recommend]
impl<M, T: KeyPart<M>> KeyPart<kind::Optional<M>> for Option<T> {
    #[inline]
    fn write(&self, key: &mut KeyWriter) -> Result<(), MissingKey> {
        self.as_ref().ok_or(MissingKey::Part)?.write(key)
    }

    #[inline]
    fn add_to(&self, key: &mut KeyHasher) -> Result<(), MissingKey> {
        self.as_ref().ok_or(MissingKey::Part)?.add_to(key)
    }
}

#[diagnostic::do_not_recommend]
impl<M, T: KeyPart<kind::Optional<M>>> KeyPart<kind::Optional<M>> for &T {
    #[inline]
    fn write(&self, key: &mut KeyWriter) -> Result<(), MissingKey> {
        (*self).write(key)
    }

    #[inline]
    fn add_to(&self, key: &mut KeyHasher) -> Result<(), MissingKey> {
        (*self).add_to(key)
    }
}

/// The name of a state in a store, and the policy whose state it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub(crate) Repr, pub(crate) PolicyId);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Repr {
    /// For a memory store, which never builds the text.
    Hash(Fingerprint),
    /// For Redis.
    Text(String),
}

impl Key {
    /// Creates a key of exactly this text, for tests of the stores.
    #[must_use]
    pub fn raw(text: impl Into<String>) -> Self {
        Key(Repr::Text(text.into()), PolicyId::default())
    }

    /// The key of a state of this policy in process.
    pub(crate) fn hashed(fingerprint: Fingerprint, policy: PolicyId) -> Self {
        Key(Repr::Hash(fingerprint), policy)
    }

    /// Returns the key of a state of this policy.
    #[must_use]
    pub fn of(self, policy: PolicyId) -> Self {
        Key(self.0, policy)
    }
}

/// The form of a store's keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyForm {
    Hash,
    Text,
}

/// Collects the parts of a key in the form of its store.
#[derive(Debug)]
pub struct KeyWriter {
    sink: Sink,
    parts: usize,
    failed: bool,
}

#[derive(Debug)]
enum Sink {
    Hash { hasher: KeyHasher, without_parts: Fingerprint },
    Text(PartsText),
}

impl KeyWriter {
    /// Creates a writer of a key in this form, with no parts. Only a hash needs the head before the parts.
    #[inline]
    pub(crate) fn new(form: KeyForm, head: impl FnOnce() -> KeyHead) -> Self {
        let sink = match form {
            KeyForm::Hash => {
                let head = head();
                Sink::Hash { hasher: head.hasher(), without_parts: head.without_parts() }
            }
            KeyForm::Text => Sink::Text(PartsText::default()),
        };
        KeyWriter { sink, parts: 0, failed: false }
    }

    /// Adds a part.
    #[inline]
    pub(crate) fn part<T: Display + ?Sized>(&mut self, part: &T) {
        let written = match &mut self.sink {
            Sink::Hash { hasher, .. } => hasher.part(part),
            Sink::Text(text) => text.part(&part).map_err(|_| MissingKey::Part),
        };
        self.failed |= written.is_err();
        self.parts += 1;
    }

    /// Returns whether the key's hash tag is a name instead of its parts, which puts all such keys into one Cluster slot.
    pub(crate) fn is_tied(&self, head: &Head<'_>) -> bool {
        head.tag(self.parts).is_some()
    }

    /// Returns the key, or an error if a part could not be formatted. The head is that of the writer.
    #[inline]
    pub(crate) fn finish(self, head: &Head<'_>) -> Result<Key, MissingKey> {
        if self.failed {
            return Err(MissingKey::Part);
        }
        let repr = match self.sink {
            Sink::Hash { without_parts, .. } if self.parts == 0 => Repr::Hash(without_parts),
            Sink::Hash { hasher, .. } => Repr::Hash(hasher.finish()),
            Sink::Text(parts) => Repr::Text(parts.key(head).map_err(|_| MissingKey::Part)?),
        };
        Ok(Key(repr, PolicyId::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;

    /// Prefix, name, shape and function.
    type Pieces = (&'static str, &'static str, &'static str, Option<&'static str>);

    const PIECES: Pieces = ("sms", "app::send", "fw1-60000000", None);

    fn key<M>(form: KeyForm, parts: impl IntoKey<M>) -> Key {
        key_of(form, PIECES, parts)
    }

    fn key_of<M>(form: KeyForm, pieces: Pieces, parts: impl IntoKey<M>) -> Key {
        let (prefix, name, shape, function) = pieces;
        let mut writer = KeyWriter::new(form, || KeyHead::new(prefix, name, &shape, function));
        parts.write(&mut writer);
        let name = &Name::Static(name);
        let function = function.as_ref().map(|function| function as &dyn Display);
        writer.finish(&Head { namespace: "rl", prefix, name, shape: &shape, function }).unwrap()
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
        assert_eq!(text(("u1", 7)), "rl:sms:app/send:fw1-60000000:{f354376d8540891c}:u1:7");
    }

    #[test]
    fn hostile_parts_do_not_collide() {
        let long = "x".repeat(1 << 20);
        let longer = format!("{long}x");
        let parts = [
            "", ":", "::", "{", "}", "{}", "\0", "\n", "\r\n", "%", "%3A", "a:b", "a", "b", "~", "é",
            "\u{85}", "/", " ", "\u{ff}", &long, &longer,
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
}
