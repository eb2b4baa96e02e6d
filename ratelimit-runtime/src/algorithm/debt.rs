//! Debts: what calls have used beyond their costs, which a key pays off before it admits others.

use crate::base::bounds::MAX_PERIOD_MICROS;

const DAY: u64 = 86_400 * 1_000_000;

/// Returns how long the debt of a policy lasts at most that recovers in this time, in microseconds: ten times as long, and at least
/// a day, so that a figure out of all proportion does not block a key for years.
pub(super) fn longest_debt(recovery: u64) -> u64 {
    // Calls may wait for a bucket as long again, and all that is below 2^53.
    recovery.saturating_mul(10).clamp(DAY, 2 * MAX_PERIOD_MICROS)
}
