//! Fixed window.

use std::time::Duration;

use super::Policy;
use super::numbers::{checked_count, checked_period};
use crate::algorithm::AlgorithmSpec;
use crate::algorithm::fixed_window::FixedWindowSpec;
use crate::error::invalid_policy::InvalidPolicy;

/// Fixed window: at most `limit` permits from a window's start to its end.
///
/// A key's first call opens its window, and the first call after its end opens the next; or windows are
/// [`aligned`](Self::aligned). Two windows that touch can admit twice the limit around their border: where that hurts, use
/// [`SlidingWindow`](crate::SlidingWindow).
///
/// The window keeps its count when the limit changes.
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
    limit: u64,
    period: Duration,
    aligned: bool,
}

impl FixedWindow {
    /// At most `limit` permits in each window of length `period`.
    #[must_use]
    pub const fn new(limit: u64, period: Duration) -> Self {
        FixedWindow { limit, period, aligned: false }
    }

    /// Puts the windows on multiples of the period since the Unix epoch, in UTC: days begin at midnight.
    #[must_use]
    pub const fn aligned(mut self) -> Self {
        self.aligned = true;
        self
    }

    /// Whether the numbers make sense.
    ///
    /// # Errors
    ///
    /// If the limit or the period is zero or out of range, or the period is no whole number of microseconds.
    pub const fn check(&self) -> Result<(), InvalidPolicy> {
        Policy::FixedWindow(*self).check()
    }

    pub(super) const fn spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        let limit = match checked_count(self.limit, "limit") {
            Ok(limit) => limit,
            Err(invalid) => return Err(invalid),
        };
        match checked_period(self.period, "period") {
            Ok(period) => {
                Ok(AlgorithmSpec::FixedWindow(FixedWindowSpec { limit, period, aligned: self.aligned }))
            }
            Err(invalid) => Err(invalid),
        }
    }
}
