//! Calls with two or three plain charges, which the memory store decides without a lock or a list.

use std::sync::Arc;

use super::charges::{Charges, PolicyCharge};
use crate::algorithm::{PlainSpec, Verdict};
use crate::decide::backend::Backend;
use crate::decide::caller::{Caller, FewDecision};
use crate::decide::decision::{Decision, ObservedHolds, SinglePolicy};
use crate::decide::definition::{Definition, DefinitionRef};
use crate::decide::error::{Error, Limited};
use crate::decide::observation::Observers;
use crate::key::PartsOfKey;
use crate::store::decided_by::DecidedBy;
use crate::store::{Hold, MemoryReceipt, MemoryStore, PlainCharge, PlainOutcome};

/// What became of two or three plain charges.
struct Few<'a, const N: usize> {
    memory: &'a Arc<MemoryStore>,
    charges: [&'a PolicyCharge<'a>; N],
    /// The same for the memory store.
    asked: &'a [PlainCharge<'a, &'a PlainSpec>; N],
    outcome: &'a PlainOutcome<N>,
    /// The observers, if there are any, and the parts of the keys.
    seen: Option<(&'a Observers, [PartsOfKey<'a>; N])>,
}

impl Backend {
    /// Decides two or three plain charges of distinct keys. Returns `None` if they are others, or if the call has to wait, and has
    /// then charged nothing.
    #[inline(never)]
    pub(super) fn decide_few<C: Caller>(&self, charges: &Charges<'_>, caller: &C) -> Option<C::Decision> {
        let memory = self.memory()?;
        match charges.few()? {
            [Some(a), Some(b), None, None] => self.decide_plain_few(memory, charges, [a, b], caller),
            [Some(a), Some(b), Some(c), None] => self.decide_plain_few(memory, charges, [a, b, c], caller),
            _ => None,
        }
    }

    #[inline(always)]
    fn decide_plain_few<'a, C: Caller, const N: usize>(
        &'a self,
        memory: &'a Arc<MemoryStore>,
        charges: &'a Charges<'_>,
        few: [&'a PolicyCharge<'a>; N],
        caller: &C,
    ) -> Option<C::Decision> {
        let mut asked = [plain(few[0])?; N];
        for i in 1..N {
            asked[i] = plain(few[i])?;
            // Those of one key are added up first. Half a fingerprint tells almost all apart.
            if few[..i].iter().any(|other| other.key.0 == few[i].key.0) {
                return None;
            }
        }
        // None are made of a call that waits for a window if it is refused: such calls queue, and may overtake none that wait
        // already. A call that waits for buckets only does so if it is refused.
        let waits = few.iter().any(|charge| charge.wait > 0);
        if waits && asked.iter().any(|charge| !charge.spec.reserves()) {
            return None;
        }
        // Read where it is: a copy would read together what was written apart, which is slow.
        let Some(outcome) = &memory.decide_all_plain(asked) else { return None };
        if waits && !outcome.admitted {
            return None;
        }
        let few = &mut Few { memory, charges: few, asked: &asked, outcome, seen: None };
        if outcome.admitted
            && few.charges.iter().all(|charge| !charge.definition.attribute.refundable)
            && let Some(admitted) = caller.admitted()
        {
            if self.observers().is_some() {
                self.observe_few(few, charges);
            }
            return Some(admitted);
        }
        if let Some(refused) = self.refuse_plainly(&few.charges, outcome, caller) {
            return Some(refused);
        }
        self.finish_few(few, charges, caller)
    }

    #[inline(never)]
    fn observe_few<'a, const N: usize>(
        &'a self,
        few: &Few<'a, N>,
        charges: &'a Charges<'_>,
    ) -> Option<(&'a Observers, [PartsOfKey<'a>; N])> {
        let observers = self.observers()?;
        let parts = few.charges.map(|charge| charges.parts_of(charge));
        for (i, parts) in parts.into_iter().enumerate() {
            let seen = (few.outcome.now, few.outcome.snapshots[i]);
            observers.plain(
                few.charges[i],
                few.asked[i].spec,
                seen,
                (few.outcome.admits[i], few.outcome.admitted),
                parts,
            );
        }
        for (i, parts) in parts.into_iter().enumerate() {
            if few.charges[i].definition.attribute.notify_at.is_some() {
                self.notify_one(few.charges[i], &few.verdict(i), parts);
            }
        }
        Some((observers, parts))
    }

    /// Finishes the decision. `Some`, so that nobody who passes it on has to move it.
    #[inline(never)]
    fn finish_few<'a, C: Caller, const N: usize>(
        &'a self,
        few: &mut Few<'a, N>,
        charges: &'a Charges<'_>,
        caller: &C,
    ) -> Option<C::Decision> {
        few.seen = self.observe_few(few, charges);
        Some(caller.few(&*few))
    }
}

