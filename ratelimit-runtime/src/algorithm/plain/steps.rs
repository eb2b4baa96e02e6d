//! The steps of decisions about plain states.

use super::state::{
    PlainState, adjustable_state, aligned_state, charged_aligned, dated_pace, is_aligned, opened,
};
use super::{
    AdjustableSteps, AlignedWindowSteps, BucketSteps, CommonSpec, PlainBucket, PlainKind, PlainSnapshot,
    PlainSpec, PlainWindow, WindowSteps,
};
use crate::algorithm::verdict::ChargeId;

/// The steps of a decision about a call that does not wait. If it costs nothing, only what is read of the state counts.
pub(crate) trait PlainSteps: Copy {
    /// Whether a call may be admitted that charges nothing.
    const MAY_READ: bool = false;

    /// Whether the slot of a state says when it was written. That of a window says only when it was opened or emptied.
    fn is_dated(self) -> bool;

    /// Decides a call of this cost. Returns `None` if the state is from the future or of another algorithm, or if it would not be
    /// plain after the call.
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep>;
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainStep {
    pub(crate) snapshot: PlainSnapshot,
    pub(crate) admitted: bool,
    /// The state after the call, if that charges something.
    pub(crate) after: Option<PlainState>,
}

impl PlainStep {
    /// The step of a call that is admitted if there is a state after it.
    #[inline]
    fn new(read: u64, count: u64, after: Option<PlainState>) -> Self {
        PlainStep { snapshot: PlainSnapshot(read, count), admitted: after.is_some(), after }
    }
}

impl PlainSteps for BucketSteps<'_> {
    #[inline]
    fn is_dated(self) -> bool {
        true
    }

    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        self.0.bucket().decide(state, now, cost)
    }
}

impl PlainSteps for WindowSteps<'_> {
    #[inline]
    fn is_dated(self) -> bool {
        false
    }

    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        self.0.window().decide(state, now, cost)
    }
}

impl PlainSteps for AlignedWindowSteps<'_> {
    #[inline]
    fn is_dated(self) -> bool {
        false
    }

    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        self.0.window().decide_aligned(state, now, cost)
    }
}

impl PlainSteps for AdjustableSteps<'_> {
    #[inline]
    fn is_dated(self) -> bool {
        true
    }

    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        self.0.bucket().decide_adjustable(state, now, cost, false)
    }
}

impl PlainBucket {
    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        let PlainState::Bucket { full } = state else { return None };
        let (before, latest) = (full.max(now), now + self.capacity);
        if before > latest {
            return None;
        }
        let after = before + self.charge(cost);
        let after = (after <= latest).then_some(PlainState::Bucket { full: after });
        Some(PlainStep::new(before, 0, after))
    }
}

impl PlainWindow {
    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        let PlainState::Window { end, number: count } = state else { return None };
        let (start, count) = if now < end { (self.start(end, count), count) } else { (now, 0) };
        if start > now {
            return None;
        }
        let end = start + self.period;
        let after = self.fits(count, cost).then(|| PlainState::Window { end, number: count + cost });
        Some(PlainStep::new(start, count, after))
    }
}

impl PlainBucket {
    /// Decides a call by a queue.
    #[inline]
    fn decide_queue(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        let PlainState::Bucket { full } = state else { return None };
        let (before, charge) = (full.max(now), self.charge(cost));
        if before > now + self.capacity {
            return None;
        }
        // A slot that is free at once is the first of an empty queue.
        let is_first = before == now && charge <= self.capacity;
        Some(PlainStep::new(before, 0, is_first.then_some(PlainState::Bucket { full: before + charge })))
    }
}

impl PlainBucket {
    /// Decides a call by a bucket whose rate can change, but is that of the last charge.
    #[inline]
    fn decide_adjustable(self, state: PlainState, now: u64, cost: u64, is_queue: bool) -> Option<PlainStep> {
        let PlainState::AdjustableBucket { full, number } = state else { return None };
        let (before, (written, pace)) = (full.max(now), dated_pace(full, number));
        if written > now || before > now && pace != self.interval {
            return None;
        }
        let after = before + self.charge(cost);
        let admitted = after <= now + self.capacity && (before == now || !is_queue);
        let after = if admitted { Some(adjustable_state(after, now, self.interval)?) } else { None };
        Some(PlainStep::new(before, 0, after))
    }
}

impl PlainWindow {
    /// Decides a call by a window on a multiple of the period.
    #[inline]
    fn decide_aligned(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        let PlainState::Window { end, number } = state else { return None };
        let is_open = now < end;
        let (opened, count) = if is_open {
            if self.start(end, number) > now || !is_aligned(end, self.period) {
                return None;
            }
            opened(end, number, self.period)
        } else {
            (now, 0)
        };
        let after = match self.fits(count, cost) {
            true if is_open => Some(charged_aligned(end, number, cost, self.period)?),
            true => Some(aligned_state(now, cost, self.period)?),
            false => None,
        };
        Some(PlainStep::new(opened, count, after))
    }
}

