//! What calls are limited by: random policies, and attributes with leases.

use std::time::Duration;

use ratelimit_runtime::CalendarPeriod;
use ratelimits::{ConcurrencyLimit, FixedWindow, LeakyBucket, Policy, Rate, SlidingWindow, TokenBucket};

use super::bounds::Numbers;
use crate::random::Random;

/// A policy by its numbers, so that a share of it can be had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) kind: Kind,
    pub(super) limit: u64,
    /// The time of a permit or of a window, in microseconds.
    pub(super) period: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bucket,
    /// A bucket whose size differs from call to call.
    Changing,
    /// The same, whose calls are settled.
    Settled,
    Meter,
    Queue,
    Interval,
    Borrowing,
    WarmingUp,
    Window,
    Aligned,
    Day,
    Month,
    Log,
    Counter,
    LeasedBucket,
    LeasedWindow,
    Slack,
    PenalizedBucket,
    PenalizedWindow,
    NotifiedBucket,
    NotifiedWindow,
    Holds,
}

const KINDS: [Kind; 22] = [
    Kind::Bucket,
    Kind::Changing,
    Kind::Settled,
    Kind::Meter,
    Kind::Queue,
    Kind::Interval,
    Kind::Borrowing,
    Kind::WarmingUp,
    Kind::Window,
    Kind::Aligned,
    Kind::Day,
    Kind::Month,
    Kind::Log,
    Kind::Counter,
    Kind::LeasedBucket,
    Kind::LeasedWindow,
    Kind::Slack,
    Kind::PenalizedBucket,
    Kind::PenalizedWindow,
    Kind::NotifiedBucket,
    Kind::NotifiedWindow,
    Kind::Holds,
];

impl Target {
    pub(super) fn random(random: &mut Random) -> Self {
        let kind = random.pick(&KINDS);
        let (limit, unit) = (random.between(1, 8), random.pick(&[100, 1_000, 37_000, 200_000]));
        let (limit, period) = match kind {
            Kind::LeasedBucket => (20, 10_000),
            Kind::LeasedWindow => (20, 500_000),
            Kind::Slack => (100, 10_000),
            Kind::PenalizedBucket => (3, 50_000),
            Kind::PenalizedWindow => (3, 200_000),
            Kind::NotifiedBucket => (5, 50_000),
            Kind::NotifiedWindow => (5, 300_000),
            // A counter has ten parts.
            _ => (limit, unit * random.between(1, 5) * 10),
        };
        Target { kind, limit, period }
    }

    pub(super) fn policy(&self) -> Policy {
        self.share(1)
    }

    /// Returns its numbers as they are written.
    pub(super) fn numbers(&self) -> Numbers {
        Numbers { limit: self.limit, period: self.period, is_overridden: false }
    }

    /// Returns the same with other numbers.
    pub(super) fn with(&self, numbers: Numbers) -> Self {
        Target { limit: numbers.limit, period: numbers.period, ..*self }
    }

    /// Returns numbers for an override.
    pub(super) fn overridden(&self, random: &mut Random) -> Numbers {
        let Target { limit, period, .. } = *self;
        // Leases would be larger and live longer.
        let limit = random.between(1, if self.is_leased() { limit } else { 2 * limit });
        let period = match self.kind {
            Kind::Bucket
            | Kind::Changing
            | Kind::Settled
            | Kind::Meter
            | Kind::Queue
            | Kind::Borrowing
            | Kind::WarmingUp => random.pick(&[period, period, period / 2, 2 * period]),
            _ => period,
        };
        Numbers { limit, period, is_overridden: true }
    }

    /// Returns the numbers as an override sets them.
    pub(super) fn arguments(&self) -> String {
        let Target { kind, limit, period } = *self;
        match kind {
            Kind::Meter | Kind::Queue => format!("capacity = {limit}\nleak_rate = \"1/{period}us\"\n"),
            Kind::Interval => format!("burst = {limit}\nrate = \"{}/{period}us\"\n", (limit / 2).max(1)),
            Kind::WarmingUp => format!("rate = \"1/{period}us\"\n"),
            _ if self.is_window() || matches!(kind, Kind::Day | Kind::Month | Kind::Log | Kind::Counter) => {
                format!("limit = {limit}\n")
            }
            Kind::Holds => format!("max = {limit}\n"),
            _ => format!("burst = {limit}\nrate = \"1/{period}us\"\n"),
        }
    }

    /// Returns what differs between calls with different states: whether these are overridden, and how long their windows are.
    pub(super) fn state(&self, numbers: Numbers, instances: u64) -> (bool, u64) {
        let Target { kind, limit, period } = self.with(numbers);
        let count = match kind {
            Kind::Interval => (limit / 2).max(1),
            _ if self.is_window() || matches!(kind, Kind::Log | Kind::Counter) => limit,
            Kind::Changing | Kind::Settled | Kind::PenalizedBucket | Kind::Day | Kind::Month => {
                return (false, 0);
            }
            _ => return (numbers.is_overridden, 0),
        };
        let every = if count < instances { (period * instances).div_ceil(count) } else { period };
        (numbers.is_overridden && kind == Kind::Interval, every)
    }

