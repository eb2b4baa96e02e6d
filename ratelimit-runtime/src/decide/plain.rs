//! Calls with a single plain charge, which the memory store decides without a lock.

use super::charges::{Charges, PolicyCharge};
use super::definition::ChargeNumbers;
use super::single::SingleDecision;
use crate::algorithm::{KindOfPlain, PlainSpec};
use crate::decide::backend::Backend;
use crate::decide::caller::Caller;
use crate::key::{Fingerprint, PartsOfKey};
use crate::store::{MemoryStore, PlainOutcome};

impl Backend {
    /// Decides a call with a single charge by the lock-free steps of the memory store, if these can.
    #[inline(always)]
    pub(crate) fn decide_only<C: Caller>(&self, charges: &Charges<'_>, caller: &C) -> Option<C::Decision> {
        let (memory, charge) = (self.memory()?, charges.only()?);
        let spec = charge.lock_free()?;
        self.decide_plain(
            memory,
            (charge, charges.last_key(charge), spec),
            || charges.parts_of_only(charge),
            caller,
        )
    }

    /// Decides a call as [`decide_only`](Self::decide_only) does, by numbers that were computed, or that operators have changed, if what
    /// they say of its key is at hand.
    #[inline(never)]
    pub(super) fn decide_changed<C: Caller>(&self, charges: &Charges<'_>, caller: &C) -> Option<C::Decision> {
        let (memory, charge) = (self.memory()?, charges.only()?);
        // Before its key is completed, as calls of most other algorithms end here.
        charge.plain()?;
        let (key, asked) = (charges.last_key(charge), charge);
        let parts = || charges.parts_of_only(asked);
        let of_key = match &charge.numbers {
            ChargeNumbers::Literal(_) => return None,
            ChargeNumbers::Computed(_, None) => None,
            ChargeNumbers::ByKey(_, by_key) | ChargeNumbers::Computed(_, Some(by_key)) => {
                // A shadow does not wait, but the override of its key may say that it is none.
                let may_not_wait = charge.shadow && charge.wait > 0;
                if may_not_wait || by_key.is_off || by_key.needs_parts() {
                    return None;
                }
                charge.definition.known_key(by_key, key)?
            }
        };
        let overridden;
        let (charge, key) = match of_key {
            None => (charge, key),
            Some(of_key) => {
                overridden = charge.overridden(of_key)?;
                (&overridden, overridden.key)
            }
        };
        let spec = &charge.plain()?;
        match charge.lock_free_by(spec)?.kind() {
            // All computed buckets are of this kind, but few literal ones.
            KindOfPlain::Adjustable(steps) => {
                let outcome = memory.decide_by(key, steps, charge.cost)?;
                self.after_plain((charge, key), outcome, parts, caller)
            }
            _ => self.decide_plain(memory, (charge, key, spec), parts, caller),
        }
    }

    /// Decides a single charge by the lock-free steps of the memory store. Returns `None` if these cannot, or if the call may wait.
    ///
    /// What follows a step is compiled for each kind, so that nothing is passed on from one of several.
    #[inline(always)]
    pub(super) fn decide_plain<'p, C: Caller>(
        &self,
        memory: &MemoryStore,
        (charge, key, spec): (&PolicyCharge<'_>, Fingerprint, &PlainSpec),
        parts: impl Fn() -> PartsOfKey<'p>,
        caller: &C,
    ) -> Option<C::Decision> {
        let (asked, cost) = ((charge, key), charge.cost);
        match spec.kind() {
            KindOfPlain::Bucket(steps) => {
                self.after_plain(asked, memory.decide_by(key, steps, cost)?, parts, caller)
            }
            KindOfPlain::Window(steps) => {
                self.after_plain(asked, memory.decide_by(key, steps, cost)?, parts, caller)
            }
            KindOfPlain::Adjustable(_) | KindOfPlain::Other => {
                self.after_plain(asked, memory.decide_rare(key, spec, cost)?, parts, caller)
            }
        }
    }

    #[inline(always)]
    fn after_plain<'p, C: Caller>(
        &self,
        (charge, key): (&PolicyCharge<'_>, Fingerprint),
        outcome: PlainOutcome<1>,
        parts: impl Fn() -> PartsOfKey<'p>,
        caller: &C,
    ) -> Option<C::Decision> {
        if outcome.admitted
            && !charge.definition.attribute.refundable
            && let Some(admitted) = caller.admitted()
        {
            if self.observers().is_some() {
                self.observe_admitted(charge, (outcome.now, outcome.snapshots[0]), parts());
            }
            return Some(admitted);
        }
        if !charge.is_final(&outcome) {
            return None;
        }
        // A copy, so that the outcome of a call that is admitted is never written to memory.
        self.finish_plain(charge, key, &{ outcome }, parts, caller)
    }

    /// Finishes the decision about a single charge by the lock-free steps of the memory store.
    #[inline(never)]
    fn finish_plain<'p, C: Caller>(
        &self,
        charge: &PolicyCharge<'_>,
        key: Fingerprint,
        outcome: &PlainOutcome<1>,
        parts: impl Fn() -> PartsOfKey<'p>,
        caller: &C,
    ) -> Option<C::Decision> {
        let (memory, spec) = (self.memory()?, &charge.plain()?);
        let decision = SingleDecision::of_plain(memory, charge, key, (spec, outcome));
        if self.observers().is_some() || charge.shadow {
            return Some(self.finish_single(decision, parts(), caller));
        }
        Some(caller.single(decision))
    }
}
