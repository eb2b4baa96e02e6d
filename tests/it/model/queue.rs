//! A line of evenly spaced places: the first is the caller's who leaves at once, the others are those who wait.

use super::{Event, Receipt, Verdict};

#[derive(Clone, Copy)]
pub(super) struct Queue {
    /// The time from one place to the next.
    pub(super) interval: i128,
    /// One that leaves at once, and those that wait.
    pub(super) places: i128,
}

impl Queue {
    pub(super) fn verdict(self, history: &[Event], now: i128, cost: i128, wait: i128) -> Verdict {
        let next = self.next(history, now).max(now);
        let end = now + self.places * self.interval;
        let takes = cost * self.interval;
        let possible = cost <= self.places;
        let admitted = cost == 0 || possible && next + takes <= end && next - now <= wait;
        // What keeps it out goes by itself: the line is too long for all of its places, or its slot is too far away.
        let too_long = (next + takes - end).max(next - now - wait);
        let after = if admitted { next + takes } else { next };
        Verdict {
            admitted,
            wait: if admitted && cost > 0 { next - now } else { 0 },
            limit: self.places,
            remaining: (end - after) / self.interval,
            retry_after: (!admitted && possible).then_some(too_long),
            reset_after: after - now,
        }
    }

    pub(super) fn receipt(self, history: &[Event]) -> Receipt {
        Receipt::Full { at: self.end(history).expect("a charge was made"), credits: 0 }
    }

    /// The last charge gives back what of it is still to come, and no other can be given back.
    pub(super) fn credit(
        self,
        history: &[Event],
        now: i128,
        cost: i128,
        receipt: Option<Receipt>,
    ) -> Option<Event> {
        let next = self.next(history, now);
        let last = receipt.is_none_or(|receipt| receipt == Receipt::Full { at: next, credits: 0 });
        let amount = (cost * self.interval).min(next - now);
        (last && amount > 0).then_some(Event::Undone { at: now, amount })
    }

    pub(super) fn is_in_the_future(self, history: &[Event], now: i128) -> bool {
        self.end(history).is_some_and(|end| end > self.next(history, now))
    }

    pub(super) fn end(self, history: &[Event]) -> Option<i128> {
        let last = history.last()?;
        Some(match last {
            Event::Charged { at, cost } => self.before_last(history).max(*at) + cost * self.interval,
            Event::Undone { amount, .. } => self.before_last(history) - amount,
            _ => self.before_last(history),
        })
    }

    fn before_last(self, history: &[Event]) -> i128 {
        let (last, before) = history.split_last().expect("something happened");
        self.next(before, last.at())
    }

    /// The next free place, which is nowhere beyond the end of the line.
    fn next(self, history: &[Event], now: i128) -> i128 {
        self.end(history).map_or(now, |end| end.min(now + self.places * self.interval))
    }
}
