//! The bounds of all numbers. Within them every sum stays below 2^53, up to which Lua numbers are exact.

use std::time::Duration;

/// The longest time that a policy covers.
pub(crate) const MAX_PERIOD: Duration = Duration::from_secs(3650 * 86_400);
pub(crate) const MAX_PERIOD_MICROS: u64 = MAX_PERIOD.as_micros() as u64;

/// The highest count of permits.
pub(crate) const MAX_PERMITS: u64 = 1_000_000_000_000;

pub(crate) const TOO_MANY: &str = "is too large; the maximum is 1000000000000 (10^12)";
