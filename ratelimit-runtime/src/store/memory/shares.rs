//! The keys of each policy, so that a full store evicts those of a policy that holds more than its share.

use std::collections::{BTreeMap, BTreeSet};

use super::segments::Segments;
use super::slots::SlotId;
use crate::key::policy_id::PolicyId;

/// All policies that hold keys, in collections that never move all their elements.
#[derive(Debug, Default)]
pub(super) struct Shares {
    by_id: BTreeMap<PolicyId, u32>,
    policies: Segments<PolicyKeys>,
    /// The elements of `policies` without keys.
    free: Segments<u32>,
    /// The policies by the number of their keys.
    by_size: BTreeSet<(usize, u32)>,
}

#[derive(Debug)]
struct PolicyKeys {
    id: PolicyId,
    slots: Segments<SlotId>,
}

impl Shares {
    /// Adds a slot to a policy's. Returns the policy and the place of the slot there.
    pub(super) fn add(&mut self, id: PolicyId, slot: SlotId) -> (u32, u32) {
        let policy = *self.by_id.entry(id).or_insert_with(|| {
            self.free.pop().unwrap_or_else(|| {
                self.policies.push(PolicyKeys { id, slots: Segments::default() });
                self.policies.len() as u32 - 1
            })
        });
        let keys = &mut self.policies[policy];
        keys.id = id;
        let size = keys.slots.len();
        keys.slots.push(slot);
        self.by_size.remove(&(size, policy));
        self.by_size.insert((size + 1, policy));
        (policy, size as u32)
    }

    /// Removes the slot at this place of a policy. Returns the slot that takes its place, if one does.
    pub(super) fn remove(&mut self, policy: u32, place: u32) -> Option<SlotId> {
        let PolicyKeys { id, slots } = &mut self.policies[policy];
        let size = slots.len();
        slots.swap_remove(place);
        self.by_size.remove(&(size, policy));
        if size > 1 {
            self.by_size.insert((size - 1, policy));
        } else {
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
            .or_else(|| self.by_size.last().map(|(_, policy)| *policy))
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
}
