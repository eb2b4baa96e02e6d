//! Lines that come late.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::events::Event;

/// Keeps the events of the last so many nanoseconds, and returns them in the order of their times.
#[derive(Debug)]
pub(super) struct InOrder {
    late: u64,
    newest: u64,
    kept: BinaryHeap<Reverse<Event>>,
}

impl InOrder {
    pub(super) fn new(late: u64) -> Self {
        InOrder { late, newest: 0, kept: BinaryHeap::new() }
    }

    pub(super) fn push(&mut self, event: Event) {
        self.newest = self.newest.max(event.time);
        self.kept.push(Reverse(event));
    }

    /// Returns the earliest event, unless an earlier one may still come.
    pub(super) fn pop(&mut self) -> Option<Event> {
        let Reverse(event) = self.kept.peek()?;
        if event.time.saturating_add(self.late) > self.newest {
            return None;
        }
        self.kept.pop().map(|Reverse(event)| event)
    }

    /// Returns all others, at the end of the log.
    pub(super) fn rest(self) -> impl Iterator<Item = Event> {
        self.kept.into_sorted_vec().into_iter().rev().map(|Reverse(event)| event)
    }
}
