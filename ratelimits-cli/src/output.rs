//! Standard output and standard error, which may end before the command does.

use std::fmt::Display;
use std::io::{self, Write, stderr, stdout};

use serde::Serialize;

use crate::failure::Failure;

/// Writes a text.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes a value as one line of JSON.
pub(crate) fn write_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(io::Error::from)?;
    write(&(text + "\n"))
}

/// Writes a line to standard error, if anyone reads it: what is wrong, and what a table does not say, so that the table can be
/// processed.
pub(crate) fn write_message(message: impl Display) {
    _ = writeln!(stderr(), "{message}");
}
