//! Injective key encoding.

mod address;
mod downcast;
mod hash;
pub(crate) mod missing_key;
pub(crate) mod name;
mod parts;
mod plain;
pub(crate) mod policy_id;
mod sip;
mod text;

use std::fmt::Display;
use std::sync::OnceLock;

pub(crate) use self::address::AddressText;
pub(crate) use self::hash::{Fingerprint, Head, KeyHasher, KeyHead};
#[expect(unreachable_pub, reason = "hidden methods of public traits name it")]
pub use self::parts::KeySink;
pub(crate) use self::parts::{KeyParts, PartsOfKey};
pub(crate) use self::text::{NamespaceText, TextHead};
use crate::key::missing_key::MissingKey;
use crate::key::policy_id::PolicyId;

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
/// messages.try_acquire(()).await?; // one counter for all
/// messages.try_acquire(7).await?; // one per user
/// messages.try_acquire((7, "lobby")).await?; // one per user and room
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "not a key",
    note = "a key is anything that is `Display`, a tuple of such parts, or `()`"
)]
pub trait IntoKey<M> {
    /// Adds the parts of the key. Returns whether there are any, or an error if one could not be formatted.
    #[doc(hidden)]
    fn add_to(&self, key: &mut KeySink<'_>) -> Result<bool, MissingKey>;
}

impl<T: Display> IntoKey<kind::Part> for T {
    #[inline(always)]
    fn add_to(&self, key: &mut KeySink<'_>) -> Result<bool, MissingKey> {
        key.part(self)?;
        Ok(true)
    }
}

impl IntoKey<kind::Unit> for () {
    #[inline]
    fn add_to(&self, _key: &mut KeySink<'_>) -> Result<bool, MissingKey> {
        Ok(false)
    }
}

macro_rules! tuples {
    ($($($part:ident)*;)*) => {$(
        impl<$($part: Display),*> IntoKey<kind::Tuple> for ($($part,)*) {
            #[inline]
            fn add_to(&self, key: &mut KeySink<'_>) -> Result<bool, MissingKey> {
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
    fn add_to(&self, key: &mut KeySink<'_>) -> Result<(), MissingKey>;
}

impl<T: Display + ?Sized> KeyPart<kind::Part> for T {
    #[inline(always)]
    fn add_to(&self, key: &mut KeySink<'_>) -> Result<(), MissingKey> {
        key.part(self)
    }
}

// Of options and references to them, however deep: a destructured argument is borrowed during the decision.
#[diagnostic::do_not_recommend]
impl<M, T: KeyPart<M>> KeyPart<kind::Optional<M>> for Option<T> {
    #[inline]
    fn add_to(&self, key: &mut KeySink<'_>) -> Result<(), MissingKey> {
        self.as_ref().ok_or(MissingKey::Part)?.add_to(key)
    }
}

#[diagnostic::do_not_recommend]
impl<M, T: KeyPart<kind::Optional<M>>> KeyPart<kind::Optional<M>> for &T {
    #[inline]
    fn add_to(&self, key: &mut KeySink<'_>) -> Result<(), MissingKey> {
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
    /// Starts the hash of a key with this head.
    #[inline]
    pub(crate) fn open(&self) -> OpenKey {
        OpenKey { hasher: self.hasher(), has_parts: false }
    }

    /// Returns the hash of a key with this head, whose parts are kept as well if there is a list for them.
    #[inline(always)]
    pub(crate) fn fingerprint<M>(
        &self,
        key: &impl IntoKey<M>,
        kept: Option<&mut KeyParts>,
    ) -> Result<Fingerprint, MissingKey> {
        let mut open = self.open();
        open.key(key, kept)?;
        Ok(open.finish().unwrap_or(self.without_parts()))
    }
}

impl KeyHead {
    /// Returns the hash of the key with this head and these parts.
    pub(crate) fn of_parts(&self, parts: PartsOfKey<'_>) -> Fingerprint {
        let mut open = self.open();
        open.parts(parts, None);
        open.finish().unwrap_or(self.without_parts())
    }
}

#[cfg(any(test, feature = "test-util"))]
impl KeyParts {
    /// Returns the parts of a key.
    pub(crate) fn of<M>(key: &impl IntoKey<M>) -> Result<Self, MissingKey> {
        let (mut hasher, mut kept) = (KeyHasher::new(), KeyParts::default());
        key.add_to(&mut KeySink { hasher: &mut hasher, kept: Some(&mut kept) })?;
        Ok(kept)
    }
}

/// The hash of a key that may get further parts. They are kept as well, if there is a list for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenKey {
    hasher: KeyHasher,
    has_parts: bool,
}

impl OpenKey {
    /// Adds a part.
    #[inline(always)]
    pub(crate) fn part<M, T: KeyPart<M> + ?Sized>(
        &mut self,
        part: &T,
        kept: Option<&mut KeyParts>,
    ) -> Result<(), MissingKey> {
        self.has_parts = true;
        part.add_to(&mut KeySink { hasher: &mut self.hasher, kept })
    }

    /// Adds the parts of a whole key.
    #[inline(always)]
    pub(crate) fn key<M>(
        &mut self,
        key: &impl IntoKey<M>,
        kept: Option<&mut KeyParts>,
    ) -> Result<(), MissingKey> {
        self.has_parts = key.add_to(&mut KeySink { hasher: &mut self.hasher, kept })?;
        Ok(())
    }

    /// Adds the parts of a whole key that were kept.
    pub(crate) fn parts(&mut self, parts: PartsOfKey<'_>, kept: Option<&mut KeyParts>) {
        self.has_parts = !parts.is_empty();
        KeySink { hasher: &mut self.hasher, kept }.parts(parts);
    }

    /// Returns the hash, if the key has any parts.
    #[inline]
    pub(crate) fn finish(&self) -> Option<Fingerprint> {
        self.has_parts.then(|| self.hasher.finish())
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

impl Key {
    /// The key of a state of this policy in Redis: its text, and the hash that stands for it in process.
    pub(crate) fn text(
        namespace: &NamespaceText,
        head: &TextHead,
        parts: PartsOfKey<'_>,
        fingerprint: Fingerprint,
        policy: PolicyId,
    ) -> Self {
        Key(Repr::Text(head.key(namespace, parts), fingerprint), policy)
    }
}

#[cfg(test)]
mod tests;
