//! The policies of the fast lane, and what it says about a call with one of them.

use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::{AlgorithmSpec, PlainSpec, PlainVerdict};
use crate::decision::{Decision, SinglePolicy};
use crate::error::{Error, Limited};
use crate::key::{Fingerprint, KeyHead};
use crate::policy::Algorithm;
use crate::policy_id::PolicyId;
use crate::source::Source;
use crate::store::{MemoryStore, PlainCharge, PlainOutcome, PlainReceipt};

/// A policy whose calls may take the fast lane, with all that such a call needs of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LanePolicy {
    pub(crate) key_head: KeyHead,
    pub(crate) spec: PlainSpec,
    id: PolicyId,
    name: &'static str,
    limit: u64,
    algorithm: Algorithm,
}

impl LanePolicy {
    /// Returns the policy for the fast lane, if its usual states are plain.
    pub(crate) fn new(
        name: &'static str,
        id: PolicyId,
        spec: &AlgorithmSpec,
        key_head: KeyHead,
    ) -> Option<Self> {
        let (algorithm, spec) = (Algorithm::of(spec), PlainSpec::of(spec)?);
        Some(LanePolicy { key_head, spec, id, name, limit: spec.limit(), algorithm })
    }

    /// Whether a call that waits for this policy does so only if it is refused. One that waits for a window queues.
    #[inline]
    pub(crate) fn reserves(&self) -> bool {
        self.spec.is_bucket()
    }

    /// Whether its steps are compiled into each call.
    pub(crate) fn is_common(&self) -> bool {
        self.spec.is_common()
    }

    #[inline]
    pub(crate) fn charge(&self, key: Fingerprint, cost: u64) -> PlainCharge {
        PlainCharge { key, spec: self.spec, cost }
    }

    /// Returns the decision about an admitted call.
    #[inline]
    pub(crate) fn admitted(
        &self,
        memory: &Arc<MemoryStore>,
        charge: PlainCharge,
        outcome: &PlainOutcome<1>,
    ) -> Decision {
        let PlainOutcome { now, snapshots: [snapshot], .. } = *outcome;
        let verdict = self.spec.verdict(snapshot, now, charge.cost, true);
        let receipt = PlainReceipt::new(memory.id(), charge.key, self.id, self.spec, charge.cost, verdict.at);
        Decision::of_one(self.decided(true, verdict), Source::Memory, Duration::ZERO, Some(receipt))
    }

    /// Returns the error of a call that is refused.
    #[inline]
    pub(crate) fn limited(&self, cost: u64, outcome: &PlainOutcome<1>) -> Error {
        let PlainOutcome { now, snapshots: [snapshot], .. } = *outcome;
        let verdict = self.spec.verdict(snapshot, now, cost, false);
        Error::limited(Limited::of_one(self.decided(false, verdict), Source::Memory))
    }

    #[inline]
    fn decided(&self, admitted: bool, verdict: PlainVerdict) -> SinglePolicy {
        let LanePolicy { name, algorithm, limit, .. } = *self;
        let PlainVerdict { remaining, retry_after, reset_after, .. } = verdict;
        SinglePolicy { name, algorithm, admitted, limit, remaining, retry_after, reset_after }
    }
}
