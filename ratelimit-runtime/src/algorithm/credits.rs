//! A bucket's running total of refunds. The difference of two totals says how much was refunded in between.

/// Totals wrap here. No charge stays refundable for long enough that a difference could be ambiguous.
pub(super) const CREDITS_WRAP: u64 = 1 << 50;

/// Returns what was refunded between two totals.
pub(super) fn since(then: u64, credited: u64) -> u64 {
    (credited + CREDITS_WRAP - then) % CREDITS_WRAP
}
