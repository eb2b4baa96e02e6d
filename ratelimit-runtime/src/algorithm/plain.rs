//! Plain states: a bucket or window without anything that few keys need, such as calls that wait or remembered refunds. Two
//! numbers hold it, so that it can be decided without a lock.
//!
//! The steps are those of `gcra.rs`, `adjustable_gcra.rs` and `fixed_window.rs` on such a state, and give the same result.

use std::time::Duration;

use super::adjustable_gcra::AdjustableGcraSpec;
use super::fixed_window::FixedWindowSpec;
use super::gcra::{GcraKind, GcraSpec};
use super::holds::{FOREVER, HoldsSpec};
use super::spec::AlgorithmSpec;
use super::verdict::{ChargeId, Snapshot, UNKNOWN, Verdict};
use crate::base::rate::Rate;

use self::state::MAX_PACE;
pub(crate) use self::state::{PlainState, dated_pace};
pub(crate) use self::steps::{PlainRefund, PlainStep, PlainSteps};

/// What a call has read of a plain state: when the bucket would be full, or when the window was opened, and its count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainSnapshot(u64, u64);

impl PlainSnapshot {
    /// That of no call.
    pub(crate) const UNUSED: Self = PlainSnapshot(0, 0);

    /// Returns all that a check of this spec reads.
    #[inline]
    pub(crate) fn full(self, spec: &AlgorithmSpec, now: u64, cost: u64) -> Snapshot {
        match spec {
            AlgorithmSpec::AdjustableGcra(spec) => spec.at_own_rate(self.0, now, cost),
            _ => [self.0, self.1, 0, 0, 0],
        }
    }
}

/// A policy whose states are plain while no call waits and nothing is refunded.
///
/// All words, so that it is copied a word at a time: the bytes of smaller fields are slow to read together, right after they were
/// written one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainSpec {
    kind: PlainKind,
    /// The interval of a bucket, the limit of a window.
    first: u64,
    /// The capacity of a bucket, the period of a window.
    second: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum PlainKind {
    TokenBucket,
    Meter,
    Queue,
    Borrowing,
    AdjustableTokenBucket,
    AdjustableMeter,
    AdjustableQueue,
    // Those before are buckets, and these are not.
    Window,
    AlignedWindow,
    Holds,
}

impl PlainKind {
    /// Returns the kind of this number. A match, of which the compiler makes only a comparison.
    #[cfg(any(test, feature = "overrides"))]
    #[inline]
    fn of_number(number: u64) -> Option<Self> {
        use PlainKind::*;
        Some(match number {
            0 => TokenBucket,
            1 => Meter,
            2 => Queue,
            3 => Borrowing,
            4 => AdjustableTokenBucket,
            5 => AdjustableMeter,
            6 => AdjustableQueue,
            7 => Window,
            8 => AlignedWindow,
            9 => Holds,
            _ => return None,
        })
    }
}

/// A token bucket, a meter, or a window that a call opens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommonSpec<'a>(pub(crate) &'a PlainSpec);

