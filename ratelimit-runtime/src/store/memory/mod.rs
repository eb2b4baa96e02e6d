//! State in process.

mod by_id;
mod eviction;
mod in_place;
mod levels;
mod lines;
mod mirror;
mod owners;
mod plain;
mod reservations;
mod segments;
mod shares;
mod slot;
mod slots;
mod states;
mod table;
#[cfg(test)]
mod tests;
mod under_lock;
mod waiter;

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::mem;
use std::slice;
use std::sync::{Arc, OnceLock, PoisonError};

pub(crate) use self::by_id::StoreId;
use self::by_id::{ById, Last};
pub(crate) use self::in_place::{InList, ListedCharge, SingleOutcome};
pub(crate) use self::plain::{PlainCharge, PlainOutcome};
use self::slots::Slots;
use self::table::{KeyIndex, Table};
pub(crate) use self::waiter::Waiter;
use super::charge::{Charge, Outcome};
use super::correction::{Corrected, Correction, CorrectionKind};
use super::hold::Hold;
use crate::algorithm::{AlgorithmSpec, ChargeId, PlainSpec, State, Verdict};
use crate::base::clock::Clock;
use crate::base::log::log;
use crate::base::sync::{Mutex, MutexGuard};
use crate::key::Key;

/// State in process, for a bounded number of keys.
///
/// Each new key removes the expired ones among the next few. When the store is full, a new key of a policy that holds less than
/// its share, `max_keys` divided by the number of policies with keys, replaces a key of the policy with the most keys, and any
/// other new key replaces one of its own policy: of 16 picked at random, the one closest to expiry. So a policy with no more
/// than its share loses no key to the keys of others.
pub struct MemoryStore {
    clock: Clock,
    slots: Arc<Slots>,
    table: Mutex<Table>,
    /// Whether every decision takes the table's lock.
    is_locked: bool,
    /// Called with each key that gets permits back.
    on_refund: OnceLock<RefundListener>,
    id: OnceLock<StoreId>,
}

/// The stores that have an id.
static STORES: ById<MemoryStore> = ById::new();

type RefundListener = Box<dyn Fn(&Key) + Send + Sync>;

impl MemoryStore {
    /// Creates an empty store for `max_keys` keys, at least one.
    #[must_use]
    pub fn new(max_keys: usize, clock: Clock) -> Self {
        let slots = Arc::new(Slots::new(max_keys));
        let table = Mutex::new(Table::new(Arc::clone(&slots), max_keys, RandomState::new().hash_one(0u8)));
        let (on_refund, id) = (OnceLock::new(), OnceLock::new());
        MemoryStore { clock, slots, table, is_locked: false, on_refund, id }
    }

    /// Has every decision take the lock of the table, to compare both ways.
    #[must_use]
    pub fn locked(mut self) -> Self {
        self.is_locked = true;
        self
    }

    /// Decides a list of charges of distinct keys, all or nothing except for shadows.
    ///
    /// As in Redis, a charge that has to wait is not queued, so it never moves up.
    ///
    /// Keys that are there, and that no call waits for, are decided without the table's lock.
    pub fn decide(&self, charges: &[Charge]) -> Outcome {
        let mut outcome = Outcome::default();
        if self.decide_without_lock(charges, &mut outcome).is_none() {
            self.decide_for(charges, &mut outcome, false);
        }
        outcome
    }

    /// Looks at what a charge without cost finds, unless the key is paused.
    pub(crate) fn peek(&self, charge: &Charge) -> Option<Verdict> {
        let (charges, mut outcome) = (slice::from_ref(charge), Outcome::default());
        if self.decide_in_place(charges, &mut outcome).is_none() {
            self.decide_for(charges, &mut outcome, false);
        }
        outcome.verdicts.pop().filter(|_| outcome.paused.is_empty())
    }

    /// Decides a list of charges, and queues the call if it has to wait.
    pub(crate) fn reserve(&self, charges: &[Charge]) -> (Outcome, Option<Arc<Waiter>>) {
        let mut outcome = Outcome::default();
        let waiter = match self.decide_without_lock(charges, &mut outcome) {
            Some(()) => None,
            None => self.decide_for(charges, &mut outcome, true),
        };
        (outcome, waiter)
    }

