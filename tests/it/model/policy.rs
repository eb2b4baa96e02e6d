//! The policies, and which file says what each of them promises.

use super::bucket::{Bucket, Takes};
use super::interval::Portions;
use super::queue::Queue;
use super::warming::WarmingUp;
use super::{Event, Receipt, Verdict, ceil, fixed, sliding};

/// A policy in the numbers of its promise, in microseconds and permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Holds `full` microseconds of refill; a permit takes `permit` of them. Token bucket and leaky bucket alike.
    Bucket {
        permit: i128,
        full: i128,
    },
    /// Holds `burst` permits and gets `refill` back at once every `every`, from the call that found it full.
    Interval {
        burst: i128,
        refill: i128,
        every: i128,
    },
    /// Holds `full` microseconds of refill. A call takes what its permits come to at the rate, of which the next ones wait for
    /// what was not there.
    Borrowing {
        permits: i128,
        period_ns: i128,
        full: i128,
    },
    /// A line of so many places, each `interval` after the one before.
    Queue {
        interval: i128,
        places: i128,
    },
    WarmingUp {
        permits: i128,
        period_ns: i128,
        warmup: i128,
    },
    Fixed {
        limit: i128,
        period: i128,
        aligned: bool,
    },
    /// Without a precision an exact log, with one a counter of sub-windows.
    Sliding {
        limit: i128,
        period: i128,
        precision: Option<i128>,
    },
}

/// How it is told.
#[derive(Clone, Copy)]
enum Kind {
    Bucket(Bucket),
    Portions(Portions),
    Queue(Queue),
    WarmingUp(WarmingUp),
    Fixed { limit: i128, period: i128, aligned: bool },
    Sliding { limit: i128, period: i128, precision: Option<i128> },
}

impl Policy {
    /// A bucket at an exact rate of `permits` per `period_ns`, that holds `burst` permits.
    pub(crate) fn bucket(permits: i128, period_ns: i128, burst: i128) -> Policy {
        let permit = ceil(period_ns, permits * 1000);
        Policy::Bucket { permit, full: burst * permit }
    }

    /// The same, that holds so long a time's worth, fractions kept, and at least one permit.
    pub(crate) fn bucket_for(permits: i128, period_ns: i128, time_ns: i128) -> Policy {
        let permit = ceil(period_ns, permits * 1000);
        Policy::Bucket { permit, full: (time_ns * permits * permit / period_ns).max(permit) }
    }

    /// A bucket from which calls borrow, and that holds so long a time's worth.
    pub(crate) fn borrowing_for(permits: i128, period_ns: i128, time_ns: i128) -> Policy {
        Policy::Borrowing { permits, period_ns, full: ceil(time_ns, 1000) }
    }

    /// The same, that holds `burst` permits.
    pub(crate) fn borrowing(permits: i128, period_ns: i128, burst: i128) -> Policy {
        Policy::borrowing_for(permits, period_ns, ceil(burst * period_ns, permits))
    }

    /// A line of one that leaves at once and `capacity` that wait.
    pub(crate) fn queue(permits: i128, period_ns: i128, capacity: i128) -> Policy {
        Policy::Queue { interval: ceil(period_ns, permits * 1000), places: 1 + capacity }
    }

    /// The permits that it could ever give at once.
    pub(crate) fn limit(self) -> i128 {
        match self.kind() {
            Kind::Bucket(bucket) => bucket.limit(),
            Kind::Portions(Portions { burst, .. }) => burst,
            Kind::Queue(Queue { places, .. }) => places,
            Kind::WarmingUp(warming) => warming.limit(),
            Kind::Fixed { limit, .. } | Kind::Sliding { limit, .. } => limit,
        }
    }

    pub(crate) fn is_a_window(self) -> bool {
        matches!(self, Policy::Fixed { .. } | Policy::Sliding { .. })
    }

    /// What a charge takes from a bucket, at the least: microseconds of refill, or permits of one that refills at intervals.
    pub(crate) fn takes(self, cost: i128) -> i128 {
        match self.kind() {
            Kind::Bucket(bucket) => bucket.takes(cost),
            Kind::Queue(Queue { interval, .. }) => cost * interval,
            Kind::WarmingUp(warming) => warming.least(cost),
            _ => cost,
        }
    }

