//! The overrides of the keys of a policy, which calls look up by the hashes of their keys.

use std::sync::{Arc, PoisonError, RwLock};

use super::active::ActiveOverride;
use super::entry::Entry;
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::number_map::NumberMap;
use crate::key::{Fingerprint, Head, KeyHead, KeyParts, PartsOfKey};

/// For how many heads of keys the hashes are kept. A policy has one, unless its limiters have various numbers or prefixes.
const MOST_HEADS: usize = 16;

/// The overrides of the keys of one name.
#[derive(Debug)]
pub(crate) struct Keys {
    list: Vec<Arc<KeyOverride>>,
    hashed: RwLock<Vec<Arc<HashedKeys>>>,
    /// The longest list has one place more, for those that are found by their parts.
    by_parts: KeyHead,
}

/// The same by the hashes of keys that begin with a head.
#[derive(Debug)]
pub(crate) struct HashedKeys {
    pub(crate) head: KeyHead,
    by_hash: NumberMap<Fingerprint, Arc<KeyOverride>>,
}

/// The override of a key.
#[derive(Debug)]
pub(crate) struct KeyOverride {
    parts: KeyParts,
    settings: Entry,
}

impl Keys {
    pub(super) fn new(list: Vec<Arc<KeyOverride>>) -> Self {
        let by_parts = KeyHead::new(Head { prefix: "", name: "", shape: &"", function: None });
        Keys { list, hashed: RwLock::default(), by_parts }
    }

    /// Returns them by the hashes of keys that begin with this head. If there are too many heads, by the hashes of the parts alone:
    /// those of another head.
    pub(crate) fn hashed(&self, head: &KeyHead) -> Arc<HashedKeys> {
        let find = |kept: &[Arc<HashedKeys>], head: &KeyHead| {
            kept.iter().find(|it| it.head.without_parts() == head.without_parts()).map(Arc::clone)
        };
        let kept = self.hashed.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = find(&kept, head) {
            return found;
        }
        drop(kept);
        // Others that wait for it would make the same.
        let mut kept = self.hashed.write().unwrap_or_else(PoisonError::into_inner);
        let head = if kept.len() < MOST_HEADS { head } else { &self.by_parts };
        if let Some(found) = find(&kept, head) {
            return found;
        }
        let by_hash = self.list.iter().map(|it| (head.of_parts(it.parts.all()), Arc::clone(it))).collect();
        let hashed = Arc::new(HashedKeys { head: *head, by_hash });
        kept.push(Arc::clone(&hashed));
        hashed
    }
}

impl HashedKeys {
    pub(crate) fn hashes(&self) -> impl Iterator<Item = Fingerprint> {
        self.by_hash.keys().copied()
    }

    #[inline]
    pub(crate) fn get(&self, key: Fingerprint) -> Option<&Arc<KeyOverride>> {
        self.by_hash.get(&key)
    }
}

impl KeyOverride {
    /// # Errors
    ///
    /// If the value of a number is invalid by itself.
    pub(super) fn new(settings: Entry) -> Result<Self, InvalidPolicy> {
        let parts = KeyParts::of_texts(&settings.key);
        ActiveOverride::new(settings.clone()).map(|_| KeyOverride { parts, settings })
    }

    pub(crate) fn parts(&self) -> PartsOfKey<'_> {
        self.parts.all()
    }

    /// Returns what is in force for the key, given the override of all keys.
    pub(crate) fn over(&self, all: Option<&ActiveOverride>) -> Option<ActiveOverride> {
        ActiveOverride::new(self.settings.over(all.map(ActiveOverride::settings))).ok()
    }
}