    /// Decides a list of keys that are there, and that no call waits for, unless this call has to wait.
    fn decide_without_lock(&self, charges: &[Charge], outcome: &mut Outcome) -> Option<()> {
        self.decide_plain_list(charges, outcome).or_else(|| self.decide_in_place(charges, outcome))
    }

    /// Refunds a waiting call: completely, to those behind it, while its charge is queued, or else the part that is still
    /// refundable.
    pub(crate) fn leave(&self, charged: &[(Charge, ChargeId)], waiter: &Arc<Waiter>) {
        let mut table = self.lock();
        charged.iter().for_each(|(charge, _)| table.hold(self.index(&charge.key), &charge.spec));
        let now = self.clock.now_in_order();
        for (i, (Charge { key, spec, cost, .. }, _)) in charged.iter().enumerate() {
            let index = self.index(key);
            let ticket = waiter.slot(i).ticket;
            if !ticket.is_some_and(|ticket| table.leave(index, ticket, now)) {
                let refund = |state: &mut _| spec.refund(state, now, *cost, Some(waiter.slot(i).charge_id));
                table.change_before_queue(index, spec, now, refund);
            }
        }
        self.unlock(table);
        charged.iter().for_each(|(charge, _)| self.report_refund(&charge.key));
    }

    /// Removes the calls that have started from the queues of these keys, and moves up those behind calls that have left.
    pub(crate) fn move_up(&self, charges: &[Charge]) {
        let mut table = self.lock();
        let now = self.clock.now_in_order();
        charges.iter().for_each(|charge| table.move_up(self.index(&charge.key), now));
        self.unlock(table);
    }

    /// Returns the current time.
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Refunds `cost` permits of the given charge, or without one, of what the key holds now.
    pub fn refund(&self, key: &Key, spec: &AlgorithmSpec, cost: u64, charge_id: Option<ChargeId>) {
        let refund = |state: &mut _, now| spec.refund(state, now, cost, charge_id);
        let is_plain = charge_id
            .zip(PlainSpec::of(spec))
            .is_some_and(|(charge_id, plain)| self.refund_plain(key.fingerprint(), &plain, cost, charge_id));
        if !is_plain && self.change_in_place(key, spec, refund).is_none() {
            self.refund_under_lock(key, spec, refund);
        }
        self.report_refund(key);
    }

    /// Returns the hold of a charge that was made, at this index in its decision.
    pub(crate) fn hold(self: &Arc<Self>, index: usize, charge: Charge, charge_id: ChargeId) -> Arc<Hold> {
        let (store, Charge { key, spec, cost, .. }) = (Arc::clone(self), charge);
        Arc::new(Hold::new(index, move || store.refund(&key, &spec, cost, Some(charge_id))))
    }

    pub(crate) fn correct(&self, Correction { key, spec, cost, kind }: &Correction) -> Corrected {
        match kind {
            CorrectionKind::Refund(charge_id) => self.refund(key, spec, *cost, *charge_id),
            CorrectionKind::Debit => return Corrected::cut(self.debit(key, spec, *cost)),
            CorrectionKind::Pause => self.pause(key, spec, *cost),
            CorrectionKind::Penalty(steps) => {
                return self.penalize(key, spec, steps).map_or(Corrected::Whole, Corrected::Penalized);
            }
            // In process, holds are counted.
            CorrectionKind::Holds(_) => {}
        }
        Corrected::Whole
    }

    /// Charges what a call has used beyond its cost, behind all calls that wait. Returns whether the debt was cut.
    pub fn debit(&self, key: &Key, spec: &AlgorithmSpec, cost: u64) -> bool {
        let mut is_cut = false;
        let debit = |state: &mut _, now| is_cut = spec.debit(state, now, cost);
        if self.change_in_place(key, spec, debit).is_none() {
            self.change_behind_queue(key, spec, |state, now| is_cut = spec.debit(state, now, cost));
        }
        is_cut
    }

