//! What a check reads and what it decides.

use std::time::Duration;

/// What a check has read, in the order of the Lua twin's reply. Unused elements are 0.
///
/// If the numbers of a policy can change, the last two are when the call would be admitted without waiting, and when the
/// state expires.
pub type Snapshot = [u64; 5];

/// A time that is unknown.
pub const UNKNOWN: u64 = u64::MAX;

/// The same of a call that gets its permits before any other that waits.
pub const UNKNOWN_BUT_NEXT: u64 = UNKNOWN - 1;

/// Returns a time in microseconds, if it is known.
#[inline(always)]
pub(crate) fn known(micros: Option<u64>) -> Option<Duration> {
    micros.filter(|micros| *micros < UNKNOWN_BUT_NEXT).map(Duration::from_micros)
}

/// The decision of one spec about one call. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the spec admits the call.
    pub admitted: bool,
    /// How long an admitted call has to wait for its slot. It is charged at once.
    pub wait: u64,
    /// The burst, capacity or limit, in permits.
    pub limit: u64,
    /// The whole permits a call would get now: after this call if it is charged, otherwise before it.
    pub remaining: u64,
    /// The time until the same call would be admitted without waiting, or for a queue, until it would get a slot. `None` if
    /// it is admitted or never can be, [`UNKNOWN`] or [`UNKNOWN_BUT_NEXT`] if that depends on when other calls end.
    pub retry_after: Option<u64>,
    /// The time until the state expires: after this call if it is charged.
    pub reset_after: u64,
    /// Identifies the charge for a refund.
    pub charge_id: ChargeId,
}

/// Identifies a charge, so that a refund returns the part of it that still counts, and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargeId {
    /// When the bucket would be full after the charge (GCRA), the last refill before it (interval refill), or its own time
    /// if the refill can change, when the next call may start after it (warm-up), or the first charge of its window or
    /// sub-window.
    pub at: u64,
    /// The permits missing right after the charge (interval refill), the bits of the `f64` of permits stored before it
    /// (warm-up), the time of the charge, later than all at other rates (GCRA with numbers that can change), or the end of its
    /// window (calendar).
    pub level: u64,
    /// The bucket's running total of refunds before the charge.
    pub credited: u64,
}
