//! The keys of each policy, so that a full store evicts those of a policy that holds more than its share.

use std::collections::BTreeMap;

use super::segments::Segments;
use super::slots::SlotId;
use crate::base::prefetch::prefetch;
use crate::key::policy_id::PolicyId;

/// All policies that hold keys, in collections that never move all their elements.
#[derive(Debug, Default)]
pub(super) struct Shares {
    by_id: BTreeMap<PolicyId, u32>,
    policies: Segments<PolicyKeys>,
    /// The elements of `policies` without keys.
    free: Segments<u32>,
    /// All policies, those with the most keys first.
    ranked: Segments<u32>,
}

#[derive(Debug)]
struct PolicyKeys {
    id: PolicyId,
    /// Its place among those that are ranked.
    rank: u32,
    slots: Segments<SlotId>,
}

impl Shares {
    /// Adds a slot to a policy's. Returns the policy and the place of the slot there.
    pub(super) fn add(&mut self, id: PolicyId, slot: SlotId) -> (u32, u32) {
        let policy = *self.by_id.entry(id).or_insert_with(|| {
            self.free.pop().unwrap_or_else(|| {
                let policy = self.policies.len() as u32;
                self.policies.push(PolicyKeys { id, rank: policy, slots: Segments::default() });
                self.ranked.push(policy);
                policy
            })
        });
        let size = self.size(policy);
        // To the front of those of its size, which it leaves.
        self.move_to(policy, self.number_with(|keys| keys > size));
        let keys = &mut self.policies[policy];
        keys.id = id;
        keys.slots.push(slot);
        (policy, size as u32)
    }

    /// Removes the slot at this place of a policy. Returns the slot that takes its place, if one does.
    pub(super) fn remove(&mut self, policy: u32, place: u32) -> Option<SlotId> {
        let size = self.size(policy);
        // To the end of those of its size.
        self.move_to(policy, self.number_with(|keys| keys >= size) - 1);
        let PolicyKeys { id, slots, .. } = &mut self.policies[policy];
        slots.swap_remove(place);
        if size == 1 {
            self.by_id.remove(id);
            self.free.push(policy);
        }
        (place as usize + 1 < size).then(|| slots[place])
    }

    /// Changes the slot at this place of a policy.
    pub(super) fn relocate(&mut self, policy: u32, place: u32, slot: SlotId) {
        self.policies[policy].slots[place] = slot;
    }

    /// Returns the policy that gives up a key of `max_keys` for a new one of the given policy: itself if it holds its share or
    /// more, otherwise the largest one, which then holds more than its share.
    pub(super) fn victim(&self, id: PolicyId, max_keys: usize) -> Option<u32> {
        let own = self.by_id.get(&id).copied();
        let policies = self.by_id.len() + usize::from(own.is_none());
        own.filter(|own| self.size(*own) >= max_keys / policies)
            .or_else(|| (self.ranked.len() > 0).then(|| self.ranked[0]))
    }

    /// Whether the policy is the one with this id.
    pub(super) fn is_of(&self, policy: u32, id: PolicyId) -> bool {
        self.policies[policy].id == id
    }

    /// Returns the number of a policy's keys.
    pub(super) fn size(&self, policy: u32) -> usize {
        self.policies[policy].slots.len()
    }

    /// Returns the slot at this place of a policy.
    pub(super) fn slot(&self, policy: u32, place: u32) -> SlotId {
        self.policies[policy].slots[place]
    }

    /// Lets the processor fetch the slot at this place of a policy.
    #[inline]
    pub(super) fn prefetch(&self, policy: u32, place: u32) {
        prefetch(&self.policies[policy].slots[place]);
    }

    /// Returns the number of policies with so many keys, which are ranked before the others.
    fn number_with(&self, is_enough: impl Fn(usize) -> bool) -> u32 {
        let (mut low, mut high) = (0, self.ranked.len() as u32);
        while low < high {
            let middle = low.midpoint(high);
            if is_enough(self.size(self.ranked[middle])) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Gives a policy another rank, and its own to the one that has it.
    fn move_to(&mut self, policy: u32, rank: u32) {
        let (other, own) = (self.ranked[rank], self.policies[policy].rank);
        if own == rank {
            return;
        }
        for (policy, rank) in [(other, own), (policy, rank)] {
            self.ranked[rank] = policy;
            self.policies[policy].rank = rank;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::slots::LineId;

    #[test]
    fn the_policy_with_the_most_keys_is_the_first() {
        let ids = ["a", "b", "c", "d", "e"].map(|name| PolicyId::new("", name));
        let (mut shares, mut sizes) = (Shares::default(), [0usize; 5]);
        let slot = LineId::new(0).slot(0);
        for i in 0..2000u32 {
            let which = (i.wrapping_mul(2_654_435_761) >> 16) as usize % 5;
            // Grows, and shrinks again.
            if sizes[which] == 0 || i % 3 < 1 + u32::from(i < 1000) {
                shares.add(ids[which], slot);
                sizes[which] += 1;
            } else {
                shares.remove(shares.by_id[&ids[which]], 0);
                sizes[which] -= 1;
            }
            let ranked = (0..shares.ranked.len() as u32).map(|rank| {
                let policy = shares.ranked[rank];
                assert_eq!(shares.policies[policy].rank, rank);
                shares.size(policy)
            });
            let mut expected: Vec<_> = sizes.into_iter().filter(|size| *size > 0).collect();
            expected.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!(ranked.filter(|size| *size > 0).collect::<Vec<_>>(), expected);
            // Of a new policy, whose share is more than it holds.
            let victim = shares.victim(PolicyId::new("", "new"), 1_000_000).map(|victim| shares.size(victim));
            assert_eq!(victim.filter(|size| *size > 0), expected.first().copied());
        }
    }
}
