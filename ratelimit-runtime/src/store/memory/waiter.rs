//! A call that waits for its reservations.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::algorithm::{ChargeId, Verdict};
use crate::store::charge::INLINE;

/// A waiting call.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// One for each of its charges, in order.
    slots: Mutex<SmallVec<[ReservedSlot; INLINE]>>,
    moved: Notify,
}

/// A charge that a call waits for: its waiter, and the index of the charge there.
pub(super) type WaitingCharge = (Arc<Waiter>, usize);

/// The time for which a charge was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReservedSlot {
    pub(crate) at: u64,
    pub(crate) charge_id: ChargeId,
    /// The place of the charge in its key's queue, if it is in one.
    pub(super) ticket: Option<u64>,
}

impl Waiter {
    pub(super) fn new<'v>(now: u64, verdicts: impl IntoIterator<Item = &'v Verdict>) -> Self {
        let slot = |verdict: &Verdict| ReservedSlot {
            at: now + verdict.wait,
            charge_id: verdict.charge_id,
            ticket: None,
        };
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

    pub(super) fn change_slot(&self, charge: usize, change: impl FnOnce(&mut ReservedSlot)) {
        change(&mut self.slots()[charge]);
    }

    fn slots(&self) -> MutexGuard<'_, SmallVec<[ReservedSlot; INLINE]>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