/// A policy by the kind of its steps, which read its numbers where they are.
pub(crate) enum KindOfPlain<'a> {
    Bucket(BucketSteps<'a>),
    Window(WindowSteps<'a>),
    AlignedWindow(AlignedWindowSteps<'a>),
    Adjustable(AdjustableSteps<'a>),
    Other,
}

/// A token bucket or a meter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketSteps<'a>(&'a PlainSpec);

/// A token bucket or a meter whose rate can change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdjustableSteps<'a>(&'a PlainSpec);

/// A window that a call opens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowSteps<'a>(&'a PlainSpec);

/// A window on a multiple of the period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlignedWindowSteps<'a>(&'a PlainSpec);

/// A token bucket or a meter, as in [`GcraSpec`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainBucket {
    interval: u64,
    capacity: u64,
}

/// A fixed window that a call opens, as in [`FixedWindowSpec`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainWindow {
    limit: u64,
    period: u64,
}

impl PlainSpec {
    /// Returns the same policy, if its usual states are plain.
    #[inline]
    pub(crate) const fn of(spec: &AlgorithmSpec) -> Option<Self> {
        let (kind, first, second) = match *spec {
            AlgorithmSpec::Gcra(GcraSpec { kind, interval, capacity }) => match kind {
                GcraKind::TokenBucket => (PlainKind::TokenBucket, interval, capacity),
                GcraKind::Meter => (PlainKind::Meter, interval, capacity),
                GcraKind::Queue => (PlainKind::Queue, interval, capacity),
                GcraKind::Borrowing(rate) if is_whole(rate, interval) => {
                    (PlainKind::Borrowing, interval, capacity)
                }
                GcraKind::Borrowing(_) => return None,
            },
            AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(GcraSpec { kind, interval, capacity }))
                if interval <= MAX_PACE =>
            {
                let kind = match kind {
                    GcraKind::TokenBucket => PlainKind::AdjustableTokenBucket,
                    GcraKind::Meter => PlainKind::AdjustableMeter,
                    GcraKind::Queue => PlainKind::AdjustableQueue,
                    GcraKind::Borrowing(_) => return None,
                };
                (kind, interval, capacity)
            }
            AlgorithmSpec::FixedWindow(FixedWindowSpec { limit, period, aligned }) => {
                (if aligned { PlainKind::AlignedWindow } else { PlainKind::Window }, limit, period)
            }
            AlgorithmSpec::Holds(HoldsSpec { max }) => (PlainKind::Holds, max, FOREVER),
            _ => return None,
        };
        Some(PlainSpec { kind, first, second })
    }

    /// Returns the numbers of the policy.
    #[cfg(any(test, feature = "overrides"))]
    pub(crate) fn words(self) -> [u64; 3] {
        [self.kind as u64, self.first, self.second]
    }

    /// Returns the policy of these numbers.
    #[cfg(any(test, feature = "overrides"))]
    #[inline]
    pub(crate) fn of_words([kind, first, second]: [u64; 3]) -> Option<Self> {
        Some(PlainSpec { kind: PlainKind::of_number(kind)?, first, second })
    }

    /// Returns the policy that this one is.
    pub(crate) fn spec(self) -> AlgorithmSpec {
        let PlainSpec { kind, first, second } = self;
        let spec = |kind| GcraSpec { kind, interval: first, capacity: second };
        let bucket = |kind| AlgorithmSpec::gcra(spec(kind), false);
        let adjustable = |kind| AlgorithmSpec::gcra(spec(kind), true);
        let window =
            |aligned| AlgorithmSpec::FixedWindow(FixedWindowSpec { limit: first, period: second, aligned });
        match kind {
            PlainKind::TokenBucket => bucket(GcraKind::TokenBucket),
            PlainKind::Meter => bucket(GcraKind::Meter),
            PlainKind::Queue => bucket(GcraKind::Queue),
            PlainKind::Borrowing => {
                bucket(GcraKind::Borrowing(Rate { permits: 1, period: Duration::from_micros(first) }))
            }
            PlainKind::AdjustableTokenBucket => adjustable(GcraKind::TokenBucket),
            PlainKind::AdjustableMeter => adjustable(GcraKind::Meter),
            PlainKind::AdjustableQueue => adjustable(GcraKind::Queue),
            PlainKind::Window => window(false),
            PlainKind::AlignedWindow => window(true),
            PlainKind::Holds => AlgorithmSpec::Holds(HoldsSpec { max: first }),
        }
    }

    /// Returns the plain state that stands for none.
    pub(crate) fn absent(self) -> PlainState {
        match self.is_bucket() {
            true if self.is_adjustable() => PlainState::AdjustableBucket { full: 0, number: 0 },
            true => PlainState::Bucket { full: 0 },
            false => PlainState::Window { end: 0, number: 0 },
        }
    }

    #[inline]
    pub(crate) const fn is_bucket(self) -> bool {
        !matches!(self.kind, PlainKind::Window | PlainKind::AlignedWindow | PlainKind::Holds)
    }

    /// Whether a refused call can reserve a slot. Windows cannot; their calls queue.
    #[inline]
    pub(crate) fn reserves(self) -> bool {
        self.is_bucket()
    }

    /// Returns the verdict on a call that is admitted or not, as [`AlgorithmSpec::verdict`] does. Its limit is that of the policy.
    #[inline(always)]
    pub(crate) fn verdict(
        self,
        limit: u64,
        snapshot: PlainSnapshot,
        now: u64,
        cost: u64,
        admitted: bool,
    ) -> Verdict {
        let blank = Verdict {
            admitted,
            wait: 0,
            limit,
            remaining: 0,
            retry_after: None,
            reset_after: 0,
            charge_id: ChargeId::default(),
        };
        if self.is_bucket() {
            // Charges of adjustable buckets are identified by their time as well.
            let level = if self.is_adjustable() { now } else { 0 };
            let blank = Verdict { charge_id: ChargeId { level, ..blank.charge_id }, ..blank };
            self.bucket().verdict(snapshot, now, cost, self.is_queue(), blank)
        } else {
            let verdict =
                self.window().verdict(snapshot, now, cost, self.kind == PlainKind::AlignedWindow, blank);
            if self.is_semaphore() {
                let retry_after = verdict.retry_after.map(|_| UNKNOWN);
                return Verdict { retry_after, reset_after: 0, ..verdict };
            }
            verdict
        }
    }

    /// Returns what a call of cost 1 would get, beside the state as it is, as [`AlgorithmSpec::peek`] does.
    #[inline]
    pub(crate) fn peek(self, limit: u64, snapshot: PlainSnapshot, now: u64) -> Verdict {
        let admitted = match self.kind {
            PlainKind::TokenBucket
            | PlainKind::Meter
            | PlainKind::AdjustableTokenBucket
            | PlainKind::AdjustableMeter => self.bucket().fits(snapshot, now),
            PlainKind::Queue | PlainKind::AdjustableQueue => {
                snapshot.0 == now && self.bucket().fits(snapshot, now)
            }
            PlainKind::Borrowing => true,
            PlainKind::Window | PlainKind::AlignedWindow | PlainKind::Holds => {
                self.window().fits(snapshot.1, 1)
            }
        };
        let retry_after =
            if admitted { None } else { self.verdict(limit, snapshot, now, 1, false).retry_after };
        Verdict { admitted, retry_after, ..self.verdict(limit, snapshot, now, 0, true) }
    }

    /// Returns the permits that the policy admits at once.
    #[inline]
    pub(crate) fn limit(self) -> u64 {
        match self.kind {
            PlainKind::Window | PlainKind::AlignedWindow | PlainKind::Holds => self.first,
            // A bucket that lends admits one permit even if it holds less.
            PlainKind::Borrowing => (self.second / self.first).max(1),
            _ => self.second / self.first,
        }
    }

    /// Returns the kind. The steps of most are compiled into each call.
    #[inline(always)]
    pub(crate) fn kind(&self) -> KindOfPlain<'_> {
        match self.kind {
            PlainKind::TokenBucket | PlainKind::Meter => KindOfPlain::Bucket(BucketSteps(self)),
            PlainKind::Window => KindOfPlain::Window(WindowSteps(self)),
            PlainKind::AlignedWindow => KindOfPlain::AlignedWindow(AlignedWindowSteps(self)),
            PlainKind::AdjustableTokenBucket | PlainKind::AdjustableMeter => {
                KindOfPlain::Adjustable(AdjustableSteps(self))
            }
            _ => KindOfPlain::Other,
        }
    }

    /// Whether it is a [`CommonSpec`].
    #[inline]
    pub(crate) fn is_common(&self) -> bool {
        matches!(self.kind(), KindOfPlain::Bucket(_) | KindOfPlain::Window(_))
    }

    #[inline]
    pub(crate) fn is_semaphore(self) -> bool {
        self.kind == PlainKind::Holds
    }

    #[inline]
    fn is_queue(self) -> bool {
        matches!(self.kind, PlainKind::Queue | PlainKind::AdjustableQueue)
    }

    #[inline]
    pub(crate) fn is_adjustable(self) -> bool {
        use PlainKind::{AdjustableMeter, AdjustableQueue, AdjustableTokenBucket};
        matches!(self.kind, AdjustableTokenBucket | AdjustableMeter | AdjustableQueue)
    }

    #[inline]
    fn bucket(self) -> PlainBucket {
        PlainBucket { interval: self.first, capacity: self.second }
    }

    #[inline]
    fn window(self) -> PlainWindow {
        PlainWindow { limit: self.first, period: self.second }
    }
}

