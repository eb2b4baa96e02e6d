//! Files of overrides.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use crate::decide::overrides::MAX_SIZE;

/// A file that has changed less long ago may still be written.
const SETTLED: Duration = Duration::from_millis(500);

/// Reads a file, if it has not changed for a moment. Otherwise returns how long from now that is the case at the earliest.
pub(super) fn read_settled(path: &Path) -> io::Result<Result<String, Duration>> {
    // A pipe would block.
    let before = fs::metadata(path)?;
    if !before.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    File::open(path)?.take(MAX_SIZE as u64 + 1).read_to_string(&mut text)?;
    if text.len() > MAX_SIZE {
        return Err(io::Error::other("it is larger than 4 MiB"));
    }
    // A time in the future tells nothing. It is the time of another machine, or the clock has been set back.
    let age = fs::metadata(path)?.modified()?.elapsed().unwrap_or(SETTLED);
    match SETTLED.checked_sub(age).filter(|rest| !rest.is_zero()) {
        Some(rest) => Ok(Err(rest)),
        // A file is empty before it is written, too.
        None if text.trim().is_empty() => {
            Err(io::Error::other("it is empty; write a comment like `# none` into it to end all overrides"))
        }
        None => Ok(Ok(text)),
    }
}
