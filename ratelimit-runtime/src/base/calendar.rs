//! When the days, weeks, months and years of a time zone begin.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{LazyLock, PoisonError, RwLock};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{self, TimeZone};
use ratelimit_syntax::closest;

use super::clock::ahead;
use super::invalid_policy::InvalidPolicy;

/// The windows of a calendar.
///
/// A window begins at the first instant of its first day in the time zone, and ends when the next one begins. A day that the zone skips
/// has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Calendar {
    pub(crate) period: CalendarPeriod,
    pub(crate) zone: Zone,
}

/// How long a calendar window lasts.
///
/// ```
/// use ratelimits::{CalendarPeriod, FixedWindow};
///
/// let monthly = FixedWindow::calendar(10_000, CalendarPeriod::Month).zone("Europe/Berlin")?;
/// # Ok::<(), ratelimits::error::InvalidPolicy>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CalendarPeriod {
    /// From midnight to midnight.
    Day,
    /// From Monday to Monday.
    Week,
    /// From the 1st to the 1st.
    Month,
    /// From January 1st to January 1st.
    Year,
}

/// A time zone by its name, as in `Europe/Berlin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zone(&'static str);

/// The zones that are in use, by name. There are some hundred at most, so they stay.
static ZONES: LazyLock<RwLock<HashMap<&'static str, &'static TimeZone>>> = LazyLock::new(RwLock::default);

/// The problem with a name that is close to that of a zone. There are as many as zones, so they stay.
static PROBLEMS: LazyLock<RwLock<HashMap<String, &'static str>>> = LazyLock::new(RwLock::default);

const UNKNOWN: &str = "is not the name of a time zone; write one like \"Europe/Berlin\" or \"UTC\"";

const OFFSET: &str = "is an offset, and not the name of a time zone; write one like \"Europe/Berlin\", or \"Etc/GMT-2\" for two hours ahead of UTC";

/// Longer than the names of all zones.
const LONGEST_NAME: usize = 64;

/// Later than all other times.
const FAR: i64 = i64::MAX / 4;

const SECOND: i64 = 1_000_000;
const DAY: u64 = 86_400 * 1_000_000;

impl CalendarPeriod {
    /// All periods.
    pub(crate) const ALL: [CalendarPeriod; 4] =
        [CalendarPeriod::Day, CalendarPeriod::Week, CalendarPeriod::Month, CalendarPeriod::Year];

    /// Returns the name, as attributes have it: `day`, `week`, `month` or `year`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CalendarPeriod::Day => "day",
            CalendarPeriod::Week => "week",
            CalendarPeriod::Month => "month",
            CalendarPeriod::Year => "year",
        }
    }

    /// Returns the period of this name, if it is one.
    pub(crate) fn named(name: &str) -> Result<Option<Self>, InvalidPolicy> {
        Ok(CalendarPeriod::ALL.into_iter().find(|period| period.name() == name))
    }

    /// Returns the period of an attribute.
    pub(crate) const fn of_attribute(name: &str) -> Result<Self, &'static str> {
        match name.as_bytes() {
            b"day" => Ok(CalendarPeriod::Day),
            b"week" => Ok(CalendarPeriod::Week),
            b"month" => Ok(CalendarPeriod::Month),
            _ => Ok(CalendarPeriod::Year),
        }
    }

    /// Returns the average length in microseconds.
    const fn average(self) -> u64 {
        match self {
            CalendarPeriod::Day => DAY,
            CalendarPeriod::Week => 7 * DAY,
            // Of the 400 years in which the calendar repeats itself.
            CalendarPeriod::Month => 146_097 * DAY / 4_800,
            CalendarPeriod::Year => 146_097 * DAY / 400,
        }
    }

    /// Returns the number of the window that a day belongs to.
    fn number(self, day: Date) -> i64 {
        match self {
            CalendarPeriod::Day => days_since_epoch(day),
            // The first day of the epoch was a Thursday.
            CalendarPeriod::Week => (days_since_epoch(day) + 3).div_euclid(7),
            CalendarPeriod::Month => i64::from(day.year()) * 12 + i64::from(day.month()) - 1,
            CalendarPeriod::Year => day.year().into(),
        }
    }

    /// Returns the first day of the window of a number.
    fn first_day(self, number: i64) -> Option<Date> {
        match self {
            CalendarPeriod::Day => day(number),
            CalendarPeriod::Week => day(number * 7 - 3),
            CalendarPeriod::Month => {
                Date::new(number.div_euclid(12).try_into().ok()?, number.rem_euclid(12) as i8 + 1, 1).ok()
            }
            CalendarPeriod::Year => Date::new(number.try_into().ok()?, 1, 1).ok(),
        }
    }
}

