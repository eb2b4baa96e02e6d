//! The number of calls that may wait at one time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bounds how many calls wait at one time.
#[derive(Debug)]
pub(crate) struct WaiterLimit {
    #[cfg_attr(
        not(any(test, feature = "dashboard", feature = "metrics")),
        expect(dead_code, reason = "nobody asks")
    )]
    max: usize,
    places: Arc<Semaphore>,
}

/// Counts one call among those that wait, until it is dropped.
pub(crate) type WaiterPermit = OwnedSemaphorePermit;

impl WaiterLimit {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        let max = max.min(Semaphore::MAX_PERMITS);
        Arc::new(WaiterLimit { max, places: Arc::new(Semaphore::new(max)) })
    }

    /// Returns `None` if as many calls wait as may.
    pub(crate) fn enter(&self) -> Option<WaiterPermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Returns how many calls wait.
    #[cfg(any(test, feature = "dashboard", feature = "metrics"))]
    pub(crate) fn waiting(&self) -> usize {
        self.max - self.places.available_permits()
    }
}
