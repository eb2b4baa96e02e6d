//! Semaphore: permits that calls hold from their admission until they end.
//!
//! In process a key has their number. That is a fixed window which the first call opens, and which ends only when all have ended, so
//! the steps are those of `fixed_window.rs`. In Redis a key has what each process holds (`believed_holds.rs`), of which a decision
//! reads the sum.

use std::fmt;

use super::fixed_window::FixedWindowSpec;
use super::state::{FixedWindowState, State};
use super::verdict::{ChargeId, Snapshot, UNKNOWN, UNKNOWN_BUT_NEXT, Verdict};

/// Longer than any call runs, and added to a time it is still less than 2^53.
pub(crate) const FOREVER: u64 = 1 << 52;

/// Bits of the last number of a snapshot, which is 0 in process.
const FORGOTTEN: u64 = 1;
const LATER: u64 = 2;

/// At most so many permits of a key are held at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HoldsSpec {
    /// The permits.
    pub max: u64,
}

impl HoldsSpec {
    fn window(self) -> FixedWindowSpec {
        FixedWindowSpec { limit: self.max, period: FOREVER, aligned: false }
    }

    /// Returns what a decision in Redis has read: how many permits are held or kept free for others, whether what this process holds is
    /// forgotten, so that it gets nothing until it has reported it, and whether it is the turn of others: if they wait too, or for a call
    /// that is refused, if what is kept for them leaves too little.
    #[cfg(feature = "redis")]
    pub(crate) fn snapshot(now: u64, held: u64, is_forgotten: bool, is_later: bool) -> Snapshot {
        let flags = if is_forgotten { FORGOTTEN } else { 0 } | if is_later { LATER } else { 0 };
        [now, held, 0, 0, flags]
    }

    /// Unlike a window, holds of a later time than now are left as they are: the time at which the first was taken is only their
    /// number, by which they are released, and the thread that reads it may have another clock. Without holds, it is when the next ones may
    /// begin: later than those before, which a reset may have forgotten.
    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Snapshot {
        match state {
            Some(State::FixedWindow(FixedWindowState { opened, count: 0, .. })) => {
                [now.max(*opened), 0, 0, 0, 0]
            }
            Some(State::FixedWindow(FixedWindowState { opened, count, .. })) => [*opened, *count, 0, 0, 0],
            _ => [now, 0, 0, 0, 0],
        }
    }

    /// It is unknown when a call ends.
    #[inline(always)]
    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64) -> Verdict {
        let is_forgotten = snapshot[4] & FORGOTTEN > 0;
        let verdict = self.window().verdict(snapshot, now, if is_forgotten { 0 } else { cost }, wait);
        let admitted = verdict.admitted && !is_forgotten;
        let unknown = if snapshot[4] & LATER > 0 { UNKNOWN } else { UNKNOWN_BUT_NEXT };
        let retry_after = (!admitted && cost <= self.max).then_some(unknown);
        let charge_id = ChargeId { level: snapshot[4], ..verdict.charge_id };
        Verdict { admitted, retry_after, reset_after: 0, charge_id, ..verdict }
    }

    /// Whether calls of other processes wait, too, after one that is admitted.
    pub(crate) fn is_others_turn(verdict: &Verdict) -> bool {
        verdict.charge_id.level & LATER > 0
    }

    /// Whether a refusal is only because what this process holds is forgotten.
    #[cfg(feature = "redis")]
    pub(crate) fn is_forgotten(verdict: &Verdict) -> bool {
        verdict.charge_id.level & FORGOTTEN > 0
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, now: u64, cost: u64) {
        self.window().commit(state, snapshot, now, cost);
    }

    /// Counts what another store has admitted, however much that is.
    pub(super) fn mirror(&self, state: &mut Option<State>, now: u64, cost: u64) -> Option<(u64, ChargeId)> {
        let snapshot = self.check(state.as_ref(), now, cost);
        self.commit(state, snapshot, now, cost);
        Some((cost, ChargeId { at: snapshot[0], ..ChargeId::default() }))
    }

    pub(super) fn undo(&self, _state: &mut Option<State>, _now: u64) -> bool {
        false
    }

    /// Ends a hold.
    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let [opened, count, ..] = self.check(state.as_ref(), now, 0);
        if count > 0 && charge_id.is_none_or(|charge_id| charge_id.at == opened) {
            let left = count.saturating_sub(cost);
            let since = if left > 0 { opened } else { now.max(opened) };
            *state = Some(State::FixedWindow(FixedWindowState::of_plain(since, left)));
        }
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        match state {
            State::FixedWindow(FixedWindowState { opened, count: 0, .. }) => *opened,
            state => self.window().ends(state),
        }
    }

    pub(super) fn pause(&self, _state: &mut Option<State>, _from: u64, _by: u64) {}

    pub(super) fn shape(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cl1")
    }
}
