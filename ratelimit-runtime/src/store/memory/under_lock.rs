//! Decisions under the table's lock.

use std::slice;
use std::sync::Arc;

use super::MemoryStore;
use super::plain::PlainOutcome;
use super::slot::Content;
use super::table::{KeyIndex, Table};
use super::waiter::Waiter;
use crate::algorithm::{AlgorithmSpec, PlainSpec, PlainStep, PlainSteps, Verdict};
use crate::base::sync::MutexGuard;
use crate::key::Fingerprint;
use crate::key::policy_id::PolicyId;
use crate::store::charge::{Charge, Outcome, Pauses, Snapshots};
use crate::store::judge::line_of;

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
            && let Some((now, verdict)) = self.decide_new(&mut table, charge)
        {
            self.unlock(table);
            (outcome.now, outcome.admitted) = (now, verdict.admitted || charge.shadow);
            outcome.verdicts.clear();
            outcome.verdicts.push(verdict);
            return None;
        }
        self.decide_list_under_lock(table, charges, outcome, queues)
    }

    /// Decides a list of charges with the states of all keys taken out of their slots.
    fn decide_list_under_lock(
        &self,
        mut table: MutexGuard<'_, Table>,
        charges: &[Charge],
        outcome: &mut Outcome,
        queues: bool,
    ) -> Option<Arc<Waiter>> {
        if !table.queues.is_empty() {
            let now = self.clock.now_in_order();
            charges.iter().for_each(|charge| table.settle(self.index(&charge.key), now));
        }
        charges.iter().for_each(|charge| table.hold(self.index(&charge.key), &charge.spec));
        // Read while the keys are held, so that time does not step back between decisions.
        let now = self.clock.now_in_order();
        (outcome.now, outcome.paused) = (now, Pauses::default());
        let snapshots = charges.iter().enumerate().map(|(index, charge)| {
            table.read(self.index(&charge.key), |state| {
                if let Some(pause) = AlgorithmSpec::pause_of(state, now) {
                    outcome.paused.push(index, pause);
                }
                charge.spec.check(state, now, charge.cost)
            })
        });
        let mut snapshots: Snapshots = snapshots.collect();
        outcome.judge(charges, &mut snapshots);
        let is_charged = |charge: &Charge, verdict: &Verdict| outcome.admitted && charge.is_made(verdict);
        let waiter = (queues && outcome.wait() > 0).then(|| {
            let pairs = charges.iter().zip(&outcome.verdicts);
            let charged = pairs.filter(|(charge, verdict)| is_charged(charge, verdict));
            Arc::new(Waiter::new(now, charged.map(|(_, verdict)| verdict)))
        });
        let together = line_of(charges).is_some();
        let mut charged = 0;
        for (i, ((charge, snapshot), verdict)) in
            charges.iter().zip(snapshots).zip(&outcome.verdicts).enumerate()
        {
            let (Charge { spec, cost, .. }, index) = (charge, self.index(&charge.key));
            if is_charged(charge, verdict) {
                // A call that several buckets let wait keeps its slot, whoever leaves before it. So does one that waits for a key that
                // is paused, or was while others waited.
                let keeps_slot = together || outcome.pause(i).is_some();
                let waiter = waiter.as_ref().filter(|_| verdict.wait > 0 && !keeps_slot);
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

    /// Decides a charge that the other ways have left to the lock of the table. Returns `None` if more than a verdict is to be told of
    /// its key, which is paused, and has charged nothing then.
    pub(crate) fn decide_under_lock(&self, charge: &Charge) -> Option<Verdict> {
        let mut table = self.lock();
        if let Some((_, verdict)) = self.decide_new(&mut table, charge) {
            self.unlock(table);
            return Some(verdict);
        }
        if table.is_paused(self.index(&charge.key)) {
            self.unlock(table);
            return None;
        }
        let mut outcome = Outcome::default();
        self.decide_list_under_lock(table, slice::from_ref(charge), &mut outcome, false);
        outcome.verdicts.pop()
    }

    /// Decides a charge of a key that is not there, unless its call has to wait.
    fn decide_new(&self, table: &mut Table, charge: &Charge) -> Option<(u64, Verdict)> {
        let (Charge { spec, cost, wait, shadow, .. }, index) = (charge, self.index(&charge.key));
        if self.slots.locate(index.fingerprint).is_some() {
            return None;
        }
        let now = self.clock.now_in_order();
        let snapshot = spec.check(None, now, *cost);
        if *cost == 0 {
            return Some((now, spec.peek(None, snapshot, now)));
        }
        let mut verdict = spec.verdict(snapshot, now, *cost, *wait);
        if verdict.admitted {
            if *shadow {
                verdict.wait = 0;
            } else if verdict.wait > 0 {
                return None;
            }
            let mut state = None;
            spec.commit(&mut state, snapshot, now, *cost);
            state.into_iter().for_each(|state| table.insert(index, spec, state, now));
        }
        Some((now, verdict))
    }

    /// Decides a charge that the lock-free steps have not decided, by the same steps, if its key is not there. Returns `None` if it may be, or
    /// if these steps do not decide it, and has then charged nothing.
    #[inline]
    pub(crate) fn decide_new_plain(
        &self,
        key: (Fingerprint, PolicyId),
        spec: &PlainSpec,
        cost: u64,
    ) -> Option<PlainOutcome<1>> {
        // Without the lock first: calls that wait for a bucket come here too, and the keys of these are mostly there.
        if self.is_locked || self.slots.find(key.0).is_some() {
            return None;
        }
        self.decide_absent(key, spec, cost)
    }

    /// Decides it if the key is not there, under the lock.
    #[cold]
    #[inline(never)]
    fn decide_absent(
        &self,
        (key, policy): (Fingerprint, PolicyId),
        spec: &PlainSpec,
        cost: u64,
    ) -> Option<PlainOutcome<1>> {
        let mut table = self.lock();
        if self.slots.locate(key).is_some() {
            return None;
        }
        let now = self.clock.now_in_order();
        let PlainStep { snapshot, admitted, after } = spec.decide(spec.absent(), now, cost)?;
        if admitted && cost > 0 {
            let content = Content::of(after?, now)?;
            table.insert_with(KeyIndex { fingerprint: key, policy }, now, |_| content);
        }
        self.unlock(table);
        Some(PlainOutcome { now, admitted, admits: [admitted], snapshots: [snapshot] })
    }
}
