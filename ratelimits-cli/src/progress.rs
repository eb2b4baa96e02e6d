//! A bar on standard error while a long scan runs, if that is a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use crate::table::grouped;

/// How long a scan takes before the bar appears, and how often it changes.
const APPEARS_AFTER: Duration = Duration::from_millis(500);
const INTERVAL: Duration = Duration::from_millis(100);

const WIDTH: usize = 30;

/// Removes the bar when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    next: Option<Instant>,
    is_drawn: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let next = stderr().is_terminal().then(|| Instant::now() + APPEARS_AFTER);
        Progress { next, is_drawn: false }
    }

    /// No bar.
    pub(crate) fn hidden() -> Self {
        Progress { next: None, is_drawn: false }
    }

    /// Shows how much is done, from 0 to 1, and the number of keys so far.
    pub(crate) fn show(&mut self, done: f64, keys: u64) {
        let now = Instant::now();
        if self.next.is_none_or(|next| now < next) {
            return;
        }
        self.next = Some(now + INTERVAL);
        self.is_drawn = true;
        let _ = write!(stderr(), "\r{}\x1b[K", bar(done, keys));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_drawn {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

fn bar(done: f64, keys: u64) -> String {
    let done = done.clamp(0.0, 1.0);
    let filled = "#".repeat((done * WIDTH as f64) as usize);
    format!("[{filled:<WIDTH$}] {:>3} %  {} keys", (done * 100.0) as u32, grouped(keys))
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bar_fills_up() {
        assert_eq!(bar(0.0, 0), "[                              ]   0 %  0 keys");
        assert_eq!(bar(0.5, 1234), "[###############               ]  50 %  1,234 keys");
        assert_eq!(bar(1.5, 7), "[##############################] 100 %  7 keys");
    }
}
