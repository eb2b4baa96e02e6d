//! Stores that are found by a number, so that whatever refers to one need not count the reference.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Stores by id, for as long as they are used elsewhere.
#[derive(Debug)]
pub(super) struct ById<T>(Mutex<Known<T>>);

#[derive(Debug)]
struct Known<T> {
    stores: BTreeMap<StoreId, Weak<T>>,
    next: u64,
}

/// Identifies a store of this process. No two have had the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoreId(u64);

impl<T> ById<T> {
    pub(super) const fn new() -> Self {
        ById(Mutex::new(Known { stores: BTreeMap::new(), next: 0 }))
    }

    /// Adds a store under a new id.
    pub(super) fn add(&self, store: &Arc<T>) -> StoreId {
        self.with(|known| {
            let id = StoreId(known.next);
            known.next += 1;
            known.stores.insert(id, Arc::downgrade(store));
            id
        })
    }

    /// Returns the store with this id, unless it is gone.
    pub(super) fn get(&self, id: StoreId) -> Option<Arc<T>> {
        self.with(|known| known.stores.get(&id)?.upgrade())
    }

    /// Removes a store that is about to go.
    pub(super) fn remove(&self, id: StoreId) {
        self.with(|known| drop(known.stores.remove(&id)));
    }

    fn with<R>(&self, then: impl FnOnce(&mut Known<T>) -> R) -> R {
        then(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_found_until_they_go() {
        let stores = ById::new();
        let [a, b] = ["a", "b"].map(Arc::new);
        let ids = [&a, &b].map(|store| stores.add(store));
        drop(a);
        assert_eq!(ids.map(|id| stores.get(id).map(|store| *store)), [None, Some("b")]);
        ids.into_iter().for_each(|id| stores.remove(id));
        assert!(stores.get(ids[1]).is_none());
        assert_ne!(stores.add(&b), ids[1]);
    }
}
