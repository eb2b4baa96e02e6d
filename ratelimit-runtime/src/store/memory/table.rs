//! All states by the hash of their keys, and the queues of waiting calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::owners::{Hand, Owners};
use super::reservations::{QueuedCharge, ReservationQueue};
use super::shares::Shares;
use super::slot::Content;
use super::slots::{LineId, MAX_KEYS, Slots};
use super::states::Unused;
use super::waiter::{Waiter, WaitingCharge};
use crate::algorithm::{AlgorithmSpec, PlainState, Snapshot, State};
use crate::key::Fingerprint;
use crate::key::policy_id::PolicyId;
use crate::store::charge::Charge;

#[derive(Debug)]
pub(super) struct Table {
    pub(super) slots: Arc<Slots>,
    /// The number of keys.
    pub(super) len: usize,
    pub(super) owners: Owners,
    /// The first unused extra line. The others are behind it.
    pub(super) free_extra_line: Option<LineId>,
    /// The places for further states that do not fit into a slot.
    pub(super) unused: Unused,
    pub(super) shares: Shares,
    /// The keys that calls wait for. A separate map, because most keys have no queue, and one that never moves all its entries.
    pub(super) queues: BTreeMap<Fingerprint, ReservationQueue>,
    /// The waiters that have moved up, to be notified once the table is unlocked.
    pub(super) moved: Vec<Arc<Waiter>>,
    pub(super) max_keys: usize,
    /// The line at which the last search for expired keys has ended.
    pub(super) hand: Hand,
    /// The state of the generator that picks the keys to choose a victim from.
    pub(super) random: u64,
    pub(super) evicted: u64,
    /// Whether the first eviction of a live key has happened and was not logged yet.
    pub(super) first_eviction: bool,
    /// The number of slots looked at for new keys.
    #[cfg(test)]
    pub(super) looks: u64,
    next_ticket: u64,
}

/// Where a key's state is, and whose it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyIndex {
    pub(super) fingerprint: Fingerprint,
    pub(super) policy: PolicyId,
}

impl Table {
    pub(super) fn new(slots: Arc<Slots>, max_keys: usize, random: u64) -> Self {
        let mut owners = Owners::default();
        (0..slots.count()).for_each(|_| _ = owners.add(false));
        Table {
            slots,
            len: 0,
            owners,
            free_extra_line: None,
            unused: Unused::default(),
            shares: Shares::default(),
            queues: BTreeMap::new(),
            moved: Vec::new(),
            max_keys: max_keys.clamp(1, MAX_KEYS),
            hand: Hand::default(),
            random,
            evicted: 0,
            first_eviction: false,
            #[cfg(test)]
            looks: 0,
            next_ticket: 0,
        }
    }

    /// Takes the state of a key out of its slot, so that no other thread decides it before [`release`](Self::release) or
    /// [`change`](Self::change).
    pub(super) fn hold(&mut self, index: KeyIndex, spec: &AlgorithmSpec) {
        let Table { slots, unused, .. } = self;
        let Some(slot) = slots.locate(index.fingerprint) else { return };
        let locked = slots.slot(slot).lock();
        let content = locked.content();
        let state = || content.plain().and_then(|plain| plain.state(spec));
        let place = content.as_other().unwrap_or_else(|| unused.add(&slots.states, state()));
        locked.set(Content::of_table(place, content.ends));
    }

    /// Reads the state of a key that is held, if it has one.
    pub(super) fn read<R>(&self, index: KeyIndex, read: impl FnOnce(Option<&State>) -> R) -> R {
        let content = self.content_of(index);
        debug_assert!(content.is_none_or(Content::is_of_table), "the key is not held");
        match content.and_then(Content::as_other) {
            Some(place) => read(self.slots.states.lock(place).as_ref()),
            None => read(None),
        }
    }

    /// Whether a key is paused, or has penalties that are not forgiven.
    pub(super) fn is_paused(&self, index: KeyIndex) -> bool {
        let place =
            self.content_of(index).filter(|content| content.is_of_table()).and_then(Content::as_other);
        place.is_some_and(|place| matches!(*self.slots.states.lock(place), Some(State::Paused(_))))
    }

    /// Returns what the slot of a key holds, if it has one.
    fn content_of(&self, index: KeyIndex) -> Option<Content> {
        self.slots.locate(index.fingerprint).map(|slot| self.slots.slot(slot).read().content)
    }

    /// Puts the state of a key back into its slot, if it is held and plain.
    pub(super) fn release(&mut self, index: KeyIndex, spec: &AlgorithmSpec, now: u64) {
        self.change(index, spec, now, |_| {});
    }

    /// Changes a state, and stores or removes it.
    pub(super) fn change(
        &mut self,
        index: KeyIndex,
        spec: &AlgorithmSpec,
        now: u64,
        change: impl FnOnce(&mut Option<State>),
    ) {
        let slots = Arc::clone(&self.slots);
        let Some(slot) = slots.locate(index.fingerprint) else {
            let mut state = None;
            change(&mut state);
            if let Some(state) = state {
                self.insert(index, spec, state, now);
            }
            return;
        };
        let locked = slots.slot(slot).lock();
        let content = locked.content();
        let place = content.as_other();
        let mut state = match place {
            Some(place) => slots.states.lock(place).take(),
            None => content.plain().and_then(|plain| plain.state(spec)),
        };
        change(&mut state);
        match state {
            Some(state) => locked.set(self.content(index, spec, state, now, place)),
            None => {
                locked.clear();
                self.forget(slot, content, index.fingerprint);
            }
        }
    }

