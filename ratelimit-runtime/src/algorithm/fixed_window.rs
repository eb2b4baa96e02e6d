//! Fixed window: so many permits from a window's start to its end, the first call or a multiple of the period opens it.
//! Twin of lua/fixed_window.lua: change both or neither.

use std::fmt;

use super::{Mark, Reading, State, Verdict};

/// The state is when the window opened, and what was charged to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindowRule {
    /// The permits of a window.
    pub limit: u64,
    /// Its microseconds.
    pub period: u64,
    /// Whether windows open on multiples of the period.
    pub aligned: bool,
}

impl FixedWindowRule {
    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Reading {
        let opens = if self.aligned { now - now % self.period } else { now };
        match stored(state) {
            Some((start, count)) if start > now => [opens, count, 0],
            Some((start, count)) if now < start + self.period => [start, count, 0],
            _ => [opens, 0, 0],
        }
    }

    pub(super) fn verdict(&self, reading: Reading, now: u64, cost: u64) -> Verdict {
        let [start, count, _] = reading;
        let admitted = cost <= self.limit.saturating_sub(count);
        let after = if admitted { count + cost } else { count };
        let left = start + self.period - now;
        Verdict {
            admitted,
            limit: self.limit,
            remaining: self.limit.saturating_sub(after),
            retry_after: (!admitted && cost <= self.limit).then_some(left),
            reset_after: if after == 0 { 0 } else { left },
            mark: Mark { at: start, level: 0 },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, reading: Reading, _now: u64, cost: u64) {
        let [start, count, _] = reading;
        *state = Some(State::FixedWindow { start, count: count + cost });
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) {
        if let Some((start, count)) = stored(state.as_ref())
            && start > now
        {
            let [start, ..] = self.check(state.as_ref(), now, 0);
            *state = Some(State::FixedWindow { start, count });
        }
    }

    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, mark: Option<Mark>) {
        let Some((start, count)) = stored(state.as_ref()) else { return };
        if now >= start + self.period || mark.is_some_and(|mark| mark.at != start) {
            return;
        }
        *state = (count > cost).then(|| State::FixedWindow { start, count: count - cost });
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        match stored(Some(state)) {
            Some((start, _)) => start + self.period,
            None => 0,
        }
    }

    pub(super) fn shape(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "{}1-{}", if self.aligned { "fa" } else { "fw" }, self.period)
    }
}

fn stored(state: Option<&State>) -> Option<(u64, u64)> {
    match state {
        Some(State::FixedWindow { start, count }) => Some((*start, *count)),
        _ => None,
    }
}
