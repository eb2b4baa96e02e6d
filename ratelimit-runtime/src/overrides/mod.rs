//! Overrides: what an operator changes of policies at run time, by their names.
//!
//! A registry looks them up for each call that it decides, once there are any. All of them are replaced at once, and only if all are
//! valid.

mod check;
mod entry;
mod parse;
mod source;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

pub use self::check::{KnownPolicy, check};
pub use self::entry::{Override, Value};
pub use self::parse::parse;
pub(crate) use self::source::read_settled;

/// The overrides of a registry.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    /// Whether there are any. Calls ask only this if there are none.
    is_active: AtomicBool,
    by_name: RwLock<HashMap<Box<str>, Arc<Override>>>,
    /// What is wrong with those that would replace them.
    problems: Mutex<Vec<String>>,
}

/// The overrides of all registries that have a source of them.
static REGISTERED: Mutex<Vec<Weak<Overrides>>> = Mutex::new(Vec::new());

/// Adds the overrides of a registry to those that [`problems`] is about.
pub(crate) fn register(overrides: &Arc<Overrides>) {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    registered.retain(|overrides| overrides.strong_count() > 0);
    registered.push(Arc::downgrade(overrides));
}

/// Returns what is wrong with the overrides of any registry.
pub(crate) fn problems() -> Vec<String> {
    let registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    registered.iter().filter_map(Weak::upgrade).flat_map(|overrides| overrides.problems()).collect()
}

impl Overrides {
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Returns the override of the policy with this prefix and name.
    pub(crate) fn of(&self, prefix: &str, name: &str) -> Option<Arc<Override>> {
        if !self.is_active() {
            return None;
        }
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        match by_name.get(name) {
            None if !prefix.is_empty() => by_name.get(&*format!("{prefix}:{name}")).map(Arc::clone),
            overridden => overridden.map(Arc::clone),
        }
    }

    /// Returns all of them, by name.
    pub(crate) fn list(&self) -> Vec<Arc<Override>> {
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        let mut list: Vec<_> = by_name.values().map(Arc::clone).collect();
        list.sort_by(|a, b| a.policy.cmp(&b.policy));
        list
    }

    /// Replaces all of them by those of a text, unless something is wrong with it. Then they stay, and the problems are returned.
    pub(crate) fn apply(&self, text: &str, known: &[KnownPolicy]) -> Result<(), Vec<String>> {
        let checked = parse(text).and_then(|overrides| match check(&overrides, known) {
            problems if problems.is_empty() => Ok(overrides),
            problems => Err(problems),
        });
        let checked = checked.map(|overrides| self.replace(overrides));
        self.set_problems(checked.as_ref().err().cloned().unwrap_or_default());
        checked
    }

    /// Notes what is wrong with the text that should replace them.
    pub(crate) fn set_problems(&self, problems: Vec<String>) {
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = problems;
    }

    /// Returns what is wrong with the text that should replace them.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, overrides: Vec<Override>) {
        let by_name: HashMap<_, _> =
            overrides.into_iter().map(|it| (Box::from(&*it.policy), Arc::new(it))).collect();
        let is_active = !by_name.is_empty();
        *self.by_name.write().unwrap_or_else(PoisonError::into_inner) = by_name;
        self.is_active.store(is_active, Ordering::Relaxed);
    }
}
