//! About what time the server has, for calendars: a process sends the windows around it, of which the server chooses.

#[cfg(feature = "calendar")]
use std::sync::atomic::{AtomicI64, Ordering};

#[cfg(feature = "calendar")]
use crate::base::clock::system;
use crate::store::charge::Outcome;
use crate::store::error::StoreError;

/// By how many microseconds the server's clock is ahead of that of this system, as far as is known.
#[derive(Debug, Default)]
pub(super) struct ServerTime {
    #[cfg(feature = "calendar")]
    ahead: AtomicI64,
}

#[cfg(feature = "calendar")]
impl ServerTime {
    pub(super) fn now(&self) -> u64 {
        system().saturating_add_signed(self.ahead.load(Ordering::Relaxed))
    }

    /// Learns from decisions.
    pub(super) fn learn(&self, outcomes: &[Result<Box<Outcome>, StoreError>]) {
        if let Some(outcome) = outcomes.iter().find_map(|outcome| outcome.as_ref().ok()) {
            self.ahead.store(outcome.now as i64 - system() as i64, Ordering::Relaxed);
        }
    }
}

#[cfg(not(feature = "calendar"))]
impl ServerTime {
    pub(super) fn now(&self) -> u64 {
        0
    }

    pub(super) fn learn(&self, _outcomes: &[Result<Box<Outcome>, StoreError>]) {}
}
