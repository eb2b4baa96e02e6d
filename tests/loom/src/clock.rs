//! A clock that a model sets. Loom does not switch threads at it, so it is as monotonic as the product's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that counts microseconds.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    micros: Arc<AtomicU64>,
    readings_in_order: Arc<AtomicU64>,
}

impl Clock {
    /// Sets the time.
    pub fn set(&self, micros: u64) {
        self.micros.store(micros, Ordering::SeqCst);
    }

    /// Returns how often the clock was read in order, as under a lock.
    #[must_use]
    pub fn readings_in_order(&self) -> u64 {
        self.readings_in_order.load(Ordering::SeqCst)
    }

    pub(crate) fn now(&self) -> u64 {
        self.micros.load(Ordering::SeqCst)
    }

    pub(crate) fn now_in_order(&self) -> u64 {
        self.readings_in_order.fetch_add(1, Ordering::SeqCst);
        self.now()
    }
}
