//! Fixed window: a limit from a window's start to its end. A key's first call opens its window, as in the `INCR` and `EXPIRE`
//! pattern of the Redis documentation, or windows start at multiples of the period. Twin of lua/fixed_window.lua: change both
//! or neither.

use std::fmt;

use super::debt::longest_debt;
use super::state::{FixedWindowState, State};
use super::verdict::{ChargeId, Snapshot, Verdict};

/// The most permits that are owed. Sums of them stay below 2^53.
const MOST_OWED: u64 = 1 << 50;

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

    /// Returns when a window ends, given its first charge.
    pub(super) fn end(&self, opened: u64) -> u64 {
        self.start(opened) + self.period
    }

    /// Returns the window as of now, unless nothing of it is left. One that is over has passed on what it owed: each window after it
    /// pays as much as it holds.
    fn current(&self, window: FixedWindowState, now: u64) -> Option<FixedWindowState> {
        let FixedWindowState { opened, owed, pays, .. } = window;
        let end = self.start(opened) + self.period;
        if now < end {
            return Some(window);
        }
        let over = now.saturating_sub(end) / self.period;
        let left = owed.saturating_sub(over.saturating_mul(pays));
        let count = left.min(pays);
        let pays = if left > count { pays } else { 0 };
        let window = FixedWindowState { opened: end + over * self.period, count, owed: left - count, pays };
        (left > 0).then_some(window)
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Snapshot {
        match stored(state).and_then(|window| self.current(window, now)) {
            Some(FixedWindowState { opened, count, owed, pays }) => {
                let opened = if self.start(opened) > now { now } else { opened };
                [opened, count, owed, pays, 0]
            }
            None => [now, 0, 0, 0, 0],
        }
    }

    #[inline(always)]
    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, _wait: u64) -> Verdict {
        let [opened, count, owed, pays, _] = snapshot;
        let used = count + owed;
        let admitted = cost <= self.limit.saturating_sub(used);
        let after = if admitted { used + cost } else { used };
        let left = (self.start(opened) + self.period).saturating_sub(now);
        // The time in which the next windows pay so much.
        let windows = |permits: u64| permits.div_ceil(pays.max(1)).saturating_mul(self.period);
        let is_unchanged = cost == 0 || !admitted;
        let fits = |owed: u64| if owed > 0 { windows((owed + cost).saturating_sub(self.limit)) } else { 0 };
        Verdict {
            admitted,
            wait: 0,
            limit: self.limit,
            remaining: self.limit.saturating_sub(after),
            retry_after: (!admitted && cost <= self.limit).then(|| left.saturating_add(fits(owed))),
            reset_after: match after {
                0 => 0,
                _ if is_unchanged && owed > 0 => left.saturating_add(windows(owed)),
                _ => left,
            },
            charge_id: ChargeId { at: opened, level: 0, credited: 0 },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, _now: u64, cost: u64) {
        let [opened, count, owed, ..] = snapshot;
        *state = window(FixedWindowState { opened, count: count + owed + cost, owed: 0, pays: 0 });
    }

    /// Charges what fits. The next windows owe the rest, if they are to owe any. Returns how much is charged.
    pub(super) fn mirror(
        &self,
        state: &mut Option<State>,
        now: u64,
        cost: u64,
        owes: bool,
    ) -> Option<(u64, ChargeId)> {
        let [opened, count, owed, pays, _] = self.check(state.as_ref(), now, cost);
        let fits = cost.min(self.limit.saturating_sub(count));
        let owes = if owes { (cost - fits).min(self.limit.saturating_sub(owed)) } else { 0 };
        *state = window(self.owing(opened, count + fits, owed + owes, pays));
        Some((fits + owes, ChargeId { at: opened, level: 0, credited: 0 }))
    }

    /// Charges what fits. The next windows owe the rest, up to the longest debt. Returns whether it was cut.
    pub(super) fn debit(&self, state: &mut Option<State>, now: u64, cost: u64) -> bool {
        let [opened, count, owed, pays, _] = self.check(state.as_ref(), now, cost);
        let room = if owed == 0 { self.limit.saturating_sub(count) } else { 0 };
        let (fits, most) = (cost.min(room), self.most_owed().max(owed));
        let owes = owed.saturating_add(cost - fits);
        *state = window(self.owing(opened, count + fits, owes.min(most), pays));
        owes > most
    }

    /// Returns the permits that the windows after one owe at most.
    pub(crate) fn most_owed(&self) -> u64 {
        (longest_debt(self.period) / self.period).saturating_mul(self.limit).min(MOST_OWED)
    }

    /// Returns a window that owes so much. The largest limit of those that have made it owe pays it: a smaller one neither lengthens
    /// nor shortens a debt.
    fn owing(&self, opened: u64, count: u64, owed: u64, pays: u64) -> FixedWindowState {
        FixedWindowState { opened, count, owed, pays: if owed > 0 { self.limit.max(pays) } else { 0 } }
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) -> bool {
        let future = stored(state.as_ref()).filter(|window| self.start(window.opened) > now);
        if let Some(future) = future {
            *state = window(FixedWindowState { opened: now, ..future });
        }
        future.is_some()
    }

    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let current = stored(state.as_ref()).and_then(|window| self.current(window, now));
        let Some(FixedWindowState { opened, count, owed, pays }) = current else { return };
        if charge_id.is_some_and(|charge_id| charge_id.at != opened) {
            return;
        }
        let (owed, cost) = (owed.saturating_sub(cost), cost.saturating_sub(owed));
        let pays = if owed > 0 { pays } else { 0 };
        *state = window(FixedWindowState { opened, count: count.saturating_sub(cost), owed, pays });
    }

    /// Keeps its count, and its end.
    pub(super) fn pause(&self, _state: &mut Option<State>, _at: u64, _by: u64) {}

    pub(super) fn ends(&self, state: &State) -> u64 {
        stored(Some(state)).map_or(0, |FixedWindowState { opened, owed, pays, .. }| {
            self.start(opened) + (1 + owed.div_ceil(pays.max(1))) * self.period
        })
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}2-{}", if self.aligned { "fa" } else { "fw" }, self.period)
    }
}

/// Returns the state to store.
fn window(window: FixedWindowState) -> Option<State> {
    (window.count > 0).then_some(State::FixedWindow(window))
}

fn stored(state: Option<&State>) -> Option<FixedWindowState> {
    match state {
        Some(State::FixedWindow(window)) => Some(*window),
        _ => None,
    }
}
