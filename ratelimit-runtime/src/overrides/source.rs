//! Files of overrides.

use std::path::Path;
use std::thread;
use std::time::Duration;
use std::{fs, io};

/// A file that has changed less long ago may still be written.
const SETTLED: Duration = Duration::from_millis(500);

/// How often a file that changes all the time is read.
const ATTEMPTS: usize = 4;

/// Reads a file once it has not changed for a moment, so that a file is not read while it is written.
pub(crate) fn read_settled(path: &Path) -> io::Result<String> {
    for _ in 0..ATTEMPTS {
        let text = fs::read_to_string(path)?;
        // A time in the future tells nothing. It is the time of another machine, or the clock has been set back.
        let age = fs::metadata(path)?.modified()?.elapsed().unwrap_or(SETTLED);
        let Some(rest) = SETTLED.checked_sub(age).filter(|rest| !rest.is_zero()) else { return Ok(text) };
        thread::sleep(rest);
    }
    Err(io::Error::other("changes all the time"))
}
