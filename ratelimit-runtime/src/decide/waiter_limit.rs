//! The number of calls that may wait at one time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bounds how many calls wait at one time.
#[derive(Debug)]
pub(crate) struct WaiterLimit {
    max: usize,
    waiting: AtomicUsize,
}

/// Counts one call among those that wait, until it is dropped.
#[derive(Debug)]
pub(crate) struct WaiterPermit(Arc<WaiterLimit>);

impl WaiterLimit {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(WaiterLimit { max, waiting: AtomicUsize::new(0) })
    }

    /// Returns `None` if as many calls wait as may.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<WaiterPermit> {
        let one_more = |waiting| (waiting < self.max).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(WaiterPermit(Arc::clone(self)))
    }

    /// Returns how many calls wait.
    #[cfg(any(test, feature = "dashboard", feature = "metrics"))]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

impl Drop for WaiterPermit {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
