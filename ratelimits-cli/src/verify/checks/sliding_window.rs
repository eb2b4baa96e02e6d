//! Sliding windows, logs and counters.

use std::collections::VecDeque;

use super::promised::{Call, Interval, Promised};

/// In every interval of one period at most the limit. It remembers the calls of the last period.
#[derive(Debug)]
pub(super) struct SlidingWindow {
    pub(super) limit: u64,
    pub(super) period: u64,
    /// How much longer a counter may count a call.
    pub(super) precision: u64,
    pub(super) blur: u64,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// The times of calls that may still count, and their permits.
    calls: VecDeque<(u64, u64)>,
    /// The permits of all of them.
    possible: u64,
    /// How many of them no longer count for certain, and the permits of the others.
    uncertain: usize,
    certain: u64,
}

impl SlidingWindow {
    fn advance(&self, state: &mut State, now: u64) {
        while let Some(&(time, cost)) = state.calls.get(state.uncertain)
            && time.saturating_add(self.period) <= now.saturating_add(self.blur)
        {
            state.certain -= cost;
            state.uncertain += 1;
        }
        let longest = self.period.saturating_add(self.precision).saturating_add(self.blur);
        while let Some(&(time, cost)) = state.calls.front()
            && time.saturating_add(longest) <= now
        {
            state.possible -= cost;
            state.uncertain -= 1;
            state.calls.pop_front();
        }
    }
}

impl Promised for SlidingWindow {
    type State = State;

    fn admit(&self, state: &mut State, call: Call) -> Option<Interval> {
        let Call { time, cost, .. } = call;
        let is_last_certain = state.uncertain < state.calls.len();
        match state.calls.back_mut() {
            // It counts as long as this one.
            Some((last, permits)) if *last == time && is_last_certain => *permits += cost,
            _ => state.calls.push_back((time, cost)),
        }
        state.possible += cost;
        state.certain += cost;
        self.advance(state, time);
        if state.certain <= self.limit {
            return None;
        }
        let (from, _) = state.calls[state.uncertain];
        let (admitted, allowed) = (state.certain, self.limit);
        Some(Interval { from, to: time, admitted, allowed, is_from_first: false })
    }

    fn would_admit(&self, state: &mut State, call: Call) -> Option<bool> {
        self.advance(state, call.time);
        Some(state.possible.saturating_add(call.cost) <= self.limit)
    }

    fn settled(&self, first: u64) -> u64 {
        first.saturating_add(self.period).saturating_add(self.precision)
    }
}
