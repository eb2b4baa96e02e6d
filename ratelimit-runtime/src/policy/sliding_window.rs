//! Sliding window.

use std::time::Duration;

use super::Policy;
use super::numbers::{checked_count, checked_period};
use crate::algorithm::AlgorithmSpec;
use crate::algorithm::sliding_window::SlidingWindowSpec;
use crate::error::invalid_policy::InvalidPolicy;

/// An exact log keeps an entry a charge.
const LONGEST_LOG: u64 = 10_000;

/// Sliding window: at most `limit` permits in every interval of length `period`, wherever it begins.
///
/// By default an exact log of the charges, which keeps an entry a charge (`limit` at most 10,000). With a
/// [`precision`](Self::precision) it counts by sub-windows instead, in the space of one number each, and may refuse up to
/// one `precision` longer than the log, because it counts its oldest, partly left sub-window whole.
///
/// The window keeps its count when the limit changes.
///
/// ```
/// use std::time::Duration;
/// use ratelimits::SlidingWindow;
///
/// const EXACT: SlidingWindow = SlidingWindow::new(100, Duration::from_secs(60));
/// const LARGE: SlidingWindow = SlidingWindow::new(50_000, Duration::from_secs(60)).precision(Duration::from_secs(1));
/// const _: () = assert!(EXACT.check().is_ok() && LARGE.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindow {
    limit: u64,
    period: Duration,
    precision: Option<Duration>,
}

impl SlidingWindow {
    /// At most `limit` permits in every interval of length `period`.
    #[must_use]
    pub const fn new(limit: u64, period: Duration) -> Self {
        SlidingWindow { limit, period, precision: None }
    }

    /// Counts by sub-windows of this length, which divides the period into 2 to 1,000.
    #[must_use]
    pub const fn precision(mut self, precision: Duration) -> Self {
        self.precision = Some(precision);
        self
    }

    /// Whether the numbers make sense.
    ///
    /// # Errors
    ///
    /// If the limit or the period is zero or out of range, a log is longer than 10,000, or the precision does not divide
    /// the period into 2 to 1,000.
    pub const fn check(&self) -> Result<(), InvalidPolicy> {
        Policy::SlidingWindow(*self).check()
    }

    pub(super) const fn spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        let limit = match checked_count(self.limit, "limit") {
            Ok(limit) => limit,
            Err(invalid) => return Err(invalid),
        };
        let period = match checked_period(self.period, "period") {
            Ok(period) => period,
            Err(invalid) => return Err(invalid),
        };
        let precision = match self.precision {
            None if limit > LONGEST_LOG => {
                return Err(InvalidPolicy::new(
                    "limit",
                    "is over 10000, the longest exact log; add a `precision` that divides the period into 2 to 1000, like \"1s\" of \"1m\"",
                ));
            }
            None => 0,
            Some(precision) => match checked_period(precision, "precision") {
                Ok(precision) => precision,
                Err(invalid) => return Err(invalid),
            },
        };
        if precision > 0 && (period % precision != 0 || period / precision < 2 || period / precision > 1000) {
            return Err(InvalidPolicy::new(
                "precision",
                "does not divide the period into 2 to 1000; a 60th is good: \"1s\" of \"1m\"",
            ));
        }
        Ok(AlgorithmSpec::SlidingWindow(SlidingWindowSpec { limit, period, precision }))
    }
}
