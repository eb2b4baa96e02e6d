//! The states of all keys. It grows by one slot and one bucket at a time, so no insertion takes long.

use super::segments::Segments;
use crate::algorithm::State;
use crate::key::Fingerprint;

/// No slot.
const NONE: u32 = u32::MAX;

/// The highest number of slots.
pub(super) const MAX_SLOTS: usize = NONE as usize - 1;

/// A hash table by linear hashing (Litwin, 1980): a slab of slots, and chains of slots that share a bucket. For each new slot
/// one bucket is split in two.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Segments<Slot>,
    /// The first slot of each bucket's chain.
    buckets: Segments<u32>,
    /// One less than the next power of two from the number of buckets on.
    mask: u64,
    /// The first unused slot. They form a chain, too.
    free: u32,
    len: usize,
}

/// A key's state.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) fingerprint: Fingerprint,
    /// When the state ends.
    pub(super) ends: u64,
    /// `None` if the slot is unused.
    pub(super) state: Option<State>,
    /// The policy, and the place of this slot among the policy's.
    pub(super) policy: u32,
    pub(super) place: u32,
    next: u32,
}

impl Slots {
    pub(super) fn new() -> Self {
        let mut buckets = Segments::default();
        buckets.push(NONE);
        Slots { slots: Segments::default(), buckets, mask: 0, free: NONE, len: 0 }
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of slots, used or not.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn get(&self, slot: u32) -> &Slot {
        &self.slots[slot]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot]
    }

    #[inline]
    pub(super) fn find(&self, fingerprint: Fingerprint) -> Option<u32> {
        let mut slot = self.buckets[self.bucket(fingerprint)];
        while slot != NONE {
            let Slot { fingerprint: other, next, .. } = &self.slots[slot];
            if *other == fingerprint {
                return Some(slot);
            }
            slot = *next;
        }
        None
    }

    /// Inserts a key that is not there yet. Its policy and place are yet to be set.
    pub(super) fn insert(&mut self, fingerprint: Fingerprint, ends: u64, state: State) -> u32 {
        let slot = Slot { fingerprint, ends, state: Some(state), policy: 0, place: 0, next: NONE };
        let index = if self.free == NONE {
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        } else {
            let index = self.free;
            self.free = self.slots[index].next;
            self.slots[index] = slot;
            index
        };
        self.link(index);
        self.len += 1;
        if self.len > self.buckets.len() {
            self.split();
        }
        index
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let next = self.slots[slot].next;
        let bucket = self.bucket(self.slots[slot].fingerprint);
        if self.buckets[bucket] == slot {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket];
            while self.slots[before].next != slot {
                before = self.slots[before].next;
            }
            self.slots[before].next = next;
        }
        let removed = &mut self.slots[slot];
        (removed.state, removed.next) = (None, self.free);
        self.free = slot;
        self.len -= 1;
    }

    #[inline]
    fn bucket(&self, fingerprint: Fingerprint) -> u32 {
        let bucket = fingerprint.0[0] & self.mask;
        // The upper buckets do not all exist yet. Their keys are in the bucket that will be split.
        (if bucket < self.buckets.len() as u64 { bucket } else { bucket & (self.mask >> 1) }) as u32
    }

    /// Puts a slot into its bucket.
    fn link(&mut self, slot: u32) {
        let bucket = self.bucket(self.slots[slot].fingerprint);
        self.slots[slot].next = self.buckets[bucket];
        self.buckets[bucket] = slot;
    }

    /// Adds a bucket, and moves its keys there.
    fn split(&mut self) {
        let new = self.buckets.len() as u64;
        self.buckets.push(NONE);
        self.mask = self.mask.max((new + 1).next_power_of_two() - 1);
        let old = (new & (self.mask >> 1)) as u32;
        let mut slot = std::mem::replace(&mut self.buckets[old], NONE);
        while slot != NONE {
            let next = self.slots[slot].next;
            self.link(slot);
            slot = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::AlgorithmSpec;
    use crate::policy::{FixedWindow, Policy};

    fn state() -> State {
        let policy = Policy::from(FixedWindow::new(1, std::time::Duration::from_secs(1)));
        let spec: AlgorithmSpec = policy.spec().unwrap();
        let mut state = None;
        spec.commit(&mut state, spec.check(None, 0, 1), 0, 1);
        state.unwrap()
    }

    #[test]
    fn keys_come_and_go() {
        let (mut slots, mut known) = (Slots::new(), std::collections::HashMap::new());
        let mut random = 1u64;
        for i in 0..20_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few different keys, some of which differ only in the second word.
            let fingerprint = Fingerprint([(random >> 33) % 1500, (random >> 60) % 2]);
            match known.remove(&fingerprint.0) {
                Some(slot) => {
                    assert_eq!(slots.find(fingerprint), Some(slot));
                    slots.remove(slot);
                }
                None => {
                    assert_eq!(slots.find(fingerprint), None);
                    known.insert(fingerprint.0, slots.insert(fingerprint, i, state()));
                }
            }
            assert_eq!(slots.len(), known.len());
        }
        for (fingerprint, slot) in known {
            assert_eq!(slots.find(Fingerprint(fingerprint)), Some(slot));
        }
        assert!(slots.buckets.len() <= slots.slots() + 1);
    }
}
