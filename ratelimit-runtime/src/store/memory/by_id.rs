//! Stores that are found by a number, so that whatever refers to one need not count the reference.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::LocalKey;

/// Stores by id, for as long as they are used elsewhere.
#[derive(Debug)]
pub(super) struct ById<T>(Mutex<Known<T>>);

#[derive(Debug)]
struct Known<T> {
    stores: BTreeMap<StoreId, Weak<T>>,
    next: u64,
}

/// The store that a thread has asked for last. It mostly asks for the same again, which takes no lock then.
pub(super) type Last<T> = RefCell<Option<(StoreId, Weak<T>)>>;

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
    pub(super) fn get(&self, id: StoreId, last: &'static LocalKey<Last<T>>) -> Option<Arc<T>> {
        let found = last.try_with(|last| match &*last.borrow() {
            Some((of, store)) if *of == id => Some(store.upgrade()),
            _ => None,
        });
        if let Ok(Some(found)) = found { found } else { self.get_other(id, last) }
    }

    #[cold]
    fn get_other(&self, id: StoreId, last: &'static LocalKey<Last<T>>) -> Option<Arc<T>> {
        let store = self.with(|known| known.stores.get(&id).cloned())?;
        let found = store.upgrade();
        // A thread that ends has none.
        let _ = last.try_with(|last| last.replace(Some((id, store))));
        found
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
        thread_local!(static LAST: Last<&'static str> = const { RefCell::new(None) });
        let stores = ById::new();
        let get = |id| stores.get(id, &LAST).map(|store| *store);
        let [a, b] = ["a", "b"].map(Arc::new);
        let ids = [&a, &b].map(|store| stores.add(store));
        for _ in 0..2 {
            assert_eq!(ids.map(get), [Some("a"), Some("b")]);
        }
        // Also if it is the one that was asked for last.
        assert_eq!(get(ids[0]), Some("a"));
        drop(a);
        assert_eq!(ids.map(get), [None, Some("b")]);
        drop(b);
        ids.into_iter().for_each(|id| stores.remove(id));
        assert_eq!(ids.map(get), [None, None]);
        assert_ne!(stores.add(&Arc::new("b")), ids[1]);
    }
}
