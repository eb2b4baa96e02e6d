//! Keys that have reached a share of their limit, as observers get them.

use super::{CallOutcome, Observation, Observers, Said};
use crate::algorithm::{AlgorithmSpec, Verdict};
use crate::decide::definition::Definition;
use crate::key::PartsOfKey;
use crate::store::decided_by::DecidedBy;

/// A key, and what a policy has said of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) spec: &'a AlgorithmSpec,
    pub(crate) verdict: &'a Verdict,
    pub(crate) shadow: bool,
    pub(crate) source: DecidedBy,
    pub(crate) parts: PartsOfKey<'a>,
}

impl Near<'_> {
    /// Whether the key has reached the share that the attribute says, if it says one.
    pub(crate) fn is_reached(&self) -> bool {
        let Verdict { limit, remaining, .. } = *self.verdict;
        self.definition.attribute.notify_at.is_some_and(|share| share.is_reached(limit, remaining))
    }
}

impl Observers {
    /// Reports that a key has reached the share.
    pub(crate) fn near_limit(&self, near: &Near<'_>) {
        let Near { definition, spec, verdict, shadow, source, parts } = *near;
        let (source, said) = (Some(source), Said::Verdict(verdict, spec));
        let observation = Observation::undecided(definition, 0, CallOutcome::NearLimit);
        self.tell(&Observation { shadow, source, parts, said, ..observation });
    }
}
