//! Calls that run at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::promised::{Call, Interval, Promised};

/// At every time at most so many permits are held. It remembers the calls that run.
#[derive(Debug)]
pub(super) struct Holds {
    pub(super) max: u64,
    pub(super) blur: u64,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// The ends of calls that run for certain, and their permits.
    running: BinaryHeap<Reverse<(u64, u64)>>,
    permits: u64,
    /// The same of calls that may have ended.
    ending: BinaryHeap<Reverse<(u64, u64)>>,
    possible: u64,
}

impl Holds {
    fn advance(&self, state: &mut State, now: u64) {
        while let Some(&Reverse((end, cost))) = state.running.peek()
            && end <= now.saturating_add(self.blur)
        {
            state.running.pop();
            state.permits -= cost;
            state.ending.push(Reverse((end, cost)));
            state.possible += cost;
        }
        while let Some(&Reverse((end, cost))) = state.ending.peek()
            && end.saturating_add(self.blur) <= now
        {
            state.ending.pop();
            state.possible -= cost;
        }
    }
}

impl Promised for Holds {
    type State = State;

    fn admit(&self, state: &mut State, call: Call) -> Option<Interval> {
        state.running.push(Reverse((call.end, call.cost)));
        state.permits += call.cost;
        self.advance(state, call.time);
        let &Reverse((to, _)) = state.running.peek()?;
        let (from, admitted, allowed) = (call.time, state.permits, self.max);
        (admitted > allowed).then_some(Interval { from, to, admitted, allowed, is_from_first: false })
    }

    fn would_admit(&self, state: &mut State, call: Call) -> Option<bool> {
        self.advance(state, call.time);
        Some(state.permits.saturating_add(state.possible).saturating_add(call.cost) <= self.max)
    }

    fn settled(&self, first: u64) -> u64 {
        first
    }
}
