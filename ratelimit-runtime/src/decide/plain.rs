//! Calls with a single plain charge, which the memory store decides without a lock, unless the key is new.

use super::charges::{Charges, PolicyCharge};
use super::definition::ChargeNumbers;
use super::overridden::ByKey;
use super::single::SingleDecision;
use crate::algorithm::{KindOfPlain, PlainSpec};
use crate::decide::backend::Backend;
use crate::decide::caller::Caller;
use crate::decide::error::Error;
use crate::key::{Fingerprint, PartsOfKey};
use crate::store::{MemoryStore, PlainOutcome};

impl Backend {
    /// Decides a call with a single charge by the lock-free steps of the memory store, if these can, and if what operators have changed of
    /// literal numbers is at hand.
    #[inline(always)]
    pub(crate) fn decide_plainly<C: Caller>(&self, charges: &Charges<'_>, caller: &C) -> Option<C::Decision> {
        if charges.are_by_key() {
            self.decide_by_key(charges, caller)
        } else {
            self.decide_only(charges, caller)
        }
    }

    /// Decides a call with a single charge of which operators have changed nothing.
    #[inline(always)]
    pub(crate) fn decide_only<C: Caller>(&self, charges: &Charges<'_>, caller: &C) -> Option<C::Decision> {
        let (memory, charge) = (self.memory()?, charges.only()?);
        let spec = charge.lock_free()?;
        // Read first, so that the key is completed and looked up meanwhile.
        let now = memory.now();
        let asked = (charge, charges.last_key(charge), spec);
        self.decide_plain((memory, now), asked, || charges.parts_of_only(charge), caller)
    }

    /// Decides a call by literal numbers, or by those that operators have written for its key, if it is at hand which.
    #[inline(always)]
    pub(crate) fn decide_by_key<C: Caller>(&self, charges: &Charges<'_>, caller: &C) -> Option<C::Decision> {
        let (memory, charge) = (self.memory()?, charges.only()?);
        let ChargeNumbers::ByKey(numbers, by_hash) = &charge.numbers else { return None };
        let spec = numbers.plain.as_ref()?;
        let now = memory.now();
        let key = charges.last_key(charge);
        match overridden_plain(charge, &by_hash.by_key(), key)? {
            None => {
                let (spec, parts) = (charge.lock_free_by(spec)?, || charges.parts_of_only(charge));
                self.decide_plain((memory, now), (charge, key, spec), parts, caller)
            }
            Some(of_key) => self.decide_overridden((memory, now), (charges, charge), of_key, caller),
        }
    }

    /// Decides a call by numbers that were computed for it, or by those that operators have written for its key, if it is at hand which.
    #[inline(never)]
    pub(super) fn decide_computed<C: Caller>(
        &self,
        charges: &Charges<'_>,
        caller: &C,
    ) -> Option<C::Decision> {
        let (memory, charge) = (self.memory()?, charges.only()?);
        let ChargeNumbers::Computed(spec, by_key) = &charge.numbers else { return None };
        // Before its key is completed, as calls of most other algorithms end here.
        let spec = &PlainSpec::of(spec).filter(|_| charge.definition.decides_lock_free())?;
        let now = memory.now();
        let key = charges.last_key(charge);
        if let Some(by_key) = by_key
            && let Some(of_key) = overridden_plain(charge, by_key, key)?
        {
            return self.decide_overridden((memory, now), (charges, charge), of_key, caller);
        }
        let (spec, parts) = (charge.lock_free_by(spec)?, || charges.parts_of_only(charge));
        match spec.kind() {
            // All computed buckets are of this kind, but few literal ones.
            KindOfPlain::Adjustable(steps) => self.after_plain(
                (charge, key),
                memory.decide_by(now, key, steps, charge.cost)?,
                parts,
                caller,
            ),
            _ => self.decide_plain((memory, now), (charge, key, spec), parts, caller),
        }
    }

    /// Decides a call by the numbers that operators have written for its key.
    #[inline(always)]
    fn decide_overridden<C: Caller>(
        &self,
        (memory, now): (&MemoryStore, u64),
        (charges, charge): (&Charges<'_>, &PolicyCharge<'_>),
        (spec, key): (PlainSpec, Fingerprint),
        caller: &C,
    ) -> Option<C::Decision> {
        let outcome = match charge.lock_free_by(&spec)?.kind() {
            // Buckets with overrides are of this kind.
            KindOfPlain::Adjustable(steps) => memory.decide_by(now, key, steps, charge.cost)?,
            KindOfPlain::Window(steps) => memory.decide_by(now, key, steps, charge.cost)?,
            // A copy, so that the numbers of the other kinds are never written to memory.
            KindOfPlain::Bucket(_) | KindOfPlain::AlignedWindow(_) | KindOfPlain::Other => {
                memory.decide_rare(now, key, &{ spec }, charge.cost)?
            }
        };
        if outcome.admitted
            && !charge.definition.attribute.refundable
            && self.observers().is_none()
            && let Some(admitted) = caller.admitted()
        {
            return Some(admitted);
        }
        self.finish_overridden(charges, &{ (spec, key) }, &{ outcome }, caller)
    }

