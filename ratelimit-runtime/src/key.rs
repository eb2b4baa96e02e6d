//! Injective key encoding.

mod head;
mod text;

use std::fmt::{self, Display, Write};
use std::hash::{Hash, Hasher};

use siphasher::sip128::{Hasher128, SipHasher13};

pub(crate) use self::head::Head;
use self::text::PartsText;
use crate::error::missing_key::MissingKey;
use crate::policy_id::PolicyId;

/// Terminates each hashed piece. It does not occur in UTF-8.
const END: u8 = 0xff;

/// A key: anything that is `Display`, a tuple of up to four such parts, or `()` for a single counter per policy.
///
/// Different tuples are different keys: `("a:b", "c")` and `("a", "b:c")` never share a counter. A part whose `Display` fails
/// refuses the call with [`Error::MissingKey`](crate::Error::MissingKey). The compiler infers `M`.
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
}

impl<T: Display> IntoKey<kind::Part> for T {
    fn write(&self, key: &mut KeyWriter) {
        key.part(self);
    }
}

impl IntoKey<kind::Unit> for () {
    fn write(&self, _key: &mut KeyWriter) {}
}

macro_rules! tuples {
    ($($($part:ident)*;)*) => {$(
        impl<$($part: Display),*> IntoKey<kind::Tuple> for ($($part,)*) {
            fn write(&self, key: &mut KeyWriter) {
                #[expect(non_snake_case, reason = "each part is named after its type")]
                let ($($part,)*) = self;
                $(key.part($part);)*
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
}

impl<T: Display + ?Sized> KeyPart<kind::Part> for T {
    fn write(&self, key: &mut KeyWriter) -> Result<(), MissingKey> {
        key.part(&self);
        Ok(())
    }
}

// Of options and references to them, however deep: a destructured argument is borrowed during the decision.
#[diagnostic::do_not_recommend]
impl<M, T: KeyPart<M>> KeyPart<kind::Optional<M>> for Option<T> {
    fn write(&self, key: &mut KeyWriter) -> Result<(), MissingKey> {
        self.as_ref().ok_or(MissingKey::Part)?.write(key)
    }
}

#[diagnostic::do_not_recommend]
impl<M, T: KeyPart<kind::Optional<M>>> KeyPart<kind::Optional<M>> for &T {
    fn write(&self, key: &mut KeyWriter) -> Result<(), MissingKey> {
        (*self).write(key)
    }
}

/// The name of a state in a store, and the policy whose state it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub(crate) Repr, pub(crate) PolicyId);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Repr {
    /// For a memory store, which hashes the pieces with a random key and never builds the text.
    Hash(Fingerprint),
    /// For Redis.
    Text(String),
}

/// A keyed hash that stands for a key. Two words, because a `u128` would have to be aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(pub(crate) [u64; 2]);

impl Fingerprint {
    pub(crate) fn finish(hasher: &SipHasher13) -> Self {
        let hash = hasher.finish128();
        Fingerprint([hash.h1, hash.h2])
    }
}

impl Hash for Fingerprint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0[0]);
    }
}

impl Key {
    /// Creates a key of exactly this text, for tests of the stores.
    #[must_use]
    pub fn raw(text: impl Into<String>) -> Self {
        Key(Repr::Text(text.into()), PolicyId::default())
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
    Hash { seed: (u64, u64) },
    Text,
}

/// Collects the parts of a key in the form of its store.
#[derive(Debug)]
pub struct KeyWriter {
    form: Sink,
    parts: usize,
    failed: bool,
}

#[derive(Debug)]
enum Sink {
    Hash(SipHasher13),
    Text(PartsText),
}

impl KeyWriter {
    pub(crate) fn new(form: KeyForm) -> Self {
        let form = match form {
            KeyForm::Hash { seed } => Sink::Hash(SipHasher13::new_with_keys(seed.0, seed.1)),
            KeyForm::Text => Sink::Text(PartsText::default()),
        };
        KeyWriter { form, parts: 0, failed: false }
    }

    /// Adds a part.
    pub(crate) fn part(&mut self, part: &dyn Display) {
        let written = match &mut self.form {
            Sink::Hash(hasher) => {
                let written = write!(Bytes(hasher), "{part}");
                hasher.write_u8(END);
                written
            }
            Sink::Text(text) => text.part(part),
        };
        self.failed |= written.is_err();
        self.parts += 1;
    }

    /// Returns whether the key's hash tag is a name instead of its parts, which puts all such keys into one Cluster slot.
    pub(crate) fn is_tied(&self, head: &Head<'_>) -> bool {
        head.tag(self.parts).is_some()
    }

    /// Returns the key, or an error if a part could not be formatted.
    pub(crate) fn finish(self, head: &Head<'_>) -> Result<Key, MissingKey> {
        let repr = match self.form {
            Sink::Hash(hasher) => hash(hasher, self.parts, head).map(Repr::Hash),
            Sink::Text(parts) => parts.key(head).map(Repr::Text),
        };
        match repr {
            Ok(repr) if !self.failed => Ok(Key(repr, PolicyId::default())),
            _ => Err(MissingKey::Part),
        }
    }
}

fn hash(mut hasher: SipHasher13, parts: usize, head: &Head<'_>) -> Result<Fingerprint, fmt::Error> {
    // Ends the parts, whose number varies.
    hasher.write_u8(END);
    let tag = head.tag(parts).unwrap_or(&"");
    for piece in [&head.namespace as &dyn Display, &head.prefix, head.name, head.shape, tag] {
        write!(Bytes(&mut hasher), "{piece}")?;
        hasher.write_u8(END);
    }
    Ok(Fingerprint::finish(&hasher))
}

struct Bytes<'a>(&'a mut SipHasher13);

impl Write for Bytes<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;

    fn key<M>(form: KeyForm, parts: impl IntoKey<M>) -> Key {
        let mut writer = KeyWriter::new(form);
        parts.write(&mut writer);
        let name = &Name::Static("app::send");
        writer
            .finish(&Head { namespace: "rl", prefix: "sms", name, shape: &"fw1-60000000", function: None })
            .unwrap()
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
        for form in [KeyForm::Text, KeyForm::Hash { seed: (1, 2) }] {
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
}
