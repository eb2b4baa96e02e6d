//! The parts of keys as their callers gave them, for whoever wants their text: Redis, observers and refusals.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

use smallvec::SmallVec;

use super::hash::KeyHasher;
use super::plain::{Integer, Plain};
use crate::key::missing_key::MissingKey;

/// Parts of keys, one after the other. An integer is not formatted before somebody reads it, and most keys need no allocation.
/// Parts of the same texts are the same bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyParts(SmallVec<[u8; 32]>);

/// Some of the parts in a [`KeyParts`]: those of one key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PartsOfKey<'a>(pub(super) &'a [u8]);

/// Where the parts of a key go: into its hash, and if their text may be wanted, into a list.
pub struct KeySink<'a> {
    pub(super) hasher: &'a mut KeyHasher,
    pub(super) kept: Option<&'a mut KeyParts>,
}

/// The first byte of a part: the next eight bytes are an integer, or the number of bytes of a text is in the next byte, or in the
/// next eight.
const NATURAL: u8 = 0;
const NEGATIVE: u8 = 1;
const TEXT: u8 = 2;
const LONG_TEXT: u8 = 3;

impl KeySink<'_> {
    /// Adds a part. Integers and texts are not formatted, and others once: they may be another text the next time.
    #[inline(always)]
    pub(crate) fn part<T: Display + ?Sized>(&mut self, part: &T) -> Result<(), MissingKey> {
        match Plain::of(part) {
            Some(plain) => self.plain(plain.canonical()),
            None => return self.formatted(&part),
        }
        Ok(())
    }

    /// Adds parts that were kept.
    pub(crate) fn parts(&mut self, parts: PartsOfKey<'_>) {
        parts.iter().for_each(|part| self.plain(part));
    }

    #[inline(always)]
    fn plain(&mut self, part: Plain<'_>) {
        self.hasher.plain(part);
        if let Some(kept) = &mut self.kept {
            kept.push(part);
        }
    }

    #[inline(never)]
    fn formatted(&mut self, part: &dyn Display) -> Result<(), MissingKey> {
        let mut text = Formatted::default();
        write!(text, "{part}").map_err(|_| MissingKey::Part)?;
        let text = std::str::from_utf8(&text.0).map_err(|_| MissingKey::Part)?;
        self.plain(Plain::Text(text).canonical());
        Ok(())
    }
}

impl KeyParts {
    /// Whether they have allocated memory.
    #[inline]
    pub(crate) fn own_memory(&self) -> bool {
        self.0.spilled()
    }

    /// Adds a part.
    #[inline(never)]
    pub(super) fn push(&mut self, part: Plain<'_>) {
        match part {
            Plain::Integer(Integer::Natural(natural)) => self.push_number(NATURAL, natural),
            Plain::Integer(Integer::Negative(negative)) => self.push_number(NEGATIVE, negative as u64),
            Plain::Text(text) => {
                match u8::try_from(text.len()) {
                    Ok(len) => self.0.extend_from_slice(&[TEXT, len]),
                    Err(_) => self.push_number(LONG_TEXT, text.len() as u64),
                }
                self.0.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Returns the parts with these texts.
    #[cfg(feature = "overrides")]
    pub(crate) fn of_texts(texts: &[String]) -> Self {
        let mut parts = KeyParts::default();
        texts.iter().for_each(|text| parts.push(Plain::Text(text).canonical()));
        parts
    }

    /// Adds the parts of a key. Returns where they are.
    pub(crate) fn append(&mut self, parts: PartsOfKey<'_>) -> (u32, u32) {
        let from = self.end();
        self.0.extend_from_slice(parts.0);
        (from, self.end())
    }

    /// Returns all parts, as those of one key.
    pub(crate) fn all(&self) -> PartsOfKey<'_> {
        PartsOfKey(&self.0)
    }

    /// Returns the number of bytes, from which on the parts of the next key are.
    #[inline]
    pub(crate) fn end(&self) -> u32 {
        self.0.len() as u32
    }

    /// Returns the parts of the key whose bytes are these.
    #[inline]
    pub(crate) fn of_key(&self, from: u32, to: u32) -> PartsOfKey<'_> {
        PartsOfKey(self.0.get(from as usize..to as usize).unwrap_or_default())
    }

    #[inline]
    fn push_number(&mut self, tag: u8, number: u64) {
        let mut bytes = [tag; 9];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        self.0.extend_from_slice(&bytes);
    }
}

impl<'a> PartsOfKey<'a> {
    /// No parts.
    pub(crate) const NONE: PartsOfKey<'static> = PartsOfKey(&[]);

    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text of each part.
    pub(crate) fn texts(self) -> impl Iterator<Item = Cow<'a, str>> {
        self.iter().map(|part| match part {
            Plain::Integer(Integer::Natural(natural)) => natural.to_string().into(),
            Plain::Integer(Integer::Negative(negative)) => negative.to_string().into(),
            Plain::Text(text) => text.into(),
        })
    }

