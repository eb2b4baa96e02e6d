//! Without the feature `calendar`, there is no calendar.

use std::convert::Infallible;

use ratelimit_syntax::CALENDAR_PERIODS;

use super::invalid_policy::InvalidPolicy;

const NEEDS_FEATURE: &str = "is a calendar window, which needs the feature `calendar`; write features = [\"calendar\"] beside `ratelimits` in Cargo.toml";

/// The windows of a calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Calendar(Infallible);

/// How long a window lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CalendarPeriod(Infallible);

/// A time zone, of which there is no calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zone(());

impl CalendarPeriod {
    /// Tells those who write one what is missing.
    pub(crate) const fn of_attribute(_name: &str) -> Result<Self, &'static str> {
        Err(NEEDS_FEATURE)
    }

    /// Tells those who write one what is missing.
    pub(crate) fn named(name: &str) -> Result<Option<Self>, InvalidPolicy> {
        if CALENDAR_PERIODS.contains(&name) {
            Err(InvalidPolicy::new("period", NEEDS_FEATURE))
        } else {
            Ok(None)
        }
    }
}

impl Calendar {
    pub(crate) const fn new(period: CalendarPeriod, _zone: Zone) -> Self {
        match period.0 {}
    }

    pub(crate) fn with_period(self, _period: CalendarPeriod) -> Self {
        match self.0 {}
    }

    pub(crate) fn in_zone(self, _zone: Zone) -> Self {
        match self.0 {}
    }

    pub(crate) fn check_zone(self) -> Result<(), InvalidPolicy> {
        match self.0 {}
    }

    pub(crate) fn zone_name(self) -> &'static str {
        match self.0 {}
    }

    pub(crate) fn ahead(self) -> i64 {
        match self.0 {}
    }

    pub(crate) fn window(self, _now: u64) -> [u64; 2] {
        match self.0 {}
    }

    #[cfg(feature = "redis")]
    pub(crate) fn around(self, _time: u64) -> [u64; 4] {
        match self.0 {}
    }

    pub(crate) const fn blur(self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn after(self, _end: u64, _windows: u64, _ahead: i64) -> u64 {
        match self.0 {}
    }

    pub(crate) const fn average(self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn period_name(self) -> &'static str {
        match self.0 {}
    }
}

impl Zone {
    /// Coordinated Universal Time.
    pub const UTC: Zone = Zone(());

    pub(crate) const fn unchecked(_name: &'static str) -> Self {
        Zone::UTC
    }

    /// There is no calendar that would have it.
    pub(crate) fn named(_name: &str) -> Result<Self, InvalidPolicy> {
        Ok(Zone::UTC)
    }
}
