//! Those who wait in this process for permits that they have taken already, by the order of their slots. Where one leaves,
//! those behind it move up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::algorithm::{Mark, Rule, State, Verdict};
use crate::store::INLINE;

/// A call that waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// For each of what it was charged, in order.
    slots: Mutex<SmallVec<[Slot; INLINE]>>,
    moved: Notify,
}

/// From when on a charge counts, and how it is found again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) at: u64,
    pub(crate) mark: Mark,
}

/// The places of one key, from the first on.
#[derive(Debug, Default)]
pub(super) struct Line(VecDeque<Place>);

#[derive(Debug)]
struct Place {
    waiter: Arc<Waiter>,
    /// Which of the waiter's slots it is.
    charge: usize,
    cost: u64,
    /// The state that it was charged to.
    before: Option<State>,
}

impl Waiter {
    pub(super) fn new<'v>(now: u64, verdicts: impl Iterator<Item = &'v Verdict>) -> Self {
        let slots = verdicts.map(|verdict| Slot { at: now + verdict.wait, mark: verdict.mark });
        Waiter { slots: Mutex::new(slots.collect()), moved: Notify::new() }
    }

    /// When all of its slots have come.
    pub(crate) fn start(&self) -> u64 {
        self.slots().iter().map(|slot| slot.at).max().unwrap_or(0)
    }

    /// The slot of what it was charged at this place.
    pub(crate) fn slot(&self, charge: usize) -> Slot {
        self.slots()[charge]
    }

    /// Returns when a slot may have become an earlier one.
    pub(crate) async fn moved(&self) {
        self.moved.notified().await;
    }

    fn slots(&self) -> MutexGuard<'_, SmallVec<[Slot; INLINE]>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Adds a place behind all others.
    pub(super) fn join(
        &mut self,
        waiter: &Arc<Waiter>,
        (charge, cost): (usize, u64),
        before: Option<State>,
        now: u64,
    ) {
        self.is_over(now);
        self.0.push_back(Place { waiter: Arc::clone(waiter), charge, cost, before });
    }

    /// Takes the place of this charge away, if it has one here, and charges those behind it anew. Returns what then is the
    /// state.
    pub(super) fn leave(
        &mut self,
        waiter: &Arc<Waiter>,
        charge: usize,
        rule: &Rule,
        now: u64,
    ) -> Option<Option<State>> {
        let is_it = |place: &Place| Arc::ptr_eq(&place.waiter, waiter) && place.charge == charge;
        let at = self.0.iter().position(is_it)?;
        let mut state = self.0.remove(at)?.before;
        for place in self.0.iter_mut().skip(at) {
            place.before.clone_from(&state);
            let reading = rule.check(state.as_ref(), now, place.cost);
            let Verdict { wait, mark, .. } = rule.verdict(reading, now, place.cost, u64::MAX);
            rule.commit(&mut state, reading, now, place.cost);
            place.waiter.slots()[place.charge] = Slot { at: now + wait, mark };
            place.waiter.moved.notify_one();
        }
        Some(state)
    }

    /// Lets those go whose slot has come. Whether nobody is left.
    pub(super) fn is_over(&mut self, now: u64) -> bool {
        while self.0.front().is_some_and(|first| first.waiter.slot(first.charge).at <= now) {
            self.0.pop_front();
        }
        self.0.is_empty()
    }
}
