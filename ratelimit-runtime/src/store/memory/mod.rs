//! State in this process.

mod line;
mod table;
#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use siphasher::sip128::{Hasher128, SipHasher13};

pub(crate) use self::line::Waiter;
use self::table::Table;
use super::{Charge, Outcome, Snapshots, judge};
use crate::algorithm::{AlgorithmSpec, ChargeId, Verdict};
use crate::clock::Clock;
use crate::key::{Key, KeyForm, Repr};

/// State in this process, for so many keys at the most.
///
/// When it is full it forgets first what says nothing more, and then what is nearest to it.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    seed: (u64, u64),
    max_keys: usize,
    table: Mutex<Table>,
}

impl MemoryStore {
    /// An empty store for `max_keys` keys, at least one.
    #[must_use]
    pub fn new(max_keys: usize, clock: Clock) -> Self {
        let random = || RandomState::new().hash_one(0u8);
        let max_keys = max_keys.max(1);
        MemoryStore { clock, seed: (random(), random()), max_keys, table: Mutex::new(Table::new(max_keys)) }
    }

    /// Decides one list of charges, all or nothing but for shadows. Its keys are distinct.
    ///
    /// A charge that has to wait stands in no line, as in Redis: nothing moves it up.
    pub fn decide(&self, charges: &[Charge]) -> Outcome {
        self.decide_for(charges, false).0
    }

    /// Decides one list of charges, and if the call has to wait puts it in line.
    pub(crate) fn reserve(&self, charges: &[Charge]) -> (Outcome, Option<Arc<Waiter>>) {
        self.decide_for(charges, true)
    }

    fn decide_for(&self, charges: &[Charge], in_line: bool) -> (Outcome, Option<Arc<Waiter>>) {
        let mut table = self.lock();
        // Under the lock, so that time does not go back from one decision to the next.
        let now = self.clock.now();
        if !table.lines.is_empty() {
            charges.iter().for_each(|charge| table.move_up(self.index(&charge.key), now));
        }
        let snapshots = charges.iter().map(|charge| {
            let state = table.state(self.index(&charge.key));
            charge.spec.check(state, now, charge.cost)
        });
        let snapshots: Snapshots = snapshots.collect();
        let (admitted, verdicts) = judge(charges, &snapshots, now);
        let outcome = Outcome { now, admitted, verdicts, failed: Vec::new() };
        let is_charged = |(charge, verdict): &(&Charge, &Verdict)| admitted && charge.is_made(verdict);
        let charged = charges.iter().zip(&outcome.verdicts).filter(is_charged).map(|(_, verdict)| verdict);
        let waiter = (in_line && outcome.wait() > 0).then(|| Arc::new(Waiter::new(now, charged)));
        let mut place = 0;
        for ((charge, snapshot), verdict) in charges.iter().zip(snapshots).zip(&outcome.verdicts) {
            let (Charge { spec, cost, .. }, index) = (charge, self.index(&charge.key));
            if is_charged(&(charge, verdict)) {
                let waits = waiter.as_ref().filter(|_| verdict.wait > 0);
                table.charge(index, charge, (now, snapshot), waits.map(|waiter| (waiter, place)));
                place += 1;
            } else if *cost > 0 {
                table.change(index, spec, now, |state| spec.undo(state, now));
            }
        }
        self.unlock(table);
        (outcome, waiter)
    }

    /// Gives back what a call that waits was charged: all of it to those behind it, if none of them has started, else as
    /// far as it can be given back.
    pub(crate) fn leave(&self, charged: &[(Charge, ChargeId)], waiter: &Arc<Waiter>) {
        let mut table = self.lock();
        let now = self.clock.now();
        for (place, (Charge { key, spec, cost, .. }, _)) in charged.iter().enumerate() {
            let index = self.index(key);
            if !table.leave(index, waiter, place, now) {
                let charge_id = waiter.slot(place).charge_id;
                let refund = |state: &mut _| spec.refund(state, now, *cost, Some(charge_id));
                table.change_before_line(index, spec, now, refund);
            }
        }
        self.unlock(table);
    }

    /// Lets go of a call whose slots have come.
    pub(crate) fn start(&self, charges: &[Charge]) {
        let mut table = self.lock();
        let now = self.clock.now();
        charges.iter().for_each(|charge| table.tidy(self.index(&charge.key), now));
        self.unlock(table);
    }

    /// Lets a call move up that has been told it may, and all behind it.
    pub(crate) fn move_up(&self, charges: &[Charge]) {
        let mut table = self.lock();
        let now = self.clock.now();
        charges.iter().for_each(|charge| table.move_up(self.index(&charge.key), now));
        self.unlock(table);
    }

    /// The time.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Gives back `cost` permits: of the charge so marked, or of whatever the key holds.
    pub fn refund(&self, key: &Key, spec: &AlgorithmSpec, cost: u64, charge_id: Option<ChargeId>) {
        let mut table = self.lock();
        let now = self.clock.now();
        let refund = |state: &mut _| spec.refund(state, now, cost, charge_id);
        table.change_before_line(self.index(key), spec, now, refund);
        self.unlock(table);
    }

    /// Forgets what the key holds. Those who wait for it move up, as if they came now.
    pub fn reset(&self, key: &Key) {
        let mut table = self.lock();
        let now = self.clock.now();
        table.reset(self.index(key), now);
        self.unlock(table);
    }

    /// Whether somebody waits for one of its keys.
    #[cfg(test)]
    pub(crate) fn has_lines(&self) -> bool {
        !self.lock().lines.is_empty()
    }

    /// How many keys it holds, ended ones among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether it holds no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys were evicted for want of room while they still counted something.
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

    /// Ends a change of the table. Who is to be told is told without the lock, as whoever hears it may be limited too.
    fn unlock(&self, mut table: MutexGuard<'_, Table>) {
        let (first_loss, moved) = (mem::take(&mut table.first_loss), mem::take(&mut table.moved));
        drop(table);
        moved.tell();
        if first_loss {
            tracing::warn!(
                max_keys = self.max_keys,
                "the memory store is full and forgets keys that still count"
            );
        }
    }

    /// A panic under the lock is a defect elsewhere, and limits go on.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
