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
    fn start(&self, opened: u64) -> u64 {
        if self.aligned { opened - opened % self.period } else { opened }
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Snapshot {
        match stored(state) {
            Some(FixedWindowState { opened, count }) if self.start(opened) > now => [now, count, 0, 0, 0],
            Some(FixedWindowState { opened, count }) if now < self.start(opened) + self.period => {
                [opened, count, 0, 0, 0]
            }
            _ => [now, 0, 0, 0, 0],
        }
    }

    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, _wait: u64) -> Verdict {
        let [opened, count, ..] = snapshot;
        let admitted = cost <= self.limit.saturating_sub(count);
        let after = if admitted { count + cost } else { count };
        let left = (self.start(opened) + self.period).saturating_sub(now);
        Verdict {
            admitted,
            wait: 0,
            limit: self.limit,
            remaining: self.limit.saturating_sub(after),
            retry_after: (!admitted && cost <= self.limit).then_some(left),
            reset_after: if after == 0 { 0 } else { left },
            charge_id: ChargeId { at: opened, level: 0, credited: 0 },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, _now: u64, cost: u64) {
        let [opened, count, ..] = snapshot;
        *state = Some(State::FixedWindow(FixedWindowState { opened, count: count + cost }));
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) {
        if let Some(FixedWindowState { opened, count }) = stored(state.as_ref())
            && self.start(opened) > now
        {
            *state = Some(State::FixedWindow(FixedWindowState { opened: now, count }));
        }
    }

    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let Some(FixedWindowState { opened, count }) = stored(state.as_ref()) else { return };
        if now >= self.start(opened) + self.period
            || charge_id.is_some_and(|charge_id| charge_id.at != opened)
        {
            return;
        }
        *state = (count > cost).then(|| State::FixedWindow(FixedWindowState { opened, count: count - cost }));
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        match stored(Some(state)) {
            Some(window) => self.start(window.opened) + self.period,
            None => 0,
        }
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}1-{}", if self.aligned { "fa" } else { "fw" }, self.period)
    }
}

fn stored(state: Option<&State>) -> Option<FixedWindowState> {
    match state {
        Some(State::FixedWindow(window)) => Some(*window),
        _ => None,
    }
}
