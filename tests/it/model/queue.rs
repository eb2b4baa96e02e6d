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
        Receipt::Full { at: self.end(history).expect("a charge was made"), credits: 0 }
    }

    /// Gives back the part of the last charge that is still to come. No other charge can be given back.
    fn credits(&self, history: &[Event], now: i128, cost: i128, receipt: Option<Receipt>) -> Vec<Event> {
        let next = self.next(history, now);
        let is_last = receipt.is_none_or(|receipt| receipt == Receipt::Full { at: next, credits: 0 });
        let amount = self.price(cost).min(next - now);
        let credit = (is_last && amount > 0).then_some(Event::Undone { at: now, amount });
        credit.into_iter().collect()
    }

    fn is_in_the_future(&self, history: &[Event], now: i128) -> bool {
        self.end(history).is_some_and(|end| end > self.next(history, now))
    }

    fn end(&self, history: &[Event]) -> Option<i128> {
        let (last, before) = history.split_last()?;
        let next = self.next(before, last.at());
        Some(match last {
            Event::Charged { at, cost, .. } => next.max(*at) + self.price(*cost),
            Event::Undone { amount, .. } => next - amount,
            _ => next,
        })
    }
}

impl Queue {
    /// Returns the next free slot, at most the end of the queue.
    fn next(self, history: &[Event], now: i128) -> i128 {
        self.end(history).map_or(now, |end| end.min(now + self.slots * self.interval))
    }
}
