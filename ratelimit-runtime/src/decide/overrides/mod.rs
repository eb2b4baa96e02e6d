//! Overrides: what an operator changes of policies at run time, by their names.
//!
//! A registry looks them up for each call that it decides, once there are any. All of them are replaced at once. One that does not fit
//! a policy leaves it as written, and concerns no other.

mod active;
mod check;
mod entry;
mod parse;
mod problems;
mod set;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

pub(crate) use self::active::ActiveOverride;
pub use self::check::{KnownPolicy, check};
pub use self::entry::{Entry, Value};
pub use self::parse::{Parsed, parse};
pub(crate) use self::problems::{Problems, problems};
pub(crate) use self::set::OverrideSet;

/// The overrides of a registry.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    /// That of the set. Calls ask only this if their policies are known not to be overridden.
    version: AtomicU64,
    set: RwLock<Arc<OverrideSet>>,
}

impl Overrides {
    /// Returns which overrides these are; 0 if there are none.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the version of the overrides, and that of the policy with this prefix and one of these names.
    pub(crate) fn of(&self, prefix: &str, names: &[&str]) -> (u64, Option<Arc<ActiveOverride>>) {
        let set = self.set.read().unwrap_or_else(PoisonError::into_inner);
        (set.version(), set.of(prefix, names))
    }

    /// Returns all of them.
    pub(crate) fn set(&self) -> Arc<OverrideSet> {
        Arc::clone(&self.set.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces all of them.
    pub(crate) fn replace(&self, with: &Arc<OverrideSet>) {
        if self.version() == with.version() {
            return;
        }
        let mut set = self.set.write().unwrap_or_else(PoisonError::into_inner);
        *set = Arc::clone(with);
        // Under the lock, so that the version is always that of the set.
        self.version.store(with.version(), Ordering::Release);
    }
}
