//! A plain state, and how it is packed into two numbers.

use crate::algorithm::AlgorithmSpec;
use crate::algorithm::fixed_window::FixedWindowSpec;
use crate::algorithm::holds::FOREVER;
use crate::algorithm::state::{AdjustableGcraState, FixedWindowState, GcraState, State};

/// A plain state. A bucket that is full at 0 is no state, nor is a fixed window without permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainState {
    /// A bucket, and when it will be full.
    Bucket { full: u64 },
    /// A bucket whose rate can change, when it will be full, and its [`dated_pace`]. If there is none, the number is when it was
    /// written.
    AdjustableBucket { full: u64, number: u64 },
    /// A window, its end, and the permits charged to it. If windows are aligned, the number is [`opened`] as well. Without permits, the
    /// end is when the next window may open.
    Window { end: u64, number: u64 },
}

impl PlainState {
    /// Returns the plain state that is equal to this one, if there is one.
    pub(crate) fn of(state: &State, spec: &AlgorithmSpec) -> Option<Self> {
        match (state, spec) {
            (State::Gcra(bucket), _) => bucket.plain().map(|full| PlainState::Bucket { full }),
            (State::AdjustableGcra(bucket), _) => {
                let (full, written, pace) = bucket.plain()?;
                adjustable_state(full, written, pace)
            }
            (
                State::FixedWindow(FixedWindowState { opened, count, owed: 0, .. }),
                AlgorithmSpec::FixedWindow(FixedWindowSpec { period, aligned, .. }),
            ) if *aligned => aligned_state(*opened, *count, *period),
            (State::FixedWindow(FixedWindowState { count, owed: 0, .. }), AlgorithmSpec::Holds(holds)) => {
                Some(PlainState::Window { end: holds.ends(state), number: *count })
            }
            (
                State::FixedWindow(FixedWindowState { opened, count, owed: 0, .. }),
                AlgorithmSpec::FixedWindow(FixedWindowSpec { period, .. }),
            ) => Some(PlainState::Window { end: opened + period, number: *count }),
            _ => None,
        }
    }

    /// Returns the state, of a key with this spec, if it is one.
    pub(crate) fn state(self, spec: &AlgorithmSpec) -> Option<State> {
        let (opened, count) = match (self, spec) {
            (PlainState::Bucket { full: 0 } | PlainState::AdjustableBucket { full: 0, .. }, _) => {
                return None;
            }
            (PlainState::Window { end, number: 0 }, AlgorithmSpec::Holds(_)) => (end, 0),
            (PlainState::Window { number: 0, .. }, _) => return None,
            (PlainState::Bucket { full }, _) => {
                return Some(State::Gcra(GcraState { tat: full, ..GcraState::default() }));
            }
            (PlainState::AdjustableBucket { full, number }, _) => {
                let (written, pace) = dated_pace(full, number);
                return Some(State::AdjustableGcra(Box::new(AdjustableGcraState::of_plain(
                    full, written, pace,
                ))));
            }
            (PlainState::Window { end, number }, AlgorithmSpec::FixedWindow(window))
                if window.aligned && is_aligned(end, window.period) =>
            {
                opened(end, number, window.period)
            }
            (PlainState::Window { end, number }, AlgorithmSpec::FixedWindow(window)) => {
                (end.saturating_sub(window.period), number)
            }
            (PlainState::Window { end, number }, AlgorithmSpec::Holds(_)) => {
                (end.saturating_sub(FOREVER), number)
            }
            (PlainState::Window { end, number }, _) => (end, number),
        };
        Some(State::FixedWindow(FixedWindowState::of_plain(opened, count)))
    }
}

/// The longest interval of a bucket whose rate can change, and how long before it is full such a bucket can be written.
pub(super) const MAX_PACE: u64 = (1 << PACE_BITS) - 1;
const PACE_BITS: u32 = 28;
pub(super) const MAX_LEAD: u64 = u64::MAX >> PACE_BITS;

/// Returns a bucket whose rate can change, which was written then, with the microseconds in which one permit refills, unless these
/// are too large for one number.
#[inline]
pub(super) fn adjustable_state(full: u64, written: u64, pace: u64) -> Option<PlainState> {
    let lead = full.checked_sub(written).filter(|lead| *lead <= MAX_LEAD && pace <= MAX_PACE)?;
    Some(PlainState::AdjustableBucket { full, number: lead << PACE_BITS | pace })
}

/// Returns when a bucket was written that is full then, and the microseconds in which one permit refills.
#[inline]
pub(crate) fn dated_pace(full: u64, number: u64) -> (u64, u64) {
    (full.saturating_sub(number >> PACE_BITS), number & MAX_PACE)
}

/// Returns an aligned window that was opened at this time, unless that and the count are too large for one number.
pub(super) fn aligned_state(opened: u64, count: u64, period: u64) -> Option<PlainState> {
    let (since, bits) = (opened % period, count_bits(period));
    let number = since << bits | count;
    (count >> bits == 0).then_some(PlainState::Window { end: opened - since + period, number })
}

/// Returns an aligned window after another charge, unless its count becomes too large.
#[inline]
pub(super) fn charged_aligned(end: u64, number: u64, cost: u64, period: u64) -> Option<PlainState> {
    let (_, count) = opened(end, number, period);
    let fits = (count + cost) >> count_bits(period) == 0;
    fits.then_some(PlainState::Window { end, number: number + cost })
}

/// Whether a window that ends then may be an aligned one. The share of a limit that is smaller than the number of processes is none, under
/// the same key.
pub(super) fn is_aligned(end: u64, period: u64) -> bool {
    is_multiple(end, period) || end.is_multiple_of(period)
}

/// Whether a number is a multiple of another. May say no of a number above 2^53. Many processors divide doubles several times as fast as
/// integers; the quotient may be rounded, but the product is exact.
#[inline]
fn is_multiple(number: u64, of: u64) -> bool {
    let times = (number as f64 / of as f64) as u64;
    times.checked_mul(of) == Some(number)
}

/// Returns when an aligned window was opened, and its count.
pub(super) fn opened(end: u64, number: u64, period: u64) -> (u64, u64) {
    let bits = count_bits(period);
    (end.saturating_sub(period) + (number >> bits), number & ((1 << bits) - 1))
}

/// Returns the bits of a number for the count of an aligned window. The others say when in the period it was opened.
fn count_bits(period: u64) -> u32 {
    (period - 1).leading_zeros().min(63)
}
