//! Windows whose starts are known: multiples of a period, or those of a calendar.

use ratelimit_runtime::Calendar;

use super::promised::{Call, Interval, Promised};

/// In each window at most the limit. A call so close to a boundary that the clock's error could move it across may belong to either side.
#[derive(Debug)]
pub(super) struct AlignedWindows {
    pub(super) limit: u64,
    pub(super) windows: Windows,
    pub(super) clock_error: u64,
}

#[derive(Debug)]
pub(super) enum Windows {
    /// On multiples of so many nanoseconds.
    Aligned(u64),
    Calendar(Calendar),
}

#[derive(Debug, Default)]
pub(super) struct State {
    start: u64,
    end: u64,
    /// The permits that belong to the window for certain.
    certain: u64,
    /// The time of the first of them.
    from: u64,
    /// The permits that may belong to it.
    possible: u64,
    /// The permits that may belong to the next one.
    next: u64,
}

impl Windows {
    fn of(&self, time: u64) -> [u64; 2] {
        match self {
            Windows::Aligned(period) => {
                let start = time - time % period;
                [start, start + period]
            }
            Windows::Calendar(calendar) => {
                calendar.window_of(time / 1_000).map(|micros| micros.saturating_mul(1_000))
            }
        }
    }
}

impl AlignedWindows {
    fn advance(&self, state: &mut State, time: u64) {
        if time < state.end {
            return;
        }
        let [start, end] = self.windows.of(time);
        let possible = if start == state.end { state.next } else { 0 };
        *state = State { start, end, possible, ..State::default() };
    }

    /// Returns whether a call of the window may belong to the one before, or to the one after.
    fn is_close(&self, state: &State, time: u64) -> (bool, bool) {
        (time - state.start < self.clock_error, state.end - time <= self.clock_error)
    }
}

impl Promised for AlignedWindows {
    type State = State;

    fn admit(&self, state: &mut State, call: Call) -> Option<Interval> {
        let Call { time, cost, .. } = call;
        self.advance(state, time);
        let (may_be_before, may_be_after) = self.is_close(state, time);
        state.possible += cost;
        if may_be_after {
            state.next += cost;
        }
        if may_be_before || may_be_after {
            return None;
        }
        if state.certain == 0 {
            state.from = time;
        }
        state.certain += cost;
        let (from, to, admitted, allowed) = (state.from, time, state.certain, self.limit);
        (admitted > allowed).then_some(Interval { from, to, admitted, allowed, is_from_first: false })
    }

    fn would_admit(&self, state: &mut State, call: Call) -> Option<bool> {
        self.advance(state, call.time);
        let (may_be_before, may_be_after) = self.is_close(state, call.time);
        if may_be_before || may_be_after {
            return None;
        }
        Some(state.possible.saturating_add(call.cost) <= self.limit)
    }

    fn settled(&self, first: u64) -> u64 {
        self.windows.of(first)[1]
    }
}
