//! All states by the hash of their keys, and the queues of waiting calls.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::reservations::{QueuedCharge, ReservationQueue, Waiter, WaiterSlot};
use crate::algorithm::{AlgorithmSpec, Snapshot, State};
use crate::store::charge::Charge;

/// The minimum number of keys for a sweep.
pub(super) const MIN_SWEPT: usize = 1024;

/// A sweep of a full store frees at least one in this many slots, so that its cost is spread over the keys that follow.
const FREED_PART: usize = 16;

type ByKey<T> = HashMap<u128, T, BuildHasherDefault<IdentityHasher>>;

#[derive(Debug)]
pub(super) struct Table {
    pub(super) entries: ByKey<TableEntry>,
    /// The keys that calls wait for. A separate map, because most keys have no queue.
    pub(super) queues: ByKey<ReservationQueue>,
    /// The waiters that have moved up, to be notified once the table is unlocked.
    pub(super) moved: Vec<Arc<Waiter>>,
    max_keys: usize,
    /// The number of keys at which the next sweep runs.
    sweep_at: usize,
    pub(super) evicted: u64,
    /// Whether the first eviction of a live key has happened and was not logged yet.
    pub(super) first_eviction: bool,
    #[cfg(test)]
    pub(super) sweeps: u64,
}

#[derive(Debug)]
pub(super) struct TableEntry {
    pub(super) ends: u64,
    /// `None` only while it is being changed.
    state: Option<State>,
}

impl Table {
    pub(super) fn new(max_keys: usize) -> Self {
        Table {
            entries: ByKey::default(),
            queues: ByKey::default(),
            moved: Vec::new(),
            max_keys,
            sweep_at: max_keys.min(MIN_SWEPT),
            evicted: 0,
            first_eviction: false,
            #[cfg(test)]
            sweeps: 0,
        }
    }

    pub(super) fn state(&self, index: u128) -> Option<&State> {
        self.entries.get(&index)?.state.as_ref()
    }

    /// Changes a state, and stores or removes it.
    pub(super) fn change(
        &mut self,
        index: u128,
        spec: &AlgorithmSpec,
        now: u64,
        change: impl FnOnce(&mut Option<State>),
    ) {
        if let Some(entry) = self.entries.get_mut(&index) {
            change(&mut entry.state);
            match &entry.state {
                Some(state) => entry.ends = spec.ends(state),
                None => drop(self.entries.remove(&index)),
            }
            return;
        }
        let mut state = None;
        change(&mut state);
        if let Some(present) = &state {
            let ends = spec.ends(present);
            if self.entries.len() >= self.sweep_at {
                self.sweep(now);
            }
            self.entries.insert(index, TableEntry { ends, state });
        }
    }

    /// Makes an admitted charge. It is queued if its call waits for it, or if others wait for the key: when one of these
    /// leaves, the charges behind it are repeated.
    pub(super) fn charge(
        &mut self,
        index: u128,
        charge: &Charge,
        snapshot: Snapshot,
        now: u64,
        slot: Option<WaiterSlot>,
    ) {
        let (spec, cost) = (&charge.spec, charge.cost);
        let is_queued = slot.is_some() || self.queues.contains_key(&index);
        let before = is_queued.then(|| self.state(index).cloned());
        self.change(index, spec, now, |state| spec.commit(state, snapshot, now, cost));
        if let Some(before) = before {
            let slot = slot.unwrap_or_else(|| {
                let verdict = spec.verdict(snapshot, now, cost, u64::MAX);
                WaiterSlot { waiter: Arc::new(Waiter::new(now, [&verdict])), charge: 0 }
            });
            let queue = self.queues.entry(index).or_insert_with(|| ReservationQueue::new(*spec));
            queue.push(QueuedCharge { slot, cost, before }, now);
        }
    }

    /// Removes a waiting charge. Returns whether it was queued.
    pub(super) fn leave(&mut self, index: u128, slot: &WaiterSlot, now: u64) -> bool {
        let Some(queue) = self.queues.get_mut(&index) else { return false };
        let left = queue.leave(slot, &mut self.moved);
        if queue.is_empty() {
            self.remove_finished_queue(index, now);
        }
        left
    }

    /// Moves up the calls behind those that have left the key's queue.
    pub(super) fn move_up(&mut self, index: u128, now: u64) {
        let Some(queue) = self.queues.get_mut(&index) else { return };
        let spec = queue.spec;
        if let Some(moved) = queue.move_up(now, &mut self.moved) {
            self.change(index, &spec, now, |state| *state = moved);
        }
    }

    /// Changes a state as it was before the queued charges, which then move up.
    pub(super) fn change_before_queue(
        &mut self,
        index: u128,
        spec: &AlgorithmSpec,
        now: u64,
        change: impl Fn(&mut Option<State>),
    ) {
        self.move_up(index, now);
        match self.queues.get_mut(&index).and_then(|queue| queue.change(now, &mut self.moved, &change)) {
            Some(moved) => self.change(index, spec, now, |state| *state = moved),
            None => self.change(index, spec, now, change),
        }
        self.remove_finished_queue(index, now);
    }

    /// Removes the queue if all its slots have started.
    pub(super) fn remove_finished_queue(&mut self, index: u128, now: u64) {
        self.move_up(index, now);
        if self.queues.get_mut(&index).is_some_and(|queue| queue.remove_started(now)) {
            self.queues.remove(&index);
        }
    }

    /// Removes a state but for the queued charges, which then move up.
    pub(super) fn reset(&mut self, index: u128, now: u64) {
        self.move_up(index, now);
        let queue = self.queues.get_mut(&index);
        let moved = queue.and_then(|queue| {
            Some((queue.spec, queue.change(now, &mut self.moved, |before| *before = None)?))
        });
        match moved {
            Some((spec, moved)) => self.change(index, &spec, now, |state| *state = moved),
            None => drop(self.entries.remove(&index)),
        }
        self.remove_finished_queue(index, now);
    }

    /// Removes expired states, and if that is not enough evicts those closest to expiry.
    fn sweep(&mut self, now: u64) {
        #[cfg(test)]
        {
            self.sweeps += 1;
        }
        let freed = self.max_keys.div_ceil(FREED_PART);
        // All states that end before `first_kept` are removed, and `ties` of those that end then.
        let (mut first_kept, mut ties) = (now + 1, 0);
        // A pass over a large table is slow, so this one is made only if the store would stay nearly full.
        if self.entries.len() + freed > self.max_keys {
            let live = self.entries.values().map(|entry| entry.ends).filter(|ends| *ends > now);
            let mut ends: Vec<u64> = live.collect();
            let evicted = (ends.len() + freed).saturating_sub(self.max_keys);
            if evicted > 0 {
                let (before, last, _) = ends.select_nth_unstable(evicted - 1);
                ties = evicted - before.iter().filter(|ends| **ends < *last).count();
                first_kept = *last;
                self.first_eviction |= self.evicted == 0;
                self.evicted += evicted as u64;
            }
        }
        self.entries.retain(|_, entry| {
            let is_tie = entry.ends == first_kept && ties > 0;
            ties -= usize::from(is_tie);
            entry.ends >= first_kept && !is_tie
        });
        let entries = &self.entries;
        self.queues.retain(|index, _| entries.contains_key(index));
        self.sweep_at = (2 * self.entries.len()).max(MIN_SWEPT).min(self.max_keys);
    }
}

/// The keys are hashes already.
#[derive(Debug, Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("every key is a u128");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
