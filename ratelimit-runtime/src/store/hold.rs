//! Permits of a semaphore that a call holds.

use std::fmt;

/// Permits that a call holds until this is dropped.
pub(crate) struct Hold {
    /// The index of the charge in its decision, if a decision has it.
    charge: usize,
    /// `None` once it has ended.
    release: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Hold {
    /// The hold of this charge of a decision, whose end calls a function.
    pub(crate) fn new(charge: usize, release: impl FnOnce() + Send + Sync + 'static) -> Self {
        Hold { charge, release: Some(Box::new(release)) }
    }

    /// Returns the index of the charge in its decision.
    pub(crate) fn charge(&self) -> usize {
        self.charge
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release();
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("charge", &self.charge).finish_non_exhaustive()
    }
}
