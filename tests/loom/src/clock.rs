//! A clock that a model sets. Loom does not switch threads at it, so it is as monotonic as the product's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that counts microseconds.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// Sets the time.
    pub fn set(&self, micros: u64) {
        self.0.store(micros, Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn now_in_order(&self) -> u64 {
        self.now()
    }
}
