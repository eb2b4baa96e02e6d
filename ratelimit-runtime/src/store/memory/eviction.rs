//! New keys, and room for them: expired keys go first, then keys of a policy that holds more than its share.

use smallvec::SmallVec;

use super::owners::Owner;
use super::slot::Content;
use super::slots::{LINE, SlotId};
use super::table::{KeyIndex, Table};
use crate::algorithm::holds::FOREVER;
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

/// What is known of the keys of which one is evicted.
type Sample<T> = SmallVec<[T; SAMPLED as usize]>;

/// A key that may be evicted.
struct Victim {
    /// Whether calls wait for it.
    is_awaited: bool,
    ends: u64,
    slot: SlotId,
    owner: Owner,
}

impl Table {
    /// Inserts a key that is not there yet, with this state.
    pub(super) fn insert(&mut self, index: KeyIndex, spec: &AlgorithmSpec, state: State, now: u64) {
        self.insert_with(index, now, |table| table.content(index, spec, state, now, None));
    }

    /// Inserts a key that is not there yet, once there is room.
    #[inline]
    pub(super) fn insert_with(
        &mut self,
        index: KeyIndex,
        now: u64,
        content: impl FnOnce(&mut Self) -> Content,
    ) {
        if self.len == 0 {
            self.slots.make_first_lines();
        }
        // Written at the end, and unlocking the table waits for that. It is another line if this one is full.
        self.owners.prefetch(self.slots.home(index.fingerprint));
        let mut place = None;
        if self.len >= self.max_keys {
            place = self.make_room(index, now);
        } else if self.slots.count() >= MIN_SWEPT {
            self.sweep(now.saturating_sub(KEPT));
        }
        let content = content(self);
        let slot = self.unused_slot(index.fingerprint);
        let locked = self.slots.slot(slot).lock();
        locked.set_fingerprint(index.fingerprint);
        locked.set(content);
        self.owners[slot] = match place {
            Some(owner) => {
                self.shares.relocate(owner.policy, owner.place, slot);
                owner
            }
            None => {
                let (policy, place) = self.shares.add(index.policy, slot);
                Owner { policy, place }
            }
        };
        self.len += 1;
        if self.slots.is_crowded(self.len) {
            self.split_line();
        }
    }

    /// Removes a key if it has expired by then. Returns whether it has. Other threads may have changed it since it was seen.
    fn remove_expired(&mut self, slot: SlotId, by: u64) -> bool {
        let locked = self.slots.slot(slot).lock();
        let (content, fingerprint) = (locked.content(), locked.fingerprint());
        if !content.has_ended(by) {
            return false;
        }
        locked.clear();
        self.forget(slot, content, fingerprint);
        true
    }

    /// Clears the slot of a key, unless a call has come to hold its permits since it was seen. Returns what the slot held.
    fn evict(&self, slot: SlotId) -> Option<(Content, Fingerprint)> {
        let locked = self.slots.slot(slot).lock();
        let (content, fingerprint) = (locked.content(), locked.fingerprint());
        if content.ends >= FOREVER {
            return None;
        }
        locked.clear();
        Some((content, fingerprint))
    }

    /// Forgets what the slot of a key held that was removed.
    pub(super) fn forget(&mut self, slot: SlotId, content: Content, fingerprint: Fingerprint) {
        let Owner { policy, place } = self.owners[slot];
        if let Some(moved) = self.shares.remove(policy, place) {
            self.owners[moved].place = place;
        }
        self.forget_but_place(content, fingerprint);
    }

    /// The same, but another key of the policy takes its place there.
    fn forget_but_place(&mut self, content: Content, fingerprint: Fingerprint) {
        if let Some(place) = content.as_other() {
            self.unused.remove(&self.slots.states, place);
        }
        self.end_queue(fingerprint);
        self.len -= 1;
        self.shorten(self.slots.home(fingerprint));
    }