    /// Admits no call of a key until this many microseconds have passed, or until its pause is over if that takes longer. Those that
    /// wait keep their slots, unless they ask again.
    pub fn pause(&self, key: &Key, spec: &AlgorithmSpec, micros: u64) {
        self.change_behind_queue(key, spec, |state, now| spec.pause(state, now, micros));
    }

    /// Pauses a key that has refused a call, as its next step says. Returns the step, or `None` if the refusal is no penalty.
    pub fn penalize(&self, key: &Key, spec: &AlgorithmSpec, steps: &[u64]) -> Option<u64> {
        let mut step = None;
        self.change_behind_queue(key, spec, |state, now| step = spec.penalize(state, now, steps));
        step
    }

    /// Changes a state behind all calls that wait, which keep their slots.
    fn change_behind_queue(
        &self,
        key: &Key,
        spec: &AlgorithmSpec,
        change: impl FnOnce(&mut Option<State>, u64),
    ) {
        let (mut table, index) = (self.lock(), self.index(key));
        table.settle(index, self.clock.now_in_order());
        table.hold(index, spec);
        let now = self.clock.now_in_order();
        table.end_queue(index.fingerprint);
        table.change(index, spec, now, |state| change(state, now));
        self.unlock(table);
    }

    fn refund_under_lock(&self, key: &Key, spec: &AlgorithmSpec, refund: impl Fn(&mut Option<State>, u64)) {
        let (mut table, index) = (self.lock(), self.index(key));
        table.hold(index, spec);
        // Read while the key is held: charges made later would be cut to what a bucket could hold at this time.
        let now = self.clock.now_in_order();
        table.change_before_queue(index, spec, now, |state| refund(state, now));
        self.unlock(table);
    }

    /// Removes the key's state. Calls in its queue move up, as if they came now. Returns whether there was any that had not expired.
    pub fn reset(&self, key: &Key) -> bool {
        let was_live = self.reset_in_place(key).unwrap_or_else(|| {
            let mut table = self.lock();
            let now = self.clock.now_in_order();
            let was_live = table.reset(self.index(key), now);
            self.unlock(table);
            was_live
        });
        self.report_refund(key);
        was_live
    }

    /// Has this called with each key that is refunded or reset. Only the first listener counts.
    pub(crate) fn on_refund(&self, listener: impl Fn(&Key) + Send + Sync + 'static) {
        self.on_refund.get_or_init(|| Box::new(listener));
    }

    /// Returns whether a call waits for any key.
    #[cfg(test)]
    pub(crate) fn has_queues(&self) -> bool {
        !self.lock().queues.is_empty()
    }

    /// Returns the number of keys, including expired ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len
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

    /// Returns the id by which receipts find this store.
    #[inline]
    pub(crate) fn id(self: &Arc<Self>) -> StoreId {
        *self.id.get_or_init(|| STORES.add(self))
    }

    /// Returns the store with this id, unless it is gone.
    pub(crate) fn by_id(id: StoreId) -> Option<Arc<Self>> {
        thread_local!(static LAST: Last<MemoryStore> = const { RefCell::new(None) });
        STORES.get(id, &LAST)
    }

    #[inline]
    fn index(&self, key: &Key) -> KeyIndex {
        KeyIndex { fingerprint: key.fingerprint(), policy: key.1 }
    }

    fn report_refund(&self, key: &Key) {
        if let Some(listener) = self.on_refund.get() {
            listener(key);
        }
    }

    /// Unlocks the table, and then notifies waiters and logs: a log subscriber may call this store.
    fn unlock(&self, mut table: MutexGuard<'_, Table>) {
        let (first_eviction, moved) = (mem::take(&mut table.first_eviction), mem::take(&mut table.moved));
        let max_keys = table.max_keys;
        drop(table);
        moved.iter().for_each(|waiter| waiter.notify());
        if first_eviction {
            log!(WARN, max_keys, "the memory store is full; evicting keys that have not expired");
        }
    }

    /// Ignores poisoning: after a panic under the lock limits keep working.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        if let Some(id) = self.id.get() {
            STORES.remove(*id);
        }
    }
}

/// Without its keys.
impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("keys", &self.len()).finish_non_exhaustive()
    }
}
