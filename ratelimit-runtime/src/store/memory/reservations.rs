//! Queues of reservations. A call that waits is charged at once, for a slot in the future; when a call leaves, those behind it
//! move up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::algorithm::{AlgorithmSpec, ChargeId, State, Verdict};
use crate::store::charge::INLINE;

/// A waiting call.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// One for each of its charges, in order.
    slots: Mutex<SmallVec<[ReservedSlot; INLINE]>>,
    moved: Notify,
}

/// The time for which a charge was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReservedSlot {
    pub(crate) at: u64,
    pub(crate) charge_id: ChargeId,
}

impl Waiter {
    pub(super) fn new<'v>(now: u64, verdicts: impl IntoIterator<Item = &'v Verdict>) -> Self {
        let slot = |verdict: &Verdict| ReservedSlot { at: now + verdict.wait, charge_id: verdict.charge_id };
        Waiter { slots: Mutex::new(verdicts.into_iter().map(slot).collect()), moved: Notify::new() }
    }

    /// Returns when all of its slots have started.
    pub(crate) fn start(&self) -> u64 {
        self.slots().iter().map(|slot| slot.at).max().unwrap_or(0)
    }

    /// Returns the slot of one of its charges.
    pub(crate) fn slot(&self, charge: usize) -> ReservedSlot {
        self.slots()[charge]
    }

    /// Waits until a slot may have moved up.
    pub(crate) async fn moved(&self) {
        self.moved.notified().await;
    }

    /// Wakes the call to look at its slots.
    pub(super) fn notify(&self) {
        self.moved.notify_one();
    }

    fn slots(&self) -> MutexGuard<'_, SmallVec<[ReservedSlot; INLINE]>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of a waiter's slots.
#[derive(Clone, Debug)]
pub(super) struct WaiterSlot {
    pub(super) waiter: Arc<Waiter>,
    /// The index of its charge.
    pub(super) charge: usize,
}

impl WaiterSlot {
    fn at(&self) -> u64 {
        self.waiter.slot(self.charge).at
    }

    fn is(&self, other: &WaiterSlot) -> bool {
        Arc::ptr_eq(&self.waiter, &other.waiter) && self.charge == other.charge
    }
}

/// A charge in the queue.
#[derive(Debug)]
pub(super) struct QueuedCharge {
    pub(super) slot: WaiterSlot,
    pub(super) cost: u64,
    /// The state before the charge.
    pub(super) before: Option<State>,
}

/// The charges of a key, from the first whose slot has not started.
#[derive(Debug)]
pub(super) struct ReservationQueue {
    pub(super) spec: AlgorithmSpec,
    charges: VecDeque<QueuedCharge>,
    /// The first charge that has to be repeated, and the state before it. Several calls may leave before that happens.
    stale: Option<(usize, Option<State>)>,
}

impl ReservationQueue {
    pub(super) fn new(spec: AlgorithmSpec) -> Self {
        ReservationQueue { spec, charges: VecDeque::new(), stale: None }
    }

    pub(super) fn push(&mut self, charge: QueuedCharge, now: u64) {
        self.remove_started(now);
        self.charges.push_back(charge);
    }

    /// Removes the charge of this slot, and returns whether it was queued. The next waiter is notified; when it checks, all
    /// behind move up.
    pub(super) fn leave(&mut self, slot: &WaiterSlot, moved: &mut Vec<Arc<Waiter>>) -> bool {
        let Some(index) = self.charges.iter().position(|charge| charge.slot.is(slot)) else { return false };
        let Some(QueuedCharge { before, .. }) = self.charges.remove(index) else { return false };
        if self.stale.as_ref().is_none_or(|(from, _)| *from > index) {
            self.stale = Some((index, before));
        }
        moved.extend(self.charges.get(index).map(|next| Arc::clone(&next.slot.waiter)));
        true
    }

    /// Moves up the calls behind those that have left. Returns the new state, if it has changed.
    pub(super) fn move_up(&mut self, now: u64, moved: &mut Vec<Arc<Waiter>>) -> Option<Option<State>> {
        let (from, before) = self.stale.take()?;
        Some(self.recharge(from, before, now, moved))
    }

    /// Changes the state before all queued charges, and moves these up. Returns the new state, or `None` if the queue is empty.
    pub(super) fn change(
        &mut self,
        now: u64,
        moved: &mut Vec<Arc<Waiter>>,
        change: impl FnOnce(&mut Option<State>),
    ) -> Option<Option<State>> {
        if self.remove_started(now) {
            return None;
        }
        let mut before = self.charges.front()?.before.clone();
        change(&mut before);
        Some(self.recharge(0, before, now, moved))
    }

    /// Repeats the charges from this one on, starting with this state.
    fn recharge(
        &mut self,
        from: usize,
        mut state: Option<State>,
        now: u64,
        moved: &mut Vec<Arc<Waiter>>,
    ) -> Option<State> {
        for QueuedCharge { slot, cost, before } in self.charges.iter_mut().skip(from) {
            before.clone_from(&state);
            let snapshot = self.spec.check(state.as_ref(), now, *cost);
            let Verdict { admitted, wait, charge_id, .. } = self.spec.verdict(snapshot, now, *cost, u64::MAX);
            self.spec.commit(&mut state, snapshot, now, *cost);
            // If the clock has stepped back, the queue may be too short for an admitted call. Such a call keeps its slot.
            if admitted {
                slot.waiter.slots()[slot.charge] = ReservedSlot { at: now + wait, charge_id };
            }
            moved.push(Arc::clone(&slot.waiter));
        }
        state
    }

    pub(super) fn is_empty(&self) -> bool {
        self.charges.is_empty()
    }

    /// Removes the charges whose slots have started. Returns whether the queue is empty.
    pub(super) fn remove_started(&mut self, now: u64) -> bool {
        while self.charges.front().is_some_and(|first| first.slot.at() <= now) {
            self.charges.pop_front();
        }
        self.charges.is_empty()
    }
}
