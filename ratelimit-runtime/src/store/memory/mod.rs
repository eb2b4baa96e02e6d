//! State in process.

mod mirror;
mod reservations;
mod table;
#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use siphasher::sip128::{Hasher128, SipHasher13};

pub(crate) use self::reservations::Waiter;
use self::reservations::WaiterSlot;
use self::table::Table;
use super::charge::{Charge, Outcome, Snapshots, judge};
use crate::algorithm::{AlgorithmSpec, ChargeId, Verdict};
use crate::clock::Clock;
use crate::key::{Key, KeyForm, Repr};
use crate::log::log;

/// State in process, for a bounded number of keys.
///
/// When it is full it removes expired states first, and then evicts those closest to expiry.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    seed: (u64, u64),
    max_keys: usize,
    table: Mutex<Table>,
}

impl MemoryStore {
    /// Creates an empty store for `max_keys` keys, at least one.
    #[must_use]
    pub fn new(max_keys: usize, clock: Clock) -> Self {
        let random = || RandomState::new().hash_one(0u8);
        let max_keys = max_keys.max(1);
        MemoryStore { clock, seed: (random(), random()), max_keys, table: Mutex::new(Table::new(max_keys)) }
    }

    /// Decides a list of charges of distinct keys, all or nothing except for shadows.
    ///
    /// As in Redis, a charge that has to wait is not queued, so it never moves up.
    pub fn decide(&self, charges: &[Charge]) -> Outcome {
        self.decide_for(charges, false).0
    }

    /// Decides a list of charges, and queues the call if it has to wait.
    pub(crate) fn reserve(&self, charges: &[Charge]) -> (Outcome, Option<Arc<Waiter>>) {
        self.decide_for(charges, true)
    }

    fn decide_for(&self, charges: &[Charge], queues: bool) -> (Outcome, Option<Arc<Waiter>>) {
        let mut table = self.lock();
        // Read under the lock, so that time does not step back between decisions.
        let now = self.clock.now();
        if !table.queues.is_empty() {
            charges.iter().for_each(|charge| table.move_up(self.index(&charge.key), now));
        }
        let snapshots = charges.iter().map(|charge| {
            let state = table.state(self.index(&charge.key));
            charge.spec.check(state, now, charge.cost)
        });
        let snapshots: Snapshots = snapshots.collect();
        let (admitted, verdicts) = judge(charges, &snapshots, now);
        let outcome = Outcome { now, admitted, verdicts, failed: Vec::new() };
        let is_charged = |charge: &Charge, verdict: &Verdict| admitted && charge.is_made(verdict);
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
                let slot = waiter.map(|waiter| WaiterSlot { waiter: Arc::clone(waiter), charge: charged });
                table.charge(index, charge, snapshot, now, slot);
                charged += 1;
            } else if *cost > 0 {
                table.change(index, spec, now, |state| spec.undo(state, now));
            }
        }
        self.unlock(table);
        (outcome, waiter)
    }

    /// Refunds a waiting call: completely, to those behind it, while its charge is queued, or else the part that is still
    /// refundable.
    pub(crate) fn leave(&self, charged: &[(Charge, ChargeId)], waiter: &Arc<Waiter>) {
        let mut table = self.lock();
        let now = self.clock.now();
        for (i, (Charge { key, spec, cost, .. }, _)) in charged.iter().enumerate() {
            let index = self.index(key);
            let slot = WaiterSlot { waiter: Arc::clone(waiter), charge: i };
            if !table.leave(index, &slot, now) {
                let charge_id = waiter.slot(i).charge_id;
                let refund = |state: &mut _| spec.refund(state, now, *cost, Some(charge_id));
                table.change_before_queue(index, spec, now, refund);
            }
        }
        self.unlock(table);
    }

    /// Removes the queues whose slots have started.
    pub(crate) fn start(&self, charges: &[Charge]) {
        let mut table = self.lock();
        let now = self.clock.now();
        charges.iter().for_each(|charge| table.remove_finished_queue(self.index(&charge.key), now));
        self.unlock(table);
    }

    /// Moves up the calls behind those that have left the queues of these keys.
    pub(crate) fn move_up(&self, charges: &[Charge]) {
        let mut table = self.lock();
        let now = self.clock.now();
        charges.iter().for_each(|charge| table.move_up(self.index(&charge.key), now));
        self.unlock(table);
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Refunds `cost` permits of the given charge, or without one, of what the key holds now.
    pub fn refund(&self, key: &Key, spec: &AlgorithmSpec, cost: u64, charge_id: Option<ChargeId>) {
        let mut table = self.lock();
        let now = self.clock.now();
        let refund = |state: &mut _| spec.refund(state, now, cost, charge_id);
        table.change_before_queue(self.index(key), spec, now, refund);
        self.unlock(table);
    }

    /// Removes the key's state. Calls that wait for it move up, as if they came now.
    pub fn reset(&self, key: &Key) {
        let mut table = self.lock();
        let now = self.clock.now();
        table.reset(self.index(key), now);
        self.unlock(table);
    }

    /// Returns whether a call waits for any key.
    #[cfg(test)]
    pub(crate) fn has_queues(&self) -> bool {
        !self.lock().queues.is_empty()
    }

    /// Returns the number of keys, including expired ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Returns whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of keys that were evicted before they expired.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.lock().evicted
    }

    pub(crate) fn key_form(&self) -> KeyForm {
        KeyForm::Hash { seed: self.seed }
    }

    fn index(&self, key: &Key) -> u128 {
        match &key.0 {
            Repr::Hash(hash) => *hash,
            Repr::Text(text) => {
                let mut hasher = SipHasher13::new_with_keys(self.seed.0, self.seed.1);
                hasher.write(text.as_bytes());
                hasher.finish128().as_u128()
            }
        }
    }

    /// Unlocks the table, and then notifies waiters and logs: a log subscriber may call this store.
    fn unlock(&self, mut table: MutexGuard<'_, Table>) {
        let (first_eviction, moved) = (mem::take(&mut table.first_eviction), mem::take(&mut table.moved));
        drop(table);
        moved.iter().for_each(|waiter| waiter.notify());
        if first_eviction {
            log!(
                WARN,
                max_keys = self.max_keys,
                "the memory store is full; evicting keys that have not expired"
            );
        }
    }

    /// Ignores poisoning: after a panic under the lock limits keep working.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
