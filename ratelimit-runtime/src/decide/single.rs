//! The decision about a call with a single charge, which is decided without a list.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use super::charges::PolicyCharge;
use crate::algorithm::{PlainSpec, Verdict};
use crate::decide::decision::{Decision, PolicyDecision, SinglePolicy};
use crate::decide::error::{Error, KeptKey};
use crate::decide::observation::Observers;
use crate::key::{Fingerprint, PartsOfKey};
use crate::store::decided_by::DecidedBy;
use crate::store::{Charge, Hold, MemoryReceipt, MemoryStore, PlainOutcome};

/// What became of a single charge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleDecision<'a> {
    pub(crate) charge: &'a PolicyCharge<'a>,
    key: Fingerprint,
    pub(crate) admitted: bool,
    pub(crate) source: DecidedBy,
    said: Said<'a>,
    /// The store that was charged, if it is in process.
    memory: Option<&'a Arc<MemoryStore>>,
    /// The observers, if there are any, and the parts of the key.
    seen: Option<(&'a Observers, PartsOfKey<'a>)>,
}

#[derive(Clone, Copy, Debug)]
enum Said<'a> {
    /// The steps of the memory store, of which the verdict is made when it is read.
    Plain(&'a PlainSpec, &'a PlainOutcome<1>),
    Verdict(&'a Verdict),
}

impl<'a> SingleDecision<'a> {
    /// A charge that the memory store has decided by its lock-free steps.
    #[inline(always)]
    pub(crate) fn of_plain(
        memory: &'a Arc<MemoryStore>,
        charge: &'a PolicyCharge<'a>,
        key: Fingerprint,
        (spec, outcome): (&'a PlainSpec, &'a PlainOutcome<1>),
    ) -> Self {
        SingleDecision {
            charge,
            key,
            admitted: outcome.admitted,
            source: DecidedBy::Memory,
            said: Said::Plain(spec, outcome),
            memory: Some(memory),
            seen: None,
        }
    }

    /// A charge that the memory store has decided under a lock.
    pub(crate) fn in_process(
        memory: &'a Arc<MemoryStore>,
        charge: &'a PolicyCharge<'a>,
        key: Fingerprint,
        verdict: &'a Verdict,
    ) -> Self {
        let memory = Some(memory);
        SingleDecision { source: DecidedBy::Memory, memory, ..Self::known(charge, key, verdict) }
    }

    /// A charge that Redis is known to decide so.
    pub(crate) fn known(charge: &'a PolicyCharge<'a>, key: Fingerprint, verdict: &'a Verdict) -> Self {
        SingleDecision {
            charge,
            key,
            admitted: verdict.admitted,
            source: DecidedBy::Redis,
            said: Said::Verdict(verdict),
            memory: None,
            seen: None,
        }
    }

    /// Reports the decision, about a key of these parts.
    pub(crate) fn observe(&mut self, observers: &'a Observers, parts: PartsOfKey<'a>) {
        self.seen = Some((observers, parts));
        let SingleDecision { charge, source, .. } = *self;
        match &self.said {
            Said::Plain(spec, outcome) => {
                let seen = (outcome.now, outcome.snapshots[0]);
                observers.plain(charge, spec, seen, (self.admitted, true), parts);
            }
            Said::Verdict(verdict) => observers.single(charge, verdict, source, parts),
        }
    }

    /// Returns the verdict.
    #[inline(always)]
    pub(crate) fn verdict(&self) -> Verdict {
        match &self.said {
            Said::Plain(spec, outcome) => {
                let limit = self.charge.numbers.limit(**spec);
                spec.verdict(limit, outcome.snapshots[0], outcome.now, self.charge.cost, self.admitted)
            }
            Said::Verdict(verdict) => **verdict,
        }
    }

    /// Returns a verdict that tells what the key has used now; `None` if the decision was remembered, or the key is paused, and so has
    /// nothing left whatever it has used.
    #[cold]
    pub(crate) fn state(&self) -> Option<Verdict> {
        let memory = self.memory?;
        if self.admitted || matches!(self.said, Said::Plain(..)) {
            return Some(self.verdict());
        }
        let look = Charge { cost: 0, ..self.charge.in_process(self.key) };
        let mut outcome = memory.decide(slice::from_ref(&look));
        let is_paused = outcome.pause(0).is_some_and(|pause| pause.left(outcome.now) > 0);
        outcome.verdicts.pop().filter(|_| !is_paused)
    }

    /// Whether the call goes ahead.
    #[inline]
    pub(crate) fn goes_ahead(&self) -> bool {
        self.admitted || self.charge.shadow
    }

    /// Returns what a limiter makes of the decision, if its policy is no shadow.
    #[inline(always)]
    pub(crate) fn into_result(self) -> Result<Decision, Error> {
        if !self.admitted {
            return Err(self.into_error());
        }
        let verdict = self.verdict();
        let decision = Decision::of_one(self.policy(&verdict), self.source, Duration::ZERO, None);
        Ok(decision.with_memory_receipt(self.receipt(&verdict), || self.observed_hold()))
    }

    /// The same of a policy that is no semaphore, so that the compiler sees that there is nothing to drop.
    #[inline(always)]
    pub(crate) fn into_result_without_hold(self) -> Result<Decision, Error> {
        if !self.admitted {
            return Err(self.into_error());
        }
        let verdict = self.verdict();
        Ok(Decision::of_one(self.policy(&verdict), self.source, Duration::ZERO, self.receipt(&verdict)))
    }

    /// Returns what a limiter makes of the decision of a shadow.
    #[cold]
    pub(crate) fn into_shadow_decision(self) -> Decision {
        let (verdict, definition) = (self.verdict(), self.charge.definition.get());
        let policy = PolicyDecision::new(definition.name.to_shared(), definition.algorithm, true, &verdict);
        let decision = Decision::new(vec![policy], self.source, Duration::ZERO);
        decision.with_memory_receipt(self.receipt(&verdict), || self.observed_hold())
    }

    /// Returns the error of a call that is refused.
    #[inline(always)]
    pub(crate) fn into_error(self) -> Error {
        let key = KeptKey::new(self.seen.map(|(_, parts)| parts));
        Error::limited_by(self.policy(&self.verdict()), self.source, key)
    }

    /// Returns the receipt for the charge, if one was made in process.
    #[inline(always)]
    pub(crate) fn receipt(&self, verdict: &Verdict) -> Option<MemoryReceipt> {
        let memory = self.memory.filter(|_| self.admitted)?;
        let (charge, key) = (self.charge, (self.key, self.charge.definition.id));
        Some(MemoryReceipt::new(memory.id(), key, charge.spec(), charge.cost, verdict.charge_id))
    }

    /// Returns what reports the end of the call to the observers, if there are any. Called once, for a call that holds permits.
    #[inline]
    pub(crate) fn observed_hold(&self) -> Option<Arc<Hold>> {
        let (observers, parts) = self.seen?;
        Some(observers.hold_of(self.charge, parts))
    }

    #[inline(always)]
    fn policy(&self, verdict: &Verdict) -> SinglePolicy {
        self.charge.definition.said(verdict)
    }
}
