//! What observers learn of decisions, where it is not compiled into each call.

use std::sync::Arc;

use super::acquired::Acquired;
use super::backend::Backend;
use super::charges::PolicyCharge;
use crate::algorithm::PlainSnapshot;
use crate::key::PartsOfKey;
use crate::store::Hold;

impl Backend {
    /// Tells observers of a charge that was admitted by the lock-free steps.
    #[cold]
    #[inline(never)]
    pub(super) fn observe_admitted(
        &self,
        charge: &PolicyCharge<'_>,
        (now, snapshot): (u64, PlainSnapshot),
        parts: PartsOfKey<'_>,
    ) {
        let (Some(spec), Some(observers)) = (&charge.plain(), self.observers()) else { return };
        observers.plain(charge, spec, (now, snapshot), (true, true), parts);
        if charge.definition.attribute.notify_at.is_some() {
            let verdict = spec.verdict(charge.numbers.limit(*spec), snapshot, now, charge.cost, true);
            self.notify_one(charge, &verdict, parts);
        }
    }

    /// Tells observers what became of a request.
    #[inline(never)]
    pub(super) fn observe(&self, acquired: &Acquired<'_>) -> Vec<Arc<Hold>> {
        let holds = self.observers().map(|observers| observers.decided(acquired)).unwrap_or_default();
        if acquired.request.notifies() {
            self.notify_all(acquired);
        }
        holds
    }
}
