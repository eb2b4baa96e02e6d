//! The bounds of all numbers: with these, all arithmetic stays below 2^53.

use std::time::Duration;

/// No policy remembers for longer, and no count is higher: with these, every sum stays below 2^53, up to which a Redis
/// script is exact.
pub(crate) const LONGEST: Duration = Duration::from_secs(3650 * 86_400);
pub(crate) const LONGEST_MICROS: u64 = LONGEST.as_micros() as u64;
pub(crate) const MOST: u64 = 1_000_000_000_000;

pub(crate) const TOO_MANY: &str = "is too large; the most is 1000000000000 (10^12)";
