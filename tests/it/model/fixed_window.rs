//! Consecutive windows: a key's first call opens one, or they lie on multiples of the period.

use super::{Algorithm, Event, Policy, Receipt, Verdict, ceil, longest_debt};

/// The most permits that are owed.
const MOST_OWED: i128 = 1 << 50;

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
    /// What the windows after it are charged, and how much of that each of them at most.
    owed: i128,
    pays: i128,
}

impl Algorithm for FixedWindow {
    fn limit(&self) -> i128 {
        self.limit
    }

    fn verdict(&self, history: &[Event], now: i128, cost: i128, _max_wait: i128) -> Verdict {
        let window = self.current(self.last(history), now);
        let used = window.count + window.owed;
        let admitted = cost == 0 || used + cost <= self.limit;
        let left = window.start + self.period - now;
        // A charge that is admitted counts what was owed as this window's own.
        let windows = if admitted && cost > 0 { 0 } else { ceil(window.owed, window.pays) };
        let after = if admitted { used + cost } else { used };
        let until_fits = ceil((window.owed + cost - self.limit).max(0), window.pays) * self.period;
        Verdict {
            admitted,
            wait: 0,
            limit: self.limit,
            remaining: (self.limit - after).max(0),
            retry_after: (!admitted && cost <= self.limit).then_some(left + until_fits),
            reset_after: if after > 0 { left + windows * self.period } else { 0 },
        }
    }

    /// None waits for a window.
    fn longest_wait(&self, _cost: i128, _max_wait: i128) -> Option<i128> {
        None
    }

    fn receipt(&self, history: &[Event]) -> Receipt {
        Receipt::Window(self.last(history).expect("a charge was made").opened)
    }

    /// A receipt is valid for its own window, while that is open.
    fn credits(&self, history: &[Event], now: i128, cost: i128, receipt: Option<Receipt>) -> Vec<Event> {
        let window = self.last(history).map(|window| self.paid(window, now)).filter(|window| {
            now < window.start + self.period
                && receipt.is_none_or(|receipt| receipt == Receipt::Window(window.opened))
        });
        let amount = window.map_or(0, |window| cost.min(window.count + window.owed));
        if amount > 0 { vec![Event::Credited { at: now, amount, stamp: None }] } else { Vec::new() }
    }

    fn is_in_the_future(&self, history: &[Event], now: i128) -> bool {
        self.last(history).is_some_and(|window| window.start > now)
    }

    fn end(&self, history: &[Event]) -> Option<i128> {
        self.last(history).map(|window| window.start + (1 + ceil(window.owed, window.pays)) * self.period)
    }

    fn has_expired(&self, history: &[Event], now: i128) -> bool {
        self.verdict(history, now, 0, 0).reset_after == 0
    }
}

impl FixedWindow {
    /// Returns the window that is open at `now`: the last one, one that pays what it has left, the last one moved to now if it lies in
    /// the future, or a new one.
    fn current(self, window: Option<Window>, now: i128) -> Window {
        let start = if self.aligned { now - now.rem_euclid(self.period) } else { now };
        match window.map(|window| self.paid(window, now)) {
            Some(window) if window.start <= now && now < window.start + self.period && window.count > 0 => {
                window
            }
            Some(window) if window.start > now => Window { start, opened: now, ..window },
            _ => Window { start, count: 0, opened: now, owed: 0, pays: 1 },
        }
    }

    /// Lets each window that has begun since pay as much as it holds.
    fn paid(self, window: Window, now: i128) -> Window {
        let begun = (now - window.start).div_euclid(self.period);
        let left = window.owed - (begun - 1) * window.pays;
        if window.owed == 0 || begun < 1 || left <= 0 {
            return window;
        }
        let (start, count) = (window.start + begun * self.period, left.min(window.pays));
        Window { start, count, opened: start, owed: left - count, ..window }
    }

    fn last(self, history: &[Event]) -> Option<Window> {
        let mut last: Option<Window> = None;
        for event in history {
            last = Some(match event {
                Event::Charged { at, cost, .. } => {
                    let window = self.current(last, *at);
                    Window { count: window.count + window.owed + cost, owed: 0, ..window }
                }
                Event::Debited { at, cost, policy: Policy::Fixed { limit, period, .. } } => {
                    let window = self.current(last, *at);
                    let fits = if window.owed == 0 { (limit - window.count).clamp(0, *cost) } else { 0 };
                    let most = (longest_debt(*period) / period * limit).min(MOST_OWED);
                    let owed = (window.owed + cost - fits).min(most.max(window.owed));
                    // The largest limit of those that have made it owe pays it.
                    let pays = if window.owed > 0 { window.pays.max(*limit) } else { *limit };
                    Window { count: window.count + fits, owed, pays, ..window }
                }
                Event::Repaired { at, .. } => self.current(last, *at),
                Event::Credited { at, amount, .. } => {
                    let window = self.paid(last.expect("a charge was made"), *at);
                    let of_owed = window.owed.min(*amount);
                    let count = window.count - (amount - of_owed);
                    Window { count, owed: window.owed - of_owed, ..window }
                }
                _ => unreachable!("only buckets undo"),
            });
        }
        last
    }
}
