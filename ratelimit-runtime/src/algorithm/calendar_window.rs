//! Calendar window: a limit from a window's start to its end, which a calendar knows. A window lasts until the end that it was opened
//! with. That is remembered for a while, so that the next one does not end soon after it: with another zone, or another version of the
//! zone's data, the end of the same month may come again. Twin of lua/calendar_window.lua: change both or neither.

use std::fmt;

use super::debt::longest_debt;
use super::state::{CalendarWindowState, State};
use super::verdict::{ChargeId, Snapshot, Verdict};
use crate::base::calendar::Calendar;

/// The most permits that are used and owed. Sums of them stay below 2^53.
const MOST_USED: u64 = 1 << 50;

/// How much the windows that pay a debt may exceed their average length together.
const SLACK: u64 = 3 * 86_400 * 1_000_000;

/// A limit for each window of a calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CalendarWindowSpec {
    /// The permits of a window.
    pub limit: u64,
    /// When windows begin.
    pub calendar: Calendar,
}

impl CalendarWindowSpec {
    /// Returns the window as of now, unless nothing of it is left. One that is over has passed on what it owed: each window after it
    /// pays as much.
    fn current(&self, window: CalendarWindowState, now: u64) -> Option<CalendarWindowState> {
        let CalendarWindowState { used, ends, pays, .. } = window;
        if now < ends {
            return Some(window);
        }
        if used <= pays {
            return None;
        }
        let [start, end] = self.calendar.window(self.settled(ends, now));
        let average = self.calendar.average();
        // As many as lie between them, because their lengths differ by little.
        let over = (start.saturating_sub(ends) + average / 2) / average;
        let used = (used - pays).saturating_sub(over.saturating_mul(pays));
        (used > 0).then_some(CalendarWindowState { opened: start.max(ends).min(now), used, ends: end, pays })
    }

    /// Returns a time that is in the window after one that has ended, or is now if that is some time ago.
    fn settled(&self, ended: u64, now: u64) -> u64 {
        now.max(ended.saturating_add(self.calendar.blur()))
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Snapshot {
        // Of a debt, as the bits of a signed number. In Redis, which has the system's clock, it is 0.
        let ahead = |used, pays| if used > pays { self.calendar.ahead() as u64 } else { 0 };
        let last = stored(state);
        match last.and_then(|window| self.current(window, now)) {
            Some(CalendarWindowState { opened, used, ends, pays }) if opened <= now => {
                [opened, used, ends, pays, ahead(used, pays)]
            }
            // A window from the future keeps what is used, and starts now.
            Some(CalendarWindowState { used, pays, .. }) => {
                [now, used, self.calendar.window(now)[1], pays, ahead(used, pays)]
            }
            None => {
                let time = last.map_or(now, |window| self.settled(window.ends, now));
                [now, 0, self.calendar.window(time)[1], 0, 0]
            }
        }
    }

    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, _wait: u64) -> Verdict {
        let [opened, used, ends, pays, ahead] = snapshot;
        let admitted = cost <= self.limit.saturating_sub(used);
        let after = if admitted { used + cost } else { used };
        // When the next windows have paid so much.
        let paid = |permits: u64| {
            let windows = permits.div_ceil(pays.max(1));
            let end = if windows > 0 { self.calendar.after(ends, windows, ahead as i64) } else { ends };
            end.saturating_sub(now)
        };
        let owed = used.saturating_sub(pays);
        let is_unchanged = cost == 0 || !admitted;
        Verdict {
            admitted,
            wait: 0,
            limit: self.limit,
            remaining: self.limit.saturating_sub(after),
            retry_after: (!admitted && cost <= self.limit)
                .then(|| paid(if owed > 0 { (owed + cost).saturating_sub(self.limit) } else { 0 })),
            reset_after: match after {
                0 => 0,
                _ => paid(if is_unchanged { owed } else { 0 }),
            },
            charge_id: ChargeId { at: opened, level: ends, credited: 0 },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, _now: u64, cost: u64) {
        let [opened, used, ends, pays, _] = snapshot;
        *state = window(self.with(opened, used + cost, ends, pays));
    }

    /// Charges what fits. The next window owes the rest, if it is to owe any. Returns how much is charged.
    pub(super) fn mirror(
        &self,
        state: &mut Option<State>,
        now: u64,
        cost: u64,
        owes: bool,
    ) -> Option<(u64, ChargeId)> {
        let [opened, used, ends, pays, _] = self.check(state.as_ref(), now, cost);
        let most = if owes { 2 * self.limit } else { self.limit };
        let charged = cost.min(most.saturating_sub(used));
        *state = window(self.with(opened, used + charged, ends, pays));
        Some((charged, ChargeId { at: opened, level: 0, credited: 0 }))
    }

    /// Charges all. The next windows owe what does not fit, up to the longest debt. Returns whether it was cut.
    pub(super) fn debit(&self, state: &mut Option<State>, now: u64, cost: u64) -> bool {
        let [opened, used, ends, pays, _] = self.check(state.as_ref(), now, cost);
        let (after, most) = (used.saturating_add(cost), self.most_used().max(used));
        *state = window(self.with(opened, after.min(most), ends, pays));
        after > most
    }

    /// Returns the permits that a window and those after it owe at most.
    pub(crate) fn most_used(&self) -> u64 {
        let windows = longest_debt(self.calendar.average()) / self.calendar.average();
        (1 + windows).saturating_mul(self.limit).min(MOST_USED)
    }

    /// Returns a window of which so much is used. The largest limit of its calls pays what it owes: a smaller one neither lengthens nor
    /// shortens a debt.
    fn with(&self, opened: u64, used: u64, ends: u64, pays: u64) -> CalendarWindowState {
        CalendarWindowState { opened, used, ends, pays: self.limit.max(pays) }
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) -> bool {
        let is_future = stored(state.as_ref()).is_some_and(|window| window.opened > now);
        if is_future {
            let [opened, used, ends, pays, _] = self.check(state.as_ref(), now, 0);
            *state = window(CalendarWindowState { opened, used, ends, pays });
        }
        is_future
    }

    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let current = stored(state.as_ref()).and_then(|window| self.current(window, now));
        let Some(current) = current else { return };
        if charge_id.is_none_or(|charge_id| charge_id.at == current.opened) {
            *state = window(CalendarWindowState { used: current.used.saturating_sub(cost), ..current });
        }
    }

