//! Series that are kept, so that what records to them looks none up by name.
//!
//! A kept series belongs to the recorder of the process. A thread with a local recorder, and every thread until a recorder is
//! installed, records by name instead. So does one call each second, because an exporter may have dropped a series that was idle:
//! what is recorded to a dropped one is lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use super::recorder;

/// How long a series that was looked up is trusted to exist, in microseconds.
const TRUSTED: u64 = 1_000_000;

/// A series of the recorder of the process.
#[derive(Debug)]
pub(super) struct Kept<T> {
    /// When it was looked up, by the clock of the store that decides.
    looked_up: AtomicU64,
    series: RwLock<Option<T>>,
}

impl<T> Kept<T> {
    /// Calls a function with the series of this thread's recorder.
    pub(super) fn record(&self, now: u64, by_name: impl FnOnce() -> T, then: impl FnOnce(&T)) {
        if recorder::is_of_process(now) { self.with(now, by_name, then) } else { then(&by_name()) }
    }

    /// Whether it was looked up a moment ago.
    pub(super) fn is_fresh(&self, now: u64) -> bool {
        now.wrapping_sub(self.looked_up.load(Ordering::Relaxed)) < TRUSTED
    }

    /// Calls a function with the series, which is looked up by name if that is too long ago.
    pub(super) fn with(&self, now: u64, by_name: impl FnOnce() -> T, then: impl FnOnce(&T)) {
        if self.is_fresh(now)
            && let Some(series) = &*self.series.read().unwrap_or_else(PoisonError::into_inner)
        {
            return then(series);
        }
        let mut series = self.series.write().unwrap_or_else(PoisonError::into_inner);
        then(series.insert(by_name()));
        self.looked_up.store(now, Ordering::Relaxed);
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept { looked_up: AtomicU64::new(0), series: RwLock::new(None) }
    }
}
