//! The file or pipe that a log comes from.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, stdin};
use std::path::{Path, PathBuf};

use super::{Line, Lines};
use crate::failure::Failure;
use crate::progress::Progress;

const BUFFER: usize = 1 << 18;

/// Between how many lines the bar on the screen changes at most.
const SHOWN: u64 = 4_096;

/// Reads the lines of a log, and shows how many of its bytes are read, if it is a file.
pub(crate) struct Source {
    lines: Lines<Box<dyn BufRead>>,
    name: String,
    size: u64,
    shown: u64,
    progress: Progress,
}

impl Source {
    /// Opens a file, or standard input.
    pub(crate) fn open(path: Option<PathBuf>) -> Result<Self, Failure> {
        let (name, of) = match &path {
            Some(path) => (path.display().to_string(), path.as_path()),
            None => ("standard input".to_owned(), Path::new("/dev/stdin")),
        };
        let log: Box<dyn BufRead> = match &path {
            Some(path) => {
                let cannot_open =
                    |error: io::Error| Failure::Usage(format!("cannot open {}: {error}", path.display()));
                Box::new(BufReader::with_capacity(BUFFER, File::open(path).map_err(cannot_open)?))
            }
            None => Box::new(BufReader::with_capacity(BUFFER, stdin().lock())),
        };
        let size = fs::metadata(of).ok().filter(fs::Metadata::is_file).map_or(0, |file| file.len());
        let progress = if size > 0 { Progress::new() } else { Progress::hidden() };
        Ok(Source { lines: Lines::new(log), name, size, shown: 0, progress })
    }

    /// Returns the next line, unless the log is over.
    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, Failure> {
        let name = &self.name;
        self.lines.next().map_err(|error| Failure::Log(format!("cannot read {name}: {error}")))
    }

    pub(crate) fn show_progress(&mut self, keys: usize) {
        self.shown += 1;
        if self.shown.is_multiple_of(SHOWN) {
            self.progress.show(self.lines.bytes() as f64 / self.size.max(1) as f64, keys as u64);
        }
    }
}
