//! New keys, and room for them: expired keys go first, then keys of a policy that holds more than its share.

use super::owners::Owner;
use super::slot::Content;
use super::slots::{LINE, SlotId};
use super::table::{KeyIndex, Table};
use crate::algorithm::{AlgorithmSpec, State};
use crate::key::Fingerprint;

/// The number of lines from which on expired keys are removed before the store is full.
const MIN_SWEPT: u32 = 256;

/// How long a key is kept after it has expired, in microseconds, unless the store is full. If it is used again by then, it
/// need not be inserted again.
const KEPT: u64 = 10_000_000;

/// The slots that each new key looks at for expired keys, in turn.
pub(super) const SWEPT: u32 = LINE;

/// The same where the store is full, and one has to be found.
pub(super) const SOUGHT: u32 = 64;

/// The number of a policy's keys of which the one closest to expiry is evicted.
pub(super) const SAMPLED: u32 = 16;

impl Table {
    /// Inserts a key that is not there yet.
    pub(super) fn insert(&mut self, index: KeyIndex, spec: &AlgorithmSpec, state: State, now: u64) {
        if self.len == 0 {
            self.slots.make_first_lines();
        }
        if self.slots.count() >= MIN_SWEPT {
            self.sweep(SWEPT, now.saturating_sub(KEPT), SWEPT);
        }
        if self.len >= self.max_keys {
            // No more than one: the next that is removed may be the next that is used.
            self.sweep(SOUGHT, now, 1);
        }
        if self.len >= self.max_keys {
            self.evict(index, now);
        }
        let content = self.content(index, spec, state, now, None);
        let slot = self.unused_slot(index.fingerprint);
        let locked = self.slots.slot(slot).lock();
        locked.set_fingerprint(index.fingerprint);
        locked.set(content);
        let (policy, place) = self.shares.add(index.policy, slot);
        self.owners[slot] = Owner { policy, place };
        self.len += 1;
        if self.slots.is_crowded(self.len) {
            self.split_line();
        }
    }

    /// Removes a key. Calls that wait for it keep their slots. Returns when its state ends.
    pub(super) fn remove(&mut self, slot: SlotId) -> u64 {
        let mut ends = 0;
        self.remove_if(slot, |content| {
            ends = content.ends;
            true
        });
        ends
    }

    /// Removes a key if its content says so, which other threads may change until the slot is locked.
    fn remove_if(&mut self, slot: SlotId, condition: impl FnOnce(Content) -> bool) {
        let locked = self.slots.slot(slot).lock();
        let (content, fingerprint) = (locked.content(), locked.fingerprint());
        if !condition(content) {
            return;
        }
        locked.clear();
        self.forget(slot, content, fingerprint);
    }

    /// Forgets what the slot of a key held that was removed.
    pub(super) fn forget(&mut self, slot: SlotId, content: Content, fingerprint: Fingerprint) {
        if let Some(place) = content.as_other() {
            self.unused.remove(&self.slots.states, place);
        }
        self.end_queue(fingerprint);
        let Owner { policy, place } = self.owners[slot];
        if let Some(moved) = self.shares.remove(policy, place) {
            self.owners[moved].place = place;
        }
        self.len -= 1;
        self.shorten(self.slots.home(fingerprint));
    }

    /// Removes keys in the next slots that had expired by then, up to so many.
    fn sweep(&mut self, slots: u32, by: u64, mut most: u32) {
        let is_expired = |content: Content| !content.is_free() && content.ends <= by;
        for _ in 0..slots / LINE {
            if most == 0 {
                return;
            }
            self.hand = if self.hand + 1 < self.owners.lines() { self.hand + 1 } else { 0 };
            for slot in self.slots.slots_of(self.owners.line(self.hand)) {
                self.count_look();
                if most > 0 && is_expired(self.slots.slot(slot).read().content) {
                    self.remove_if(slot, is_expired);
                    most -= 1;
                }
            }
        }
    }

    /// Removes a key to make room for this one: of some keys of the policy that has to give one up, the one closest to expiry,
    /// and one that calls wait for only if there is no other.
    fn evict(&mut self, index: KeyIndex, now: u64) {
        let Some(policy) = self.shares.victim(index.policy, self.max_keys) else { return };
        let size = self.shares.size(policy) as u64;
        let mut victim: Option<((bool, u64), SlotId)> = None;
        for i in 0..size.min(SAMPLED.into()) {
            self.count_look();
            let place = if size > SAMPLED.into() { self.next_random() % size } else { i };
            let slot = self.shares.slot(policy, place as u32);
            let entry = self.slots.slot(slot);
            let is_awaited = !self.queues.is_empty() && self.queues.contains_key(&entry.fingerprint());
            let rank = (is_awaited, entry.read().content.ends);
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
