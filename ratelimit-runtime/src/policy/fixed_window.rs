//! Fixed window.

use std::time::Duration;

use super::numbers::{checked_count, checked_period, is_valid, tri};
use crate::algorithm::AlgorithmSpec;
use crate::algorithm::calendar_window::CalendarWindowSpec;
use crate::algorithm::fixed_window::FixedWindowSpec;
use crate::base::calendar::{Calendar, CalendarPeriod, Zone};
use crate::base::invalid_policy::InvalidPolicy;

/// Fixed window: admits at most `limit` permits per window.
///
/// A key's first call opens a window of length `period`, and the first call after its end opens the next one. With
/// [`aligned`](Self::aligned), windows start at multiples of the period instead. With the feature `calendar` they can
/// be days, weeks, months or years of a time zone.
///
/// Up to twice the limit can be admitted within a short time across the boundary of two windows. If that matters, use
/// [`SlidingWindow`](crate::SlidingWindow).
///
/// A window keeps its count when the limit changes.
///
/// ```
/// use std::time::Duration;
/// use ratelimits::FixedWindow;
///
/// const DAILY: FixedWindow = FixedWindow::new(1000, Duration::from_secs(86_400)).aligned();
/// const _: () = assert!(DAILY.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindow {
    pub(super) limit: u64,
    pub(super) windows: Windows,
}

/// When windows begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Windows {
    /// From a key's first call.
    Opened(Duration),
    /// From multiples of the period.
    Aligned(Duration),
    Calendar(Calendar),
}

impl FixedWindow {
    /// Creates a policy that admits at most `limit` permits per window of length `period`.
    #[must_use]
    pub const fn new(limit: u64, period: Duration) -> Self {
        FixedWindow { limit, windows: Windows::Opened(period) }
    }

    /// Creates a policy that admits at most `limit` permits per day, week, month or year, in UTC unless [`zone`](Self::zone) sets
    /// another time zone.
    ///
    /// A window begins at the first instant of its first day, weeks begin on Mondays, and a day that the zone skips has no window. In
    /// Redis the server's clock counts, in process that of the system; with the feature `test-util` the first decision of a registry
    /// is at the beginning of 1970. A window that is open keeps its end, even if the rules of the zone change meanwhile.
    ///
    /// ```
    /// use ratelimits::{CalendarPeriod, FixedWindow, Registry};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let monthly = FixedWindow::calendar(10_000, CalendarPeriod::Month).zone("Europe/Berlin")?;
    /// let exports = Registry::in_memory().limiter("exports", monthly)?;
    /// assert_eq!(exports.try_acquire("acme").await?.remaining, 9_999);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "calendar")]
    #[cfg_attr(docsrs, doc(cfg(feature = "calendar")))]
    #[must_use]
    pub const fn calendar(limit: u64, period: CalendarPeriod) -> Self {
        FixedWindow::of_calendar(limit, Calendar::new(period, Zone::UTC))
    }

    /// Sets the time zone of the calendar, by its name, such as `Europe/Berlin`. If another zone is set later, the window that is open
    /// keeps its end.
    ///
    /// # Errors
    ///
    /// Fails if there is no time zone of this name, and names the closest one, or if windows are not those of a calendar.
    #[cfg(feature = "calendar")]
    #[cfg_attr(docsrs, doc(cfg(feature = "calendar")))]
    pub fn zone(self, name: &str) -> Result<Self, InvalidPolicy> {
        self.in_zone(Zone::named(name)?)
    }

    /// Starts windows at multiples of the period since the Unix epoch, in UTC, so that a window of one day starts at
    /// midnight. Windows of a calendar stay as they are.
    ///
    /// In process the system time is read once, and later adjustments of it are ignored. With the feature `test-util` the
    /// first decision of a registry is at time 0.
    #[must_use]
    pub const fn aligned(mut self) -> Self {
        if let Windows::Opened(period) = self.windows {
            self.windows = Windows::Aligned(period);
        }
        self
    }

    /// Checks the numbers of the policy.
    ///
    /// # Errors
    ///
    /// Fails if the limit or the period is zero or too large, or if the period is not a whole number of microseconds.
    pub const fn check(&self) -> Result<(), InvalidPolicy> {
        is_valid(self.spec())
    }

    pub(super) const fn spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        let limit = tri!(checked_count(self.limit, "limit"));
        let (period, aligned) = match self.windows {
            Windows::Opened(period) => (period, false),
            Windows::Aligned(period) => (period, true),
            Windows::Calendar(calendar) => {
                return Ok(AlgorithmSpec::CalendarWindow(CalendarWindowSpec { limit, calendar }));
            }
        };
        let period = tri!(checked_period(period, "period"));
        Ok(AlgorithmSpec::FixedWindow(FixedWindowSpec { limit, period, aligned }))
    }

    pub(crate) const fn of_calendar(limit: u64, calendar: Calendar) -> Self {
        FixedWindow { limit, windows: Windows::Calendar(calendar) }
    }

    /// Lets windows last so long.
    pub(super) fn set_period(&mut self, period: Duration) {
        self.windows = match self.windows {
            Windows::Opened(_) | Windows::Calendar(_) => Windows::Opened(period),
            Windows::Aligned(_) => Windows::Aligned(period),
        };
    }

    /// Turns windows into those of a calendar, in UTC, or changes how long they last.
    pub(super) fn set_calendar(&mut self, period: CalendarPeriod) -> Result<(), InvalidPolicy> {
        self.windows = match self.windows {
            Windows::Opened(_) => Windows::Calendar(Calendar::new(period, Zone::UTC)),
            Windows::Aligned(_) => return Err(InvalidPolicy::new("aligned", ALIGNED_CALENDAR)),
            Windows::Calendar(calendar) => Windows::Calendar(calendar.with_period(period)),
        };
        Ok(())
    }

    /// Returns the same windows in another zone.
    pub(super) fn in_zone(mut self, zone: Zone) -> Result<Self, InvalidPolicy> {
        match &mut self.windows {
            Windows::Calendar(calendar) => *calendar = calendar.in_zone(zone),
            Windows::Opened(_) | Windows::Aligned(_) => return Err(InvalidPolicy::new("zone", NO_CALENDAR)),
        }
        Ok(self)
    }

    /// Checks that there is the zone of the calendar, if that was not known before.
    pub(crate) fn check_zone(&self) -> Result<(), InvalidPolicy> {
        match self.windows {
            Windows::Calendar(calendar) => calendar.check_zone(),
            Windows::Opened(_) | Windows::Aligned(_) => Ok(()),
        }
    }
}

const ALIGNED_CALENDAR: &str = "has no effect on the windows of a calendar; leave it out";

const NO_CALENDAR: &str = "belongs to the windows of a calendar; write period = \"month\", for example";
