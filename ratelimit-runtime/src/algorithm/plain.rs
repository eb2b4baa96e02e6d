//! Plain states: a bucket or window without anything that few keys need, such as calls that wait or remembered refunds. Two
//! numbers hold it, so that it can be decided without a lock.
//!
//! The steps are those of `gcra.rs` and `fixed_window.rs` on such a state, and give the same result.

use super::fixed_window::FixedWindowSpec;
use super::gcra::{GcraKind, GcraSpec};
use super::spec::AlgorithmSpec;
use super::state::{FixedWindowState, GcraState, State};
use super::verdict::{ChargeId, Snapshot, Verdict};

/// A plain state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainState {
    /// A bucket, and when it will be full.
    Bucket { full: u64 },
    /// A window, its end, and the permits charged to it.
    Window { end: u64, count: u64 },
}

/// What a call has read of a plain state: when the bucket would be full, or the start of the window, and its count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainSnapshot(u64, u64);

/// What becomes of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainStep {
    pub(crate) snapshot: PlainSnapshot,
    /// The state after the call. `None` if it is refused.
    pub(crate) after: Option<PlainState>,
}

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

/// What a verdict says about a plain state. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainVerdict {
    pub(crate) remaining: u64,
    pub(crate) retry_after: Option<u64>,
    pub(crate) reset_after: u64,
    /// The time in the [`ChargeId`](super::ChargeId), whose other numbers are 0.
    pub(crate) at: u64,
}

/// A policy whose states are plain while no call waits and nothing is refunded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainSpec {
    Bucket(PlainBucket),
    Window(PlainWindow),
}

/// A token bucket or a meter, as in [`GcraSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainBucket {
    interval: u64,
    capacity: u64,
}

/// A fixed window, as in [`FixedWindowSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainWindow {
    limit: u64,
    period: u64,
}

/// The steps of a decision about a call that does not wait.
pub(crate) trait PlainSteps: Copy {
    /// Whether the slot of a state says when it was written. If not, there is no room for it.
    fn is_dated(self) -> bool;

    /// Decides a call of this cost. Returns `None` if the state is from the future or of another algorithm.
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep>;

    /// Returns the verdict on a call that is admitted or not.
    fn verdict(self, snapshot: PlainSnapshot, now: u64, cost: u64, admitted: bool) -> PlainVerdict;
}

impl AlgorithmSpec {
    /// Returns the same policy, if its usual states are plain.
    #[inline]
    pub(crate) const fn plain(&self) -> Option<PlainSpec> {
        match *self {
            AlgorithmSpec::Gcra(GcraSpec {
                kind: GcraKind::TokenBucket | GcraKind::Meter,
                interval,
                capacity,
            }) => Some(PlainSpec::Bucket(PlainBucket { interval, capacity })),
            AlgorithmSpec::FixedWindow(FixedWindowSpec { limit, period, aligned: false }) => {
                Some(PlainSpec::Window(PlainWindow { limit, period }))
            }
            _ => None,
        }
    }
}

impl PlainSpec {
    /// Whether a refused call can reserve a slot. Windows cannot; their calls queue.
    #[inline]
    pub(crate) fn reserves(self) -> bool {
        matches!(self, PlainSpec::Bucket(_))
    }

    /// Returns the verdict on a call that is admitted or not, as [`AlgorithmSpec::verdict`] does.
    #[inline(always)]
    pub(crate) fn full_verdict(
        self,
        snapshot: PlainSnapshot,
        now: u64,
        cost: u64,
        admitted: bool,
    ) -> Verdict {
        let PlainVerdict { remaining, retry_after, reset_after, at } =
            self.verdict(snapshot, now, cost, admitted);
        let (limit, charge_id) = (self.limit(), ChargeId { at, level: 0, credited: 0 });
        Verdict { admitted, wait: 0, limit, remaining, retry_after, reset_after, charge_id }
    }

    /// Returns the permits that the policy admits at once.
    #[inline]
    pub(crate) fn limit(self) -> u64 {
        match self {
            PlainSpec::Bucket(PlainBucket { interval, capacity }) => capacity / interval,
            PlainSpec::Window(PlainWindow { limit, .. }) => limit,
        }
    }
}

impl PlainBucket {
    /// Costs that never fit are cut to the smallest that does not.
    #[inline]
    fn charge(self, cost: u64) -> u64 {
        cost.saturating_mul(self.interval).min(self.capacity + 1)
    }
}

impl PlainSteps for PlainBucket {
    #[inline]
    fn is_dated(self) -> bool {
        true
    }

    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        let PlainState::Bucket { full } = state else { return None };
        let (before, latest) = (full.max(now), now + self.capacity);
        if before > latest {
            return None;
        }
        let after = before + self.charge(cost);
        let after = (after <= latest).then_some(PlainState::Bucket { full: after });
        Some(PlainStep { snapshot: PlainSnapshot(before, 0), after })
    }

    #[inline]
    fn verdict(self, snapshot: PlainSnapshot, now: u64, cost: u64, admitted: bool) -> PlainVerdict {
        let (charge, level) = (self.charge(cost), snapshot.0 - now);
        let after = if admitted { level + charge } else { level };
        let lead = self.capacity.checked_sub(charge).filter(|_| !admitted);
        PlainVerdict {
            remaining: (self.capacity - after) / self.interval,
            retry_after: lead.map(|lead| level - lead),
            reset_after: after,
            at: now + after,
        }
    }
}

impl PlainSteps for PlainWindow {
    #[inline]
    fn is_dated(self) -> bool {
        false
    }

    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        let PlainState::Window { end, count } = state else { return None };
        let (start, count) = if now < end { (end.wrapping_sub(self.period), count) } else { (now, 0) };
        if start > now {
            return None;
        }
        let fits = cost <= self.limit.saturating_sub(count);
        let after = fits.then(|| PlainState::Window { end: start + self.period, count: count + cost });
        Some(PlainStep { snapshot: PlainSnapshot(start, count), after })
    }

    #[inline]
    fn verdict(self, snapshot: PlainSnapshot, now: u64, cost: u64, admitted: bool) -> PlainVerdict {
        let PlainSnapshot(start, count) = snapshot;
        let (after, left) = (if admitted { count + cost } else { count }, start + self.period - now);
        PlainVerdict {
            remaining: self.limit.saturating_sub(after),
            retry_after: (!admitted && cost <= self.limit).then_some(left),
            reset_after: if after == 0 { 0 } else { left },
            at: start,
        }
    }
}

impl PlainSteps for PlainSpec {
    #[inline]
    fn is_dated(self) -> bool {
        matches!(self, PlainSpec::Bucket(_))
    }

    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        match self {
            PlainSpec::Bucket(bucket) => bucket.decide(state, now, cost),
            PlainSpec::Window(window) => window.decide(state, now, cost),
        }
    }

    #[inline]
    fn verdict(self, snapshot: PlainSnapshot, now: u64, cost: u64, admitted: bool) -> PlainVerdict {
        match self {
            PlainSpec::Bucket(bucket) => bucket.verdict(snapshot, now, cost, admitted),
            PlainSpec::Window(window) => window.verdict(snapshot, now, cost, admitted),
        }
    }
}

#[cfg(test)]
mod properties;
