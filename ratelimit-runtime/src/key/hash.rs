//! The hash that is a key in process.

use std::fmt::{self, Display};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use super::plain::{Integer, Plain};
use super::sip::Sip;

/// What the keys of a policy begin with, except for the namespace.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) name: &'a str,
    /// The algorithm and the numbers that shape its state.
    pub(crate) shape: &'a dyn Display,
    /// The function whose name is the tag, if the decision also has other keys. Otherwise the tag is the digest of the parts, or
    /// the name if there are no parts.
    pub(crate) function: Option<&'a str>,
}

/// A keyed hash that stands for a key. Two fields, because they are passed and copied as words: a list of them would be read together
/// right after it was written word by word, which is slow, and a `u128` would have to be aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fingerprint(pub(crate) u64, pub(crate) u64);

#[cfg(feature = "overrides")]
impl Fingerprint {
    #[inline]
    pub(crate) fn words(self) -> [u64; 2] {
        [self.0, self.1]
    }
}

impl Hash for Fingerprint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// What the keys of a policy begin with, hashed once. The namespace is left out: a store in process has only one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyHead {
    hasher: KeyHasher,
    without_parts: Fingerprint,
}

impl KeyHead {
    pub(crate) fn new(head: Head<'_>) -> Self {
        let Head { prefix, name, shape, function } = head;
        let mut hasher = KeyHasher::new();
        hasher.text(prefix);
        hasher.text(name);
        hasher.text(&shape.to_string());
        // As in the text of a key, the tag is the function, or without one the digest of the parts, or the name.
        let tagged = |tag| {
            let mut hasher = hasher;
            hasher.text(tag);
            hasher
        };
        let without_parts = tagged(function.unwrap_or(name)).finish();
        KeyHead { hasher: tagged(function.unwrap_or_default()), without_parts }
    }

    /// Returns a hasher for the parts of a key, at least one.
    #[inline]
    pub(crate) fn hasher(&self) -> KeyHasher {
        self.hasher
    }

    /// Returns the key without parts.
    #[inline]
    pub(crate) fn without_parts(&self) -> Fingerprint {
        self.without_parts
    }
}

/// Hashes the pieces of a key under a seed of the process.
///
/// Each piece is encoded in words of which no sequence begins another, so keys of different pieces consist of different words.
/// A piece with the text of an integer is that integer, so it does not matter how a part was written. The first byte of an
/// integer, and the one after a text, do not occur in UTF-8.
#[derive(Clone, Copy)]
pub(crate) struct KeyHasher(Sip);

const TEXT_END: u64 = 0xff;
/// An integer in the other 56 bits.
const SMALL: u64 = 0xfe;
/// An integer in the next word.
const NATURAL: u64 = 0xfd;
const NEGATIVE: u64 = 0xfc;

impl KeyHasher {
    pub(crate) fn new() -> Self {
        static START: LazyLock<Sip> = LazyLock::new(|| {
            // One state, hashed twice: std draws its randomness once a thread.
            let random = RandomState::new();
            Sip::new([random.hash_one(0), random.hash_one(1)])
        });
        KeyHasher(*START)
    }

    /// Adds an integer, or a text that is not that of an integer.
    #[inline(always)]
    pub(super) fn plain(&mut self, part: Plain<'_>) {
        match part {
            Plain::Integer(integer) => self.integer(integer),
            Plain::Text(text) => self.end_of_text(text.as_bytes()),
        }
    }

    #[inline]
    pub(crate) fn text(&mut self, text: &str) {
        self.plain(Plain::Text(text).canonical());
    }

    /// Returns the key of the pieces so far.
    #[inline]
    pub(crate) fn finish(self) -> Fingerprint {
        let [first, second] = self.0.finish();
        Fingerprint(first, second)
    }

    #[inline(always)]
    fn integer(&mut self, integer: Integer) {
        match integer {
            Integer::Natural(natural) if natural >> 56 == 0 => self.0.word(SMALL | natural << 8),
            Integer::Natural(natural) => {
                self.0.word(NATURAL);
                self.0.word(natural);
            }
            Integer::Negative(negative) => {
                self.0.word(NEGATIVE);
                self.0.word(negative as u64);
            }
        }
    }

    /// Adds the rest of a text, of which a multiple of 8 bytes was added.
    #[inline]
    fn end_of_text(&mut self, text: &[u8]) {
        let rest = self.0.words(text);
        self.0.word(rest | TEXT_END << (8 * (text.len() % 8)));
    }
}

/// Without the state, from which hashes could be predicted.
impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHasher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod properties;
