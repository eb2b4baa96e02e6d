//! How many calls may wait at one time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bounds how many wait at one time.
#[derive(Debug)]
pub(crate) struct Waiters {
    most: usize,
    pub(crate) waiting: AtomicUsize,
}

/// One that waits, or asks whether it has to.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<Waiters>);

impl Waiters {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Waiters { most, waiting: AtomicUsize::new(0) })
    }

    /// None if there are too many.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Waiting> {
        let one_more = |waiting| (waiting < self.most).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Waiting(Arc::clone(self)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
