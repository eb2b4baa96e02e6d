//! Charges that another store has made.

#[cfg(test)]
mod tests;

use super::MemoryStore;
use crate::algorithm::{AlgorithmSpec, ChargeId};
use crate::store::charge::Charge;

impl MemoryStore {
    /// Makes a charge that another store has admitted, whatever is left here. If this store `owes`, the charge makes a state
    /// where there is none, and permits that are missing are taken from the future; else it is made as far as there is a state
    /// with permits left.
    ///
    /// Returns the part to refund here, if the call is refunded.
    pub(crate) fn mirror(&self, charge: &Charge, owes: bool) -> Option<(Charge, ChargeId)> {
        let Charge { key, spec, cost, .. } = charge;
        let index = self.index(key);
        let mut table = self.lock();
        table.settle(index, self.clock.now());
        table.hold(index, spec);
        let now = self.clock.now_in_order();
        let is_live = table.read(index, |state| state.is_some_and(|state| spec.ends(state) > now));
        if !owes && !is_live {
            table.release(index, spec, now);
            self.unlock(table);
            return None;
        }
        let mut charged = None;
        if spec.reserves() {
            let (snapshot, pause) = table
                .read(index, |state| (spec.check(state, now, *cost), AlgorithmSpec::pause_of(state, now)));
            let at = pause.map_or(now, |pause| pause.time(now));
            if let Some(cost) = spec.mirrored_cost(snapshot, at, *cost, owes) {
                let charge = Charge { cost, wait: 0, ..charge.clone() };
                let verdict = spec.verdict(snapshot, at, cost, u64::MAX);
                table.charge(index, &charge, snapshot, now, None);
                charged = verdict.admitted.then_some((cost, verdict.charge_id));
            } else {
                table.release(index, spec, now);
            }
        } else {
            table.change(index, spec, now, |state| {
                charged = spec.mirror_to_window(state, now, *cost, owes);
            });
        }
        self.unlock(table);
        let (cost, charge_id) = charged.filter(|(cost, _)| *cost > 0)?;
        Some((Charge { cost, ..charge.clone() }, charge_id))
    }
}
