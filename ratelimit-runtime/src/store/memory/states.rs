//! The states that do not fit into a slot.

use std::sync::PoisonError;

use super::levels::Levels;
use super::segments::Segments;
use crate::algorithm::State;
use crate::base::sync::{Mutex, MutexGuard};

/// The states, each of a key that says in its slot where the state is. Only who holds the slot, or the table's lock if the slot says
/// that it belongs to that, asks for the state, so nobody waits for one.
#[derive(Debug)]
pub(super) struct States(Levels<Mutex<Option<State>>>);

/// The places for states that are not in use, as the holder of the table's lock knows them.
#[derive(Debug, Default)]
pub(super) struct Unused {
    /// Those that have been in use.
    free: Segments<u32>,
    /// The first that never has.
    next: u32,
}

impl States {
    /// The states of so many keys.
    pub(super) fn new(max_keys: u32) -> Self {
        States(Levels::new(max_keys))
    }

    /// Returns a state that may have expired or be gone.
    #[inline]
    pub(super) fn lock(&self, index: u32) -> MutexGuard<'_, Option<State>> {
        let state = self.0.get(index).expect("a state that a slot names has a place");
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unused {
    /// Stores a state. Returns its index.
    pub(super) fn add(&mut self, states: &States, state: Option<State>) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            let index = self.next;
            states.0.grow_with(index, |len| (0..len).map(|_| Mutex::new(None)).collect());
            self.next += 1;
            index
        });
        *states.lock(index) = state;
        index
    }

    /// Removes a state.
    pub(super) fn remove(&mut self, states: &States, index: u32) {
        *states.lock(index) = None;
        self.free.push(index);
    }

    /// Returns the number of states.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.next as usize - self.free.len()
    }
}