/// Returns a charge for the memory store's lock-free steps, if these may decide it.
#[inline(always)]
fn plain<'a>(charge: &'a PolicyCharge<'_>) -> Option<PlainCharge<'a, &'a PlainSpec>> {
    let spec = charge.lock_free().filter(|_| !charge.shadow)?;
    Some(PlainCharge { key: &charge.key, spec, cost: charge.cost })
}

impl<const N: usize> Few<'_, N> {
    /// Returns what a policy says. If another one refuses the call, those that admit it report the state as it is.
    #[inline(always)]
    fn verdict(&self, i: usize) -> Verdict {
        let PlainOutcome { now, admitted, ref admits, ref snapshots } = *self.outcome;
        let (numbers, PlainCharge { spec, cost, .. }) = (&self.charges[i].numbers, &self.asked[i]);
        let charged = if admits[i] && !admitted { 0 } else { *cost };
        spec.verdict(numbers.limit(**spec), snapshots[i], now, charged, admits[i])
    }

    /// Returns it as callers see it.
    #[inline(always)]
    fn said(&self, i: usize) -> SinglePolicy {
        self.charges[i].definition.said(&self.verdict(i))
    }

    /// Returns the receipt for a charge that was made. Of the verdict it reads only what identifies that, and the compiler makes no more.
    #[inline(always)]
    fn receipt(&self, i: usize) -> MemoryReceipt {
        let (store, charge, charge_id) = (self.memory.id(), self.charges[i], self.verdict(i).charge_id);
        MemoryReceipt::new(store, (charge.key, charge.definition.id), charge.spec(), charge.cost, charge_id)
    }

    /// Returns what reports the end of the hold of a call that is admitted, if it is one and there are observers.
    fn observed(&self, i: usize) -> Option<Arc<Hold>> {
        let (observers, parts) = self.seen.filter(|_| self.asked[i].spec.is_semaphore())?;
        Some(observers.hold_of(self.charges[i], parts[i]))
    }
}

impl<const N: usize> FewDecision for &Few<'_, N> {
    #[inline]
    fn admitted(&self) -> bool {
        self.outcome.admitted
    }

    fn refundable(&self) -> impl Iterator<Item = (&'static Definition, MemoryReceipt, Option<Arc<Hold>>)> {
        let refundable = (0..N).filter(|i| self.charges[*i].definition.attribute.refundable);
        refundable.filter_map(|i| match self.charges[i].definition {
            DefinitionRef::Static(definition) => Some((definition, self.receipt(i), self.observed(i))),
            DefinitionRef::Counted(_) => {
                debug_assert!(false, "the definition of an attribute lives as long as the process");
                None
            }
        })
    }

    fn into_decision(self) -> Decision {
        let observed = self.seen.map(|_| (0..N).filter_map(|i| self.observed(i)).collect());
        let observed = observed.filter(|it: &ObservedHolds| !it.is_empty());
        Decision::of_few(N, |i| self.said(i), |i| self.receipt(i), DecidedBy::Memory, observed)
    }

    #[inline(always)]
    fn into_error(self) -> (Option<usize>, Error) {
        let key = |reported: usize| self.seen.map(|(_, parts)| parts[reported]);
        let (limited, reported) = Limited::of_few(N, |i| self.said(i), DecidedBy::Memory, key);
        (self.charges[reported].definition.attribute.index, Error::limited(limited))
    }
}
