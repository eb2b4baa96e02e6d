//! Guava's `RateLimiter` with a warm-up period, as documented: taking a stored permit costs the area under a curve that is
//! flat up to the threshold and climbs to three times that height. In doubles, like Guava's own.

use super::{Algorithm, Event, LONGEST, Policy, Receipt, Verdict, Warmth};

#[derive(Clone, Copy)]
pub(super) struct WarmingUp {
    pub(super) permits: i128,
    pub(super) period_ns: i128,
    /// In microseconds.
    pub(super) warmup: i128,
    /// Whether the numbers can change.
    pub(super) adjustable: bool,
}

#[derive(Clone, Copy)]
struct WarmUpState {
    /// When the next call may go.
    next: i128,
    stored: f64,
    written: i128,
    /// When the bucket will be cold, by the numbers of the last charge.
    cold_at: i128,
}

impl WarmUpState {
    fn warmth(self) -> Warmth {
        Warmth { next: self.next, stored: self.stored }
    }
}

impl Algorithm for WarmingUp {
    fn limit(&self) -> i128 {
        (self.max_permits() as i128).max(1)
    }

    fn price(&self, cost: i128) -> i128 {
        (cost as f64 * self.stable_interval()).ceil() as i128
    }

    fn verdict(&self, history: &[Event], now: i128, cost: i128, max_wait: i128) -> Verdict {
        let last = self.last(history);
        let WarmUpState { next, stored, .. } = self.as_of(last, now);
        let (takes, left) = self.reserve(stored, cost);
        let possible = takes <= LONGEST;
        let until_slot = if cost == 0 { 0 } else { next - now };
        let admitted = possible && until_slot <= max_wait;
        let after = if admitted { next + takes } else { next };
        let stored = if admitted { left } else { stored };
        Verdict {
            admitted,
            wait: if admitted { until_slot } else { 0 },
            limit: self.limit(),
            remaining: if after > now { 0 } else { stored as i128 },
            retry_after: (!admitted && possible).then_some(until_slot),
            reset_after: match last.filter(|_| self.adjustable && (cost == 0 || !admitted)) {
                Some(state) => (state.cold_at - (state.written - now).max(0) - now).max(0),
                None => (self.cold_at(after, stored) - now).max(0),
            },
        }
    }

    fn receipt(&self, history: &[Event]) -> Receipt {
        let (last, before) = history.split_last().expect("a charge was made");
        let before = self.as_of(self.last(before), last.at());
        let after = self.last(history).expect("a charge was made");
        Receipt::Warmth { before: before.warmth(), after: after.warmth() }
    }

    /// Undoes the last charge completely. Without a receipt, lowers the debt.
    fn credits(&self, history: &[Event], now: i128, cost: i128, receipt: Option<Receipt>) -> Vec<Event> {
        let Some(last) = self.last(history) else { return Vec::new() };
        let policy = self.policy();
        let credit = match receipt {
            Some(Receipt::Warmth { before, after }) => {
                (after == last.warmth()).then_some(Event::Rewound { at: now, warmth: before, policy })
            }
            Some(_) => unreachable!("the receipt of a bucket that warms up"),
            None => {
                let amount = self.price(cost).min(self.as_of(Some(last), now).next - now);
                (amount > 0).then_some(Event::Lowered { at: now, amount, policy })
            }
        };
        credit.into_iter().collect()
    }

    fn is_in_the_future(&self, history: &[Event], now: i128) -> bool {
        self.last(history).is_some_and(|last| last.written > now)
    }

    fn end(&self, history: &[Event]) -> Option<i128> {
        self.last(history).map(|last| last.cold_at)
    }
}

impl WarmingUp {
    fn policy(self) -> Policy {
        let WarmingUp { permits, period_ns, warmup, adjustable } = self;
        Policy::WarmingUp { permits, period_ns, warmup, adjustable }
    }

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

    /// Returns the idle microseconds in which a permit is stored.
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

    /// Returns the time that a call takes, and what it leaves stored. A time cut to less than the rate allows gets a microsecond
    /// more.
    fn reserve(self, stored: f64, cost: i128) -> (i128, f64) {
        let to_spend = (cost as f64).min(stored);
        let fresh = cost as f64 - to_spend;
        let takes =
            self.stored_permits_to_wait_time(stored, to_spend) + (fresh * self.stable_interval()) as i128;
        (takes + i128::from(takes < self.price(cost)), stored - to_spend)
    }

    fn cold_at(self, next: i128, stored: f64) -> i128 {
        next + ((self.max_permits() - stored) * self.cool_down_interval()).ceil() as i128
    }

    /// Guava's `resync`. A state from the future reaches as far from now as it did from when it was written. Stored permits
    /// beyond the maximum of these numbers are dropped.
    fn as_of(self, last: Option<WarmUpState>, now: i128) -> WarmUpState {
        let cold = WarmUpState { next: now, stored: self.max_permits(), written: now, cold_at: now };
        let Some(last) = last else { return cold };
        let (back, stored) = ((last.written - now).max(0), last.stored.min(self.max_permits()));
        let next = last.next - back;
        if next >= now {
            return WarmUpState { next, stored, ..last };
        }
        if now >= last.cold_at - back {
            return cold;
        }
        let new = (now - next) as f64 / self.cool_down_interval();
        WarmUpState { next: now, stored: (stored + new).min(self.max_permits()), ..last }
    }

    fn last(self, history: &[Event]) -> Option<WarmUpState> {
        let mut last: Option<WarmUpState> = None;
        for event in history {
            let (Event::Charged { policy, .. }
            | Event::Lowered { policy, .. }
            | Event::Rewound { policy, .. }
            | Event::Repaired { policy, .. }
            | Event::Paused { policy, .. }) = event
            else {
                unreachable!("this algorithm rewinds instead")
            };
            let &Policy::WarmingUp { permits, period_ns, warmup, adjustable } = policy else {
                unreachable!("a bucket that warms up")
            };
            let by = WarmingUp { permits, period_ns, warmup, adjustable };
            let found = by.as_of(last, event.at());
            let (next, stored, written) = match event {
                Event::Charged { at, cost, .. } => {
                    let (takes, stored) = by.reserve(found.stored, *cost);
                    (found.next + takes, stored, *at)
                }
                Event::Lowered { at, amount, .. } => (found.next - amount, found.stored, *at),
                // Back to what the charge found, at the time of the charge.
                Event::Rewound { warmth: Warmth { next, stored }, .. } => {
                    (*next, *stored, last.expect("a charge was made").written)
                }
                Event::Paused { at, .. } => (found.next, by.max_permits(), *at),
                _ => (found.next, found.stored, event.at()),
            };
            let cold_at = by.cold_at(next, stored);
            last = (cold_at > event.at()).then_some(WarmUpState { next, stored, written, cold_at });
        }
        last
    }
}
