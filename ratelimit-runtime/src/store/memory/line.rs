//! Those who wait in this process for permits that they have taken already, by the order of their slots. Where one leaves,
//! those behind it move up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::algorithm::{AlgorithmSpec, ChargeId, State, Verdict};
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
    pub(crate) charge_id: ChargeId,
}

/// The places of one key, from the first on. All that was charged to the key before the first place has started.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) spec: AlgorithmSpec,
    places: VecDeque<Place>,
    /// The place from which on they are to be charged anew, and the state before it. Many may leave before somebody looks.
    stale: Option<(usize, Option<State>)>,
}

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
        let slots = verdicts.map(|verdict| Slot { at: now + verdict.wait, charge_id: verdict.charge_id });
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

/// Those who have moved up, to be told once nothing is locked.
#[derive(Debug, Default)]
pub(super) struct Moved(Vec<Arc<Waiter>>);

impl Moved {
    pub(super) fn tell(self) {
        self.0.iter().for_each(|waiter| waiter.moved.notify_one());
    }
}

impl Line {
    pub(super) fn new(spec: AlgorithmSpec) -> Self {
        Line { spec, places: VecDeque::new(), stale: None }
    }

    /// Adds a place behind all others.
    pub(super) fn join(
        &mut self,
        waiter: &Arc<Waiter>,
        (charge, cost): (usize, u64),
        before: Option<State>,
        now: u64,
    ) {
        self.is_over(now);
        self.places.push_back(Place { waiter: Arc::clone(waiter), charge, cost, before });
    }

    /// Takes the place of this charge away, if it has one here. The next one is told, and when it looks all behind move up.
    pub(super) fn leave(&mut self, waiter: &Arc<Waiter>, charge: usize, moved: &mut Moved) -> bool {
        let is_it = |place: &Place| Arc::ptr_eq(&place.waiter, waiter) && place.charge == charge;
        let Some(at) = self.places.iter().position(is_it) else { return false };
        let Some(Place { before, .. }) = self.places.remove(at) else { return false };
        if self.stale.as_ref().is_none_or(|(from, _)| *from > at) {
            self.stale = Some((at, before));
        }
        moved.0.extend(self.places.get(at).map(|next| Arc::clone(&next.waiter)));
        true
    }

    /// Lets those move up who can. Returns what then is the state, if it is another.
    pub(super) fn move_up(&mut self, now: u64, moved: &mut Moved) -> Option<Option<State>> {
        let (from, before) = self.stale.take()?;
        Some(self.recharge(from, before, now, moved))
    }

    /// Changes what was charged before all who wait, and lets them move up. Returns what then is the state; none if nobody
    /// waits.
    pub(super) fn change(
        &mut self,
        now: u64,
        moved: &mut Moved,
        change: impl FnOnce(&mut Option<State>),
    ) -> Option<Option<State>> {
        if self.is_over(now) {
            return None;
        }
        let mut before = self.places.front()?.before.clone();
        change(&mut before);
        Some(self.recharge(0, before, now, moved))
    }

    /// Charges the places from this one on anew, to this state.
    fn recharge(
        &mut self,
        from: usize,
        mut state: Option<State>,
        now: u64,
        moved: &mut Moved,
    ) -> Option<State> {
        for place in self.places.iter_mut().skip(from) {
            place.before.clone_from(&state);
            let snapshot = self.spec.check(state.as_ref(), now, place.cost);
            let Verdict { admitted, wait, charge_id, .. } =
                self.spec.verdict(snapshot, now, place.cost, u64::MAX);
            self.spec.commit(&mut state, snapshot, now, place.cost);
            // Under a clock that stepped back there may be no room in a queue: whoever was let in stays where it was.
            if admitted {
                place.waiter.slots()[place.charge] = Slot { at: now + wait, charge_id };
            }
            moved.0.push(Arc::clone(&place.waiter));
        }
        state
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Lets those go whose slot has come. Whether nobody is left.
    pub(super) fn is_over(&mut self, now: u64) -> bool {
        while self.places.front().is_some_and(|first| first.waiter.slot(first.charge).at <= now) {
            self.places.pop_front();
        }
        self.places.is_empty()
    }
}
