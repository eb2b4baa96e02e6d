//! Sliding window: an exact log of charges, or with a precision a counter of sub-windows, as "An alternative approach to
//! rate limiting" (Figma, 2017) describes both. Twin of lua/sliding_window.lua: change both or neither.
//!
//! The counter is the log with fewer entries: the charges of a sub-window are one entry, stamped with the time of the first,
//! which identifies it for refunds. An entry counts until one period after the end of its sub-window; the sub-windows of the
//! log are single microseconds.

use std::fmt;

use super::state::{LogEntry, SlidingWindowState, State};
use super::verdict::{ChargeId, Snapshot, Verdict};

/// Running totals wrap here. The difference of two is exact, because it is less than that.
const WRAP: u64 = 1 << 50;

/// More permits than any limit. A debt is cut to them.
pub(crate) const MOST_COUNTED: u64 = WRAP / 2;

/// A limit for every interval of one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindowSpec {
    /// The permits of a window.
    pub limit: u64,
    /// The length of a window in microseconds.
    pub period: u64,
    /// The microseconds of a sub-window, 0 for the exact log.
    pub precision: u64,
}

impl SlidingWindowState {
    fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the permits charged before the entry `i`, or in total if there is none.
    fn total(&self, i: usize) -> u64 {
        self.entries.get(i).map_or(self.total, |entry| entry.before)
    }

    fn stamp(&self, i: usize) -> u64 {
        self.entries[i].stamp
    }

    fn newest(&self) -> Option<u64> {
        self.entries.back().map(|entry| entry.stamp)
    }

    /// Returns the permits charged by the entry `i` and those after it.
    fn counted(&self, i: usize) -> u64 {
        minus(self.total, self.total(i))
    }

    /// Subtracts a cost from all totals from `i` on.
    fn lower(&mut self, i: usize, cost: u64) {
        for entry in self.entries.iter_mut().skip(i) {
            entry.before = minus(entry.before, cost);
        }
        self.total = minus(self.total, cost);
    }
}

impl SlidingWindowSpec {
    /// Returns the start of the sub-window.
    fn slot(&self, time: u64) -> u64 {
        if self.precision == 0 { time } else { time - time % self.precision }
    }

    /// Returns until when an entry of this time counts.
    fn ends_at(&self, time: u64) -> u64 {
        self.slot(time) + self.precision + self.period
    }

    /// Whether an entry of this time still counts. Usually needs no division.
    #[inline]
    fn counts(&self, stamp: u64, now: u64) -> bool {
        let age = now.saturating_sub(stamp);
        age < self.period || age < self.period + self.precision && self.ends_at(stamp) > now
    }

    /// Whether a time is in an earlier sub-window than another. Usually needs no division.
    #[inline]
    fn is_in_earlier_slot(&self, time: u64, other: u64) -> bool {
        time < other && (other - time >= self.precision || time < self.slot(other))
    }

    /// Returns the first entry that still counts.
    fn live(&self, log: &SlidingWindowState, now: u64) -> usize {
        first(0, log.len(), |i| self.counts(log.stamp(i), now))
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, cost: u64) -> Snapshot {
        let Some(log) = stored(state) else { return Snapshot::default() };
        if log.owed > 0 {
            return self.check_owing(log.clone(), now, cost);
        }
        let (n, live) = (log.len(), self.live(log, now));
        if live == n {
            return Snapshot::default();
        }

        let (counted, newest) = (log.counted(live), log.stamp(n - 1));
        if cost == 0 || cost > self.limit || counted + cost <= self.limit {
            return [counted, 0, newest, 0, 0];
        }
        let last = first(live, n, |i| log.counted(i + 1) + cost <= self.limit);
        [counted, self.ends_at(log.stamp(last).min(now)), newest, 0, 0]
    }

    /// Reads a log that owes permits, and so admits nothing before it has been charged them.
    fn check_owing(&self, mut log: SlidingWindowState, now: u64, cost: u64) -> Snapshot {
        self.pay(&mut log, now);
        if log.owed == 0 {
            return self.check(Some(&State::SlidingWindow(log)), now, cost);
        }
        let (newest, mut fits_at) = (log.newest().unwrap_or(now), now);
        while (1..=self.limit).contains(&cost)
            && (log.owed > 0 || log.counted(self.live(&log, fits_at)) + cost > self.limit)
        {
            fits_at = self.ends_at(log.stamp(self.live(&log, fits_at)));
            self.pay(&mut log, fits_at);
        }
        [self.limit, fits_at, newest, 0, 0]
    }

