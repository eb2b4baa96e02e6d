//! Fixed window.

use std::time::Duration;

use super::numbers::{checked_count, checked_period, is_valid, tri};
use crate::algorithm::AlgorithmSpec;
use crate::algorithm::fixed_window::FixedWindowSpec;
use crate::base::invalid_policy::InvalidPolicy;

/// Fixed window: admits at most `limit` permits per window.
///
/// A key's first call opens a window of length `period`, and the first call after its end opens the next one. With
/// [`aligned`](Self::aligned), windows start at multiples of the period instead.
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
    pub(super) period: Duration,
    pub(super) aligned: bool,
}

impl FixedWindow {
    /// Creates a policy that admits at most `limit` permits per window of length `period`.
    #[must_use]
    pub const fn new(limit: u64, period: Duration) -> Self {
        FixedWindow { limit, period, aligned: false }
    }

    /// Starts windows at multiples of the period since the Unix epoch, in UTC, so that a window of one day starts at
    /// midnight.
    ///
    /// In process the system time is read once, and later adjustments of it are ignored. With the feature `test-util` the
    /// first decision of a registry is at time 0.
    #[must_use]
    pub const fn aligned(mut self) -> Self {
        self.aligned = true;
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
        let period = tri!(checked_period(self.period, "period"));
        Ok(AlgorithmSpec::FixedWindow(FixedWindowSpec { limit, period, aligned: self.aligned }))
    }
}
