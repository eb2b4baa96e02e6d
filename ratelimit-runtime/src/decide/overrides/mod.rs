//! Overrides: what an operator changes of policies at run time, by their names, and for some of their keys.
//!
//! A registry looks them up for each call that it decides, once there are any. All of them are replaced at once. One that does not fit
//! a policy leaves it as written, and concerns no other.

mod active;
mod check;
mod entry;
mod keys;
mod parse;
mod problems;
mod set;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

pub(crate) use self::active::ActiveOverride;
pub use self::check::{KnownPolicy, check};
pub use self::entry::{Entry, Value};
pub(crate) use self::keys::{HashedKeys, KeyOverride};
pub use self::parse::{Parsed, parse};
pub(crate) use self::problems::{Problems, problems};
pub use self::set::MAX_KEYS;
pub(crate) use self::set::{OfPolicy, OverrideSet};

/// The maximum size of a text: enough for all keys that may have overrides, with authors and reasons.
pub const MAX_SIZE: usize = 4 << 20;

/// The overrides of a registry.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    /// That of the present set. Calls ask only this if their policies are known not to be overridden.
    version: AtomicU64,
    sets: RwLock<Sets>,
}

#[derive(Debug, Default)]
struct Sets {
    present: Arc<OverrideSet>,
    /// For calls that have begun by it.
    previous: Arc<OverrideSet>,
}

impl Overrides {
    /// Returns which overrides these are; 0 if there are none.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the overrides of the policy with this prefix and one of these names, and their version: this one, if it is the present or
    /// the previous one, and else the present one.
    pub(crate) fn of(&self, version: u64, prefix: &str, names: &[&str]) -> (u64, OfPolicy) {
        let Sets { present, previous } = &*self.sets.read().unwrap_or_else(PoisonError::into_inner);
        let set = if previous.version() == version { previous } else { present };
        (set.version(), set.of(prefix, names))
    }

    /// Returns the microseconds until one of them ends, as far as the time is known.
    pub(crate) fn micros_until(&self, until: u64) -> Option<u64> {
        self.sets.read().unwrap_or_else(PoisonError::into_inner).present.micros_until(until)
    }

    /// Returns all of them.
    pub(crate) fn set(&self) -> Arc<OverrideSet> {
        Arc::clone(&self.sets.read().unwrap_or_else(PoisonError::into_inner).present)
    }

    /// Replaces all of them.
    pub(crate) fn replace(&self, with: &Arc<OverrideSet>) {
        if self.version() == with.version() {
            return;
        }
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        let previous = std::mem::replace(&mut sets.present, Arc::clone(with));
        sets.previous = previous;
        // Under the lock, so that the version is always that of the set.
        self.version.store(with.version(), Ordering::Release);
    }
}
