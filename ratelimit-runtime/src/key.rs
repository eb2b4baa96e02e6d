//! Injective key encoding.

mod downcast;
mod hash;
mod head;
mod plain;
mod sip;
mod text;

use std::fmt::{Display, Write};
use std::sync::OnceLock;

pub(crate) use self::hash::{Fingerprint, KeyHasher, KeyHead};
pub(crate) use self::head::Head;
use self::text::KeyText;
pub(crate) use self::text::{NamespaceText, TextHead};
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub(crate) Repr, pub(crate) PolicyId);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Repr {
    /// For a memory store, which never builds the text.
    Hash(Fingerprint),
    /// For Redis, with the hash that stands for it in process.
    Text(String, Fingerprint),
}

impl Key {
    /// Creates a key of exactly this text, for tests of the stores.
    #[must_use]
    pub fn raw(text: impl Into<String>) -> Self {
        let (text, mut hasher) = (text.into(), KeyHasher::new());
        hasher.text(&text);
        Key(Repr::Text(text, hasher.finish()), PolicyId::default())
    }

    /// The key of a state of this policy in process.
    pub(crate) fn hashed(fingerprint: Fingerprint, policy: PolicyId) -> Self {
        Key(Repr::Hash(fingerprint), policy)
    }

    /// Returns the keyed hash that stands for the key in process.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        match &self.0 {
            Repr::Hash(fingerprint) | Repr::Text(_, fingerprint) => *fingerprint,
        }
    }

    /// Returns the key of a state of this policy.
    #[must_use]
    pub fn of(self, policy: PolicyId) -> Self {
        Key(self.0, policy)
    }
}

impl KeyHead {
    /// Returns the hash of a key with this head.
    #[inline(always)]
    pub(crate) fn fingerprint<M>(&self, key: &impl IntoKey<M>) -> Result<Fingerprint, MissingKey> {
        let mut hasher = self.hasher();
        let has_parts = key.hash_parts(&mut hasher)?;
        Ok(if has_parts { hasher.finish() } else { self.without_parts() })
    }
}

/// What the keys of a policy whose numbers never change begin with, made once in each form.
#[derive(Clone, Debug)]
pub(crate) struct KeyHeads {
    pub(crate) hash: KeyHead,
    /// Made for the first key that is sent to Redis.
    text: OnceLock<TextHead>,
}

impl KeyHeads {
    pub(crate) fn new(head: Head<'_>) -> Self {
        KeyHeads { hash: KeyHead::new(head), text: OnceLock::new() }
    }

    /// Returns the text of the head that these were made from.
    pub(crate) fn text(&self, head: Head<'_>) -> &TextHead {
        self.text.get_or_init(|| TextHead::new(head))
    }
}

/// The texts of the parts of a key, if they are kept for observers. A pointer, because mostly they are not.
pub(crate) type KeyTexts = Option<Box<Vec<String>>>;

/// Collects the parts of a key in the form of its store.
#[derive(Debug)]
pub struct KeyWriter {
    hasher: KeyHasher,
    without_parts: Fingerprint,
    /// If the key is one of Redis.
    text: Option<KeyText>,
    texts: KeyTexts,
    parts: usize,
    failed: bool,
}

impl KeyWriter {
    /// Starts a key of a memory store, with no parts.
    #[inline]
    pub(crate) fn hash(head: KeyHead) -> Self {
        Self::new(head, None)
    }

    /// Starts a key of Redis, with no parts. Both heads are of the same pieces.
    pub(crate) fn text(namespace: &NamespaceText, text: &TextHead, hash: KeyHead) -> Self {
        Self::new(hash, Some(KeyText::new(namespace, text)))
    }

    #[inline]
    fn new(head: KeyHead, text: Option<KeyText>) -> Self {
        let (hasher, without_parts) = (head.hasher(), head.without_parts());
        KeyWriter { hasher, without_parts, text, texts: None, parts: 0, failed: false }
    }

    /// Keeps the texts of the parts.
    pub(crate) fn with_texts(self) -> Self {
        KeyWriter { texts: Some(Box::default()), ..self }
    }

    /// Takes the texts of the parts, if they were kept.
    #[inline]
    pub(crate) fn take_texts(&mut self) -> KeyTexts {
        self.texts.take()
    }

    /// Adds a part.
    #[inline]
    pub(crate) fn part<T: Display + ?Sized>(&mut self, part: &T) {
        if self.texts.is_some() { self.kept_part(part) } else { self.write(part) }
    }

    /// Adds a part whose text is kept. It is formatted once, as it may be another text the next time.
    #[cold]
    fn kept_part<T: Display + ?Sized>(&mut self, part: &T) {
        let mut text = String::new();
        if write!(text, "{part}").is_err() {
            self.failed = true;
            return;
        }
        self.write(&text);
        self.texts.get_or_insert_default().push(text);
    }

    #[inline]
    fn write<T: Display + ?Sized>(&mut self, part: &T) {
        self.failed |= self.hasher.part(part).is_err();
        if let Some(text) = &mut self.text {
            self.failed |= text.part(part, self.parts == 0).is_err();
        }
        self.parts += 1;
    }

    /// Returns whether a name is the tag of the key instead of its parts, which puts all such keys into one Cluster slot.
    pub(crate) fn is_tied(&self) -> bool {
        self.parts == 0 || self.text.as_ref().is_some_and(KeyText::is_tied)
    }

    /// Returns the hash of the key, or an error if a part could not be formatted.
    #[inline]
    pub(crate) fn fingerprint(&self) -> Result<Fingerprint, MissingKey> {
        match self.parts {
            _ if self.failed => Err(MissingKey::Part),
            0 => Ok(self.without_parts),
            _ => Ok(self.hasher.finish()),
        }
    }

    /// Returns the key, or an error if a part could not be formatted.
    #[inline]
    pub(crate) fn finish(self) -> Result<Key, MissingKey> {
        let fingerprint = self.fingerprint()?;
        let repr = match self.text {
            None => Repr::Hash(fingerprint),
            Some(text) => {
                let text = String::from_utf8(text.finish(self.parts > 0));
                Repr::Text(text.map_err(|_| MissingKey::Part)?, fingerprint)
            }
        };
        Ok(Key(repr, PolicyId::default()))
    }
}

#[cfg(test)]
mod tests;
