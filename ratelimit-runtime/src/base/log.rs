//! The events of this library.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Logs an event with the target that all events of the library have, so that a filter can name it.
///
/// Errors are logged as `%error`: their texts contain their causes, which subscribers would repeat for a `dyn Error`.
macro_rules! log {
    ($level:ident, $($event:tt)+) => {
        tracing::event!(target: "ratelimits", tracing::Level::$level, $($event)+)
    };
}

pub(crate) use log;

/// The periods of events that are bounded: about what calls do, and about what goes wrong with them.
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Bounds an event that every call might log to one in a time. Calls after the last event wait for the next one.
#[derive(Debug, Default)]
pub(crate) struct LogBound(Mutex<Pending>);

#[derive(Debug, Default)]
struct Pending {
    last: Option<Instant>,
    /// The calls since then.
    calls: u64,
}

impl LogBound {
    pub(crate) const fn new() -> Self {
        LogBound(Mutex::new(Pending { last: None, calls: 0 }))
    }

    /// Counts a call. If the event, which is logged at most once in this time, is to be logged now, returns the number of calls
    /// since the last one.
    pub(crate) fn count(&self, period: Duration) -> Option<u64> {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending.calls += 1;
        let now = Instant::now();
        let since_last = pending.last.and_then(|last| now.checked_duration_since(last));
        if since_last.is_some_and(|time| time < period) {
            return None;
        }
        pending.last = Some(now);
        Some(std::mem::take(&mut pending.calls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_an_interval_wait_for_the_next_event() {
        let (log, hour) = (LogBound::default(), Duration::from_secs(3600));
        assert_eq!(log.count(hour), Some(1));
        assert_eq!((log.count(hour), log.count(hour)), (None, None));
        assert_eq!(log.count(Duration::ZERO), Some(3));
    }
}
