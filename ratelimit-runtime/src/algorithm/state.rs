//! What a key stores, for each algorithm.

use std::collections::VecDeque;
use std::sync::Arc;

use super::lows::Lows;
use super::pause::Pause;

/// The state of a key. A key whose state has expired is equivalent to an absent one.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// The state of a [`GcraSpec`](super::gcra::GcraSpec).
    Gcra(GcraState),
    /// The state of an [`AdjustableGcraSpec`](super::adjustable_gcra::AdjustableGcraSpec).
    AdjustableGcra(Box<AdjustableGcraState>),
    /// The state of a [`SettledGcraSpec`](super::settled_gcra::SettledGcraSpec).
    SettledGcra(Box<SettledGcraState>),
    /// The state of an [`IntervalBucketSpec`](super::interval_bucket::IntervalBucketSpec).
    IntervalBucket(IntervalBucketState),
    /// The state of a [`WarmingUpSpec`](super::warming_up::WarmingUpSpec).
    WarmingUp(WarmingUpState),
    /// The state of a [`FixedWindowSpec`](super::fixed_window::FixedWindowSpec).
    FixedWindow(FixedWindowState),
    /// The state of a [`CalendarWindowSpec`](super::calendar_window::CalendarWindowSpec).
    CalendarWindow(CalendarWindowState),
    /// The state of a [`SlidingWindowSpec`](super::sliding_window::SlidingWindowSpec).
    SlidingWindow(SlidingWindowState),
    /// Any of these, of a key that is paused. In an `Arc`, which drops it by a call: dropping a state is compiled into hot paths, and
    /// dropping one that may contain another could not be.
    Paused(Arc<PausedState>),
}

/// When the bucket will be full again, and what waiting calls and refunds add to that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcraState {
    /// The theoretical arrival time.
    pub(super) tat: u64,
    /// The running total of refunds of charges that were not the last one.
    pub(super) credited: u64,
    /// When the last charge made before such a refund stops being refundable.
    pub(super) until: u64,
    /// The last slot that a call waits for, or slightly later; 0 if there is none.
    pub(super) slot: u64,
    /// When the state was written. `None` if the arrival time is within capacity and the other fields are 0.
    pub(super) written: Option<u64>,
}

impl GcraState {
    /// Returns when the bucket will be full, if that is all there is to it.
    pub(super) fn plain(&self) -> Option<u64> {
        (*self == GcraState { tat: self.tat, ..GcraState::default() }).then_some(self.tat)
    }
}

/// As [`GcraState`], with the rate that its times depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AdjustableGcraState {
    pub(super) tat: u64,
    pub(super) written: u64,
    pub(super) credited: u64,
    /// When the last charge made before such a refund, or at another rate, stops being refundable.
    pub(super) until: u64,
    pub(super) slot: u64,
    /// When the first charge at this rate was made, while one at another rate is refundable.
    pub(super) changed: u64,
    /// The microseconds in which one permit refills.
    pub(super) pace: f64,
}

impl AdjustableGcraState {
    /// Returns when the bucket will be full, when it was written, and its pace, if that is all there is to it.
    pub(super) fn plain(&self) -> Option<(u64, u64, u64)> {
        let AdjustableGcraState { tat, written, pace, .. } = *self;
        let is_plain = *self == Self::of_plain(tat, written, pace as u64);
        is_plain.then_some((tat, written, pace as u64))
    }

    pub(super) fn of_plain(tat: u64, written: u64, pace: u64) -> Self {
        AdjustableGcraState { tat, written, pace: pace as f64, ..Self::default() }
    }
}

/// When the bucket will be full again, at which rate, and what it has lacked since its charges.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SettledGcraState {
    pub(super) tat: u64,
    pub(super) written: u64,
    /// As in [`GcraState`].
    pub(super) slot: u64,
    /// As in [`AdjustableGcraState`].
    pub(super) pace: f64,
    /// When the last charge was made, later than all before it, even those of the same microsecond.
    pub(super) made: u64,
    /// What has been missing since charges before that.
    pub(super) lows: Lows,
}

/// The time of a refill, and the permits missing right after it. While calls wait, more are missing than the bucket holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalBucketState {
    pub(super) anchor: u64,
    pub(super) missing: u64,
    /// As in [`GcraState`].
    pub(super) credited: u64,
    /// As in [`GcraState`].
    pub(super) until: u64,
    /// As in [`GcraState`].
    pub(super) slot: u64,
    /// The refill, if it can change.
    pub(super) refill: Option<Box<ChangingRefill>>,
}

/// A refill, and since when it is this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChangingRefill {
    pub(super) permits: u64,
    /// When the first charge with this refill was made.
    pub(super) changed: u64,
}

/// When the next call may start, and the permits stored until then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmingUpState {
    pub(super) next: u64,
    pub(super) stored: f64,
    /// When the state was written, so that a clock that steps back does not lengthen the debt.
    pub(super) written: u64,
    /// When the bucket will be cold, by the numbers of the last charge.
    pub(super) cold_at: u64,
}

/// An open window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindowState {
    /// The time of the window's first charge, which identifies the window even if two have the same start.
    pub(super) opened: u64,
    /// The permits charged to it.
    pub(super) count: u64,
    /// The permits of debts and mirrored charges that did not fit, which the next windows are charged.
    pub(super) owed: u64,
    /// How much of that each of them is charged at most.
    pub(super) pays: u64,
}

impl FixedWindowState {
    /// A window that owes nothing.
    pub(super) fn of_plain(opened: u64, count: u64) -> Self {
        FixedWindowState { opened, count, owed: 0, pays: 0 }
    }
}

/// An open window of a calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarWindowState {
    /// As in [`FixedWindowState`].
    pub(super) opened: u64,
    /// The permits charged to it, and those of debts and mirrored charges that it owes.
    pub(super) used: u64,
    /// When it ends.
    pub(super) ends: u64,
    /// How much of what is used it pays, and each of the next windows: the largest limit of its calls.
    pub(super) pays: u64,
}

/// The charges of a sliding window in order of their timestamps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindowState {
    pub(super) entries: VecDeque<LogEntry>,
    /// The running total of permits charged.
    pub(super) total: u64,
    /// The permits of mirrored charges that did not fit, which are charged as entries end.
    pub(super) owed: u64,
}

/// A charge, or all charges of a sub-window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogEntry {
    /// The running total before this entry.
    pub(super) before: u64,
    /// The time of its first charge.
    pub(super) stamp: u64,
}

/// The state of a key that is paused, or that calls wait for which have waited through a pause.
#[derive(Clone, Debug, PartialEq)]
pub struct PausedState {
    pub(super) pause: Pause,
    /// When the state was written, so that a clock that steps back does not lengthen the pause.
    pub(super) written: u64,
    pub(super) state: Option<State>,
}

impl PausedState {
    /// Returns the pause as of now. One written in the future has as much left of it as when it was written.
    pub(super) fn current(&self, now: u64) -> Pause {
        let back = self.written.saturating_sub(now);
        Pause { until: self.pause.until.saturating_sub(back), ..self.pause }
    }

    /// Returns the state of the algorithm, and the time as of which to read it.
    pub(super) fn inner(&self, now: u64) -> (Option<&State>, u64) {
        (self.state.as_ref(), self.current(now).time(now))
    }
}
