//! Sliding window: an exact log of charges, or with a precision a counter of sub-windows.
//! Twin of lua/sliding_window.lua: change both or neither.
//!
//! The exact log is the usual one. The counter is the log with coarser stamps: a charge is stamped with the end of its
//! sub-window, so that it counts until then + period, and charges of one stamp are one entry.

use std::collections::VecDeque;
use std::fmt;

use super::{Mark, Reading, State, Verdict};

/// Running totals wrap here. A difference of two is exact, as it never exceeds the limit.
const WRAP: u64 = 1 << 50;

/// The state is the log of charges that still count, and some that no longer do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindowRule {
    /// The permits of a window.
    pub limit: u64,
    /// Its microseconds.
    pub period: u64,
    /// The microseconds of a sub-window, 0 for the exact log.
    pub precision: u64,
}

/// Charges in rising order of their stamps, each entry with the running total of permits charged before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    entries: VecDeque<Entry>,
    total: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    before: u64,
    stamp: u64,
}

impl Log {
    fn len(&self) -> usize {
        self.entries.len()
    }

    /// The permits charged before the entry `i`, or in all.
    fn total(&self, i: usize) -> u64 {
        self.entries.get(i).map_or(self.total, |entry| entry.before)
    }

    fn set_total(&mut self, i: usize, total: u64) {
        match self.entries.get_mut(i) {
            Some(entry) => entry.before = total,
            None => self.total = total,
        }
    }

    fn stamp(&self, i: usize) -> u64 {
        self.entries[i].stamp
    }

    fn newest(&self) -> Option<u64> {
        self.entries.back().map(|entry| entry.stamp)
    }

    /// The permits charged by the entry `i` and those after it.
    fn counted(&self, i: usize) -> u64 {
        minus(self.total, self.total(i))
    }

    /// Makes one entry, stamped `top`, of all that are stamped later.
    fn repair(&mut self, top: u64) {
        let cut = first(0, self.len(), |i| self.stamp(i) >= top);
        self.entries.truncate(cut + 1);
        self.entries[cut].stamp = top;
    }
}

impl SlidingWindowRule {
    fn stamp_at(&self, now: u64) -> u64 {
        if self.precision == 0 {
            return now;
        }
        now - now % self.precision + self.precision
    }

    /// The first entry that still counts.
    fn live(&self, log: &Log, now: u64) -> usize {
        first(0, log.len(), |i| log.stamp(i) + self.period > now)
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, cost: u64) -> Reading {
        let top = self.stamp_at(now);
        let Some(log) = stored(state) else { return [0; 3] };
        let (n, live) = (log.len(), self.live(log, now));
        if live == n {
            return [0; 3];
        }

        let counted = log.counted(live);
        let newest_ends = log.stamp(n - 1).min(top) + self.period;
        if counted + cost.min(self.limit + 1) <= self.limit || cost > self.limit {
            return [counted, 0, newest_ends];
        }
        let last = first(live, n, |i| log.counted(i + 1) + cost <= self.limit);
        [counted, log.stamp(last).min(top) + self.period, newest_ends]
    }

    pub(super) fn verdict(&self, reading: Reading, now: u64, cost: u64) -> Verdict {
        let [counted, room_at, newest_ends] = reading;
        let admitted = cost <= self.limit.saturating_sub(counted);
        let after = if admitted { counted + cost } else { counted };
        let top = self.stamp_at(now);
        let ends = if admitted && cost > 0 { top + self.period } else { newest_ends };
        Verdict {
            admitted,
            limit: self.limit,
            remaining: self.limit.saturating_sub(after),
            retry_after: (!admitted && cost <= self.limit).then(|| room_at.saturating_sub(now)),
            reset_after: ends.saturating_sub(now),
            mark: Mark { at: top, level: 0 },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, _reading: Reading, now: u64, cost: u64) {
        let top = self.stamp_at(now);
        let log = stored_mut(state.get_or_insert_with(|| State::SlidingWindow(Log::default())));
        let live = self.live(log, now);
        if log.newest().is_some_and(|newest| newest > top) {
            log.repair(top);
        }
        if log.newest() != Some(top) {
            log.entries.push_back(Entry { before: log.total, stamp: top });
        }
        log.total = (log.total + cost) % WRAP;
        log.entries.drain(..live);
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) {
        let top = self.stamp_at(now);
        if let Some(state @ State::SlidingWindow(_)) = state {
            let log = stored_mut(state);
            if log.newest().is_some_and(|newest| newest > top) {
                log.repair(top);
            }
        }
    }

    /// Without a mark the newest charges are given back first.
    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, mut cost: u64, mark: Option<Mark>) {
        let Some(present @ State::SlidingWindow(_)) = state else { return };
        let log = stored_mut(present);
        let (n, sum, live) = (log.len(), log.total, self.live(log, now));
        let mut charged = live;
        if let Some(mark) = mark {
            charged = first(live, n, |i| log.stamp(i) >= mark.at);
            if charged == n || log.stamp(charged) != mark.at {
                return;
            }
            cost = cost.min(minus(log.total(charged + 1), log.total(charged)));
        } else {
            cost = cost.min(log.counted(live));
        }
        if cost == 0 {
            return;
        }

        for i in (charged + 1..=n).rev() {
            let before = log.total(i);
            let lowered = if mark.is_some() { cost } else { cost.saturating_sub(minus(sum, before)) };
            if lowered == 0 {
                break;
            }
            log.set_total(i, minus(before, lowered));
        }
        match (live + 1..=n).rev().find(|i| log.total(*i) != log.total(i - 1)) {
            None => *state = None,
            Some(kept) => {
                log.total = log.total(kept);
                log.entries.truncate(kept);
            }
        }
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        stored(Some(state)).and_then(Log::newest).map_or(0, |newest| newest + self.period)
    }

    pub(super) fn shape(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        match self.precision {
            0 => write!(out, "sl1-{}", self.period),
            precision => write!(out, "sc1-{}-{precision}", self.period),
        }
    }
}

/// The difference of two running totals.
fn minus(later: u64, earlier: u64) -> u64 {
    (later + WRAP - earlier) % WRAP
}

/// The first of the entries from `low` to `high` that passes, else `high`. Looks near `low` first: there it mostly is.
fn first(mut low: usize, high: usize, passes: impl Fn(usize) -> bool) -> usize {
    let (mut step, mut probe) = (1, low);
    while probe < high && !passes(probe) {
        (low, probe, step) = (probe + 1, probe + step, step * 2);
    }
    let mut high = probe.min(high);
    while low < high {
        let middle = (low + high) / 2;
        if passes(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

fn stored(state: Option<&State>) -> Option<&Log> {
    match state {
        Some(State::SlidingWindow(log)) => Some(log),
        _ => None,
    }
}

fn stored_mut(state: &mut State) -> &mut Log {
    if !matches!(state, State::SlidingWindow(_)) {
        *state = State::SlidingWindow(Log::default());
    }
    match state {
        State::SlidingWindow(log) => log,
        _ => unreachable!("it was made a log above"),
    }
}