    fn kind(self) -> Kind {
        match self {
            Policy::Bucket { permit, full } => Kind::Bucket(Bucket { full, takes: Takes::Each(permit) }),
            Policy::Borrowing { permits, period_ns, full } => {
                Kind::Bucket(Bucket { full, takes: Takes::Borrowed { permits, period_ns } })
            }
            Policy::Interval { burst, refill, every } => Kind::Portions(Portions { burst, refill, every }),
            Policy::Queue { interval, places } => Kind::Queue(Queue { interval, places }),
            Policy::WarmingUp { permits, period_ns, warmup } => {
                Kind::WarmingUp(WarmingUp { permits, period_ns, warmup })
            }
            Policy::Fixed { limit, period, aligned } => Kind::Fixed { limit, period, aligned },
            Policy::Sliding { limit, period, precision } => Kind::Sliding { limit, period, precision },
        }
    }

    pub(super) fn verdict(self, history: &[Event], now: i128, cost: i128, wait: i128) -> Verdict {
        match self.kind() {
            Kind::Bucket(bucket) => bucket.verdict(history, now, cost, wait),
            Kind::Portions(portions) => portions.verdict(history, now, cost, wait),
            Kind::Queue(queue) => queue.verdict(history, now, cost, wait),
            Kind::WarmingUp(warming) => warming.verdict(history, now, cost, wait),
            Kind::Fixed { limit, period, aligned } => {
                fixed::verdict(limit, period, aligned, history, now, cost)
            }
            Kind::Sliding { limit, period, precision } => {
                sliding::verdict(limit, period, precision, history, now, cost)
            }
        }
    }

    pub(super) fn is_in_the_future(self, history: &[Event], now: i128) -> bool {
        match self.kind() {
            Kind::Bucket(bucket) => bucket.is_in_the_future(history, now),
            Kind::Portions(portions) => portions.is_in_the_future(history, now),
            Kind::Queue(queue) => queue.is_in_the_future(history, now),
            Kind::WarmingUp(warming) => warming.is_in_the_future(history, now),
            Kind::Fixed { period, aligned, .. } => fixed::is_in_the_future(period, aligned, history, now),
            Kind::Sliding { period, precision, .. } => {
                sliding::is_in_the_future(period, precision, history, now)
            }
        }
    }

    pub(super) fn receipt(self, history: &[Event]) -> Receipt {
        match self.kind() {
            Kind::Bucket(bucket) => bucket.receipt(history),
            Kind::Portions(portions) => portions.receipt(history),
            Kind::Queue(queue) => queue.receipt(history),
            Kind::WarmingUp(warming) => warming.receipt(history),
            Kind::Fixed { period, aligned, .. } => fixed::receipt(period, aligned, history),
            Kind::Sliding { period, precision, .. } => sliding::receipt(period, precision, history),
        }
    }

    /// What a refund adds to what happened: of a sliding window, for each of its stamps.
    pub(super) fn credits(
        self,
        history: &[Event],
        now: i128,
        cost: i128,
        receipt: Option<Receipt>,
    ) -> Vec<Event> {
        let credit = match self.kind() {
            Kind::Bucket(bucket) => bucket.credit(history, now, cost, receipt),
            Kind::Portions(portions) => portions.credit(history, now, cost, receipt),
            Kind::Queue(queue) => queue.credit(history, now, cost, receipt),
            Kind::WarmingUp(warming) => warming.credit(history, now, cost, receipt),
            Kind::Fixed { period, aligned, .. } => {
                let amount = fixed::credit(period, aligned, history, now, cost, receipt);
                (amount > 0).then_some(Event::Credited { at: now, amount, stamp: None })
            }
            Kind::Sliding { period, precision, .. } => {
                let credits = sliding::credits(period, precision, history, now, cost, receipt);
                let event = |(stamp, amount)| Event::Credited { at: now, amount, stamp };
                return credits.into_iter().map(event).collect();
            }
        };
        credit.into_iter().collect()
    }

    pub(super) fn says_nothing(self, history: &[Event], now: i128) -> bool {
        match self.kind() {
            Kind::Fixed { .. } | Kind::Sliding { .. } => self.verdict(history, now, 0, 0).reset_after == 0,
            _ => self.end(history).is_none_or(|end| end <= now),
        }
    }

    pub(super) fn end(self, history: &[Event]) -> Option<i128> {
        match self.kind() {
            Kind::Bucket(bucket) => bucket.end(history),
            Kind::Portions(portions) => portions.end(history),
            Kind::Queue(queue) => queue.end(history),
            Kind::WarmingUp(warming) => warming.end(history),
            Kind::Fixed { period, aligned, .. } => fixed::end(period, aligned, history),
            Kind::Sliding { period, precision, .. } => sliding::end(period, precision, history),
        }
    }
}
