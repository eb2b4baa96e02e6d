//! The decision about a call with a single charge, which is decided without a list.

use std::sync::Arc;
use std::time::Duration;

use super::charges::PolicyCharge;
use crate::algorithm::{PlainSpec, Verdict};
use crate::decide::decision::{Decision, PolicyDecision, SinglePolicy};
use crate::decide::error::{Error, Limited};
use crate::decide::observation::Observers;
use crate::key::{Fingerprint, PartsOfKey};
use crate::store::source::Source;
use crate::store::{MemoryStore, PlainOutcome, PlainReceipt};

/// What became of a single charge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleDecision<'a> {
    pub(crate) charge: &'a PolicyCharge<'a>,
    key: Fingerprint,
    pub(crate) admitted: bool,
    pub(crate) source: Source,
    said: Said<'a>,
    /// The store that was charged, if it is in process.
    memory: Option<&'a Arc<MemoryStore>>,
    /// The parts of the key, if somebody may read them.
    parts: Option<PartsOfKey<'a>>,
}

#[derive(Clone, Copy, Debug)]
enum Said<'a> {
    /// The steps of the memory store, of which the verdict is made when it is read.
    Plain(&'a PlainSpec, &'a PlainOutcome<1>),
    Verdict(Verdict),
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
            source: Source::Memory,
            said: Said::Plain(spec, outcome),
            memory: Some(memory),
            parts: None,
        }
    }

    /// A charge that the memory store has decided under a lock.
    pub(crate) fn in_process(
        memory: &'a Arc<MemoryStore>,
        charge: &'a PolicyCharge<'a>,
        key: Fingerprint,
        verdict: Verdict,
    ) -> Self {
        let memory = Some(memory);
        SingleDecision { source: Source::Memory, memory, ..Self::known(charge, key, verdict) }
    }

    /// A charge that Redis is known to decide so.
    pub(crate) fn known(charge: &'a PolicyCharge<'a>, key: Fingerprint, verdict: Verdict) -> Self {
        SingleDecision {
            charge,
            key,
            admitted: verdict.admitted,
            source: Source::Redis,
            said: Said::Verdict(verdict),
            memory: None,
            parts: None,
        }
    }

    /// The same decision, with the parts of the key for whoever reads them.
    #[inline]
    pub(crate) fn with_parts(self, parts: PartsOfKey<'a>) -> Self {
        SingleDecision { parts: Some(parts), ..self }
    }

    /// Whether the call goes ahead.
    #[inline]
    pub(crate) fn goes_ahead(&self) -> bool {
        self.admitted || self.charge.shadow
    }

    /// Reports the decision.
    #[inline(never)]
    pub(crate) fn observe(&self, observers: &Observers) {
        let SingleDecision { charge, source, .. } = *self;
        let parts = self.parts.unwrap_or(PartsOfKey::NONE);
        match &self.said {
            Said::Plain(spec, outcome) => {
                let seen = (outcome.now, outcome.snapshots[0]);
                observers.plain(charge, **spec, seen, self.admitted, parts);
            }
            Said::Verdict(verdict) => observers.single(charge, verdict, source, parts),
        }
    }

    /// Returns the verdict.
    #[inline(always)]
    pub(crate) fn verdict(&self) -> Verdict {
        match &self.said {
            Said::Plain(spec, outcome) => {
                spec.full_verdict(outcome.snapshots[0], outcome.now, self.charge.cost, self.admitted)
            }
            Said::Verdict(verdict) => *verdict,
        }
    }

    /// Returns the decision of a limiter's call that goes ahead.
    #[inline(always)]
    pub(crate) fn into_decision(self) -> Decision {
        let verdict = self.verdict();
        if self.charge.shadow {
            return self.shadow_decision(&verdict);
        }
        let decision = Decision::of_one(self.policy(&verdict), self.source, Duration::ZERO);
        decision.with_plain_receipt(self.receipt(&verdict))
    }

    #[cold]
    fn shadow_decision(&self, verdict: &Verdict) -> Decision {
        let definition = self.charge.definition.get();
        let policy = PolicyDecision::new(definition.name.to_shared(), definition.algorithm, true, verdict);
        Decision::new(vec![policy], self.source, Duration::ZERO).with_plain_receipt(self.receipt(verdict))
    }

    /// Returns the error of a call that is refused.
    #[inline(always)]
    pub(crate) fn into_error(self) -> Error {
        let limited = Limited::of_one(self.policy(&self.verdict()), self.source);
        Error::limited(match self.parts {
            Some(parts) => limited.with_key(parts),
            None => limited,
        })
    }

    /// Returns the receipt for the charge, if one was made in process.
    #[inline(always)]
    pub(crate) fn receipt(&self, verdict: &Verdict) -> Option<PlainReceipt> {
        let (memory, PolicyCharge { definition, cost, .. }) = (self.memory?, self.charge);
        let spec = self.charge.plain()?;
        if !self.admitted {
            return None;
        }
        Some(PlainReceipt::new(memory.id(), self.key, definition.id, spec, *cost, verdict.charge_id.at))
    }

    #[inline(always)]
    fn policy(&self, verdict: &Verdict) -> SinglePolicy {
        let definition = self.charge.definition.get();
        SinglePolicy::new(definition.static_name().unwrap_or_default(), definition.algorithm, verdict)
    }
}
