//! Decisions on plain states, without the table's lock.

use super::MemoryStore;
use super::slot::{Content, Seen, Slot};
use crate::algorithm::{PlainSnapshot, PlainSpec, PlainStep, PlainSteps};
use crate::base::sync::spin_loop;
use crate::key::Fingerprint;
use crate::store::charge::{Charge, INLINE, Outcome};

/// How often the same charges are tried while others change their keys. Then they take the table's lock, which holds one key after
/// the other, so that a stack of busy keys gets its turn.
const ATTEMPTS: u32 = 8;

/// A charge of a key that may be decided without a lock. It does not wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainCharge<S = PlainSpec> {
    pub(crate) key: Fingerprint,
    pub(crate) spec: S,
    pub(crate) cost: u64,
}

/// What a call has seen of a key.
#[derive(Clone, Copy, Debug)]
struct Look<'a> {
    slot: Slot<'a>,
    seen: Seen,
}

/// The decision about plain charges. All are made if it is admitted, otherwise none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainOutcome<const N: usize> {
    pub(crate) now: u64,
    pub(crate) admitted: bool,
    /// What was read of each key, for its verdict.
    pub(crate) snapshots: [PlainSnapshot; N],
}

/// A loop over the charges of a call, written out, so that the compiler keeps what it makes for each in registers and not in an
/// array.
macro_rules! unrolled {
    (for $i:ident in 0..$n:ident $body:block) => {
        const { assert!(0 < $n && $n <= INLINE && INLINE == 3) };
        {
            let $i = 0;
            $body
        }
        if $n > 1 {
            let $i = 1;
            $body
        }
        if $n > 2 {
            let $i = 2;
            $body
        }
    };
}

impl MemoryStore {
    /// Decides a charge, as [`decide_all_plain`](Self::decide_all_plain) does several, by steps that are compiled for its kind.
    #[inline(always)]
    pub(crate) fn decide_plain(&self, charge: PlainCharge) -> Option<PlainOutcome<1>> {
        let PlainCharge { key, spec, cost } = charge;
        match spec {
            PlainSpec::Bucket(spec) => self.decide_all_plain([PlainCharge { key, spec, cost }]),
            PlainSpec::Window(spec) => self.decide_all_plain([PlainCharge { key, spec, cost }]),
        }
    }

    /// Decides charges of distinct keys, all or nothing, if the keys are there and the states are plain. Returns `None` if not,
    /// and has then charged nothing.
    ///
    /// The decision is that of its time: no key has changed between the first look and the last, nor was written at a later time.
    /// Time is read before the slots if these say when they were written: while the processor waits for memory, it reads no
    /// clock, and does nothing else. A refusal writes nothing.
    ///
    /// An admission locks all slots for a moment, and waits for none while it has one, so calls with the same keys in another
    /// order cannot block each other.
    #[inline(always)]
    pub(crate) fn decide_all_plain<S: PlainSteps, const N: usize>(
        &self,
        charges: [PlainCharge<S>; N],
    ) -> Option<PlainOutcome<N>> {
        if self.is_locked {
            return None;
        }
        for _ in 0..ATTEMPTS {
            let early = charges.iter().all(|charge| charge.spec.is_dated()).then(|| self.clock.now());
            let mut looks = [None; N];
            unrolled!(for i in 0..N {
                let slot = self.slots.find(charges[i].key)?;
                looks[i] = Some(Look { slot, seen: slot.read() });
            });
            let looks = all(looks)?;
            let now = early.unwrap_or_else(|| self.clock.now());
            if looks.iter().any(|look| look.seen.content.is_later_than(now)) {
                continue;
            }
            let mut steps = [None; N];
            unrolled!(for i in 0..N {
                let PlainCharge { spec, cost, .. } = charges[i];
                steps[i] = spec.decide(looks[i].seen.content.plain()?, now, cost);
            });
            let steps = all(steps)?;
            let admitted = steps.iter().all(|step| step.after.is_some());
            let is_valid = match admitted {
                true => commit(&charges, &looks, &steps, now)?,
                false => looks
                    .iter()
                    .zip(&charges)
                    .all(|(look, charge)| look.slot.is_unchanged(look.seen, charge.key)),
            };
            if is_valid {
                return Some(PlainOutcome { now, admitted, snapshots: steps.map(|step| step.snapshot) });
            }
            spin_loop();
        }
        None
    }

    /// Decides a list of charges by the same steps as the fast lane.
    pub(super) fn decide_without_lock(&self, charges: &[Charge]) -> Option<Outcome> {
        match charges.len() {
            1 => self.decide_list::<1>(charges),
            2 => self.decide_list::<2>(charges),
            3 => self.decide_list::<3>(charges),
            _ => None,
        }
    }

    fn decide_list<const N: usize>(&self, list: &[Charge]) -> Option<Outcome> {
        let charges: &[Charge; N] = list.try_into().ok()?;
        let charges = all(charges.each_ref().map(|charge| match charge {
            Charge { key, spec, cost: cost @ 1.., wait: 0, shadow: false } => {
                let key = self.index(key).fingerprint;
                spec.plain().map(|spec| PlainCharge { key, spec, cost: *cost })
            }
            _ => None,
        }))?;
        if has_duplicates(&charges) {
            return None;
        }
        let PlainOutcome { now, snapshots, .. } = self.decide_all_plain(charges)?;
        let mut outcome = Outcome::at(now);
        outcome.judge(list, &snapshots.map(PlainSnapshot::full));
        Some(outcome)
    }
}

/// Makes the charges, unless a slot has changed since it was read. Returns `None` if a state does not fit into its slot.
#[inline(always)]
fn commit<S, const N: usize>(
    charges: &[PlainCharge<S>; N],
    looks: &[Look<'_>; N],
    steps: &[PlainStep; N],
    now: u64,
) -> Option<bool> {
    let (mut contents, mut locks) = ([None; N], [const { None }; N]);
    unrolled!(for i in 0..N {
        contents[i] = Content::of(steps[i].after?, now);
    });
    let contents = all(contents)?;
    unrolled!(for i in 0..N {
        let Look { slot, seen } = looks[i];
        let Some(lock) = slot.try_lock(seen, charges[i].key) else { return Some(false) };
        locks[i] = Some(lock);
    });
    unrolled!(for i in 0..N {
        locks[i].take()?.set(contents[i]);
    });
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
