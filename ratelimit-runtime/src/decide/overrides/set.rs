//! The overrides of a text.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::active::ActiveOverride;
use super::check::{KnownPolicy, check, fits};
use super::entry::Entry;
use super::parse::{Parsed, parse};

/// All overrides of a text, which policies look up by their names.
#[derive(Debug, Default)]
pub(crate) struct OverrideSet {
    /// No two sets have the same.
    id: u64,
    /// By the name of their policy. One of `prefix:name` is also under each text behind a colon.
    by_name: HashMap<Box<str>, Vec<Named>>,
    parsed: Parsed,
}

/// An override of a name, with the prefix that it is for, if it has one.
type Named = (Option<Box<str>>, Arc<ActiveOverride>);

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl OverrideSet {
    /// # Errors
    ///
    /// Returns the problem of a text that cannot be parsed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Ok(OverrideSet::new(parse(text)?))
    }

    /// Returns those that have not ended at this time, unless all of them have not.
    pub(crate) fn without_ended(&self, now: u64) -> Option<Self> {
        self.parsed.overrides.iter().find(|it| it.has_ended(now))?;
        let mut parsed = self.parsed.clone();
        parsed.overrides.retain(|it| !it.has_ended(now));
        Some(OverrideSet::new(parsed))
    }

    /// Whether some of them end by themselves.
    pub(crate) fn have_ends(&self) -> bool {
        self.parsed.overrides.iter().any(|it| it.until.is_some())
    }

    fn new(parsed: Parsed) -> Self {
        let mut by_name = HashMap::<Box<str>, Vec<Named>>::new();
        // Invalid numbers are among the problems of the check.
        let active = parsed.overrides.iter().filter_map(|it| ActiveOverride::new(it.clone()).ok());
        for overridden in active.map(Arc::new) {
            let text = &overridden.settings().policy;
            let parts = text.match_indices(':').map(|(at, _)| (Some(text[..at].into()), &text[at + 1..]));
            for (prefix, name) in parts.chain([(None, text.as_str())]) {
                by_name.entry(name.into()).or_default().push((prefix, Arc::clone(&overridden)));
            }
        }
        OverrideSet { id: NEXT_ID.fetch_add(1, Ordering::Relaxed), by_name, parsed }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Returns a number that no other set has; 0 if there are no overrides.
    pub(crate) fn version(&self) -> u64 {
        if self.is_empty() { 0 } else { self.id }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns the override of the policy with this prefix and one of these names. Earlier names win; `prefix:name` wins over
    /// `name`.
    pub(super) fn of(&self, prefix: &str, names: &[&str]) -> Option<Arc<ActiveOverride>> {
        names.iter().find_map(|name| {
            let named = self.by_name.get(*name)?;
            let with = |wanted: Option<&str>| named.iter().find(|(prefix, _)| prefix.as_deref() == wanted);
            with(Some(prefix)).or_else(|| with(None)).map(|(_, overridden)| Arc::clone(overridden))
        })
    }

    /// Returns those that change one of these policies, by name.
    pub(crate) fn in_force(&self, known: &[KnownPolicy]) -> Vec<Entry> {
        let mut list: Vec<_> = self.parsed.overrides.iter().filter(|it| fits(it, known)).cloned().collect();
        list.sort_by(|a, b| a.policy.cmp(&b.policy));
        list
    }

    /// Returns what is wrong with those that change none of these policies, or not all that they name.
    pub(crate) fn problems(&self, known: &[KnownPolicy]) -> Vec<String> {
        let mut problems = self.parsed.problems.clone();
        problems.extend(check(&self.parsed.overrides, known));
        problems
    }
}
