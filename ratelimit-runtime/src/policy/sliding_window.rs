//! Sliding window.

use std::time::Duration;

use super::numbers::{checked_count, checked_period, is_valid, tri};
use crate::algorithm::AlgorithmSpec;
use crate::algorithm::sliding_window::SlidingWindowSpec;
use crate::base::invalid_policy::InvalidPolicy;

/// The maximum limit of an exact log, which stores an entry per charge.
const MAX_LOG: u64 = 10_000;

/// Sliding window: admits at most `limit` permits in every interval of length `period`, wherever the interval starts.
///
/// By default this is an exact log, which stores an entry per charge and requires a `limit` of at most 10,000. With a
/// [`precision`](Self::precision) it is a counter of sub-windows, which stores one number per sub-window. The counter counts
/// its oldest sub-window as a whole until all of it has left the interval, so it may refuse calls for up to one `precision`
/// longer than the log.
///
/// A window keeps its count when the limit changes.
///
/// ```
/// use std::time::Duration;
/// use ratelimits::SlidingWindow;
///
/// const MINUTE: Duration = Duration::from_secs(60);
/// const LOG: SlidingWindow = SlidingWindow::new(100, MINUTE);
/// const COUNTER: SlidingWindow = SlidingWindow::new(50_000, MINUTE).precision(Duration::from_secs(1));
/// const _: () = assert!(LOG.check().is_ok() && COUNTER.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindow {
    pub(super) limit: u64,
    pub(super) period: Duration,
    pub(super) precision: Option<Duration>,
}

impl SlidingWindow {
    /// Creates a policy that admits at most `limit` permits in every interval of length `period`.
    #[must_use]
    pub const fn new(limit: u64, period: Duration) -> Self {
        SlidingWindow { limit, period, precision: None }
    }

    /// Counts by sub-windows of this length, which must divide the period into 2 to 1,000 parts. Sub-windows start at multiples
    /// of the precision since the Unix epoch.
    #[must_use]
    pub const fn precision(mut self, precision: Duration) -> Self {
        self.precision = Some(precision);
        self
    }

    /// Checks the numbers of the policy.
    ///
    /// # Errors
    ///
    /// Fails if the limit or the period is zero or too large, if the period or the precision is not a whole number of
    /// microseconds, if the limit of a log is above 10,000, or if the precision does not divide the period into 2 to 1,000
    /// parts.
    pub const fn check(&self) -> Result<(), InvalidPolicy> {
        is_valid(self.spec())
    }

    pub(super) const fn spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        let limit = tri!(checked_count(self.limit, "limit"));
        let period = tri!(checked_period(self.period, "period"));
        let precision = match self.precision {
            None if limit > MAX_LOG => {
                return Err(InvalidPolicy::new(
                    "limit",
                    "is over 10000, the maximum for an exact log; add a `precision` that divides the period into 2 to 1000 \
                     parts, like \"1s\" for \"1m\"",
                ));
            }
            None => 0,
            Some(precision) => tri!(checked_period(precision, "precision")),
        };
        if precision > 0 && (period % precision != 0 || period / precision < 2 || period / precision > 1000) {
            return Err(InvalidPolicy::new(
                "precision",
                "does not divide the period into 2 to 1000 parts; write a 60th of it, for example: \"1s\" for \"1m\"",
            ));
        }
        Ok(AlgorithmSpec::SlidingWindow(SlidingWindowSpec { limit, period, precision }))
    }
}