impl fmt::Display for CalendarPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Calendar {
    pub(crate) const fn new(period: CalendarPeriod, zone: Zone) -> Self {
        Calendar { period, zone }
    }

    pub(crate) fn with_period(self, period: CalendarPeriod) -> Self {
        Calendar { period, ..self }
    }

    pub(crate) fn in_zone(self, zone: Zone) -> Self {
        Calendar { zone, ..self }
    }

    /// Checks that there is the zone.
    pub(crate) fn check_zone(self) -> Result<(), InvalidPolicy> {
        self.zone.check()
    }

    /// Returns the name of the zone.
    pub(crate) fn zone_name(self) -> &'static str {
        self.zone.name()
    }

    /// Returns the average length of a window in microseconds.
    pub(crate) const fn average(self) -> u64 {
        self.period.average()
    }

    /// Returns the name of the period.
    pub(crate) const fn period_name(self) -> &'static str {
        self.period.name()
    }

    /// Returns by how many microseconds the system's clock, which a calendar goes by, is ahead of this process's.
    pub(crate) fn ahead(self) -> i64 {
        ahead()
    }

    /// Returns the start and end of the window that a time of this process's clock belongs to, by the same clock.
    pub(crate) fn window(self, now: u64) -> [u64; 2] {
        let ahead = ahead();
        let [start, end] = self.window_at(to_signed(now.saturating_add_signed(ahead)));
        [start, end].map(|time| to_unsigned(time - ahead))
    }

    /// Returns the start and end of the window that a time since the Unix epoch belongs to, in microseconds.
    #[must_use]
    pub fn window_of(self, time: u64) -> [u64; 2] {
        self.window_at(to_signed(time)).map(to_unsigned)
    }

    /// Returns four times in a row at which windows begin, of which the second and third are around this one: whoever has another time
    /// finds it between them, unless that differs by a window.
    #[cfg(feature = "redis")]
    pub(crate) fn around(self, time: u64) -> [u64; 4] {
        let [start, end] = self.window_at(to_signed(time));
        [self.window_at(start - 1)[0], start, end, self.window_at(end)[1]].map(to_unsigned)
    }

    /// Returns for how long after the end of a window a boundary is the one at which it has ended: that of another time zone, or of other
    /// data of the zone. For days, it is half of one.
    pub(crate) const fn blur(self) -> u64 {
        match self.period {
            CalendarPeriod::Day => DAY / 2,
            // Clocks of zones differ by 26 hours at most.
            _ => DAY + DAY / 8,
        }
    }

    /// Returns when so many windows more are over, after one that ends then, by a clock that the system's is so far ahead of.
    pub(crate) fn after(self, end: u64, windows: u64, ahead: i64) -> u64 {
        // No debt takes more to pay.
        const MOST: u64 = 100;
        let more = windows.saturating_sub(MOST).saturating_mul(self.average()).min(1 << 60);
        let next = |end: u64| self.window_at(to_signed((end + self.blur()).saturating_add_signed(ahead)))[1];
        (0..windows.min(MOST)).fold(end, |end, _| to_unsigned(next(end) - ahead)) + more
    }

    /// Returns the first instants of the window that a time belongs to and of the next one, in microseconds since the Unix epoch.
    fn window_at(self, time: i64) -> [i64; 2] {
        let zone = self.zone.get();
        let Ok(instant) = Timestamp::from_microsecond(time) else { return [time, FAR] };
        let first_instant =
            |number| match self.period.first_day(number).map(|day| zone.to_timestamp(day.at(0, 0, 0, 0))) {
                Some(Ok(instant)) => instant.as_second() * SECOND,
                // Thousands of years from now.
                _ => i64::MAX / 4,
            };
        let mut number = self.period.number(zone.to_datetime(instant).date());
        let mut start = first_instant(number);
        // Where clocks are set back at midnight, the last hour of a day comes again when the next one has begun.
        while start > time {
            number -= 1;
            start = first_instant(number);
        }
        loop {
            number += 1;
            let end = first_instant(number);
            if end > time {
                return [start, end];
            }
            start = end;
        }
    }
}

