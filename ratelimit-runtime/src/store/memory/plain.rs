//! Decisions on plain states, without the table's lock.

use super::MemoryStore;
use super::slot::{Content, LockedSlot, Seen, Slot};
use crate::algorithm::{PlainSnapshot, PlainSpec, PlainSteps};
use crate::key::Fingerprint;
use crate::store::charge::{Charge, Outcome};
use crate::sync::spin_loop;

/// How often the same charges are tried while others change their keys. Then they take the table's lock, which holds one key after
/// the other, so that a stack of busy keys gets its turn.
const ATTEMPTS: u32 = 8;

/// A charge of a key that may be decided without a lock. It does not wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainCharge {
    pub(crate) key: Fingerprint,
    pub(crate) spec: PlainSpec,
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
    /// The decision is that of its time: the key has not changed between the first look and the last, and was not written at a
    /// later time. Time is read before the slot if that says when it was written: while the processor waits for memory, it reads
    /// no clock, and does nothing else. A refusal writes nothing.
    #[inline(always)]
    pub(crate) fn decide_plain(&self, charge: PlainCharge) -> Option<PlainOutcome<1>> {
        let PlainCharge { key, spec, cost } = charge;
        match spec {
            PlainSpec::Bucket(bucket) => self.decide_by(key, bucket, cost),
            PlainSpec::Window(window) => self.decide_by(key, window, cost),
        }
    }

    #[inline(always)]
    fn decide_by(&self, key: Fingerprint, spec: impl PlainSteps, cost: u64) -> Option<PlainOutcome<1>> {
        if self.is_locked {
            return None;
        }
        for _ in 0..ATTEMPTS {
            let early = spec.is_dated().then(|| self.clock.now());
            let slot = self.slots.find(key)?;
            let seen = slot.read();
            let now = early.unwrap_or_else(|| self.clock.now());
            if seen.content.is_later_than(now) {
                continue;
            }
            let snapshot = spec.check(seen.content.plain()?, now)?;
            let admitted = spec.admits(snapshot, now, cost);
            let is_valid = if admitted {
                let content = Content::of(spec.commit(snapshot, cost), now)?;
                slot.try_lock(seen, key).map(|slot| slot.set(content)).is_some()
            } else {
                slot.is_unchanged(seen, key)
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
        charges: &[PlainCharge; N],
    ) -> Option<PlainOutcome<N>> {
        if self.is_locked || has_duplicates(charges) {
            return None;
        }
        for _ in 0..ATTEMPTS {
            let early = charges.iter().all(|charge| charge.spec.is_dated()).then(|| self.clock.now());
            let mut looks = [None; N];
            for (look, charge) in looks.iter_mut().zip(charges) {
                let slot = self.slots.find(charge.key)?;
                *look = Some((slot, slot.read()));
            }
            let now = early.unwrap_or_else(|| self.clock.now());
            let is_late = |look: &Option<(Slot<'_>, Seen)>| {
                look.is_some_and(|(_, seen)| seen.content.is_later_than(now))
            };
            if looks.iter().any(is_late) {
                continue;
            }
            let (mut snapshots, mut admitted) = ([PlainSnapshot::default(); N], true);
            for ((snapshot, look), charge) in snapshots.iter_mut().zip(&looks).zip(charges) {
                let (_, seen) = (*look)?;
                *snapshot = charge.spec.check(seen.content.plain()?, now)?;
                admitted &= charge.spec.admits(*snapshot, now, charge.cost);
            }
            let is_valid = match admitted {
                true => commit(charges, &looks, &snapshots, now)?,
                false => charges.iter().zip(looks).all(|(charge, look)| {
                    look.is_some_and(|(slot, seen)| slot.is_unchanged(seen, charge.key))
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
        decide: impl FnOnce(&[PlainCharge; N]) -> Option<PlainOutcome<N>>,
    ) -> Option<Outcome> {
        let plain = charges.map(|charge| match charge {
            Charge { key, spec, cost: cost @ 1.., wait: 0, shadow: false } => {
                let key = self.index(key).fingerprint;
                spec.plain().map(|spec| PlainCharge { key, spec, cost: *cost })
            }
            _ => None,
        });
        let PlainOutcome { now, snapshots, .. } = decide(&all(plain)?)?;
        let mut outcome = Outcome::at(now);
        outcome.judge(list, &snapshots.map(PlainSnapshot::full));
        Some(outcome)
    }
}

/// Makes the charges, unless a slot has changed since it was read. Returns `None` if a state does not fit into its slot.
#[inline]
fn commit<const N: usize>(
    charges: &[PlainCharge; N],
    looks: &[Option<(Slot<'_>, Seen)>; N],
    snapshots: &[PlainSnapshot; N],
    now: u64,
) -> Option<bool> {
    let mut locked: [Option<(LockedSlot<'_>, Content)>; N] = [const { None }; N];
    for (i, locked) in locked.iter_mut().enumerate() {
        let (slot, seen) = looks[i]?;
        let PlainCharge { key, spec, cost } = charges[i];
        let content = Content::of(spec.commit(snapshots[i], cost), now)?;
        let Some(slot) = slot.try_lock(seen, key) else { return Some(false) };
        *locked = Some((slot, content));
    }
    for (slot, content) in locked.into_iter().flatten() {
        slot.set(content);
    }
    Some(true)
}

#[inline]
fn has_duplicates<const N: usize>(charges: &[PlainCharge; N]) -> bool {
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
