//! New keys, and room for them: expired keys go first, then keys of a policy that holds more than its share.

use super::table::{KeyIndex, Table};
use crate::algorithm::State;

/// The number of slots from which on expired keys are removed before the store is full.
const MIN_SWEPT: usize = 1024;

/// The slots that each new key looks at for expired keys, in turn.
pub(super) const SWEPT: u64 = 4;

/// The same where the store is full, and the number of a policy's keys of which the one closest to expiry is evicted.
pub(super) const SAMPLED: u64 = 16;

impl Table {
    /// Inserts a key that is not there yet.
    pub(super) fn insert(&mut self, index: KeyIndex, ends: u64, state: State, now: u64) {
        if self.slots.slots() >= MIN_SWEPT {
            self.sweep(SWEPT, now);
        }
        if self.slots.len() >= self.max_keys {
            self.sweep(SAMPLED, now);
        }
        if self.slots.len() >= self.max_keys {
            self.evict(index, now);
        }
        let slot = self.slots.insert(index.fingerprint, ends, state);
        let (policy, place) = self.shares.add(index.policy, slot);
        let inserted = self.slots.get_mut(slot);
        (inserted.policy, inserted.place) = (policy, place);
    }

    /// Removes a key. Calls that wait for it keep their slots.
    pub(super) fn remove(&mut self, slot: u32) {
        let removed = self.slots.get(slot);
        let (fingerprint, policy, place) = (removed.fingerprint, removed.policy, removed.place);
        if !self.queues.is_empty() {
            self.queues.remove(&fingerprint);
        }
        if let Some(moved) = self.shares.remove(policy, place) {
            self.slots.get_mut(moved).place = place;
        }
        self.slots.remove(slot);
    }

    /// Removes the expired keys in the next slots.
    fn sweep(&mut self, slots: u64, now: u64) {
        for _ in 0..slots.min(self.slots.slots() as u64) {
            self.count_look();
            if self.hand as usize >= self.slots.slots() {
                self.hand = 0;
            }
            let slot = self.slots.get(self.hand);
            if slot.state.is_some() && slot.ends <= now {
                self.remove(self.hand);
            }
            self.hand += 1;
        }
    }

    /// Removes a key to make room for this one: of some keys of the policy that has to give one up, the one closest to expiry,
    /// and one that calls wait for only if there is no other.
    fn evict(&mut self, index: KeyIndex, now: u64) {
        let Some(policy) = self.shares.victim(index.policy, self.max_keys) else { return };
        let size = self.shares.size(policy) as u64;
        let mut victim: Option<((bool, u64), u32)> = None;
        for i in 0..size.min(SAMPLED) {
            self.count_look();
            let place = if size > SAMPLED { self.next_random() % size } else { i };
            let slot = self.shares.slot(policy, place as u32);
            let entry = self.slots.get(slot);
            let is_awaited = !self.queues.is_empty() && self.queues.contains_key(&entry.fingerprint);
            let rank = (is_awaited, entry.ends);
            if victim.is_none_or(|(lowest, _)| rank < lowest) {
                victim = Some((rank, slot));
            }
        }
        let Some(((_, ends), slot)) = victim else { return };
        if ends > now {
            self.first_eviction |= self.evicted == 0;
            self.evicted += 1;
        }
        self.remove(slot);
    }

    fn next_random(&mut self) -> u64 {
        const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
        self.random = self.random.wrapping_mul(MULTIPLIER).wrapping_add(1);
        self.random >> 32
    }

    fn count_look(&mut self) {
        #[cfg(test)]
        {
            self.looks += 1;
        }
    }
}
