//! A source of overrides, and who takes them from there.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::decide::overrides::{OverrideSet, Overrides, Problems};
#[cfg(feature = "redis")]
use crate::store::StoredOverrides;
use crate::usage::registry::cache::LimiterCache;

/// A source of overrides, and the registries that take them from there. It ends with the last of them.
pub(in crate::usage::registry) struct Watch {
    /// Where the overrides are, if registries share them.
    #[cfg(feature = "redis")]
    stored: Option<StoredOverrides>,
    members: Mutex<Vec<Member>>,
    /// What was read last.
    set: Mutex<Arc<OverrideSet>>,
    problems: Arc<Problems>,
}

/// What overrides concern of a registry, as long as it exists.
pub(in crate::usage::registry) struct Member {
    overrides: Weak<Overrides>,
    limiters: Weak<LimiterCache>,
}

impl Watch {
    pub(super) fn new() -> Self {
        Watch {
            #[cfg(feature = "redis")]
            stored: None,
            members: Mutex::default(),
            set: Mutex::default(),
            problems: Problems::register(),
        }
    }

    /// One of the registries that share these overrides.
    #[cfg(feature = "redis")]
    pub(super) fn shared(stored: StoredOverrides) -> Self {
        Watch { stored: Some(stored), ..Watch::new() }
    }

    #[cfg(feature = "redis")]
    pub(super) fn is_of(&self, stored: &StoredOverrides) -> bool {
        self.stored.as_ref().is_some_and(|its| its.is(stored))
    }

    /// Has another registry decide by what was read last, and by what is read later.
    pub(super) fn join(&self, member: Member) {
        let overrides = member.overrides.upgrade();
        self.members().push(member);
        if let Some(overrides) = overrides {
            overrides.replace(&self.set());
        }
    }

    /// Has all registries decide by what was read last. Returns their limiters.
    pub(super) fn apply(&self) -> Vec<Arc<LimiterCache>> {
        let set = self.set();
        let mut members = self.members();
        members.retain(|member| member.limiters.strong_count() > 0);
        members.iter().filter_map(|member| member.overrides.upgrade()).for_each(|it| it.replace(&set));
        members.iter().filter_map(|member| member.limiters.upgrade()).collect()
    }

    /// Returns what was read last.
    pub(super) fn set(&self) -> Arc<OverrideSet> {
        Arc::clone(&self.set.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn replace(&self, set: OverrideSet) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
    }

    pub(super) fn set_problems(&self, problems: Vec<String>) {
        self.problems.set(problems);
    }

    /// Returns what is wrong.
    #[cfg(any(test, feature = "metrics"))]
    pub(in crate::usage::registry) fn problems(&self) -> Vec<String> {
        self.problems.get()
    }

    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    pub(in crate::usage::registry) fn new(overrides: &Arc<Overrides>, limiters: &Arc<LimiterCache>) -> Self {
        Member { overrides: Arc::downgrade(overrides), limiters: Arc::downgrade(limiters) }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}
