//! Guava's `RateLimiter` with a warm-up period, as its documentation has it: what is stored is an area under a curve that is
//! flat up to the threshold, and climbs from there to three times as much. In doubles, like Guava's own.

use super::{Event, LONGEST, Receipt, Verdict};

#[derive(Clone, Copy)]
pub(super) struct WarmingUp {
    pub(super) permits: i128,
    pub(super) period_ns: i128,
    /// In microseconds.
    pub(super) warmup: i128,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Warmth {
    /// When the next call may go.
    next: i128,
    stored: f64,
    written: i128,
}

impl WarmingUp {
    fn stable_interval(self) -> f64 {
        self.period_ns as f64 / 1000.0 / self.permits as f64
    }

    fn cold_interval(self) -> f64 {
        self.stable_interval() * 3.0
    }

    fn threshold_permits(self) -> f64 {
        0.5 * self.warmup as f64 / self.stable_interval()
    }

    fn max_permits(self) -> f64 {
        self.threshold_permits() + 2.0 * self.warmup as f64 / (self.stable_interval() + self.cold_interval())
    }

    fn slope(self) -> f64 {
        (self.cold_interval() - self.stable_interval()) / (self.max_permits() - self.threshold_permits())
    }

    /// The microseconds in which a permit is stored while nobody calls.
    fn cool_down_interval(self) -> f64 {
        self.warmup as f64 / self.max_permits()
    }

    fn permits_to_time(self, above: f64) -> f64 {
        self.stable_interval() + above * self.slope()
    }

    fn stored_permits_to_wait_time(self, stored: f64, to_take: f64) -> i128 {
        let above = stored - self.threshold_permits();
        if above <= 0.0 {
            return (self.stable_interval() * to_take) as i128;
        }
        let above_to_take = above.min(to_take);
        let length = self.permits_to_time(above) + self.permits_to_time(above - above_to_take);
        let slow = (above_to_take * length / 2.0) as i128;
        slow + (self.stable_interval() * (to_take - above_to_take)) as i128
    }

    /// The least that a call takes, whatever is stored.
    pub(super) fn least(self, cost: i128) -> i128 {
        (cost as f64 * self.stable_interval()).ceil() as i128
    }

    /// The time that a call takes, and what it leaves in store. Cut to less than the rate allows, it is one microsecond more.
    fn reserve(self, stored: f64, cost: i128) -> (i128, f64) {
        let to_spend = (cost as f64).min(stored);
        let fresh = cost as f64 - to_spend;
        let takes =
            self.stored_permits_to_wait_time(stored, to_spend) + (fresh * self.stable_interval()) as i128;
        (takes + i128::from(takes < self.least(cost)), stored - to_spend)
    }

    pub(super) fn limit(self) -> i128 {
        (self.max_permits() as i128).max(1)
    }

    pub(super) fn verdict(self, history: &[Event], now: i128, cost: i128, wait: i128) -> Verdict {
        let Warmth { next, stored, .. } = self.now(self.last(history), now);
        let (takes, left) = self.reserve(stored, cost);
        let possible = takes <= LONGEST;
        let until_slot = if cost == 0 { 0 } else { next - now };
        let admitted = possible && until_slot <= wait;
        let after = if admitted { next + takes } else { next };
        let stored = if admitted { left } else { stored };
        Verdict {
            admitted,
            wait: if admitted { until_slot } else { 0 },
            limit: self.limit(),
            remaining: if after > now { 0 } else { stored as i128 },
            retry_after: (!admitted && possible).then_some(until_slot),
            reset_after: (self.cold_at(after, stored) - now).max(0),
        }
    }

    pub(super) fn receipt(self, history: &[Event]) -> Receipt {
        let (last, before) = history.split_last().expect("a charge was made");
        let before = self.now(self.last(before), last.at());
        let after = self.last(history).expect("a charge was made");
        Receipt::Warmth { before: (before.next, before.stored), after: (after.next, after.stored) }
    }

    /// The last charge is undone as if it had never been. Without a receipt the debt is lowered.
    pub(super) fn credit(
        self,
        history: &[Event],
        now: i128,
        cost: i128,
        receipt: Option<Receipt>,
    ) -> Option<Event> {
        let last = self.last(history)?;
        match receipt {
            Some(Receipt::Warmth { before: (next, stored), after }) => {
                (after == (last.next, last.stored)).then_some(Event::Rewound { at: now, next, stored })
            }
            Some(_) => unreachable!("the receipt of one that warms up"),
            None => {
                let amount = self.least(cost).min(self.now(Some(last), now).next - now);
                (amount > 0).then_some(Event::Credited { at: now, amount, stamp: None })
            }
        }
    }

    pub(super) fn is_in_the_future(self, history: &[Event], now: i128) -> bool {
        self.last(history).is_some_and(|last| last.written > now)
    }

    pub(super) fn end(self, history: &[Event]) -> Option<i128> {
        self.last(history).map(|last| self.cold_at(last.next, last.stored))
    }

    fn cold_at(self, next: i128, stored: f64) -> i128 {
        next + ((self.max_permits() - stored) * self.cool_down_interval()).ceil() as i128
    }

    /// Guava's `resync`. What was written later reaches no further from now than it did from then.
    fn now(self, last: Option<Warmth>, now: i128) -> Warmth {
        let Some(last) = last else { return Warmth { next: now, stored: self.max_permits(), written: now } };
        let next = last.next - (last.written - now).max(0);
        if next >= now {
            return Warmth { next, ..last };
        }
        if now >= self.cold_at(next, last.stored) {
            return Warmth { next: now, stored: self.max_permits(), ..last };
        }
        let new = (now - next) as f64 / self.cool_down_interval();
        Warmth { next: now, stored: (last.stored + new).min(self.max_permits()), ..last }
    }

    fn last(self, history: &[Event]) -> Option<Warmth> {
        let mut last: Option<Warmth> = None;
        for event in history {
            let Warmth { next, stored, .. } = self.now(last, event.at());
            last = Some(match event {
                Event::Charged { at, cost } => {
                    let (takes, stored) = self.reserve(stored, *cost);
                    Warmth { next: next + takes, stored, written: *at }
                }
                Event::Credited { at, amount, .. } => Warmth { next: next - amount, stored, written: *at },
                // Back to where the charge found it, and so to the time of the charge.
                Event::Rewound { next, stored, .. } => {
                    Warmth { next: *next, stored: *stored, ..last.expect("a charge was made") }
                }
                Event::Repaired { at } => Warmth { next, stored, written: *at },
                Event::Undone { .. } => unreachable!("a charge is rewound here"),
            });
        }
        last
    }
}