/// The step of a refund. It is admitted, and charges something if it changes the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainRefund<'a> {
    pub(crate) spec: &'a PlainSpec,
    pub(crate) charge_id: ChargeId,
}

impl PlainSteps for PlainRefund<'_> {
    const MAY_READ: bool = true;

    #[inline]
    fn is_dated(self) -> bool {
        self.spec.is_dated()
    }

    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        let after = match self.spec.kind {
            PlainKind::AlignedWindow => return None,
            PlainKind::Window | PlainKind::Holds => {
                self.spec.window().refund(state, now, cost, self.charge_id.at)?
            }
            _ => self.refund_bucket(state, now, cost)?,
        };
        Some(PlainStep { snapshot: PlainSnapshot(now, 0), admitted: true, after })
    }
}

impl PlainRefund<'_> {
    /// Returns the state after the refund, if that changes it; `None` if it is not plain, or was written in the future.
    #[inline]
    fn refund_bucket(self, state: PlainState, now: u64, cost: u64) -> Option<Option<PlainState>> {
        let PlainRefund { spec, charge_id: ChargeId { at, credited, .. } } = self;
        let PlainBucket { interval, capacity } = spec.bucket();
        let (full, pace) = match state {
            PlainState::Bucket { full } if full <= now + capacity => (full, interval),
            PlainState::AdjustableBucket { full, number } => match dated_pace(full, number) {
                (written, pace) if written <= now => (full, pace),
                _ => return None,
            },
            _ => return None,
        };
        if credited > 0 || pace != interval {
            return None;
        }
        // What has refilled, or was lost, and no refund at all.
        if at <= now || at > full || spec.is_queue() && at < full || cost == 0 {
            return Some(None);
        }
        let charge = cost.saturating_mul(interval);
        let credit = charge.min(at - now);
        // Any other refund than that of the whole last charge is remembered.
        if at < full || credit < charge && !spec.is_queue() {
            return None;
        }
        // A bucket that is full is none.
        let left = if full - credit > now { full - credit } else { 0 };
        Some(Some(match spec.is_adjustable() {
            true if left > 0 => adjustable_state(left, now, interval)?,
            true => PlainState::AdjustableBucket { full: 0, number: now },
            false => PlainState::Bucket { full: left },
        }))
    }
}

impl PlainWindow {
    /// Returns the window after the refund of a charge that was made when it was opened then, if that changes it; `None` if it is
    /// from the future.
    #[inline]
    fn refund(self, state: PlainState, now: u64, cost: u64, at: u64) -> Option<Option<PlainState>> {
        let PlainState::Window { end, number: count } = state else { return None };
        let start = self.start(end, count);
        if start > now {
            return None;
        }
        if now >= end || at != start {
            return Some(None);
        }
        let number = count.saturating_sub(cost);
        Some(Some(PlainState::Window { end: if number > 0 { end } else { now }, number }))
    }

    /// Returns when a window with this end was opened; for one without permits, when the next may be.
    #[inline]
    fn start(self, end: u64, number: u64) -> u64 {
        if number > 0 { end.wrapping_sub(self.period) } else { end }
    }
}

impl PlainSteps for PlainSpec {
    #[inline]
    fn is_dated(self) -> bool {
        self.is_bucket()
    }

    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        match self.kind {
            PlainKind::TokenBucket | PlainKind::Meter => self.bucket().decide(state, now, cost),
            PlainKind::Window | PlainKind::Holds => self.window().decide(state, now, cost),
            PlainKind::Queue => self.bucket().decide_queue(state, now, cost),
            // What a bucket refuses, this one lends, and a debt does not fit into a slot.
            PlainKind::Borrowing => self.bucket().decide(state, now, cost).filter(|step| step.admitted),
            PlainKind::AdjustableTokenBucket | PlainKind::AdjustableMeter => {
                self.bucket().decide_adjustable(state, now, cost, false)
            }
            PlainKind::AdjustableQueue => self.bucket().decide_adjustable(state, now, cost, true),
            PlainKind::AlignedWindow => self.window().decide_aligned(state, now, cost),
        }
    }
}

impl PlainSteps for CommonSpec<'_> {
    #[inline]
    fn is_dated(self) -> bool {
        self.0.kind != PlainKind::Window
    }

    #[inline]
    fn decide(self, state: PlainState, now: u64, cost: u64) -> Option<PlainStep> {
        match self.0.kind {
            PlainKind::Window => self.0.window().decide(state, now, cost),
            _ => self.0.bucket().decide(state, now, cost),
        }
    }
}