    /// Removes keys in the next slots that had expired by then.
    fn sweep(&mut self, by: u64) {
        for _ in 0..SWEPT / LINE {
            for slot in self.next_expired(by) {
                self.remove_expired(slot, by);
            }
        }
    }

    /// Returns those slots of the next line whose keys had expired by then.
    fn next_expired(&mut self, by: u64) -> impl Iterator<Item = SlotId> + use<> {
        let line = self.owners.next_line(&mut self.hand);
        self.slots.prefetch(self.owners.next_line(&mut { self.hand }));
        (0..LINE).for_each(|_| self.count_look());
        // All at once, as most have not.
        let mut expired = 0;
        for (position, content) in self.slots.contents_of(line).enumerate() {
            expired |= u32::from(content.has_ended(by)) << position;
        }
        (0..LINE)
            .filter(move |position| expired >> position & 1 == 1)
            .map(move |position| line.slot(position))
    }

    /// Removes a key to make room for this one: an expired one among the next, or else one of the policy that has to give one up.
    /// Removes no more than one, because the next that is removed may be the next that is used. Returns its place among the keys of
    /// its policy if this key is of the same.
    fn make_room(&mut self, index: KeyIndex, now: u64) -> Option<Owner> {
        for _ in 0..SOUGHT / LINE {
            for slot in self.next_expired(now) {
                if self.remove_expired(slot, now) {
                    return None;
                }
            }
        }
        let policy = self.shares.victim(index.policy, self.max_keys)?;
        let (Victim { slot, owner, .. }, (content, fingerprint)) = loop {
            let victim = self.victim(policy)?;
            #[cfg(test)]
            AFTER_CHOOSING.take().into_iter().for_each(|then| then());
            if let Some(evicted) = self.evict(victim.slot) {
                break (victim, evicted);
            }
        };
        if content.ends > now {
            self.first_eviction |= self.evicted == 0;
            self.evicted += 1;
        }
        if !self.shares.is_of(policy, index.policy) {
            self.forget(slot, content, fingerprint);
            return None;
        }
        self.forget_but_place(content, fingerprint);
        Some(owner)
    }

    /// Returns the key that is closest to expiry among some random ones of a policy. One that calls wait for is only if there is no
    /// other, and one with holds never is: these are as few as the calls that run.
    ///
    /// The keys in the lines at hand would be nearer, but are no random choice: evictions change what is left there.
    fn victim(&mut self, policy: u32) -> Option<Victim> {
        let size = self.shares.size(policy) as u64;
        // First the places, then the slots and then what they hold, so that the processor fetches all of each at once.
        let mut places = Sample::<u32>::new();
        for i in 0..size.min(SAMPLED.into()) {
            self.count_look();
            // Not by a division, which takes as long as all else here.
            let place = if size > SAMPLED.into() { (self.next_random() * size) >> 32 } else { i } as u32;
            self.shares.prefetch(policy, place);
            places.push(place);
        }
        let mut keys = Sample::<(SlotId, u32)>::new();
        for place in places {
            let slot = self.shares.slot(policy, place);
            self.slots.slot(slot).prefetch();
            keys.push((slot, place));
        }
        let victims = keys.into_iter().map(|(slot, place)| {
            let entry = self.slots.slot(slot);
            let is_awaited = !self.queues.is_empty() && self.queues.contains_key(&entry.fingerprint());
            Victim { is_awaited, ends: entry.read().content.ends, slot, owner: Owner { policy, place } }
        });
        victims.filter(|victim| victim.ends < FOREVER).min_by_key(|victim| (victim.is_awaited, victim.ends))
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

#[cfg(test)]
thread_local! {
    /// What happens next between the choice of a key and its eviction, on this thread.
    pub(super) static AFTER_CHOOSING: std::cell::Cell<Option<Box<dyn FnOnce()>>> = const { std::cell::Cell::new(None) };
}