    /// Returns what a slot holds for this state, which may have a place already.
    pub(super) fn content(
        &mut self,
        index: KeyIndex,
        spec: &AlgorithmSpec,
        state: State,
        now: u64,
        place: Option<u32>,
    ) -> Content {
        let Table { slots, unused, queues, .. } = self;
        // What calls wait for is decided under the table's lock.
        let is_queued = !queues.is_empty() && queues.contains_key(&index.fingerprint);
        let plain = PlainState::of(&state, spec).filter(|_| !is_queued);
        if let Some(content) = plain.and_then(|plain| Content::of(plain, now)) {
            place.into_iter().for_each(|place| unused.remove(&slots.states, place));
            return content;
        }
        // What of a paused key is decided there needs more than most calls look at.
        let (ends, is_of_table) = (spec.ends(&state), is_queued || matches!(state, State::Paused(_)));
        let place = match place {
            Some(place) => {
                *slots.states.lock(place) = Some(state);
                place
            }
            None => unused.add(&slots.states, Some(state)),
        };
        if is_of_table { Content::of_table(place, ends) } else { Content::other(place, ends) }
    }

    /// Makes an admitted charge, and queues it if its call waits for it.
    ///
    /// A charge whose call does not wait, or waits for less long than a call before it, ends the queue: it was made with a larger
    /// burst, by a shadow or for another store. Its receipt is in use before those before it have started, so it must not be
    /// repeated when they leave.
    pub(super) fn charge(
        &mut self,
        index: KeyIndex,
        charge: &Charge,
        snapshot: Snapshot,
        now: u64,
        waiting: Option<WaitingCharge>,
    ) {
        match waiting {
            Some(waiting) => self.queue(index, charge, snapshot, now, waiting),
            None => self.end_queue(index.fingerprint),
        }
        let Charge { spec, cost, .. } = charge;
        self.change(index, spec, now, |state| spec.commit(state, snapshot, now, *cost));
    }

    fn queue(
        &mut self,
        index: KeyIndex,
        charge: &Charge,
        snapshot: Snapshot,
        now: u64,
        waiting: WaitingCharge,
    ) {
        let (key, spec, cost) = (index.fingerprint, charge.spec, charge.cost);
        let slot = now + spec.verdict(snapshot, now, cost, u64::MAX).wait;
        if self.queues.get(&key).is_some_and(|queue| !queue.ends_by(slot)) {
            self.end_queue(key);
        }
        if !self.queues.contains_key(&key) {
            let before = self.read(index, |state| state.cloned());
            self.queues.insert(key, ReservationQueue::new(spec, before, now));
        }
        let Some(queue) = self.queues.get_mut(&key) else { return };
        queue.push(self.next_ticket, QueuedCharge::new(spec, cost, now, slot, waiting));
        self.next_ticket += 1;
    }

    /// Removes the key's queue, if it has one. Those that wait keep their slots; who leaves from now on is refunded by receipt.
    pub(super) fn end_queue(&mut self, key: Fingerprint) {
        if let Some(queue) = self.queues.remove(&key) {
            queue.end(&mut self.moved);
        }
    }

    /// Removes a waiting charge. Returns whether it was still in the queue, and its slot had not started.
    pub(super) fn leave(&mut self, index: KeyIndex, ticket: u64, now: u64) -> bool {
        let Some(queue) = self.queues.get_mut(&index.fingerprint) else { return false };
        if !queue.leave(ticket, now, &mut self.moved) {
            return false;
        }
        if queue.is_empty() {
            self.settle(index, now);
        }
        true
    }

    /// Repeats the charges behind those that have left the key's queue, up to its state.
    pub(super) fn settle(&mut self, index: KeyIndex, now: u64) {
        let Some(queue) = self.queues.get_mut(&index.fingerprint) else { return };
        let (spec, settled) = (queue.spec, queue.settle(now, &mut self.moved));
        if queue.is_empty() {
            self.queues.remove(&index.fingerprint);
        }
        if let Some(settled) = settled {
            self.change(index, &spec, now, |state| *state = settled);
        }
    }

    /// Moves up the first calls behind those that have left the key's queue, and removes those whose slots have started.
    pub(super) fn move_up(&mut self, index: KeyIndex, now: u64) {
        let Some(queue) = self.queues.get_mut(&index.fingerprint) else { return };
        queue.move_up(now, &mut self.moved);
        if queue.is_empty() {
            self.settle(index, now);
        }
    }

    /// Changes a state as it was before the queued charges, which then move up.
    pub(super) fn change_before_queue(
        &mut self,
        index: KeyIndex,
        spec: &AlgorithmSpec,
        now: u64,
        change: impl FnOnce(&mut Option<State>),
    ) {
        match self.queues.get_mut(&index.fingerprint) {
            // In one step: without its queue the key is no longer held.
            Some(queue) => {
                queue.change(now, &mut self.moved, change);
                self.move_up(index, now);
            }
            None => self.change(index, spec, now, change),
        }
    }

    /// Removes a state but for the queued charges, which then move up, and for when the next holds may begin. Returns whether there was any
    /// that had not expired.
    pub(super) fn reset(&mut self, index: KeyIndex, now: u64) -> bool {
        if let Some(queue) = self.queues.get_mut(&index.fingerprint) {
            let (spec, mut was_live) = (queue.spec, false);
            let take = |before: &mut Option<State>| {
                was_live = before.take().is_some_and(|state| spec.ends(&state) > now);
            };
            queue.change(now, &mut self.moved, take);
            self.move_up(index, now);
            return was_live;
        }
        let Some(slot) = self.slots.locate(index.fingerprint) else { return false };
        let locked = self.slots.slot(slot).lock();
        let content = locked.content();
        match content.without_holds() {
            Some(left) => locked.set(left),
            None => {
                locked.clear();
                self.forget(slot, content, index.fingerprint);
            }
        }
        content.is_live(now)
    }
}
