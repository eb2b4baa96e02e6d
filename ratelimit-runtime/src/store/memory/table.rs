//! Every state by the hash of its key, and the lines of those who wait.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::line::{Line, Moved, Waiter};
use crate::algorithm::{AlgorithmSpec, Snapshot, State};
use crate::store::Charge;

/// Below this many keys nothing is swept.
pub(super) const FEWEST_SWEPT: usize = 1024;

/// A sweep of a full store makes room for this part of its keys at least, so that the many that come next pay for it.
const PART_FORGOTTEN: usize = 16;

type ByKey<T> = HashMap<u128, T, BuildHasherDefault<KeyIsHash>>;

#[derive(Debug)]
pub(super) struct Table {
    pub(super) entries: ByKey<Entry>,
    /// The keys that somebody waits for. Apart, so that the many others do not pay for it.
    pub(super) lines: ByKey<Line>,
    /// Those in lines who have moved up and have not been told.
    pub(super) moved: Moved,
    max_keys: usize,
    /// The number of keys at which to look for what has ended.
    sweep_at: usize,
    pub(super) evicted: u64,
    /// Whether a key that counts was evicted for the first time, and nobody has been told.
    pub(super) first_loss: bool,
    #[cfg(test)]
    pub(super) sweeps: u64,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) ends: u64,
    /// Some but while it is being changed.
    state: Option<State>,
}

impl Table {
    pub(super) fn new(max_keys: usize) -> Self {
        Table {
            entries: ByKey::default(),
            lines: ByKey::default(),
            moved: Moved::default(),
            max_keys,
            sweep_at: max_keys.min(FEWEST_SWEPT),
            evicted: 0,
            first_loss: false,
            #[cfg(test)]
            sweeps: 0,
        }
    }

    pub(super) fn state(&self, index: u128) -> Option<&State> {
        self.entries.get(&index)?.state.as_ref()
    }

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
            self.entries.insert(index, Entry { ends, state });
        }
    }

    /// Makes an admitted charge. It stands in line if its call waits for it, and behind those who wait in any case, so that it
    /// is not evicted when one of them leaves.
    pub(super) fn charge(
        &mut self,
        index: u128,
        charge: &Charge,
        (now, snapshot): (u64, Snapshot),
        waits: Option<(&Arc<Waiter>, usize)>,
    ) {
        let Charge { spec, cost, .. } = charge;
        let before = (waits.is_some() || self.lines.contains_key(&index)).then(|| self.state(index).cloned());
        self.change(index, spec, now, |state| spec.commit(state, snapshot, now, *cost));
        if let Some(before) = before {
            let nobody;
            let (waiter, place) = match waits {
                Some(waits) => waits,
                None => {
                    let verdict = spec.verdict(snapshot, now, *cost, u64::MAX);
                    nobody = Arc::new(Waiter::new(now, [&verdict].into_iter()));
                    (&nobody, 0)
                }
            };
            let line = self.lines.entry(index).or_insert_with(|| Line::new(*spec));
            line.join(waiter, (place, *cost), before, now);
        }
    }

    /// Takes the place of a call away that waits. Whether it had one.
    pub(super) fn leave(&mut self, index: u128, waiter: &Arc<Waiter>, place: usize, now: u64) -> bool {
        let Some(line) = self.lines.get_mut(&index) else { return false };
        let left = line.leave(waiter, place, &mut self.moved);
        if line.is_empty() {
            self.tidy(index, now);
        }
        left
    }

    /// Lets those move up who wait for a key that others have left.
    pub(super) fn move_up(&mut self, index: u128, now: u64) {
        let Some(line) = self.lines.get_mut(&index) else { return };
        let spec = line.spec;
        if let Some(moved) = line.move_up(now, &mut self.moved) {
            self.change(index, &spec, now, |state| *state = moved);
        }
    }

    /// As [`change`](Self::change), of what was charged before those in line, who then move up.
    pub(super) fn change_before_line(
        &mut self,
        index: u128,
        spec: &AlgorithmSpec,
        now: u64,
        change: impl Fn(&mut Option<State>),
    ) {
        self.move_up(index, now);
        match self.lines.get_mut(&index).and_then(|line| line.change(now, &mut self.moved, &change)) {
            Some(moved) => self.change(index, spec, now, |state| *state = moved),
            None => self.change(index, spec, now, change),
        }
        self.tidy(index, now);
    }

    /// Forgets a line in which nobody waits any more.
    pub(super) fn tidy(&mut self, index: u128, now: u64) {
        self.move_up(index, now);
        if self.lines.get_mut(&index).is_some_and(|line| line.is_over(now)) {
            self.lines.remove(&index);
        }
    }

    /// Forgets all but those in line, who then move up.
    pub(super) fn reset(&mut self, index: u128, now: u64) {
        self.move_up(index, now);
        let line = self.lines.get_mut(&index);
        let moved = line
            .and_then(|line| Some((line.spec, line.change(now, &mut self.moved, |before| *before = None)?)));
        match moved {
            Some((spec, moved)) => self.change(index, &spec, now, |state| *state = moved),
            None => drop(self.entries.remove(&index)),
        }
        self.tidy(index, now);
    }

    /// Makes room: forgets what has ended, and if that is not enough what ends next.
    fn sweep(&mut self, now: u64) {
        #[cfg(test)]
        {
            self.sweeps += 1;
        }
        let room = self.max_keys.div_ceil(PART_FORGOTTEN);
        // All that ends before goes, and of what ends then so many.
        let (mut first_to_stay, mut ties) = (now + 1, 0);
        // Each look at a great table takes long, so they are few.
        if self.entries.len() + room > self.max_keys {
            let live = self.entries.values().map(|entry| entry.ends).filter(|ends| *ends > now);
            let mut ends: Vec<u64> = live.collect();
            let forget = (ends.len() + room).saturating_sub(self.max_keys);
            if forget > 0 {
                let (before, last, _) = ends.select_nth_unstable(forget - 1);
                ties = forget - before.iter().filter(|ends| **ends < *last).count();
                first_to_stay = *last;
                self.first_loss |= self.evicted == 0;
                self.evicted += forget as u64;
            }
        }
        self.entries.retain(|_, entry| {
            let is_tie = entry.ends == first_to_stay && ties > 0;
            ties -= usize::from(is_tie);
            entry.ends >= first_to_stay && !is_tie
        });
        let entries = &self.entries;
        self.lines.retain(|index, _| entries.contains_key(index));
        self.sweep_at = (2 * self.entries.len()).max(FEWEST_SWEPT).min(self.max_keys);
    }
}

/// The keys are hashes already.
#[derive(Debug, Default)]
pub(super) struct KeyIsHash(u64);

impl Hasher for KeyIsHash {
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
