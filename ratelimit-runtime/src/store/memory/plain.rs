//! Decisions on plain states, without the table's lock.

use super::MemoryStore;
use super::slot::{Content, LockedSlot, Seen, Slot};
use crate::algorithm::{AlgorithmSpec, PlainSnapshot};
use crate::key::Fingerprint;
use crate::store::charge::{Charge, Outcome, judge};
use crate::sync::spin_loop;

/// How often the same charges are tried while others change their keys. Then they take the table's lock, which holds one key after
/// the other, so that a stack of busy keys gets its turn.
const ATTEMPTS: u32 = 8;

/// A charge of a key that may be decided without a lock. It does not wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainCharge<'a> {
    pub(crate) key: &'a Fingerprint,
    pub(crate) spec: &'a AlgorithmSpec,
    pub(crate) cost: u64,
}

/// The decision about plain charges. All are made if it is admitted, otherwise none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainOutcome<const N: usize> {
    pub(crate) now: u64,
    pub(crate) admitted: bool,
    /// What was read of each key, for its verdict.
    pub(crate) snapshots: [PlainSnapshot; N],
}

impl MemoryStore {
    /// Decides a charge, if its key is there and the state is plain. Returns `None` if not, and has then charged nothing.
    ///
    /// The decision is that of its time: the key has not changed between the first look and the last. A refusal writes nothing.
    #[inline]
    pub(crate) fn decide_plain(&self, charge: PlainCharge<'_>) -> Option<PlainOutcome<1>> {
        if self.is_locked {
            return None;
        }
        let PlainCharge { key, spec, cost } = charge;
        for _ in 0..ATTEMPTS {
            let slot = self.slots.find(*key)?;
            let seen = slot.read();
            // Read after the slot, so that time does not step back between the decisions on a key.
            let now = self.clock.now();
            let snapshot = spec.check_plain(seen.content.plain()?, now)?;
            let admitted = spec.admits_plain(snapshot, now, cost);
            let is_valid = if admitted {
                let content = Content::of(spec.commit_plain(snapshot, cost))?;
                slot.try_lock(seen, *key).map(|slot| slot.set(content)).is_some()
            } else {
                slot.is_unchanged(seen, *key)
            };
            if is_valid {
                return Some(PlainOutcome { now, admitted, snapshots: [snapshot] });
            }
            spin_loop();
        }
        None
    }

    /// Decides charges of distinct keys, all or nothing, like [`decide_plain`](Self::decide_plain) does one.
    ///
    /// An admission locks all slots for a moment, and waits for none while it has one, so calls with the same keys in another
    /// order cannot block each other.
    pub(crate) fn decide_all_plain<const N: usize>(
        &self,
        charges: &[PlainCharge<'_>; N],
    ) -> Option<PlainOutcome<N>> {
        if self.is_locked || has_duplicates(charges) {
            return None;
        }
        for _ in 0..ATTEMPTS {
            let mut looks = [None; N];
            for (look, charge) in looks.iter_mut().zip(charges) {
                let slot = self.slots.find(*charge.key)?;
                *look = Some((slot, slot.read()));
            }
            // Read after the slots, so that time does not step back between the decisions on a key.
            let now = self.clock.now();
            let (mut snapshots, mut admitted) = ([PlainSnapshot::default(); N], true);
            for ((snapshot, look), charge) in snapshots.iter_mut().zip(&looks).zip(charges) {
                let (_, seen) = (*look)?;
                *snapshot = charge.spec.check_plain(seen.content.plain()?, now)?;
                admitted &= charge.spec.admits_plain(*snapshot, now, charge.cost);
            }
            let is_valid = match admitted {
                true => commit(charges, &looks, &snapshots)?,
                false => charges.iter().zip(looks).all(|(charge, look)| {
                    look.is_some_and(|(slot, seen)| slot.is_unchanged(seen, *charge.key))
                }),
            };
            if is_valid {
                return Some(PlainOutcome { now, admitted, snapshots });
            }
            spin_loop();
        }
        None
    }

    /// Decides a list of charges by the same steps as the fast lane.
    pub(super) fn decide_without_lock(&self, charges: &[Charge]) -> Option<Outcome> {
        match charges {
            [a] => self.decide_list(charges, [a], |[a]| self.decide_plain(*a)),
            [a, b] => self.decide_list(charges, [a, b], |plain| self.decide_all_plain(plain)),
            [a, b, c] => self.decide_list(charges, [a, b, c], |plain| self.decide_all_plain(plain)),
            _ => None,
        }
    }

    fn decide_list<const N: usize>(
        &self,
        list: &[Charge],
        charges: [&Charge; N],
        decide: impl FnOnce(&[PlainCharge<'_>; N]) -> Option<PlainOutcome<N>>,
    ) -> Option<Outcome> {
        let keys = charges.map(|charge| self.index(&charge.key).fingerprint);
        let mut plain = [None; N];
        for ((plain, charge), key) in plain.iter_mut().zip(charges).zip(&keys) {
            let Charge { spec, cost, wait: 0, shadow: false, .. } = charge else { return None };
            let is_plain = *cost > 0 && spec.is_plain();
            *plain = is_plain.then_some(PlainCharge { key, spec, cost: *cost });
        }
        let PlainOutcome { now, snapshots, .. } = decide(&all(plain)?)?;
        let (admitted, verdicts) = judge(list, &snapshots.map(PlainSnapshot::full), now);
        Some(Outcome { now, admitted, verdicts, failed: Vec::new() })
    }
}

/// Makes the charges, unless a slot has changed since it was read. Returns `None` if a state does not fit into its slot.
#[inline]
fn commit<const N: usize>(
    charges: &[PlainCharge<'_>; N],
    looks: &[Option<(Slot<'_>, Seen)>; N],
    snapshots: &[PlainSnapshot; N],
) -> Option<bool> {
    let mut locked: [Option<(LockedSlot<'_>, Content)>; N] = [const { None }; N];
    for (i, locked) in locked.iter_mut().enumerate() {
        let (slot, seen) = looks[i]?;
        let PlainCharge { key, spec, cost } = charges[i];
        let content = Content::of(spec.commit_plain(snapshots[i], cost))?;
        let Some(slot) = slot.try_lock(seen, *key) else { return Some(false) };
        *locked = Some((slot, content));
    }
    for (slot, content) in locked.into_iter().flatten() {
        slot.set(content);
    }
    Some(true)
}

#[inline]
fn has_duplicates<const N: usize>(charges: &[PlainCharge<'_>; N]) -> bool {
    (1..N).any(|i| charges[..i].iter().any(|other| other.key == charges[i].key))
}

#[inline]
fn all<T: Copy, const N: usize>(options: [Option<T>; N]) -> Option<[T; N]> {
    let mut all = [(*options.first()?)?; N];
    for (element, option) in all.iter_mut().zip(options) {
        *element = option?;
    }
    Some(all)
}
