//! Windows that calls open.

use super::promised::{Call, Interval, Promised};

/// In each window at most the limit. A key's first admitted call opens a window, and so does the first one after the end of the last.
///
/// With an error of the clock it is not certain which call opens a window: the earliest that may be after the last window, the first that
/// is for certain, or one between them. Calls from the latter on count that are before the end of a window that the former has opened.
#[derive(Debug)]
pub(super) struct OpenedWindows {
    pub(super) limit: u64,
    pub(super) period: u64,
    pub(super) blur: u64,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// The time of the earliest call that may have opened the window, and that of the first after which it is open for certain.
    opened: Option<(u64, u64)>,
    /// Whether a window from before the log could still be open instead.
    is_first: bool,
    certain: u64,
    /// The time of the first call that counts for certain.
    from: u64,
    /// The permits that may belong to the window.
    possible: u64,
    /// The first call that may have opened the next window, and the permits since.
    next: Option<(u64, u64)>,
    last: u64,
}

impl OpenedWindows {
    /// Returns whether a call is in the window for certain, in it or not, or after it for certain.
    fn place(&self, (earliest, latest): (u64, u64), time: u64) -> Place {
        if time.saturating_add(self.blur) < earliest.saturating_add(self.period) {
            Place::Within
        } else if time < latest.saturating_add(self.period).saturating_add(self.blur) {
            Place::Either
        } else {
            Place::After
        }
    }

    fn open(&self, state: &mut State, time: u64) {
        let idle_since = state.last.saturating_add(self.period).saturating_add(self.blur);
        let is_first = match state.opened {
            None => true,
            Some(_) => state.is_first && time < idle_since,
        };
        let (earliest, possible) = state.next.unwrap_or((time, 0));
        let opened = Some((earliest, time));
        *state = State { opened, is_first, possible, last: state.last, ..State::default() };
    }
}

enum Place {
    Within,
    Either,
    After,
}

impl Promised for OpenedWindows {
    type State = State;

    fn admit(&self, state: &mut State, call: Call) -> Option<Interval> {
        let Call { time, cost, .. } = call;
        let is_open = state.opened.is_some_and(|opened| !matches!(self.place(opened, time), Place::After));
        if !is_open {
            self.open(state, time);
        }
        state.last = time;
        state.possible += cost;
        let opened = state.opened?;
        if !matches!(self.place(opened, time), Place::Within) {
            let next = state.next.get_or_insert((time, 0));
            next.1 += cost;
            return None;
        }
        if state.certain == 0 {
            state.from = time;
        }
        state.certain += cost;
        let (from, to, admitted, allowed) = (state.from, time, state.certain, self.limit);
        let is_from_first = state.is_first;
        (admitted > allowed).then_some(Interval { from, to, admitted, allowed, is_from_first })
    }

    fn would_admit(&self, state: &mut State, call: Call) -> Option<bool> {
        let used = match state.opened.map(|opened| self.place(opened, call.time)) {
            None => 0,
            Some(Place::Within) => state.possible,
            Some(Place::Either) => return None,
            // What may have opened a window may count until its end.
            Some(Place::After) => match state.next {
                Some((time, permits))
                    if !matches!(self.place((time, state.last), call.time), Place::After) =>
                {
                    permits
                }
                _ => 0,
            },
        };
        Some(used.saturating_add(call.cost) <= self.limit)
    }

    fn settled(&self, first: u64) -> u64 {
        first.saturating_add(self.period).saturating_add(self.blur)
    }
}
