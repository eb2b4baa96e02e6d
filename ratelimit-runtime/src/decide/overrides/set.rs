//! The overrides of a text.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::active::ActiveOverride;
use super::check::{KnownPolicy, Policies};
use super::entry::Entry;
use super::keys::{KeyOverride, Keys};
use super::parse::{Parsed, of, parse};

/// How many keys have overrides at most.
pub const MAX_KEYS: usize = 10_000;

/// All overrides of a text, which policies look up by their names.
#[derive(Debug, Default)]
pub(crate) struct OverrideSet {
    /// No two sets have the same.
    id: u64,
    /// By the name of their policy. Those of `prefix:name` are also under each text behind a colon.
    by_name: HashMap<Box<str>, Vec<Named>>,
    parsed: Parsed,
    /// The time by which they end, in seconds since the Unix epoch, and when that was read.
    clock: Option<(u64, Instant)>,
}

/// The overrides of a name.
#[derive(Clone, Debug)]
struct Named {
    /// The prefix that they are for, if they have one.
    prefix: Option<Box<str>>,
    /// That of all keys.
    all: Option<Arc<ActiveOverride>>,
    keys: Option<Arc<Keys>>,
}

/// The overrides of a policy.
#[derive(Debug, Default)]
pub(crate) struct OfPolicy {
    /// That of all keys.
    pub(crate) all: Option<Arc<ActiveOverride>>,
    /// Those of its keys, the most specific first.
    pub(crate) keys: Vec<Arc<Keys>>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl OverrideSet {
    /// # Errors
    ///
    /// Returns the problem of a text that cannot be parsed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parsed = parse(text)?;
        parsed.problems.extend(cut(&mut parsed.overrides));
        Ok(OverrideSet::new(parsed, None))
    }

    /// Returns those that have not ended at this time, with the time, unless all of them have not, and know it.
    pub(crate) fn at(&self, now: u64) -> Option<Self> {
        let has_ended = self.parsed.overrides.iter().any(|it| it.has_ended(now));
        if !has_ended && (self.clock.is_some() || !self.have_ends()) {
            return None;
        }
        let mut parsed = self.parsed.clone();
        parsed.overrides.retain(|it| !it.has_ended(now));
        Some(OverrideSet::new(parsed, Some((now, Instant::now()))))
    }

    /// Whether some of them end by themselves.
    pub(crate) fn have_ends(&self) -> bool {
        self.parsed.overrides.iter().any(|it| it.until.is_some())
    }

    fn new(parsed: Parsed, clock: Option<(u64, Instant)>) -> Self {
        let mut by_policy = HashMap::<&str, (Option<Arc<ActiveOverride>>, Vec<Arc<KeyOverride>>)>::new();
        // Invalid numbers are among the problems of the check.
        for it in &parsed.overrides {
            let (all, keys) = by_policy.entry(&it.policy).or_default();
            match &*it.key {
                [] => *all = ActiveOverride::new(it.clone()).ok().map(Arc::new),
                _ => keys.extend(KeyOverride::new(it.clone()).ok().map(Arc::new)),
            }
        }
        let mut by_name = HashMap::<Box<str>, Vec<Named>>::new();
        for (text, (all, keys)) in by_policy {
            let keys = (!keys.is_empty()).then(|| Arc::new(Keys::new(keys)));
            if all.is_none() && keys.is_none() {
                continue;
            }
            let parts = text.match_indices(':').map(|(at, _)| (Some(text[..at].into()), &text[at + 1..]));
            for (prefix, name) in parts.chain([(None, text)]) {
                let named = Named { prefix, all: all.clone(), keys: keys.clone() };
                by_name.entry(name.into()).or_default().push(named);
            }
        }
        OverrideSet { id: NEXT_ID.fetch_add(1, Ordering::Relaxed), by_name, parsed, clock }
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

    /// Returns the overrides of the policy with this prefix and one of these names. Earlier names win; `prefix:name` wins over
    /// `name`.
    pub(super) fn of(&self, prefix: &str, names: &[&str]) -> OfPolicy {
        let mut found = OfPolicy::default();
        for name in names {
            let Some(named) = self.by_name.get(*name) else { continue };
            for wanted in [Some(prefix), None] {
                for it in named.iter().filter(|it| it.prefix.as_deref() == wanted) {
                    found.all = found.all.or_else(|| it.all.clone());
                    found.keys.extend(it.keys.clone());
                }
            }
        }
        found.keys.dedup_by(|one, other| Arc::ptr_eq(one, other));
        found
    }

    /// Returns the microseconds until an override ends, as far as the time is known.
    pub(super) fn micros_until(&self, until: u64) -> Option<u64> {
        let (now, read) = self.clock?;
        let ends_in = until.saturating_sub(now).saturating_mul(1_000_000);
        Some(ends_in.saturating_sub(read.elapsed().as_micros() as u64))
    }

    /// Returns those that change one of these policies, by name and key.
    pub(crate) fn in_force(&self, known: &[KnownPolicy]) -> Vec<Entry> {
        let policies = Policies::of(known);
        let mut list: Vec<_> = self.parsed.overrides.iter().filter(|it| policies.fit(it)).cloned().collect();
        list.sort_by(|a, b| (&a.policy, &a.key).cmp(&(&b.policy, &b.key)));
        list
    }

    /// Returns what is wrong with those that change none of these policies, or not all that they name.
    pub(crate) fn problems(&self, known: &[KnownPolicy]) -> Vec<String> {
        let mut problems = self.parsed.problems.clone();
        problems.extend(super::check(&self.parsed.overrides, known));
        problems
    }
}

/// Removes the overrides of keys that are too many. Returns what is wrong with them.
fn cut(overrides: &mut Vec<Entry>) -> Option<String> {
    let (mut keys, mut first) = (0, None);
    overrides.retain(|it| {
        keys += usize::from(!it.key.is_empty());
        let is_kept = it.key.is_empty() || keys <= MAX_KEYS;
        if !is_kept {
            first.get_or_insert_with(|| of(it));
        }
        is_kept
    });
    let first = first?;
    let ignored = keys - MAX_KEYS;
    Some(format!(
        "{keys} keys have overrides, and at most {MAX_KEYS} may have; the last {ignored} are ignored, from {first} on"
    ))
}
