//! Standard output, which may end before the command does.

use std::io::{self, Write, stdout};

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
