//! Consecutive windows: a key's first call opens one, or they lie on multiples of the period.

use super::{Algorithm, Event, Receipt, Verdict};

#[derive(Clone, Copy)]
pub(super) struct FixedWindow {
    pub(super) limit: i128,
    pub(super) period: i128,
    pub(super) aligned: bool,
}

#[derive(Clone, Copy)]
struct Window {
    start: i128,
    count: i128,
    /// The time of the first charge, unique among the windows of a key.
    opened: i128,
}

impl Algorithm for FixedWindow {
    fn limit(&self) -> i128 {
        self.limit
    }

    fn verdict(&self, history: &[Event], now: i128, cost: i128, _max_wait: i128) -> Verdict {
        let mut window = self.current(self.last(history), now);
        let admitted = cost == 0 || window.count + cost <= self.limit;
        if admitted {
            window.count += cost;
        }
        let left = window.start + self.period - now;
        Verdict {
            admitted,
            wait: 0,
            limit: self.limit,
            remaining: (self.limit - window.count).max(0),
            retry_after: (!admitted && cost <= self.limit).then_some(left),
            reset_after: if window.count > 0 { left } else { 0 },
        }
    }

    fn receipt(&self, history: &[Event]) -> Receipt {
        Receipt::Window(self.last(history).expect("a charge was made").opened)
    }

    /// A receipt is valid for its own window, while that is open.
    fn credits(&self, history: &[Event], now: i128, cost: i128, receipt: Option<Receipt>) -> Vec<Event> {
        let window = self.last(history).filter(|window| {
            now < window.start + self.period
                && receipt.is_none_or(|receipt| receipt == Receipt::Window(window.opened))
        });
        let amount = window.map_or(0, |window| cost.min(window.count));
        let credit = (amount > 0).then_some(Event::Credited { at: now, amount, stamp: None });
        credit.into_iter().collect()
    }

    fn is_in_the_future(&self, history: &[Event], now: i128) -> bool {
        self.last(history).is_some_and(|window| window.start > now)
    }

    fn end(&self, history: &[Event]) -> Option<i128> {
        self.last(history).map(|window| window.start + self.period)
    }

    fn has_expired(&self, history: &[Event], now: i128) -> bool {
        self.verdict(history, now, 0, 0).reset_after == 0
    }
}

impl FixedWindow {
    /// Returns the window that is open at `now`: the last one, moved to now if it lies in the future, or a new one.
    fn current(self, window: Option<Window>, now: i128) -> Window {
        let start = if self.aligned { now - now.rem_euclid(self.period) } else { now };
        match window {
            Some(window) if window.start <= now && now < window.start + self.period => window,
            Some(window) if window.start > now => Window { start, count: window.count, opened: now },
            _ => Window { start, count: 0, opened: now },
        }
    }

    fn last(self, history: &[Event]) -> Option<Window> {
        let mut last: Option<Window> = None;
        for event in history {
            last = Some(match event {
                Event::Charged { at, cost, .. } => {
                    let window = self.current(last, *at);
                    Window { count: window.count + cost, ..window }
                }
                Event::Repaired { at, .. } => self.current(last, *at),
                Event::Credited { amount, .. } => {
                    let window = last.expect("a charge was made");
                    Window { count: window.count - amount, ..window }
                }
                _ => unreachable!("only buckets undo"),
            });
        }
        last
    }
}