    /// Returns what one of so many processes admits when it is cut off.
    pub(super) fn share(&self, instances: u64) -> Policy {
        let Target { kind, limit, period } = *self;
        let micros = Duration::from_micros;
        let rate = Rate::new(1, micros(period * instances));
        let (bucket, full) = (TokenBucket::new(rate), micros(limit * period));
        // What cannot be divided comes more rarely.
        let divided = |count: u64| match count / instances {
            0 => (1, micros((period * instances).div_ceil(count))),
            share => (share, micros(period)),
        };
        let (share, window) = divided(limit);
        match kind {
            Kind::Bucket
            | Kind::Changing
            | Kind::Settled
            | Kind::LeasedBucket
            | Kind::Slack
            | Kind::PenalizedBucket
            | Kind::NotifiedBucket => {
                if instances == 1 { bucket.burst(limit) } else { bucket.burst_for(full) }.into()
            }
            Kind::Meter if instances == 1 => LeakyBucket::new(limit, rate).into(),
            Kind::Meter => bucket.burst_for(full).into(),
            Kind::Queue => LeakyBucket::new(limit, rate).queue().into(),
            Kind::Interval => {
                let (refill, every) = divided((limit / 2).max(1));
                let burst = (limit / instances).max(1);
                TokenBucket::new(Rate::new(refill, every)).burst(burst).interval_refill().into()
            }
            Kind::Borrowing if instances == 1 => bucket.burst(limit).borrow().into(),
            Kind::Borrowing => bucket.burst_for(full).borrow().into(),
            Kind::WarmingUp => bucket.warmup(micros(4 * period)).into(),
            Kind::Window | Kind::LeasedWindow | Kind::PenalizedWindow | Kind::NotifiedWindow => {
                FixedWindow::new(share, window).into()
            }
            // Two calls of an aligned window may be closer than it is long.
            Kind::Aligned if limit < instances => FixedWindow::new(share, window).into(),
            Kind::Aligned => FixedWindow::new(share, window).aligned().into(),
            Kind::Day | Kind::Month => {
                let period = self.calendar().expect("it has one");
                let window = FixedWindow::calendar((limit / instances).max(1), period);
                window.zone("Europe/Berlin").expect("the zone exists").into()
            }
            Kind::Log => SlidingWindow::new(share, window).into(),
            Kind::Counter => {
                let precision = micros((window.as_micros() as u64).div_ceil(10));
                SlidingWindow::new(share, 10 * precision).precision(precision).into()
            }
            Kind::Holds => ConcurrencyLimit::new(limit.div_ceil(instances)).into(),
        }
    }

    /// Returns the numbers of a call whose burst is its own.
    pub(super) fn with_burst(&self, burst: u64) -> Option<Numbers> {
        self.attribute().map(|_| Numbers { limit: burst, ..self.numbers() })
    }

    /// Returns the name of the attribute whose limiters have numbers of their own.
    pub(super) fn attribute(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Changing => Some("changing"),
            Kind::Settled => Some("settled"),
            _ => None,
        }
    }

    pub(super) fn name(&self, number: usize) -> String {
        match self.kind {
            Kind::Changing => "changing".to_owned(),
            Kind::Settled => "settled".to_owned(),
            Kind::LeasedBucket => "leased-bucket".to_owned(),
            Kind::LeasedWindow => "leased-window".to_owned(),
            Kind::Slack => "slack".to_owned(),
            Kind::PenalizedBucket => "penalized-bucket".to_owned(),
            Kind::PenalizedWindow => "penalized-window".to_owned(),
            Kind::NotifiedBucket => "notified-bucket".to_owned(),
            Kind::NotifiedWindow => "notified-window".to_owned(),
            kind => format!("{kind:?}-{number}"),
        }
    }

    pub(super) fn is_leased(&self) -> bool {
        matches!(self.kind, Kind::LeasedBucket | Kind::LeasedWindow | Kind::Slack)
    }

    /// Returns how long its windows are by the calendar, if they are.
    pub(super) fn calendar(&self) -> Option<CalendarPeriod> {
        match self.kind {
            Kind::Day => Some(CalendarPeriod::Day),
            Kind::Month => Some(CalendarPeriod::Month),
            _ => None,
        }
    }

    pub(super) fn is_penalized(&self) -> bool {
        matches!(self.kind, Kind::PenalizedBucket | Kind::PenalizedWindow)
    }

    pub(super) fn is_notified(&self) -> bool {
        matches!(self.kind, Kind::NotifiedBucket | Kind::NotifiedWindow)
    }

    /// Whether its calls are those of a function with an attribute, as limiters do not have what that says.
    pub(super) fn is_function(&self) -> bool {
        self.is_leased() || self.is_penalized() || self.is_notified()
    }

    /// Returns how long before a call starts its permits were charged at most, in microseconds.
    pub(super) fn lease_life(&self) -> u64 {
        match self.kind {
            // As long as five permits take to refill; as the window; and 5 % of the time in which the bucket refills.
            Kind::LeasedBucket | Kind::Slack => 50_000,
            Kind::LeasedWindow => 500_000,
            _ => 0,
        }
    }

    pub(super) fn is_window(&self) -> bool {
        matches!(
            self.kind,
            Kind::Window | Kind::Aligned | Kind::LeasedWindow | Kind::PenalizedWindow | Kind::NotifiedWindow
        )
    }

    /// Whether the receipts of calls are of windows.
    pub(super) fn has_windows(&self) -> bool {
        self.is_window() || matches!(self.kind, Kind::Day | Kind::Month | Kind::Log | Kind::Counter)
    }

    /// Whether what calls use can replace their cost.
    pub(super) fn can_be_settled(&self) -> bool {
        !matches!(self.kind, Kind::Queue | Kind::WarmingUp)
    }

    /// Whether calls may wait for permits.
    pub(super) fn waits(&self) -> bool {
        !self.is_function() && self.kind != Kind::WarmingUp
    }
}
