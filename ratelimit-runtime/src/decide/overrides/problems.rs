//! What is wrong with overrides, for the check of all policies.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What is wrong with the overrides of a source.
#[derive(Debug, Default)]
pub(crate) struct Problems(Mutex<Vec<String>>);

/// Those of all sources.
static REGISTERED: Mutex<Vec<Weak<Problems>>> = Mutex::new(Vec::new());

/// Returns what is wrong with the overrides of any source.
pub(crate) fn problems() -> Vec<String> {
    let registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    registered.iter().filter_map(Weak::upgrade).flat_map(|problems| problems.get()).collect()
}

impl Problems {
    /// Creates those of a new source, of which nothing is known.
    pub(crate) fn register() -> Arc<Self> {
        let problems = Arc::new(Problems::default());
        let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        registered.retain(|problems| problems.strong_count() > 0);
        registered.push(Arc::downgrade(&problems));
        problems
    }

    pub(crate) fn set(&self, problems: Vec<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = problems;
    }

    pub(crate) fn get(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