    #[inline(never)]
    fn finish_overridden<C: Caller>(
        &self,
        charges: &Charges<'_>,
        &(spec, key): &(PlainSpec, Fingerprint),
        outcome: &PlainOutcome<1>,
        caller: &C,
    ) -> Option<C::Decision> {
        let asked = charges.only()?;
        let (numbers, shadow) =
            (ChargeNumbers::Computed(spec.spec(), None), asked.definition.attribute.shadow);
        let charge = PolicyCharge { numbers, key, shadow, ..*asked };
        self.after_plain((&charge, key), *outcome, || charges.parts_of_only(asked), caller)
    }

    /// Decides a single charge by the lock-free steps of the memory store, if its key is not there yet.
    #[inline]
    pub(super) fn decide_new<C: Caller>(
        &self,
        memory: &MemoryStore,
        asked: (&PolicyCharge<'_>, Fingerprint, PartsOfKey<'_>),
        caller: &C,
    ) -> Option<C::Decision> {
        let (charge, ..) = asked;
        let spec = charge.plain()?;
        self.decide_new_plain(memory, asked, charge.lock_free_by(&spec)?, caller)
    }

    #[inline(never)]
    fn decide_new_plain<C: Caller>(
        &self,
        memory: &MemoryStore,
        (charge, key, parts): (&PolicyCharge<'_>, Fingerprint, PartsOfKey<'_>),
        spec: &PlainSpec,
        caller: &C,
    ) -> Option<C::Decision> {
        let outcome = memory.decide_new_plain((key, charge.definition.id), spec, charge.cost)?;
        self.after_plain((charge, key), outcome, || parts, caller)
    }

    /// Decides a single charge by the lock-free steps of the memory store. Returns `None` if these cannot, or if the call may wait.
    ///
    /// What follows a step is compiled for each kind, so that nothing is passed on from one of several.
    #[inline(always)]
    pub(super) fn decide_plain<'p, C: Caller>(
        &self,
        (memory, now): (&MemoryStore, u64),
        (charge, key, spec): (&PolicyCharge<'_>, Fingerprint, &PlainSpec),
        parts: impl Fn() -> PartsOfKey<'p>,
        caller: &C,
    ) -> Option<C::Decision> {
        let (asked, cost) = ((charge, key), charge.cost);
        match spec.kind() {
            KindOfPlain::Bucket(steps) => {
                self.after_plain(asked, memory.decide_by(now, key, steps, cost)?, parts, caller)
            }
            KindOfPlain::Window(steps) => {
                self.after_plain(asked, memory.decide_by(now, key, steps, cost)?, parts, caller)
            }
            KindOfPlain::AlignedWindow(steps) => {
                self.after_plain(asked, memory.decide_by(now, key, steps, cost)?, parts, caller)
            }
            KindOfPlain::Adjustable(_) | KindOfPlain::Other => {
                self.after_plain(asked, memory.decide_rare(now, key, spec, cost)?, parts, caller)
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
        if !charge.shadow
            && let Some(refused) = self.refuse_plainly(&[charge], outcome, caller)
        {
            return Some(refused);
        }
        self.finish_plain_decision(charge, key, outcome, parts, caller)
    }

    /// Refuses a call if its caller needs no more for that than this, and nobody else is told of it.
    #[inline(always)]
    pub(super) fn refuse_plainly<C: Caller, const N: usize>(
        &self,
        charges: &[&PolicyCharge<'_>; N],
        outcome: &PlainOutcome<N>,
        caller: &C,
    ) -> Option<C::Decision> {
        if outcome.admitted || self.observers().is_some() || Error::logs_limited() {
            return None;
        }
        caller.refused(charges, outcome)
    }

    /// Finishes it by making the whole decision. Apart, so that one that is refused at once has little to set up.
    #[inline(never)]
    fn finish_plain_decision<'p, C: Caller>(
        &self,
        charge: &PolicyCharge<'_>,
        key: Fingerprint,
        outcome: &PlainOutcome<1>,
        parts: impl Fn() -> PartsOfKey<'p>,
        caller: &C,
    ) -> Option<C::Decision> {
        let memory = self.memory()?;
        let computed;
        let spec = match charge.literal_plain() {
            Some(literal) => literal,
            None => {
                computed = charge.plain()?;
                &computed
            }
        };
        let decision = SingleDecision::of_plain(memory, charge, key, (spec, outcome));
        if self.observers().is_some() || charge.shadow {
            return self.finish_single(decision, parts(), caller);
        }
        Some(caller.single(decision))
    }
}

/// Returns the numbers and the key that operators have written for the key of a charge, if it is at hand whether they have, and if they
/// have written no more.
#[inline(always)]
fn overridden_plain(
    charge: &PolicyCharge<'_>,
    by_key: &ByKey,
    key: Fingerprint,
) -> Option<Option<(PlainSpec, Fingerprint)>> {
    // A shadow does not wait, but the override of its key may say that it is none.
    if charge.shadow && charge.wait > 0 || by_key.is_off || by_key.needs_parts() {
        return None;
    }
    charge.definition.plain_of_known_key(by_key, key)
}
