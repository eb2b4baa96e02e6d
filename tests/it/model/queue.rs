//! A queue of evenly spaced slots: the first call leaves at once, the others wait.

use super::{Algorithm, Event, Receipt, Verdict};

#[derive(Clone, Copy)]
pub(super) struct Queue {
    /// The time from one slot to the next.
    pub(super) interval: i128,
    /// One for the call that leaves at once, and one for each call that may wait.
    pub(super) slots: i128,
}

impl Algorithm for Queue {
    fn limit(&self) -> i128 {
        self.slots
    }

    fn price(&self, cost: i128) -> i128 {
        cost * self.interval
    }

    fn verdict(&self, history: &[Event], now: i128, cost: i128, max_wait: i128) -> Verdict {
        let next = self.next(history, now).max(now);
        let end = now + self.slots * self.interval;
        let price = self.price(cost);
        let possible = cost <= self.slots;
        let admitted = cost == 0 || possible && next + price <= end && next - now <= max_wait;
        // Either the queue is too long for all its slots, or the first one is too far away. Time mends both.
        let too_long = (next + price - end).max(next - now - max_wait);
        let after = if admitted { next + price } else { next };
        Verdict {
            admitted,
            wait: if admitted && cost > 0 { next - now } else { 0 },
            limit: self.slots,
            remaining: (end - after) / self.interval,
            retry_after: (!admitted && possible).then_some(too_long),
            reset_after: after - now,
        }
    }

    /// As long as the queue is, also with a pause.
    fn longest_wait(&self, cost: i128, max_wait: i128) -> Option<i128> {
        Some(max_wait.min((self.slots - cost).max(0) * self.interval))
    }

    fn is_queue(&self) -> bool {
        true
    }

    fn receipt(&self, history: &[Event]) -> Receipt {
        let line = self.line(history).expect("a charge was made");
        Receipt::Full { at: line.next, credits: line.voided }
    }

    /// Gives back the part of the last charge that is still to come. No other charge can be given back.
    fn credits(&self, history: &[Event], now: i128, cost: i128, receipt: Option<Receipt>) -> Vec<Event> {
        let Some(line) = self.line(history) else { return Vec::new() };
        let Line { next, voided, .. } = self.as_of(line, now);
        let is_last = receipt.is_none_or(|receipt| receipt == Receipt::Full { at: next, credits: voided });
        let amount = self.price(cost).min(next - now);
        let credit = (is_last && amount > 0).then_some(Event::Undone { at: now, amount });
        credit.into_iter().collect()
    }

    fn is_in_the_future(&self, history: &[Event], now: i128) -> bool {
        self.line(history).is_some_and(|line| line.next > self.next(history, now))
    }

    fn end(&self, history: &[Event]) -> Option<i128> {
        self.line(history).map(|line| line.next.max(line.voided_until))
    }
}

/// What the events of a key leave.
#[derive(Clone, Copy)]
struct Line {
    /// The next free slot.
    next: i128,
    /// What pauses have voided, and until when a receipt of that would be worth something.
    voided: i128,
    voided_until: i128,
}

impl Queue {
    /// Returns the next free slot, at most the end of the queue.
    fn next(self, history: &[Event], now: i128) -> i128 {
        self.line(history).map_or(now, |line| self.as_of(line, now).next)
    }

    fn as_of(self, line: Line, now: i128) -> Line {
        let back = (line.next - (now + self.slots * self.interval)).max(0);
        let voided_until = line.voided_until - back;
        let voided = if voided_until > now { line.voided } else { 0 };
        Line { next: line.next - back, voided, voided_until }
    }

    fn line(self, history: &[Event]) -> Option<Line> {
        let (last, before) = history.split_last()?;
        let at = last.at();
        let line = self
            .line(before)
            .map_or(Line { next: at, voided: 0, voided_until: 0 }, |line| self.as_of(line, at));
        let next = match last {
            Event::Charged { cost, .. } => line.next.max(at) + self.price(*cost),
            Event::Undone { amount, .. } => line.next - amount,
            Event::Paused { .. } => line.next.max(at),
            _ => line.next,
        };
        let voided = line.voided + if matches!(last, Event::Paused { .. }) { next - at } else { 0 };
        Some(Line { next, voided, voided_until: if voided > 0 { line.voided_until.max(next) } else { 0 } })
    }
}