    /// Charges what is owed to the times at which entries have ended.
    fn pay(&self, log: &mut SlidingWindowState, now: u64) {
        while log.owed > 0 {
            let Some(stamp) = log.entries.front().map(|entry| self.ends_at(entry.stamp)) else { return };
            if stamp > now {
                return;
            }
            let cost = minus(log.total(1), log.total(0)).min(log.owed);
            log.entries.pop_front();
            if log.newest().is_none_or(|newest| self.is_in_earlier_slot(newest, stamp)) {
                log.entries.push_back(LogEntry { before: log.total, stamp });
            }
            log.total = (log.total + cost) % WRAP;
            log.owed -= cost;
        }
    }

    #[inline(always)]
    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, _wait: u64) -> Verdict {
        let [counted, fits_at, newest, ..] = snapshot;
        let admitted = cost <= self.limit.saturating_sub(counted);
        let after = if admitted { counted + cost } else { counted };
        let last = if admitted && cost > 0 { now } else { newest.min(now) };
        let is_other = self.is_in_earlier_slot(newest, now) || self.is_in_earlier_slot(now, newest);
        let joins = counted > 0 && !is_other;
        Verdict {
            admitted,
            wait: 0,
            limit: self.limit,
            remaining: self.limit.saturating_sub(after),
            retry_after: (!admitted && cost <= self.limit).then(|| fits_at.saturating_sub(now)),
            reset_after: if after == 0 { 0 } else { self.ends_at(last).saturating_sub(now) },
            charge_id: ChargeId { at: if joins { newest } else { now }, level: 0, credited: 0 },
        }
    }

    fn is_future(&self, log: &SlidingWindowState, now: u64) -> bool {
        log.newest().is_some_and(|newest| self.is_in_earlier_slot(now, newest))
    }

    /// Merges all entries of this and later sub-windows into one with the current time.
    fn repair(&self, log: &mut SlidingWindowState, now: u64) {
        let cut = first(0, log.len(), |i| self.slot(log.stamp(i)) >= self.slot(now));
        log.entries.truncate(cut + 1);
        log.entries[cut].stamp = now;
    }

    /// Charges a call that does not wait, if there is a log that admits it and owes nothing. Takes the steps of [`check`](Self::check) and
    /// [`commit`](Self::commit), but searches the log once. Returns what it has read.
    #[inline]
    pub(super) fn charge_at_once(&self, state: &mut Option<State>, now: u64, cost: u64) -> Option<Snapshot> {
        let log = stored_mut(state).filter(|log| log.owed == 0)?;
        let live = self.live(log, now);
        let (counted, newest) = match log.newest() {
            Some(newest) if live < log.len() => (log.counted(live), newest),
            _ => (0, 0),
        };
        if cost > self.limit.saturating_sub(counted) {
            return None;
        }
        self.charge(log, live, now, cost);
        Some([counted, 0, newest, 0, 0])
    }

    pub(super) fn commit(&self, state: &mut Option<State>, _snapshot: Snapshot, now: u64, cost: u64) {
        if !matches!(state, Some(State::SlidingWindow(_))) {
            *state = Some(State::SlidingWindow(SlidingWindowState::default()));
        }
        let Some(log) = stored_mut(state) else { return };
        self.pay(log, now);
        self.charge(log, self.live(log, now), now, cost);
    }

    /// Adds a charge to a log that has paid what it owes, of which only the entries from `live` on still count.
    #[inline]
    fn charge(&self, log: &mut SlidingWindowState, live: usize, now: u64, cost: u64) {
        if self.is_future(log, now) {
            self.repair(log, now);
        }
        if log.newest().is_none_or(|newest| self.is_in_earlier_slot(newest, now)) {
            log.entries.push_back(LogEntry { before: log.total, stamp: now });
        }
        log.total = (log.total + cost) % WRAP;
        if live > 0 {
            log.entries.drain(..live);
        }
    }

    /// Charges what fits. The log owes the rest, if it is to owe any. Returns how much is charged.
    pub(super) fn mirror(
        &self,
        state: &mut Option<State>,
        now: u64,
        cost: u64,
        owes: bool,
    ) -> Option<(u64, ChargeId)> {
        if let Some(log) = stored_mut(state) {
            self.pay(log, now);
        }
        let snapshot = self.check(state.as_ref(), now, 0);
        let fits = cost.min(self.limit.saturating_sub(snapshot[0]));
        if fits > 0 {
            self.commit(state, snapshot, now, fits);
        }
        let log = stored_mut(state)?;
        let owes = if owes { (cost - fits).min(self.limit.saturating_sub(log.owed)) } else { 0 };
        log.owed += owes;
        Some((fits + owes, ChargeId { at: log.newest()?, level: 0, credited: 0 }))
    }

    /// Charges a debt, which counts from now on. Returns whether it was cut.
    pub(super) fn debit(&self, state: &mut Option<State>, now: u64, cost: u64) -> bool {
        let counted = stored(state.as_ref()).map_or(0, |log| log.counted(self.live(log, now)));
        let fits = cost.min(MOST_COUNTED.saturating_sub(counted));
        if fits > 0 {
            self.commit(state, Snapshot::default(), now, fits);
        }
        fits < cost
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) -> bool {
        let future = stored_mut(state).filter(|log| self.is_future(log, now));
        let is_future = future.is_some();
        if let Some(log) = future {
            self.repair(log, now);
        }
        is_future
    }

    /// Without a charge, refunds the newest charges first.
    pub(super) fn refund(
        &self,
        state: &mut Option<State>,
        now: u64,
        mut cost: u64,
        charge_id: Option<ChargeId>,
    ) {
        let Some(log) = stored_mut(state) else { return };
        self.pay(log, now);
        let (n, sum, live) = (log.len(), log.total, self.live(log, now));
        let mut kept = n;
        if let Some(charge_id) = charge_id {
            let charged = first(live, n, |i| log.stamp(i) >= charge_id.at);
            if charged == n || log.stamp(charged) != charge_id.at {
                return;
            }
            cost = cost.min(minus(log.total(charged + 1), log.total(charged)));
            if cost == 0 {
                return;
            }
            log.lower(charged + 1, cost);
            while kept > live && log.total(kept) == log.total(kept - 1) {
                kept -= 1;
            }
        } else {
            cost = cost.min(log.counted(live));
            if cost == 0 {
                return;
            }
            kept = first(live, n, |i| log.counted(i) <= cost);
            log.total = minus(sum, cost);
        }
        log.entries.truncate(kept);
        let owed = log.owed;
        if kept == live {
            *state = None;
        }
        if owed > 0 {
            // As much of it fits now as is refunded.
            let fits = cost.min(owed);
            self.commit(state, Snapshot::default(), now, fits);
            if let Some(log) = stored_mut(state) {
                log.owed = owed - fits;
            }
        }
    }

    /// Keeps its charges, and their times.
    pub(super) fn pause(&self, _state: &mut Option<State>, _at: u64, _by: u64) {}

    pub(super) fn ends(&self, state: &State) -> u64 {
        match state {
            State::SlidingWindow(log) => {
                let ends = log.newest().map_or(0, |newest| self.ends_at(newest));
                if log.owed > 0 { self.ends_at(ends) } else { ends }
            }
            _ => 0,
        }
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.precision {
            0 => write!(out, "sl1-{}", self.period),
            precision => write!(out, "sc1-{}-{precision}", self.period),
        }
    }
}

/// Returns the difference of two running totals.
fn minus(later: u64, earlier: u64) -> u64 {
    (later + WRAP - earlier) % WRAP
}

/// Returns the first of the entries from `low` to `high` that passes, or `high`, where all after it pass too. The search starts
/// near `low`, where the entry usually is.
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

fn stored(state: Option<&State>) -> Option<&SlidingWindowState> {
    match state {
        Some(State::SlidingWindow(log)) => Some(log),
        _ => None,
    }
}

fn stored_mut(state: &mut Option<State>) -> Option<&mut SlidingWindowState> {
    match state {
        Some(State::SlidingWindow(log)) => Some(log),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_division_is_what_one_says() {
        for precision in 0..8 {
            let window = SlidingWindowSpec { limit: 1, period: 20, precision };
            for (time, other) in (0..70).flat_map(|time| (0..70).map(move |other| (time, other))) {
                let is_earlier = window.slot(time) < window.slot(other);
                assert_eq!(
                    window.is_in_earlier_slot(time, other),
                    is_earlier,
                    "{precision}: {time}, {other}"
                );
                let counts = window.ends_at(time) > other;
                assert_eq!(window.counts(time, other), counts, "{precision}: {time}, {other}");
            }
        }
    }
}