impl Zone {
    /// Coordinated Universal Time.
    pub const UTC: Zone = Zone("UTC");

    /// The zone of a name that is checked later, as [`check`](Self::check) does.
    pub(crate) const fn unchecked(name: &'static str) -> Self {
        Zone(name)
    }

    /// Returns the zone of this name, in any case.
    pub(crate) fn named(name: &str) -> Result<Self, InvalidPolicy> {
        let known = |name: &str| {
            ZONES.read().unwrap_or_else(PoisonError::into_inner).get_key_value(name).map(|it| *it.0)
        };
        if let Some(name) = known(name) {
            return Ok(Zone(name));
        }
        // These are no zones of their own.
        if ["localtime", "posixrules", "factory"].contains(&name.to_ascii_lowercase().as_str()) {
            return Err(InvalidPolicy::new("zone", UNKNOWN));
        }
        let zone = tz::db().get(name).map_err(|_| InvalidPolicy::new("zone", problem(name)))?;
        let name = zone.iana_name().ok_or(InvalidPolicy::new("zone", UNKNOWN))?;
        if let Some(name) = known(name) {
            return Ok(Zone(name));
        }
        let name: &'static str = name.to_owned().leak();
        let mut zones = ZONES.write().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Vacant(entry) = zones.entry(name) {
            entry.insert(Box::leak(Box::new(zone)));
        }
        Ok(Zone(name))
    }

    /// Checks that there is such a zone.
    pub(crate) fn check(self) -> Result<(), InvalidPolicy> {
        Zone::named(self.0).map(drop)
    }

    fn name(self) -> &'static str {
        self.0
    }

    fn get(self) -> &'static TimeZone {
        static UTC: TimeZone = TimeZone::UTC;
        let known = |name: &str| ZONES.read().unwrap_or_else(PoisonError::into_inner).get(name).copied();
        // Of a name in another case, the zone is known by its own. Policies with one that does not exist decide no call.
        known(self.0).or_else(|| known(Zone::named(self.0).ok()?.0)).unwrap_or(&UTC)
    }
}

/// Returns what is wrong with the name of a zone.
fn problem(name: &str) -> &'static str {
    if name.len() > LONGEST_NAME {
        return UNKNOWN;
    }
    if is_offset(name) {
        return OFFSET;
    }
    let names: Vec<_> = tz::db().available().map(|name| name.to_string()).collect();
    let Some(closest) = closest(name, names.iter().map(String::as_str)) else { return UNKNOWN };
    let mut problems = PROBLEMS.write().unwrap_or_else(PoisonError::into_inner);
    problems
        .entry(closest.to_owned())
        .or_insert_with(|| format!("is not the name of a time zone; did you mean \"{closest}\"?").leak())
}

/// Returns whether it is like `+02:00` or `UTC+2`.
fn is_offset(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let offset = ["UTC", "GMT"].into_iter().find_map(|utc| name.strip_prefix(utc)).unwrap_or(&name);
    offset.strip_prefix(['+', '-']).is_some_and(|hours| hours.starts_with(|char: char| char.is_ascii_digit()))
}

fn days_since_epoch(day: Date) -> i64 {
    let epoch = Date::constant(1970, 1, 1);
    i64::from((day - epoch).get_days())
}

fn day(number: i64) -> Option<Date> {
    let days = jiff::Span::new().try_days(number).ok()?;
    Date::constant(1970, 1, 1).checked_add(days).ok()
}

/// Returns a time that is no later than any of a store.
fn to_signed(time: u64) -> i64 {
    time.min(1 << 53) as i64
}

/// Returns a time without those before the epoch.
fn to_unsigned(time: i64) -> u64 {
    time.max(0) as u64
}

#[cfg(test)]
mod tests;
