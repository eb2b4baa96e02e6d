//! Windows of a calendar. Where they begin is found by walking through the quarters of hours of a time zone, in which all of today's zones
//! have their midnights.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use ratelimit_runtime::CalendarPeriod;

use super::{Algorithm, Event, Policy, Receipt, Verdict, ceil, longest_debt};

const QUARTER: i64 = 15 * 60;

/// 1 January 2005, before which nothing happens.
const BEGIN: i64 = 1_104_537_600;

const DAY: i128 = 86_400_000_000;

/// What the windows that pay a debt exceed their average length by at most, while the key waits for it.
const SLACK: i128 = 3 * DAY;

/// The most permits that are used and owed.
const MOST_USED: i128 = 1 << 50;

#[derive(Clone, Copy)]
pub(super) struct CalendarWindow {
    pub(super) limit: i128,
    pub(super) period: CalendarPeriod,
    pub(super) zone: &'static str,
}

#[derive(Clone, Copy)]
struct Window {
    opened: i128,
    used: i128,
    end: i128,
    /// How much of what is used it pays, and each of those after it.
    pays: i128,
}

/// A walk through a zone.
struct Walk {
    zone: TimeZone,
    /// Up to here, in seconds.
    until: i64,
    /// The day of the latest quarter.
    day: Date,
    /// The label of the latest day, week, month and year so far.
    latest: [i64; 4],
    /// When they began, in microseconds.
    starts: [Vec<i128>; 4],
}

static WALKS: LazyLock<Mutex<HashMap<&'static str, Walk>>> = LazyLock::new(Mutex::default);

/// Returns the start of the window that a time belongs to, and so many starts after that.
pub(crate) fn starts(zone: &'static str, period: CalendarPeriod, at: i128, after: usize) -> Vec<i128> {
    let mut walks = WALKS.lock().unwrap_or_else(PoisonError::into_inner);
    let walk = walks.entry(zone).or_insert_with(|| Walk {
        zone: TimeZone::get(zone).expect("the zone exists"),
        until: BEGIN,
        day: Date::ZERO,
        latest: [i64::MIN; 4],
        starts: Default::default(),
    });
    let index = match period {
        CalendarPeriod::Day => 0,
        CalendarPeriod::Week => 1,
        CalendarPeriod::Month => 2,
        _ => 3,
    };
    loop {
        let starts = &walk.starts[index];
        let begun = starts.partition_point(|start| *start <= at);
        if begun > 0 && starts.len() > begun + after {
            return starts[begun - 1..begun + after].to_vec();
        }
        walk.enter_next_day();
    }
}

impl Walk {
    /// Clocks may be set back over a midnight, which begins nothing again.
    fn enter_next_day(&mut self) {
        let (second, day) = loop {
            let second = self.until;
            let day = self.zone.to_datetime(Timestamp::from_second(second).unwrap()).date();
            self.until += QUARTER;
            if day != self.day {
                break (second, day);
            }
        };
        self.day = day;
        let monday = day.saturating_sub(jiff::Span::new().days(day.weekday().to_monday_zero_offset()));
        let label =
            |day: Date| i64::from(day.year()) * 10_000 + i64::from(day.month()) * 100 + i64::from(day.day());
        let labels = [label(day), label(monday), label(day.first_of_month()), day.year().into()];
        for ((label, latest), starts) in labels.into_iter().zip(&mut self.latest).zip(&mut self.starts) {
            if label > *latest {
                *latest = label;
                starts.push(i128::from(second) * 1_000_000);
            }
        }
    }
}

impl Algorithm for CalendarWindow {
    fn limit(&self) -> i128 {
        self.limit
    }

