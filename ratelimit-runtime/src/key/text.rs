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
        let is_special = |char: char| {
            matches!(char, '%' | ':' | '{' | '}' | '~' | ' ')
                || char.is_control()
                || (self.path && char == '/')
        };
        while let Some((at, special)) = text.char_indices().find(|(_, char)| is_special(*char)) {
            self.out.write_str(&text[..at])?;
            text = &text[at..];
            if self.path && text.starts_with("::") {
                self.out.write_char('/')?;
                text = &text[2..];
            } else {
                let (special, rest) = text.split_at(special.len_utf8());
                for byte in special.bytes() {
                    let [high, low] = hex(byte).map(|digit| digit.to_ascii_uppercase());
                    self.out.write_str(std::str::from_utf8(&[b'%', high, low]).map_err(|_| fmt::Error)?)?;
                }
                text = rest;
            }
        }
        self.out.write_str(text)
    }
}

fn push_hex(key: &mut String, bytes: &[u8]) {
    key.extend(bytes.iter().flat_map(|byte| hex(*byte)).map(char::from));
}

fn hex(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 0xf].map(|digit| b"0123456789abcdef"[usize::from(digit)])
}

#[cfg(test)]
mod properties;
