//! Queues of reservations. A call that waits is charged at once, for a slot in the future; when a call leaves, those behind it
//! move up, and none ever moves back.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::waiter::{Waiter, WaitingCharge};
use crate::algorithm::{AlgorithmSpec, State, Verdict};

/// How many of the first calls in a queue learn at once that they have moved up. Those behind learn it when calls before them
/// start, or at the latest at the slots that they know.
const NEXT: usize = 64;

/// The charges of a key that calls wait for, from the first whose slot has not started.
#[derive(Debug)]
pub(super) struct ReservationQueue {
    /// The policy of the last charge.
    pub(super) spec: AlgorithmSpec,
    /// The state before all of them.
    before: Option<State>,
    /// When that was the state.
    at: u64,
    /// By ticket, in the order in which they were made, which is also that of their slots: who starts leaves the queue, so a receipt
    /// in use is never repeated.
    charges: BTreeMap<u64, QueuedCharge>,
    /// The first ticket whose charge has to be repeated; the key's state then still counts charges that have left.
    stale: Option<u64>,
}

/// A charge in the queue.
#[derive(Debug)]
pub(super) struct QueuedCharge {
    /// The policy, whose numbers may differ from call to call.
    spec: AlgorithmSpec,
    cost: u64,
    /// The time as of which it is charged.
    at: u64,
    slot: u64,
    waiting: WaitingCharge,
    /// Whether its slot has moved and the waiter was not notified yet.
    moved: bool,
}

impl QueuedCharge {
    /// A charge made now.
    pub(super) fn new(spec: AlgorithmSpec, cost: u64, now: u64, slot: u64, waiting: WaitingCharge) -> Self {
        QueuedCharge { spec, cost, at: now, slot, waiting, moved: false }
    }

    /// Charges it to the state as it is without those that have left, as of now, or as of its slot if that has started: charged
    /// later, it would move back. Its slot stays at or after the one before it.
    fn repeat(&mut self, state: &mut Option<State>, earlier: u64, slot_before: u64, now: u64) {
        self.at = now.min(self.slot.max(earlier));
        let snapshot = self.spec.check(state.as_ref(), self.at, self.cost);
        let Verdict { admitted, wait, charge_id, .. } =
            self.spec.verdict(snapshot, self.at, self.cost, u64::MAX);
        self.spec.commit(state, snapshot, self.at, self.cost);
        // If the clock has stepped back, the queue may be too short for an admitted call. Such a call keeps its slot.
        if !admitted {
            return;
        }
        let slot = self.slot.min(slot_before.max(self.at + wait));
        self.moved |= slot < self.slot;
        self.slot = slot;
        let (waiter, charge) = &self.waiting;
        waiter.change_slot(*charge, |reserved| (reserved.at, reserved.charge_id) = (slot, charge_id));
    }

    /// Charges it as before.
    fn commit(&self, state: &mut Option<State>) {
        let snapshot = self.spec.check(state.as_ref(), self.at, self.cost);
        self.spec.commit(state, snapshot, self.at, self.cost);
    }

    /// Has its waiter notified if its slot has moved.
    fn report(&mut self, moved: &mut Vec<Arc<Waiter>>) {
        if self.moved {
            moved.push(Arc::clone(&self.waiting.0));
            self.moved = false;
        }
    }
}

impl ReservationQueue {
    pub(super) fn new(spec: AlgorithmSpec, before: Option<State>, now: u64) -> Self {
        ReservationQueue { spec, before, at: now, charges: BTreeMap::new(), stale: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.charges.is_empty()
    }

    /// Whether no call starts after this slot.
    pub(super) fn ends_by(&self, slot: u64) -> bool {
        self.charges.last_key_value().is_none_or(|(_, last)| last.slot <= slot)
    }

    /// Adds a charge behind all others of a settled queue. Tickets ascend.
    pub(super) fn push(&mut self, ticket: u64, charge: QueuedCharge) {
        let (waiter, index) = &charge.waiting;
        waiter.change_slot(*index, |reserved| reserved.ticket = Some(ticket));
        self.spec = charge.spec;
        self.charges.insert(ticket, charge);
    }

    /// Removes a charge, if it is queued and its slot has not started. The next waiter is notified, and moves up when it looks.
    pub(super) fn leave(&mut self, ticket: u64, now: u64, moved: &mut Vec<Arc<Waiter>>) -> bool {
        if self.charges.get(&ticket).is_none_or(|charge| charge.slot <= now) {
            return false;
        }
        self.charges.remove(&ticket);
        self.mark_stale(ticket);
        let next = self.charges.iter().take(NEXT).find(|(other, _)| **other > ticket);
        moved.extend(next.map(|(_, charge)| Arc::clone(&charge.waiting.0)));
        true
    }

    /// Changes the state before all queued charges but those whose slots have started. The others then move up.
    pub(super) fn change(
        &mut self,
        now: u64,
        moved: &mut Vec<Arc<Waiter>>,
        change: impl FnOnce(&mut Option<State>),
    ) {
        self.remove_started(now, moved);
        change(&mut self.before);
        self.at = now;
        self.mark_stale(0);
    }

    /// Removes the charges whose slots have started, and moves up the next calls.
    pub(super) fn move_up(&mut self, now: u64, moved: &mut Vec<Arc<Waiter>>) {
        self.remove_started(now, moved);
        if self.stale.is_some() {
            self.repeat(NEXT, now);
        }
        self.charges.values_mut().take(NEXT).for_each(|charge| charge.report(moved));
    }

    /// Removes the charges whose slots have started, and moves up all others. Returns the new state of the key, if it has
    /// changed.
    pub(super) fn settle(&mut self, now: u64, moved: &mut Vec<Arc<Waiter>>) -> Option<Option<State>> {
        self.remove_started(now, moved);
        self.stale?;
        let state = self.repeat(usize::MAX, now);
        self.stale = None;
        self.charges.values_mut().take(NEXT).for_each(|charge| charge.report(moved));
        Some(state)
    }

    /// Notifies all whose slots have moved, because no queue moves them up any more.
    pub(super) fn end(self, moved: &mut Vec<Arc<Waiter>>) {
        self.charges.into_values().for_each(|mut charge| charge.report(moved));
    }

    fn mark_stale(&mut self, ticket: u64) {
        self.stale = Some(self.stale.map_or(ticket, |stale| stale.min(ticket)));
    }

    /// Repeats the stale ones of the first `count` charges. Returns the state after these.
    fn repeat(&mut self, count: usize, now: u64) -> Option<State> {
        let (mut state, mut at, mut slot) = (self.before.clone(), self.at, 0);
        for (ticket, charge) in self.charges.iter_mut().take(count) {
            match &mut self.stale {
                Some(stale) if *stale <= *ticket => {
                    charge.repeat(&mut state, at, slot, now);
                    *stale = ticket + 1;
                }
                _ => charge.commit(&mut state),
            }
            (at, slot) = (charge.at, charge.slot);
        }
        state
    }

    fn remove_started(&mut self, now: u64, moved: &mut Vec<Arc<Waiter>>) {
        while let Some(mut first) = self.charges.first_entry() {
            let (ticket, charge) = (*first.key(), first.get_mut());
            if self.stale.is_some_and(|stale| stale <= ticket) {
                charge.repeat(&mut self.before.clone(), self.at, 0, now);
                self.stale = Some(ticket + 1);
            }
            if charge.slot > now {
                return;
            }
            let mut started = first.remove();
            started.commit(&mut self.before);
            self.at = started.at;
            started.report(moved);
        }
    }
}
