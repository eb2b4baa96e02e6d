//! A policy in the numbers its algorithm counts in, and the dispatch to that algorithm.

use std::fmt;
use std::sync::Arc;

use super::adjustable_gcra::AdjustableGcraSpec;
use super::calendar_window::CalendarWindowSpec;
use super::fixed_window::FixedWindowSpec;
use super::gcra::{GcraKind, GcraSpec};
use super::holds::HoldsSpec;
use super::interval_bucket::IntervalBucketSpec;
use super::pause::Pause;
use super::settled_gcra::SettledGcraSpec;
use super::sliding_window::SlidingWindowSpec;
use super::state::State;
use super::verdict::{ChargeId, Snapshot, Verdict};
use super::warming_up::WarmingUpSpec;
use crate::base::bounds::MAX_PERMITS;

/// A policy in the numbers its algorithm counts in: permits and microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AlgorithmSpec {
    /// A continuous token bucket, or a leaky bucket.
    Gcra(GcraSpec),
    /// The same, with numbers that change from call to call.
    AdjustableGcra(AdjustableGcraSpec),
    /// The same, whose calls are settled.
    SettledGcra(SettledGcraSpec),
    /// A token bucket with interval refill.
    IntervalBucket(IntervalBucketSpec),
    /// A token bucket that warms up.
    WarmingUp(WarmingUpSpec),
    /// A fixed window.
    FixedWindow(FixedWindowSpec),
    /// A fixed window of a calendar.
    CalendarWindow(CalendarWindowSpec),
    /// A sliding window.
    SlidingWindow(SlidingWindowSpec),
    /// A semaphore.
    Holds(HoldsSpec),
}

/// Evaluates the same expression for the spec of each algorithm.
macro_rules! dispatch {
    ($self:expr, $spec:ident => $then:expr) => {
        match $self {
            AlgorithmSpec::Gcra($spec) => $then,
            AlgorithmSpec::AdjustableGcra($spec) => $then,
            AlgorithmSpec::SettledGcra($spec) => $then,
            AlgorithmSpec::IntervalBucket($spec) => $then,
            AlgorithmSpec::WarmingUp($spec) => $then,
            AlgorithmSpec::FixedWindow($spec) => $then,
            AlgorithmSpec::CalendarWindow($spec) => $then,
            AlgorithmSpec::SlidingWindow($spec) => $then,
            AlgorithmSpec::Holds($spec) => $then,
        }
    };
}

pub(super) use dispatch;

