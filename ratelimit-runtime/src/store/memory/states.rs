//! The states that do not fit into a slot.

use super::segments::Segments;
use crate::algorithm::State;

/// A slab of states.
#[derive(Debug, Default)]
pub(super) struct States {
    entries: Segments<Entry>,
    /// The first unused entry, if there is one. They form a chain.
    free: Option<u32>,
}

#[derive(Debug)]
enum Entry {
    Used(State),
    Free { next: Option<u32> },
}

impl States {
    pub(super) fn get(&self, index: u32) -> Option<&State> {
        match &self.entries[index] {
            Entry::Used(state) => Some(state),
            Entry::Free { .. } => None,
        }
    }

    /// Returns the number of states.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let entries = (0..self.entries.len() as u32).map(|index| &self.entries[index]);
        entries.filter(|entry| matches!(entry, Entry::Used(_))).count()
    }

    /// Adds a state. Returns its index.
    pub(super) fn insert(&mut self, state: State) -> u32 {
        let Some(index) = self.free else {
            self.entries.push(Entry::Used(state));
            return self.entries.len() as u32 - 1;
        };
        if let Entry::Free { next } = std::mem::replace(&mut self.entries[index], Entry::Used(state)) {
            self.free = next;
        }
        index
    }

    pub(super) fn remove(&mut self, index: u32) -> Option<State> {
        let entry = &mut self.entries[index];
        match std::mem::replace(entry, Entry::Free { next: self.free }) {
            Entry::Used(state) => {
                self.free = Some(index);
                Some(state)
            }
            free => {
                *entry = free;
                None
            }
        }
    }
}
