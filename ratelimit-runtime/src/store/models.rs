//! What the models of `tests/loom` need of the memory store, and of the table of overridden keys, beside what is public.

use std::slice;
use std::sync::Arc;

use crate::base::shared_table::SharedTable;
use crate::base::sync;
use crate::key::Fingerprint;
use crate::key::policy_id::PolicyId;
use crate::store::{Charge, Key, MemoryStore, Waiter};

/// Returns a key with this hash. One from a random seed would make another model of each run. The lower bits of the first half
/// select the key's line in the table.
#[must_use]
pub fn key(hash: [u64; 2]) -> Key {
    Key::hashed(Fingerprint(hash[0], hash[1]), PolicyId::default())
}

/// Returns how often the threads of this model have locked a mutex.
#[must_use]
pub fn locks() -> u64 {
    sync::LOCKS.get()
}

/// A call that waits.
#[derive(Debug)]
pub struct Waiting {
    charge: Charge,
    waiter: Arc<Waiter>,
}

impl Waiting {
    /// Queues a call, if it has to wait.
    #[must_use]
    pub fn new(store: &MemoryStore, charge: Charge) -> Option<Self> {
        let (_, waiter) = store.reserve(slice::from_ref(&charge));
        Some(Waiting { charge, waiter: waiter? })
    }

    /// Gives its permits to those behind it.
    pub fn leave(self, store: &MemoryStore) {
        let charge_id = self.waiter.slot(0).charge_id;
        store.leave(&[(self.charge, charge_id)], &self.waiter);
    }
}

/// A table of numbers by keys of one half, each of which may follow from a number.
#[derive(Debug, Default)]
pub struct Table(SharedTable);

impl Table {
    /// Replaces the keys.
    pub fn replace(&self, version: u64, keys: &[u64]) {
        self.0.replace(version, &keys.iter().map(|key| [*key; 2]).collect::<Vec<_>>());
    }

    /// Remembers a number for a key.
    pub fn remember(&self, version: u64, key: u64, given: Option<u64>, number: u64) {
        self.0.remember(version, [key; 2], given.map(|given| [given; 8]), [number; 5]);
    }

    /// Returns what is remembered for a key.
    #[must_use]
    pub fn get(&self, version: u64, key: u64, given: Option<u64>) -> Option<Option<[u64; 5]>> {
        match self.0.find(version, [key; 2])? {
            None => Some(None),
            Some(found) => found.remembered_for(given).map(Some),
        }
    }
}