impl PlainBucket {
    /// Costs that never fit are cut to the smallest that does not.
    #[inline]
    fn charge(self, cost: u64) -> u64 {
        cost.saturating_mul(self.interval).min(self.capacity + 1)
    }

    /// Whether there is room for a permit.
    #[inline]
    fn fits(self, snapshot: PlainSnapshot, now: u64) -> bool {
        snapshot.0 + self.charge(1) <= now + self.capacity
    }

    #[inline(always)]
    fn verdict(
        self,
        snapshot: PlainSnapshot,
        now: u64,
        cost: u64,
        is_queue: bool,
        blank: Verdict,
    ) -> Verdict {
        let admitted = blank.admitted;
        let (charge, level) = (self.charge(cost), snapshot.0 - now);
        let after = if admitted { level + charge } else { level };
        let lead = self.capacity.checked_sub(charge).filter(|_| !admitted);
        // Mostly nothing is left of a bucket that refuses, and then nothing is divided.
        let free = self.capacity.saturating_sub(after);
        Verdict {
            remaining: if free < self.interval { 0 } else { free / self.interval },
            retry_after: lead.map(|lead| if is_queue { level } else { level - lead }),
            reset_after: after,
            charge_id: ChargeId { at: now + after, ..blank.charge_id },
            ..blank
        }
    }
}

impl PlainWindow {
    #[inline(always)]
    fn verdict(
        self,
        snapshot: PlainSnapshot,
        now: u64,
        cost: u64,
        is_aligned: bool,
        blank: Verdict,
    ) -> Verdict {
        let admitted = blank.admitted;
        let PlainSnapshot(opened, count) = snapshot;
        let start = if is_aligned { opened - opened % self.period } else { opened };
        let (after, left) = (if admitted { count + cost } else { count }, start + self.period - now);
        Verdict {
            remaining: self.limit.saturating_sub(after),
            retry_after: (!admitted && cost <= self.limit).then_some(left),
            reset_after: if after == 0 { 0 } else { left },
            charge_id: ChargeId { at: opened, ..blank.charge_id },
            ..blank
        }
    }

    #[inline]
    fn fits(self, count: u64, cost: u64) -> bool {
        cost <= self.limit.saturating_sub(count)
    }
}

/// Whether a permit takes so many microseconds at this rate, and none are lost.
const fn is_whole(rate: Rate, interval: u64) -> bool {
    rate.permits == 1 && rate.period.as_nanos() == interval as u128 * 1000
}

#[cfg(test)]
mod properties;
mod state;
mod steps;