    /// Keeps what is used, and its end.
    pub(super) fn pause(&self, _state: &mut Option<State>, _at: u64, _by: u64) {}

    pub(super) fn ends(&self, state: &State) -> u64 {
        stored(Some(state)).map_or(0, |CalendarWindowState { used, ends, pays, .. }| {
            match used.saturating_sub(pays).div_ceil(pays.max(1)) {
                0 => ends.saturating_add(self.calendar.blur()),
                windows => ends + windows * self.calendar.average() + SLACK,
            }
        })
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "fc1-{}", self.calendar.period_name())
    }
}

/// Returns the state to store.
fn window(window: CalendarWindowState) -> Option<State> {
    (window.used > 0).then_some(State::CalendarWindow(window))
}

fn stored(state: Option<&State>) -> Option<CalendarWindowState> {
    match state {
        Some(State::CalendarWindow(window)) => Some(*window),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::calendar::{CalendarPeriod, Zone};

    /// A process keeps its clock when the system's is set.
    #[test]
    fn debts_are_paid_at_the_midnights_of_the_system() {
        const DAY: u64 = 86_400_000_000;
        const HOUR: i64 = 3_600_000_000;
        let day = Calendar::new(CalendarPeriod::Day, Zone::UTC);
        let spec = CalendarWindowSpec { limit: 10, calendar: day };
        for ahead in [-13, -1, 0, 1, 13].map(|hours| hours * HOUR) {
            let ends = (20_000 * DAY).saturating_add_signed(-ahead);
            let (opened, now) = (ends - DAY, ends - 1_000);
            // The next day pays ten of the 15 permits that are owed, and the one after that the rest.
            let verdict = spec.verdict([opened, 25, ends, 10, ahead as u64], now, 1, 0);
            assert_eq!(
                (verdict.retry_after, verdict.reset_after),
                (Some(1_000 + DAY), 1_000 + 2 * DAY),
                "{ahead}"
            );
        }
    }
}