    /// Returns these parts in a list of their own.
    pub(crate) fn to_owned(self) -> KeyParts {
        KeyParts(SmallVec::from_slice(self.0))
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Plain<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (tag, after) = rest.split_first()?;
            let (number, after) = match *tag {
                TEXT => {
                    let (len, after) = after.split_first()?;
                    (u64::from(*len), after)
                }
                _ => {
                    let (number, after) = after.split_first_chunk()?;
                    (u64::from_le_bytes(*number), after)
                }
            };
            rest = after;
            Some(match *tag {
                NATURAL => Plain::Integer(Integer::Natural(number)),
                NEGATIVE => Plain::Integer(Integer::Negative(number as i64)),
                _ => {
                    let (text, after) = after.split_at_checked(number as usize)?;
                    rest = after;
                    // Only texts are pushed.
                    Plain::Text(std::str::from_utf8(text).ok()?)
                }
            })
        })
    }
}

/// Without the parts, which may be personal data.
impl fmt::Debug for KeyParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyParts").finish_non_exhaustive()
    }
}

impl fmt::Debug for PartsOfKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartsOfKey").finish_non_exhaustive()
    }
}

impl fmt::Debug for KeySink<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySink").finish_non_exhaustive()
    }
}

/// The text of one part, which mostly needs no allocation.
#[derive(Default)]
struct Formatted(SmallVec<[u8; 256]>);

impl Write for Formatted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::base::property_tests::config;

    fn part() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<i64>().prop_map(|integer| integer.to_string()),
            any::<String>(),
            ("[a-zé]{1,3}", 80..200_usize).prop_map(|(text, times)| text.repeat(times)),
        ]
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn parts_are_read_as_they_were_given(keys in vec(vec(part(), 0..4), 1..4)) {
            let (mut kept, mut ends) = (KeyParts::default(), vec![0]);
            for key in &keys {
                for part in key {
                    let (mut keeping, mut hashing) = (KeyHasher::new(), KeyHasher::new());
                    let mut sink = KeySink { hasher: &mut keeping, kept: Some(&mut kept) };
                    match part.parse::<i64>() {
                        Ok(integer) if integer.to_string() == *part => sink.part(&integer).unwrap(),
                        _ if part.len() % 2 == 0 => sink.part(part).unwrap(),
                        _ => sink.part(&format_args!("{part}")).unwrap(),
                    }
                    KeySink { hasher: &mut hashing, kept: None }.part(part).unwrap();
                    prop_assert_eq!(keeping.finish(), hashing.finish());
                }
                ends.push(kept.end());
            }
            for (key, ends) in keys.iter().zip(ends.windows(2)) {
                let parts = kept.of_key(ends[0], ends[1]);
                prop_assert_eq!(parts.is_empty(), key.is_empty());
                prop_assert_eq!(&parts.texts().collect::<Vec<_>>(), key);
                let own = parts.to_owned();
                prop_assert_eq!(&own.all().texts().collect::<Vec<_>>(), key);
            }
        }
    }
}
