//! Overrides: what an operator changes of policies at run time, by their names.
//!
//! A registry looks them up for each call that it decides, once there are any. All of them are replaced at once, and only if all are
//! valid.

mod active;
mod check;
mod entry;
mod parse;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

pub(crate) use self::active::ActiveOverride;
pub use self::check::{KnownPolicy, check};
pub use self::entry::{Override, Value};
pub use self::parse::parse;

/// The overrides of a registry.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    /// Which these are: no two registries or times have the same number, which is 0 if there are none. Calls ask only this if their
    /// policies are known not to be overridden.
    version: AtomicU64,
    in_force: RwLock<InForce>,
    /// What is wrong with those that would replace them.
    problems: Mutex<Vec<String>>,
}

/// Overrides by the name of their policy. One of `prefix:name` is also under each text behind a colon.
type InForce = HashMap<Box<str>, Vec<(Option<Box<str>>, Arc<ActiveOverride>)>>;

static NEXT_VERSION: AtomicU64 = AtomicU64::new(1);

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
        self.version() != 0
    }

    /// Returns which overrides are in force; 0 if there are none.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the override of the policy with this prefix and one of these names. Earlier names win; `prefix:name` wins over
    /// `name`.
    pub(crate) fn of(&self, prefix: &str, names: &[&str]) -> Option<Arc<ActiveOverride>> {
        if !self.is_active() {
            return None;
        }
        let in_force = self.in_force.read().unwrap_or_else(PoisonError::into_inner);
        names.iter().find_map(|name| {
            let named = in_force.get(*name)?;
            let with = |wanted: Option<&str>| named.iter().find(|(prefix, _)| prefix.as_deref() == wanted);
            with(Some(prefix)).or_else(|| with(None)).map(|(_, overridden)| Arc::clone(overridden))
        })
    }

    /// Returns all of them, by name.
    pub(crate) fn list(&self) -> Vec<Override> {
        let in_force = self.in_force.read().unwrap_or_else(PoisonError::into_inner);
        let whole = in_force.values().flatten().filter(|(prefix, _)| prefix.is_none());
        let mut list: Vec<_> = whole.map(|(_, overridden)| overridden.settings().clone()).collect();
        list.sort_by(|a, b| a.policy.cmp(&b.policy));
        list
    }

    /// Replaces all of them by those of a text, unless something is wrong with it. Then they stay, and the problems are returned.
    pub(crate) fn apply(&self, text: &str, known: &[KnownPolicy]) -> Result<(), Vec<String>> {
        // Further ones mostly have the same cause.
        const MOST: usize = 10;
        let mut checked = parse(text).and_then(|overrides| match check(&overrides, known) {
            problems if problems.is_empty() => Ok(overrides),
            problems => Err(problems),
        });
        if let Err(problems) = &mut checked
            && problems.len() > MOST
        {
            let more = problems.len() - MOST;
            problems.truncate(MOST);
            problems.push(format!("and {more} more"));
        }
        let active = checked?.into_iter().map(ActiveOverride::new).collect::<Result<_, _>>();
        self.replace(active.map_err(|invalid| vec![invalid.to_string()])?);
        Ok(())
    }

    /// Notes what is wrong with the text that should replace them.
    pub(crate) fn set_problems(&self, problems: Vec<String>) {
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = problems;
    }

    /// Returns what is wrong with the text that should replace them.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, overrides: Vec<ActiveOverride>) {
        let mut in_force = InForce::new();
        for overridden in overrides.into_iter().map(Arc::new) {
            let text = &overridden.settings().policy;
            let parts = text.match_indices(':').map(|(at, _)| (Some(text[..at].into()), &text[at + 1..]));
            for (prefix, name) in parts.chain([(None, text.as_str())]) {
                in_force.entry(name.into()).or_default().push((prefix, Arc::clone(&overridden)));
            }
        }
        let version = if in_force.is_empty() { 0 } else { NEXT_VERSION.fetch_add(1, Ordering::Relaxed) };
        *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = in_force;
        self.version.store(version, Ordering::Release);
    }
}
