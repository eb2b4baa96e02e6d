//! What operators have changed of a policy, found by name once for all calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::decide::overrides::{ActiveOverride, Overrides};

/// What the overrides of a registry say of a policy, as of the last call.
#[derive(Debug, Default)]
pub(crate) struct KnownOverride {
    /// The version of overrides that do not name the policy.
    without: AtomicU64,
    /// The version of overrides that do, and what they say.
    with: RwLock<Option<(u64, Arc<ActiveOverride>)>>,
}

impl KnownOverride {
    /// Whether it is known that the overrides leave the policy as it is.
    #[inline]
    pub(crate) fn is_none(&self, overrides: &Overrides) -> bool {
        let version = overrides.version();
        version == 0 || self.without.load(Ordering::Relaxed) == version
    }

    /// Returns what the overrides say of the policy with this prefix and one of these names.
    pub(crate) fn get(
        &self,
        overrides: &Overrides,
        prefix: &str,
        names: &[&str],
    ) -> Option<Arc<ActiveOverride>> {
        if self.is_none(overrides) {
            return None;
        }
        // Read before the overrides: if they change meanwhile, these are looked up again.
        let version = overrides.version();
        if let Some((of, known)) = &*self.with.read().unwrap_or_else(PoisonError::into_inner)
            && *of == version
        {
            return Some(Arc::clone(known));
        }
        let found = overrides.of(prefix, names);
        match &found {
            None => self.without.store(version, Ordering::Relaxed),
            Some(found) => {
                let known = Some((version, Arc::clone(found)));
                *self.with.write().unwrap_or_else(PoisonError::into_inner) = known;
            }
        }
        found
    }
}