impl AlgorithmSpec {
    /// Returns the spec of a bucket whose numbers can change, or cannot.
    pub(crate) const fn gcra(spec: GcraSpec, adjustable: bool) -> Self {
        if adjustable {
            AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec))
        } else {
            AlgorithmSpec::Gcra(spec)
        }
    }

    /// Reads the state for a call of this cost, or for a cost of 0 what a call of cost 1 would find.
    #[must_use]
    pub fn check(&self, state: Option<&State>, now: u64, cost: u64) -> Snapshot {
        let (state, now) = match state {
            Some(State::Paused(paused)) => paused.inner(now),
            state => (state, now),
        };
        dispatch!(self, spec => spec.check(state, now, cost.max(1)))
    }

    /// Decides a call of this cost that waits for at most `wait` microseconds. A cost of 0 only reads. Windows ignore
    /// `wait`, because they do not reserve permits in advance.
    #[must_use]
    pub fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64) -> Verdict {
        dispatch!(self, spec => spec.verdict(snapshot, now, cost, wait))
    }

    /// Decides a call that does not wait, without the rest of the verdict, which takes longer.
    pub(crate) fn admits(&self, snapshot: Snapshot, now: u64, cost: u64) -> bool {
        dispatch!(self, spec => spec.verdict(snapshot, now, cost, 0).admitted)
    }

    /// Decides a call that does not wait, of a key that is not paused, and charges it if it is admitted. Returns what was read, and
    /// whether it is.
    #[inline(always)]
    pub(crate) fn decide_unpaused(&self, state: &mut Option<State>, now: u64, cost: u64) -> (Snapshot, bool) {
        match self {
            AlgorithmSpec::WarmingUp(spec) => return spec.decide(state, now, cost),
            AlgorithmSpec::SlidingWindow(spec) => {
                if let Some(snapshot) = spec.charge_at_once(state, now, cost) {
                    return (snapshot, true);
                }
            }
            _ => {}
        }
        dispatch!(self, spec => {
            let snapshot = spec.check(state.as_ref(), now, cost);
            let admitted = spec.verdict(snapshot, now, cost, 0).admitted;
            if admitted {
                spec.commit(state, snapshot, now, cost);
            } else {
                let _ = spec.undo(state, now);
            }
            (snapshot, admitted)
        })
    }

    /// Returns whether a call of cost 1 that does not wait would be admitted, and when, beside the state as it is. The snapshot is
    /// that of a cost of 0.
    #[must_use]
    #[inline]
    pub fn peek(&self, pause: Option<Pause>, snapshot: Snapshot, now: u64) -> Verdict {
        let Verdict { admitted, retry_after, .. } = self.verdict_in(pause, snapshot, now, 1, 0);
        Verdict { admitted, retry_after, ..self.verdict_in(pause, snapshot, now, 0, 0) }
    }

    /// Returns whether a call can reserve permits that are not available yet, and wait for them.
    #[must_use]
    pub fn reserves(&self) -> bool {
        !matches!(
            self,
            AlgorithmSpec::FixedWindow(_)
                | AlgorithmSpec::CalendarWindow(_)
                | AlgorithmSpec::SlidingWindow(_)
                | AlgorithmSpec::Holds(_)
        )
    }

    /// Charges an admitted call.
    pub fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, now: u64, cost: u64) {
        self.change(
            state,
            now,
            Some(snapshot),
            |state, now| dispatch!(self, spec => spec.commit(state, snapshot, now, cost)),
        );
    }

    /// Leaves the state of a refused call unchanged, unless it is from the future. Such a state is moved to now, so that a
    /// clock that steps back blocks a key for at most one full period.
    pub fn undo(&self, state: &mut Option<State>, now: u64) {
        let undo = |state: &mut Option<State>, now| dispatch!(self, spec => spec.undo(state, now));
        match state {
            Some(State::Paused(paused)) => AlgorithmSpec::undo_paused(Arc::make_mut(paused), now, undo),
            state => _ = undo(state, now),
        }
    }

    /// Refunds `cost` permits of the given charge, or without one, of what the key holds now.
    pub fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        self.change_some(state, now, |state, now| {
            dispatch!(self, spec => spec.refund(state, now, cost, charge_id));
        });
    }

    /// Charges what a call has used beyond its cost, whatever the key holds. The debt is paid as permits come back, before other calls
    /// get any. Returns whether it was cut to the longest that this policy may have.
    pub fn debit(&self, state: &mut Option<State>, now: u64, cost: u64) -> bool {
        self.change(state, now, None, |state, now| match self {
            AlgorithmSpec::Gcra(spec) => spec.debit(state, now, cost),
            AlgorithmSpec::AdjustableGcra(spec) => spec.debit(state, now, cost),
            AlgorithmSpec::SettledGcra(spec) => spec.debit(state, now, cost),
            AlgorithmSpec::IntervalBucket(spec) => spec.debit(state, now, cost),
            AlgorithmSpec::FixedWindow(spec) => spec.debit(state, now, cost),
            AlgorithmSpec::CalendarWindow(spec) => spec.debit(state, now, cost),
            AlgorithmSpec::SlidingWindow(spec) => spec.debit(state, now, cost),
            AlgorithmSpec::WarmingUp(_) | AlgorithmSpec::Holds(_) => false,
        })
    }

    /// Returns whether a call can be charged more than its cost once it has ended.
    #[must_use]
    pub fn can_owe(&self) -> bool {
        self.queue().is_none() && !matches!(self, AlgorithmSpec::WarmingUp(_) | AlgorithmSpec::Holds(_))
    }

    /// Returns whether calls hold their permits until they end.
    #[must_use]
    pub fn is_semaphore(&self) -> bool {
        matches!(self, AlgorithmSpec::Holds(_))
    }

    /// Returns when the state expires.
    #[must_use]
    pub fn ends(&self, state: &State) -> u64 {
        match state {
            State::Paused(paused) => self.ends_paused(paused),
            state => dispatch!(self, spec => spec.ends(state)),
        }
    }

    /// Returns the maximum cost of a call, if there is one.
    #[must_use]
    pub const fn max_cost(&self) -> Option<u64> {
        match self {
            AlgorithmSpec::Gcra(spec)
            | AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec))
            | AlgorithmSpec::SettledGcra(SettledGcraSpec(spec)) => spec.max_cost(),
            AlgorithmSpec::IntervalBucket(spec) => Some(spec.burst),
            AlgorithmSpec::WarmingUp(_) => None,
            AlgorithmSpec::FixedWindow(spec) => Some(spec.limit),
            AlgorithmSpec::CalendarWindow(spec) => Some(spec.limit),
            AlgorithmSpec::SlidingWindow(spec) => Some(spec.limit),
            AlgorithmSpec::Holds(spec) => Some(spec.max),
        }
    }

    /// Returns a spec with the same keys whose limit no key reaches, so that it reports what a key has used, by whatever numbers.
    /// Literal buckets keep theirs.
    #[must_use]
    pub(crate) fn unbounded(self) -> Self {
        match self {
            AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec)) => {
                AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec.unbounded()))
            }
            AlgorithmSpec::SettledGcra(SettledGcraSpec(spec)) => {
                AlgorithmSpec::SettledGcra(SettledGcraSpec(spec.unbounded()))
            }
            AlgorithmSpec::IntervalBucket(spec) if spec.adjustable => {
                AlgorithmSpec::IntervalBucket(IntervalBucketSpec { burst: MAX_PERMITS, ..spec })
            }
            AlgorithmSpec::FixedWindow(spec) => {
                AlgorithmSpec::FixedWindow(FixedWindowSpec { limit: MAX_PERMITS, ..spec })
            }
            AlgorithmSpec::CalendarWindow(spec) => {
                AlgorithmSpec::CalendarWindow(CalendarWindowSpec { limit: MAX_PERMITS, ..spec })
            }
            AlgorithmSpec::SlidingWindow(spec) => {
                AlgorithmSpec::SlidingWindow(SlidingWindowSpec { limit: MAX_PERMITS, ..spec })
            }
            AlgorithmSpec::Holds(_) => AlgorithmSpec::Holds(HoldsSpec { max: MAX_PERMITS }),
            _ => self,
        }
    }

    /// Returns the permits of calls that wait or have borrowed, which a literal bucket lacks beyond its limit, given the time until
    /// it is full.
    #[must_use]
    pub(crate) fn used_in_advance(&self, reset_after: u64) -> u64 {
        match self {
            AlgorithmSpec::Gcra(spec) => {
                // Rounded up.
                let micros = reset_after.saturating_sub(spec.capacity);
                spec.permits(micros.saturating_add(spec.interval - 1))
            }
            _ => 0,
        }
    }

    /// Returns the microseconds that the limit is for: the period of a window, or the time in which an empty bucket fills up. That of
    /// a semaphore is for no time, and so 0.
    #[must_use]
    pub const fn window(&self) -> u64 {
        match self {
            AlgorithmSpec::Gcra(spec)
            | AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec))
            | AlgorithmSpec::SettledGcra(SettledGcraSpec(spec)) => spec.capacity,
            AlgorithmSpec::IntervalBucket(spec) => {
                spec.burst.div_ceil(spec.refill).saturating_mul(spec.period)
            }
            AlgorithmSpec::WarmingUp(spec) => spec.warmup,
            AlgorithmSpec::FixedWindow(spec) => spec.period,
            AlgorithmSpec::CalendarWindow(spec) => spec.calendar.average(),
            AlgorithmSpec::SlidingWindow(spec) => spec.period,
            AlgorithmSpec::Holds(_) => 0,
        }
    }

    /// Returns when the window ends that a verdict is about; `None` for what refills, or slides.
    pub(crate) fn window_end(&self, verdict: &Verdict) -> Option<u64> {
        match self {
            AlgorithmSpec::FixedWindow(spec) => Some(spec.end(verdict.charge_id.at)),
            AlgorithmSpec::CalendarWindow(_) => Some(verdict.charge_id.level),
            _ => None,
        }
    }

    /// Returns whether a call of this cost can ever be admitted.
    #[must_use]
    pub fn fits(&self, cost: u64) -> bool {
        self.verdict(self.check(None, 0, cost), 0, cost, 0).admitted
    }

    /// Returns the permits that can wait in a queue, or `None` if the spec is not a queue.
    #[must_use]
    pub fn waiting_room(&self) -> Option<u64> {
        self.queue().map(|queue| queue.capacity / queue.interval - 1)
    }

    /// Returns the bucket, if it is a queue.
    pub(crate) fn queue(&self) -> Option<&GcraSpec> {
        match self {
            AlgorithmSpec::Gcra(bucket) | AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(bucket)) => {
                Some(bucket).filter(|bucket| bucket.kind == GcraKind::Queue)
            }
            _ => None,
        }
    }

    /// Returns whether calls with other numbers have the same state and change how it refills.
    #[must_use]
    pub(crate) const fn is_adjustable(&self) -> bool {
        match self {
            AlgorithmSpec::AdjustableGcra(_) | AlgorithmSpec::SettledGcra(_) => true,
            AlgorithmSpec::IntervalBucket(spec) => spec.adjustable,
            AlgorithmSpec::WarmingUp(spec) => spec.adjustable,
            AlgorithmSpec::Gcra(_)
            | AlgorithmSpec::FixedWindow(_)
            | AlgorithmSpec::CalendarWindow(_)
            | AlgorithmSpec::SlidingWindow(_)
            | AlgorithmSpec::Holds(_) => false,
        }
    }

    /// Returns the number of the algorithm in the Lua scripts.
    #[cfg(feature = "redis")]
    pub(crate) const fn kind(&self) -> u8 {
        match self {
            AlgorithmSpec::Gcra(_) => 1,
            AlgorithmSpec::FixedWindow(_) => 2,
            AlgorithmSpec::SlidingWindow(_) => 3,
            AlgorithmSpec::IntervalBucket(IntervalBucketSpec { adjustable: false, .. }) => 4,
            AlgorithmSpec::AdjustableGcra(_) => 5,
            AlgorithmSpec::IntervalBucket(_) => 6,
            AlgorithmSpec::WarmingUp(WarmingUpSpec { adjustable: false, .. }) => 7,
            AlgorithmSpec::WarmingUp(_) => 8,
            AlgorithmSpec::SettledGcra(_) => 9,
            AlgorithmSpec::Holds(_) => 10,
            AlgorithmSpec::CalendarWindow(_) => 11,
        }
    }
}

/// Writes the algorithm, its layout version and the numbers that shape the state. Specs with the same text share state.
impl fmt::Display for AlgorithmSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dispatch!(self, spec => spec.shape(f))
    }
}
