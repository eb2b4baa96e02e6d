//! Fixed window: a limit from a window's start to its end. A key's first call opens its window, as in the `INCR` and `EXPIRE`
//! pattern of the Redis documentation, or windows start at multiples of the period. Twin of lua/fixed_window.lua: change both
//! or neither.

use std::fmt;

use super::state::{FixedWindowState, State};
use super::verdict::{ChargeId, Snapshot, Verdict};

/// A limit for each window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindowSpec {
    /// The permits of a window.
    pub limit: u64,
    /// The length of a window in microseconds.
    pub period: u64,
    /// Whether windows start on multiples of the period.
    pub aligned: bool,
}

impl FixedWindowSpec {
    #[inline]
    fn start(&self, opened: u64) -> u64 {
        if self.aligned { opened - opened % self.period } else { opened }
    }

    /// Returns the window that follows, if this one is over and it owes permits.
    fn current(&self, window: FixedWindowState, now: u64) -> FixedWindowState {
        let end = self.start(window.opened) + self.period;
        if window.owed == 0 || now < end {
            return window;
        }
        FixedWindowState { opened: end, count: window.owed, owed: 0 }
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Snapshot {
        match stored(state).map(|window| self.current(window, now)) {
            Some(FixedWindowState { opened, count, owed }) if self.start(opened) > now => {
                [now, count, owed, 0, 0]
            }
            Some(FixedWindowState { opened, count, owed }) if now < self.start(opened) + self.period => {
                [opened, count, owed, 0, 0]
            }
            _ => [now, 0, 0, 0, 0],
        }
    }

    #[inline(always)]
    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, _wait: u64) -> Verdict {
        let [opened, count, owed, ..] = snapshot;
        let admitted = cost <= self.limit.saturating_sub(count) && (owed == 0 || cost == 0);
        let after = if admitted { count + cost } else { count };
        let left = (self.start(opened) + self.period).saturating_sub(now);
        let next = if owed > 0 { self.period } else { 0 };
        let full = if cost > self.limit.saturating_sub(owed) { next } else { 0 };
        Verdict {
            admitted,
            wait: 0,
            limit: self.limit,
            remaining: self.limit.saturating_sub(after),
            retry_after: (!admitted && cost <= self.limit).then_some(left + full),
            reset_after: if after == 0 { 0 } else { left + next },
            charge_id: ChargeId { at: opened, level: 0, credited: 0 },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, _now: u64, cost: u64) {
        let [opened, count, owed, ..] = snapshot;
        *state = Some(State::FixedWindow(FixedWindowState { opened, count: count + cost, owed }));
    }

    /// Charges what fits. The next window owes the rest, if it is to owe any. Returns how much is charged.
    pub(super) fn mirror(
        &self,
        state: &mut Option<State>,
        now: u64,
        cost: u64,
        owes: bool,
    ) -> Option<(u64, ChargeId)> {
        let [opened, count, owed, ..] = self.check(state.as_ref(), now, cost);
        let fits = cost.min(self.limit.saturating_sub(count));
        let owes = if owes { (cost - fits).min(self.limit.saturating_sub(owed)) } else { 0 };
        *state =
            Some(State::FixedWindow(FixedWindowState { opened, count: count + fits, owed: owed + owes }));
        Some((fits + owes, ChargeId { at: opened, level: 0, credited: 0 }))
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) {
        if let Some(window) = stored(state.as_ref())
            && self.start(window.opened) > now
        {
            *state = Some(State::FixedWindow(FixedWindowState { opened: now, ..window }));
        }
    }

    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let Some(window) = stored(state.as_ref()) else { return };
        let FixedWindowState { opened, count, owed } = self.current(window, now);
        if now >= self.start(opened) + self.period
            || charge_id.is_some_and(|charge_id| charge_id.at != opened)
        {
            return;
        }
        let (owed, cost) = (owed.saturating_sub(cost), cost.saturating_sub(owed));
        let left = FixedWindowState { opened, count: count.saturating_sub(cost), owed };
        *state = (left.count > 0).then_some(State::FixedWindow(left));
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        match stored(Some(state)) {
            Some(window) => {
                let windows = if window.owed > 0 { 2 } else { 1 };
                self.start(window.opened) + windows * self.period
            }
            None => 0,
        }
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}2-{}", if self.aligned { "fa" } else { "fw" }, self.period)
    }
}

fn stored(state: Option<&State>) -> Option<FixedWindowState> {
    match state {
        Some(State::FixedWindow(window)) => Some(*window),
        _ => None,
    }
}
