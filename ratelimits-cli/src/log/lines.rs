//! The lines of a log.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};
use std::mem;

/// How many bytes of a line are read.
const LONGEST: u64 = 1 << 20;

/// Reads lines one by one.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    log: R,
    line: Vec<u8>,
    number: u64,
    bytes: u64,
    is_first: bool,
}

/// A line that is not blank.
#[derive(Debug)]
pub(crate) struct Line<'l> {
    /// From 1.
    pub(crate) number: u64,
    /// The text without the spaces around it. What is no UTF-8 is replaced.
    pub(crate) text: Cow<'l, str>,
    /// Whether no other comes before it.
    pub(crate) is_first: bool,
    /// Whether something was replaced.
    pub(crate) is_mended: bool,
    /// Whether the line is so long that its end is missing.
    pub(crate) is_cut: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(log: R) -> Self {
        Lines { log, line: Vec::new(), number: 0, bytes: 0, is_first: true }
    }

    /// Returns the next line, unless the log is over.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut is_cut;
        loop {
            self.line.clear();
            if self.log.by_ref().take(LONGEST).read_until(b'\n', &mut self.line)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.bytes += self.line.len() as u64;
            is_cut = self.line.len() as u64 == LONGEST && self.line.last() != Some(&b'\n');
            if is_cut {
                self.log.skip_until(b'\n')?;
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let is_first = mem::take(&mut self.is_first);
        let (text, is_mended) = match String::from_utf8_lossy(&self.line) {
            Cow::Borrowed(text) => (Cow::Borrowed(text.trim()), false),
            Cow::Owned(text) => (Cow::Owned(text.trim().to_owned()), true),
        };
        Ok(Some(Line { number: self.number, text, is_first, is_mended, is_cut }))
    }

    /// Returns how many bytes have been read of lines so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
