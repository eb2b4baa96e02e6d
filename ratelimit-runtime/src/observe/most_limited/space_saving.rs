//! Counting the most frequent items of a stream in bounded memory, by the Space-Saving algorithm.

use std::collections::HashMap;

/// The counters of the items that were most frequent.
///
/// An item without a counter takes that of the least frequent one, and counts on from there. So the counts add up to the length of
/// the stream, and none is more than the smallest count too high.
pub(super) struct SpaceSaving<T> {
    capacity: usize,
    /// In descending order of their counts.
    counters: Vec<Counter<T>>,
    /// Where the counter of an item is, by its id.
    positions: HashMap<u64, usize>,
}

pub(super) struct Counter<T> {
    /// Identifies the item.
    pub(super) id: u64,
    pub(super) item: T,
    pub(super) count: u64,
    /// The count when the item took the counter.
    pub(super) overcount: u64,
}

impl<T> SpaceSaving<T> {
    /// Keeps at most this many counters, and at least one.
    pub(super) fn new(capacity: usize) -> Self {
        SpaceSaving { capacity: capacity.max(1), counters: Vec::new(), positions: HashMap::new() }
    }

    /// Returns the counters in descending order of their counts.
    pub(super) fn counters(&self) -> &[Counter<T>] {
        &self.counters
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        self.positions.contains_key(&id)
    }

    pub(super) fn clear(&mut self) {
        self.counters.clear();
        self.positions.clear();
    }

    /// Counts one occurrence of the item with this id.
    pub(super) fn add(&mut self, id: u64, item: impl FnOnce() -> T) {
        let position = match self.positions.get(&id) {
            Some(position) => *position,
            None => self.start(id, item()),
        };
        // The first of those with the same count may become larger without any other moving.
        let count = self.counters[position].count;
        let first = self.counters[..position].partition_point(|counter| counter.count > count);
        self.counters.swap(first, position);
        self.counters[first].count += 1;
        self.positions.insert(self.counters[position].id, position);
        self.positions.insert(id, first);
    }

    /// Returns the position of a counter for a new item, which is the last.
    fn start(&mut self, id: u64, item: T) -> usize {
        let is_full = self.counters.len() == self.capacity;
        let overcount = match self.counters.pop_if(|_| is_full) {
            Some(least) => {
                self.positions.remove(&least.id);
                least.count
            }
            None => 0,
        };
        self.counters.push(Counter { id, item, count: overcount, overcount });
        self.counters.len() - 1
    }
}
