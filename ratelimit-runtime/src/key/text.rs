//! The text of a key in Redis.

use std::fmt::{self, Display, Write};

use sha2::{Digest, Sha256};

use super::head::Head;

/// The maximum length of encoded parts in a key. Longer ones are replaced by their digest.
const MAX_PARTS_LEN: usize = 200;

/// The encoded parts of a key. If they are too long, they are hashed as they come, and no more than the maximum is kept.
#[derive(Debug, Default)]
pub(super) struct PartsText {
    count: usize,
    /// All of the text, or the end of it that is not hashed yet.
    text: String,
    /// The digest of everything before `text`, if the whole is too long.
    long: Option<Box<Sha256>>,
}

impl PartsText {
    /// Adds a part.
    pub(super) fn part(&mut self, part: &dyn Display) -> fmt::Result {
        if self.count > 0 {
            self.write_char(':')?;
        }
        self.count += 1;
        write!(Escaped { out: self, path: false }, "{part}")
    }

    /// Returns the text of the key.
    pub(super) fn key(self, head: &Head<'_>) -> Result<String, fmt::Error> {
        let PartsText { count, text, long } = self;
        let mut key = String::with_capacity(96 + text.len());
        for piece in [&head.namespace as &dyn Display, &head.prefix, head.name] {
            write!(Escaped { out: &mut key, path: true }, "{piece}")?;
            key.push(':');
        }
        write!(key, "{}:{{", head.shape)?;
        let is_long = long.is_some();
        let tag = head.tag(count);
        // The same in every process, and callers cannot choose it.
        let digest = (tag.is_none() || is_long).then(|| {
            let before = long.map_or_else(Sha256::new, |long| *long);
            before.chain_update(&text).finalize()
        });
        let digest = digest.as_deref().unwrap_or_default();
        match tag {
            Some(tag) => write!(Escaped { out: &mut key, path: true }, "{tag}")?,
            None => push_hex(&mut key, &digest[..8]),
        }
        key.push('}');
        if count > 0 {
            key.push(':');
            if is_long {
                key.push('~');
                push_hex(&mut key, &digest[..16]);
            } else {
                key.push_str(&text);
            }
        }
        Ok(key)
    }
}

impl Write for PartsText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len() + text.len() > MAX_PARTS_LEN {
            let long = self.long.get_or_insert_default();
            long.update(&self.text);
            self.text.clear();
            if text.len() > MAX_PARTS_LEN {
                long.update(text);
                return Ok(());
            }
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// Escapes control characters and those with a meaning in a key. In a path, `::` becomes `/` to keep names readable.
struct Escaped<'a, W> {
    out: &'a mut W,
    path: bool,
}

impl<W: Write> Write for Escaped<'_, W> {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        while !text.is_empty() {
            let (plain, rest) = text.split_at(self.plain_len(text.as_bytes()));
            self.out.write_str(plain)?;
            text = self.write_special(rest)?;
        }
        Ok(())
    }
}

impl<W: Write> Escaped<'_, W> {
    /// Returns the length of the text before the first special character.
    fn plain_len(&self, text: &[u8]) -> usize {
        let mut at = 0;
        while let Some(plain) = text[at..].iter().position(|byte| MAY_BE_SPECIAL[usize::from(*byte)]) {
            at += plain;
            if self.special_len(&text[at..]) > 0 {
                return at;
            }
            at += 1;
        }
        text.len()
    }

    /// Returns the length of the special character that the text starts with, or 0 if it starts with another.
    fn special_len(&self, text: &[u8]) -> usize {
        match text {
            [b'/', ..] => usize::from(self.path),
            // The control characters above ASCII.
            [0xc2, 0x80..=0x9f, ..] => 2,
            [0xc2, ..] | [] => 0,
            [byte, ..] => usize::from(MAY_BE_SPECIAL[usize::from(*byte)]),
        }
    }

    /// Writes the special characters that the text starts with, many at a time, and returns what follows.
    fn write_special<'t>(&mut self, text: &'t str) -> Result<&'t str, fmt::Error> {
        let (mut escaped, mut len) = ([0; 96], 0);
        let (bytes, mut at) = (text.as_bytes(), 0);
        while len + 6 <= escaped.len() {
            if self.path && bytes[at..].starts_with(b"::") {
                escaped[len] = b'/';
                len += 1;
                at += 2;
                continue;
            }
            let special_len = self.special_len(&bytes[at..]);
            if special_len == 0 {
                break;
            }
            for byte in &bytes[at..at + special_len] {
                let [high, low] = hex(*byte, b"0123456789ABCDEF");
                escaped[len..len + 3].copy_from_slice(&[b'%', high, low]);
                len += 3;
            }
            at += special_len;
        }
        self.out.write_str(std::str::from_utf8(&escaped[..len]).map_err(|_| fmt::Error)?)?;
        Ok(&text[at..])
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

fn push_hex(key: &mut String, bytes: &[u8]) {
    key.extend(bytes.iter().flat_map(|byte| hex(*byte, b"0123456789abcdef")).map(char::from));
}

fn hex(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [byte >> 4, byte & 0xf].map(|digit| digits[usize::from(digit)])
}

#[cfg(test)]
mod properties;
