//! Decisions under the table's lock.

use std::slice;
use std::sync::Arc;

use super::MemoryStore;
use super::table::Table;
use super::waiter::Waiter;
use crate::algorithm::Verdict;
use crate::store::charge::{Charge, Outcome, Snapshots};

impl MemoryStore {
    /// Decides a list of charges, and if it `queues`, queues the call if it has to wait.
    #[inline(never)]
    pub(super) fn decide_for(
        &self,
        charges: &[Charge],
        outcome: &mut Outcome,
        queues: bool,
    ) -> Option<Arc<Waiter>> {
        let mut table = self.lock();
        if let [charge] = charges
            && self.decide_new(&mut table, charge, outcome)
        {
            self.unlock(table);
            return None;
        }
        if !table.queues.is_empty() {
            let now = self.clock.now_in_order();
            charges.iter().for_each(|charge| table.settle(self.index(&charge.key), now));
        }
        charges.iter().for_each(|charge| table.hold(self.index(&charge.key), &charge.spec));
        // Read while the keys are held, so that time does not step back between decisions.
        let now = self.clock.now_in_order();
        let snapshots = charges.iter().map(|charge| {
            table.read(self.index(&charge.key), |state| charge.spec.check(state, now, charge.cost))
        });
        let snapshots: Snapshots = snapshots.collect();
        outcome.now = now;
        outcome.judge(charges, &snapshots);
        let is_charged = |charge: &Charge, verdict: &Verdict| outcome.admitted && charge.is_made(verdict);
        let waiter = (queues && outcome.wait() > 0).then(|| {
            let pairs = charges.iter().zip(&outcome.verdicts);
            let charged = pairs.filter(|(charge, verdict)| is_charged(charge, verdict));
            Arc::new(Waiter::new(now, charged.map(|(_, verdict)| verdict)))
        });
        let mut charged = 0;
        for ((charge, snapshot), verdict) in charges.iter().zip(snapshots).zip(&outcome.verdicts) {
            let (Charge { spec, cost, .. }, index) = (charge, self.index(&charge.key));
            if is_charged(charge, verdict) {
                let waiter = waiter.as_ref().filter(|_| verdict.wait > 0);
                let waiting = waiter.map(|waiter| (Arc::clone(waiter), charged));
                table.charge(index, charge, snapshot, now, waiting);
                charged += 1;
            } else if *cost > 0 {
                table.change(index, spec, now, |state| spec.undo(state, now));
            } else {
                table.release(index, spec, now);
            }
        }
        self.unlock(table);
        waiter
    }

    /// Decides a charge of a key that is not there, unless its call has to wait. Returns whether it has.
    fn decide_new(&self, table: &mut Table, charge: &Charge, outcome: &mut Outcome) -> bool {
        let (Charge { spec, cost, .. }, index) = (charge, self.index(&charge.key));
        if self.slots.locate(index.fingerprint).is_some() {
            return false;
        }
        let now = self.clock.now_in_order();
        let snapshot = spec.check(None, now, *cost);
        outcome.now = now;
        outcome.judge(slice::from_ref(charge), &[snapshot]);
        if outcome.wait() > 0 {
            return false;
        }
        if outcome.admitted && charge.is_made(&outcome.verdicts[0]) {
            let mut state = None;
            spec.commit(&mut state, snapshot, now, *cost);
            state.into_iter().for_each(|state| table.insert(index, spec, state, now));
        }
        true
    }
}
