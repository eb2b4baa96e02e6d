//! The logs of calls that were admitted.
//!
//! A call is decided between its start and its end, by the clock that a server on the same machine reads, too. Its time in the log is the
//! middle, so the clock's error of a log is half of its slowest call.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// An admitted call, which is a line of a log. Times are in nanoseconds.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Admission {
    /// The middle of the call, since the Unix epoch. Of one that holds a permit: when it surely held it already.
    pub(crate) time: u64,
    /// How long it took, and so how well its time is known: 0 of one that holds a permit.
    pub(crate) took: u64,
    /// For how many seconds it surely held its permit from that time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<String>,
    pub(crate) key: String,
    /// The algorithm. The logs of peers do not have these.
    #[serde(default)]
    pub(crate) limit: String,
    /// Where it was decided.
    #[serde(default)]
    pub(crate) by: String,
    /// The number of the process.
    #[serde(default)]
    pub(crate) process: u64,
}

/// Returns the time since the Unix epoch in nanoseconds.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Returns the middle of a call, and how long it took.
pub(crate) fn middle(start: u64, end: u64) -> (u64, u64) {
    let took = end.saturating_sub(start);
    (start + took / 2, took)
}

/// Returns the clock's error of calls of which the slowest took this long, in whole milliseconds.
pub(crate) fn clock_error(slowest: u64) -> Duration {
    Duration::from_millis(slowest.div_ceil(2).div_ceil(1_000_000))
}

/// Reads the logs of several processes, sorted by time. The last line of a process that was killed may be torn, and does not count.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Admission>, String> {
    let mut admissions = Vec::new();
    for path in paths {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let admission = serde_json::from_str(line);
            admissions.push(admission.map_err(|error| format!("{}: {error}: {line}", path.display()))?);
        }
    }
    admissions.sort_by_key(|admission: &Admission| admission.time);
    Ok(admissions)
}

/// Writes a log.
pub(crate) fn write<'a>(path: &Path, admissions: impl Iterator<Item = &'a Admission>) -> io::Result<()> {
    let mut file = BufWriter::new(fs::File::create(path)?);
    for admission in admissions {
        serde_json::to_writer(&mut file, admission)?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_error_covers_the_whole_call() {
        let (time, took) = middle(1_000_000, 4_000_001);
        let error = clock_error(took).as_nanos() as u64;
        assert_eq!((time, took, error), (2_500_000, 3_000_001, 2_000_000));
        assert!(time - error <= 1_000_000 && time + error >= 4_000_001);
    }

    #[test]
    fn logs_are_merged_by_time_without_a_torn_line() {
        let line = |time| {
            let text = format!(
                "{{\"time\":{time},\"took\":5,\"key\":\"a\",\"limit\":\"log\",\"by\":\"redis\",\"process\":0}}"
            );
            text + "\n"
        };
        let dir = std::env::temp_dir();
        let paths = ["a", "b"].map(|name| dir.join(format!("over-admission-{}-{name}", std::process::id())));
        fs::write(&paths[0], line(7) + &line(9) + &line(11)[..20]).unwrap();
        fs::write(&paths[1], line(8)).unwrap();
        let read = read(&paths).unwrap();
        assert_eq!(read.iter().map(|admission| admission.time).collect::<Vec<_>>(), [7, 8, 9]);
        paths.iter().for_each(|path| fs::remove_file(path).unwrap());
    }
}