    fn verdict(&self, history: &[Event], now: i128, cost: i128, _max_wait: i128) -> Verdict {
        let window = self.current(self.last(history), now);
        let admitted = cost == 0 || window.used + cost <= self.limit;
        let after = if admitted { window.used + cost } else { window.used };
        let owed = (window.used - window.pays).max(0);
        let until_paid = |permits: i128| {
            let windows = ceil(permits.max(0), window.pays.max(1));
            (0..windows).fold(window.end, |end, _| self.next(end)) - now
        };
        let lacks = if owed > 0 { owed + cost - self.limit } else { 0 };
        Verdict {
            admitted,
            wait: 0,
            limit: self.limit,
            remaining: (self.limit - after).max(0),
            retry_after: (!admitted && cost <= self.limit).then(|| until_paid(lacks)),
            reset_after: match after {
                0 => 0,
                _ if admitted && cost > 0 => window.end - now,
                _ => until_paid(owed),
            },
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
        let window = self.last(history).and_then(|window| self.paid(window, now));
        let window = window.filter(|it| receipt.is_none_or(|receipt| receipt == Receipt::Window(it.opened)));
        let amount = window.map_or(0, |window| cost.min(window.used));
        if amount == 0 {
            return Vec::new();
        }
        let CalendarWindow { limit, period, zone } = *self;
        // A window that pays for one before it is a window of this zone from now on.
        let pays = self.last(history).is_some_and(|last| last.end <= now);
        let policy = Policy::Calendar { limit, period, zone };
        let paying = pays.then_some(Event::Repaired { at: now, policy });
        let credited = Event::Credited { at: now, amount, stamp: None };
        paying.into_iter().chain([credited]).collect()
    }

    fn is_in_the_future(&self, history: &[Event], now: i128) -> bool {
        self.last(history).is_some_and(|window| window.opened > now)
    }

    fn end(&self, history: &[Event]) -> Option<i128> {
        self.last(history).map(|Window { used, end, pays, .. }| {
            match ceil((used - pays).max(0), pays.max(1)) {
                0 => end + self.blur(),
                windows => end + windows * self.average() + SLACK,
            }
        })
    }

    fn has_expired(&self, history: &[Event], now: i128) -> bool {
        self.verdict(history, now, 0, 0).reset_after == 0
    }
}

impl CalendarWindow {
    fn starts(&self, at: i128, after: usize) -> Vec<i128> {
        starts(self.zone, self.period, at, after)
    }

    /// Returns the end of the window after one that ends then: what begins soon after that is the same boundary, of another zone.
    fn next(&self, end: i128) -> i128 {
        self.starts(end + self.blur(), 1)[1]
    }

    fn blur(&self) -> i128 {
        if self.period == CalendarPeriod::Day { DAY / 2 } else { DAY * 9 / 8 }
    }

    fn average(&self) -> i128 {
        let days_of_400_years = 146_097 * DAY;
        match self.period {
            CalendarPeriod::Day => DAY,
            CalendarPeriod::Week => 7 * DAY,
            CalendarPeriod::Month => days_of_400_years / 4_800,
            _ => days_of_400_years / 400,
        }
    }

    /// Returns the window that is open at `now`: the last one, one that pays what it has left, the last one moved to now if it lies in
    /// the future, or a new one.
    fn current(&self, last: Option<Window>, now: i128) -> Window {
        let last = last.filter(|last| last.used > 0);
        match last.and_then(|window| self.paid(window, now)) {
            Some(window) if window.opened <= now => window,
            window => {
                let (used, pays) = window.map_or((0, 0), |window| (window.used, window.pays));
                let end = last.filter(|last| last.end <= now && now < last.end + self.blur());
                let end = end.map_or_else(|| self.starts(now, 1)[1], |last| self.next(last.end));
                Window { opened: now, used, end, pays }
            }
        }
    }

    /// Lets each window that is over pay its part, and returns the one of now if it has to pay the rest.
    fn paid(&self, mut window: Window, now: i128) -> Option<Window> {
        while window.used > 0 && now >= window.end {
            let end = self.next(window.end);
            // Windows begin where the calendar has them.
            let opened = self.starts(end - 1, 0)[0].max(window.end).min(now);
            window = Window { opened, used: window.used - window.pays, end, pays: window.pays };
        }
        (window.used > 0).then_some(window)
    }

    /// Windows begin where the policy of each call has them.
    fn last(&self, history: &[Event]) -> Option<Window> {
        let mut last: Option<Window> = None;
        for event in history {
            last = match event {
                Event::Charged { at, cost, policy, .. } => {
                    let own = of(*policy);
                    let window = own.current(last, *at);
                    Some(Window { used: window.used + cost, pays: window.pays.max(own.limit), ..window })
                }
                Event::Debited { at, cost, policy } => {
                    let own = of(*policy);
                    let window = own.current(last, *at);
                    let windows = 1 + longest_debt(own.average()) / own.average();
                    let most = (windows * own.limit).min(MOST_USED).max(window.used);
                    let used = (window.used + cost).min(most);
                    Some(Window { used, pays: window.pays.max(own.limit), ..window })
                }
                Event::Repaired { at, policy } => Some(of(*policy).current(last, *at)),
                Event::Credited { at, amount, .. } => {
                    let window = last.and_then(|window| self.paid(window, *at)).expect("a charge was made");
                    Some(Window { used: window.used - amount, ..window })
                }
                _ => unreachable!("only buckets undo"),
            };
        }
        last
    }
}

fn of(policy: Policy) -> CalendarWindow {
    match policy {
        Policy::Calendar { limit, period, zone } => CalendarWindow { limit, period, zone },
        _ => unreachable!("the key has no other policies"),
    }
}
