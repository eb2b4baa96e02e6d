//! Plain states: a bucket or window without anything that few keys need, such as calls that wait or remembered refunds. Two
//! numbers hold it, so that it can be decided without a lock.
//!
//! The steps are those of `gcra.rs` and `fixed_window.rs` on such a state, and give the same result.

use super::fixed_window::FixedWindowSpec;
use super::gcra::{GcraKind, GcraSpec};
use super::spec::AlgorithmSpec;
use super::state::{FixedWindowState, GcraState, State};
use super::verdict::{Snapshot, Verdict};

/// A plain state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainState {
    /// A bucket, and when it will be full.
    Bucket { full: u64 },
    /// A window, its end, and the permits charged to it.
    Window { end: u64, count: u64 },
}

/// What a check of a plain state has read: when the bucket would be full, or the start of the window, and its count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlainSnapshot(u64, u64);

impl PlainSnapshot {
    #[inline]
    pub(crate) fn full(self) -> Snapshot {
        [self.0, self.1, 0, 0, 0]
    }
}

impl PlainState {
    /// Returns the plain state that is equal to this one, if there is one.
    pub(crate) fn of(state: &State, spec: &AlgorithmSpec) -> Option<Self> {
        match (state, spec) {
            (State::Gcra(bucket), _) => bucket.plain().map(|full| PlainState::Bucket { full }),
            (
                State::FixedWindow(FixedWindowState { opened, count, owed: 0 }),
                AlgorithmSpec::FixedWindow(FixedWindowSpec { period, aligned: false, .. }),
            ) => Some(PlainState::Window { end: opened + period, count: *count }),
            _ => None,
        }
    }

    /// Returns the state, of a key with this spec.
    pub(crate) fn state(self, spec: &AlgorithmSpec) -> State {
        match (self, spec) {
            (PlainState::Bucket { full }, _) => State::Gcra(GcraState { tat: full, ..GcraState::default() }),
            (PlainState::Window { end, count }, AlgorithmSpec::FixedWindow(window)) => {
                State::FixedWindow(FixedWindowState {
                    opened: end.saturating_sub(window.period),
                    count,
                    owed: 0,
                })
            }
            (PlainState::Window { end, count }, _) => {
                State::FixedWindow(FixedWindowState { opened: end, count, owed: 0 })
            }
        }
    }
}

impl AlgorithmSpec {
    /// Whether the states of this spec are plain while no call waits and nothing is refunded.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        matches!(
            self,
            AlgorithmSpec::Gcra(GcraSpec { kind: GcraKind::TokenBucket | GcraKind::Meter, .. })
                | AlgorithmSpec::FixedWindow(FixedWindowSpec { aligned: false, .. })
        )
    }

    /// Reads a plain state. Returns `None` if it is from the future or not one of this spec.
    #[inline]
    pub(crate) fn check_plain(&self, state: PlainState, now: u64) -> Option<PlainSnapshot> {
        match (self, state) {
            (AlgorithmSpec::Gcra(GcraSpec { capacity, .. }), PlainState::Bucket { full }) => {
                (full <= now + capacity).then_some(PlainSnapshot(full.max(now), 0))
            }
            (AlgorithmSpec::FixedWindow(window), PlainState::Window { end, count }) => {
                let snapshot = if now < end {
                    PlainSnapshot(end.wrapping_sub(window.period), count)
                } else {
                    PlainSnapshot(now, 0)
                };
                (snapshot.0 <= now).then_some(snapshot)
            }
            _ => None,
        }
    }

    /// Whether a call of this cost is admitted.
    #[inline]
    pub(crate) fn admits_plain(&self, snapshot: PlainSnapshot, now: u64, cost: u64) -> bool {
        match self {
            AlgorithmSpec::Gcra(bucket) => snapshot.0 + bucket.charge(cost) <= now + bucket.capacity,
            AlgorithmSpec::FixedWindow(window) => cost <= window.limit.saturating_sub(snapshot.1),
            _ => false,
        }
    }

    /// Returns the verdict on a call that does not wait.
    #[inline(always)]
    pub(crate) fn verdict_plain(&self, snapshot: PlainSnapshot, now: u64, cost: u64) -> Verdict {
        match self {
            AlgorithmSpec::Gcra(bucket) => bucket.verdict(snapshot.full(), now, cost, 0),
            AlgorithmSpec::FixedWindow(window) => window.verdict(snapshot.full(), now, cost, 0),
            _ => self.verdict(snapshot.full(), now, cost, 0),
        }
    }

    /// Returns the state after an admitted call.
    #[inline]
    pub(crate) fn commit_plain(&self, snapshot: PlainSnapshot, cost: u64) -> PlainState {
        match self {
            AlgorithmSpec::FixedWindow(window) => {
                PlainState::Window { end: snapshot.0 + window.period, count: snapshot.1 + cost }
            }
            AlgorithmSpec::Gcra(bucket) => PlainState::Bucket { full: snapshot.0 + bucket.charge(cost) },
            _ => PlainState::Bucket { full: snapshot.0 },
        }
    }
}

#[cfg(test)]
mod properties;
