//! Messages on standard error.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Writes a line to standard error, if anyone reads it: what is wrong, and what a table does not say, so that the table can be
/// processed.
pub(crate) fn write_message(message: impl Display) {
    _ = writeln!(stderr(), "{message}");
}
