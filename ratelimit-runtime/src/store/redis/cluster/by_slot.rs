//! Groups the decisions of one call by Cluster slot.

use std::collections::BTreeMap;

use super::slots::common_slot;
use crate::store::charge::Charge;
use crate::store::error::StoreError;
use crate::store::redis::scripts::key_text;

/// Returns the indices of the decisions, in order, grouped by slot. A decision whose keys have no common slot, which cannot
/// be sent, is a group by itself, so that it fails alone.
pub(crate) fn by_slot(decisions: &[&[Charge]]) -> Vec<Vec<usize>> {
    let (mut slots, mut invalid) = (BTreeMap::<u16, Vec<usize>>::new(), Vec::new());
    for (index, charges) in decisions.iter().enumerate() {
        match slot_of(charges) {
            Ok(slot) => slots.entry(slot).or_default().push(index),
            Err(_) => invalid.push(vec![index]),
        }
    }
    slots.into_values().chain(invalid).collect()
}

/// Returns the slot of a decision, if its keys have one in common.
pub(crate) fn slot_of(charges: &[Charge]) -> Result<u16, StoreError> {
    let keys: Result<Vec<&str>, _> = charges.iter().map(|charge| key_text(&charge.key)).collect();
    common_slot(&keys?)
}
