//! The generic cell rate algorithm (ITU-T I.371): continuous token buckets, and leaky buckets as a meter and as a
//! queue. Twin of lua/gcra.lua: change both or neither.
//!
//! All of them advance a theoretical arrival time (TAT), and differ in how far it may be ahead of a call's slot. A call that
//! waits advances it beyond the capacity, which reserves its slot.

use std::fmt;
use std::time::Duration;

use super::credits::{CREDITS_WRAP, since};
use super::debt::longest_debt;
use super::state::{GcraState, State};
use super::verdict::{ChargeId, Snapshot, Verdict};
use crate::base::bounds::{MAX_PERIOD_MICROS, MAX_PERMITS};
use crate::base::rate::Rate;

/// A bucket in microseconds of refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GcraSpec {
    /// What a call may take.
    pub kind: GcraKind,
    /// The microseconds in which one permit refills.
    pub interval: u64,
    /// The microseconds from empty to full; for a queue, its maximum length.
    pub capacity: u64,
}

/// What a call may take. The same numbers with another kind are another policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GcraKind {
    /// The permits in the bucket.
    TokenBucket,
    /// The free space in the bucket, which is the same number.
    Meter,
    /// Any cost while there is no debt, at this rate.
    Borrowing(Rate),
    /// The next slots in a queue.
    Queue,
}

impl GcraSpec {
    /// Returns a bucket of the same kind that holds more permits than any other, each of which takes a microsecond.
    pub(super) fn unbounded(self) -> Self {
        let kind = match self.kind {
            GcraKind::Borrowing(_) => GcraKind::Borrowing(Rate::new(1, Duration::from_micros(1))),
            kind => kind,
        };
        GcraSpec { kind, interval: 1, capacity: MAX_PERMITS }
    }

    /// Returns the microseconds of refill that a cost takes. Costs that never fit are cut to the smallest that does not.
    #[inline]
    pub(crate) fn charge(&self, cost: u64) -> u64 {
        match self.kind {
            GcraKind::Borrowing(rate) => rate.micros_for(cost).unwrap_or(MAX_PERIOD_MICROS + 1),
            _ => cost.saturating_mul(self.interval).min(self.capacity + 1),
        }
    }

    /// Returns how far the arrival time may be ahead of a call's slot: the tolerance of I.371, less the charge. `None` if the
    /// call can never be admitted.
    #[inline]
    pub(crate) fn lead(&self, charge: u64) -> Option<u64> {
        match self.kind {
            GcraKind::TokenBucket | GcraKind::Meter => self.capacity.checked_sub(charge),
            GcraKind::Borrowing(_) => (charge <= MAX_PERIOD_MICROS).then_some(self.capacity),
            GcraKind::Queue => (charge <= self.capacity).then_some(0),
        }
    }

    /// Limits a call's wait to the slots of the queue.
    #[inline]
    pub(crate) fn max_wait(&self, charge: u64, wait: u64) -> u64 {
        match self.kind {
            GcraKind::Queue => wait.min(self.capacity.saturating_sub(charge)),
            _ => wait,
        }
    }

    /// Returns the permits that refill in this time.
    #[inline]
    pub(super) fn permits(&self, micros: u64) -> u64 {
        match self.kind {
            GcraKind::Borrowing(rate) => rate.permits_in(micros),
            _ => micros / self.interval,
        }
    }

    #[inline]
    pub(super) fn limit(&self) -> u64 {
        // A bucket that lends admits one permit even if it holds less.
        self.permits(self.capacity).max(1)
    }

    pub(super) const fn max_cost(&self) -> Option<u64> {
        match self.kind {
            GcraKind::Borrowing(_) => None,
            _ => Some(self.capacity / self.interval),
        }
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Snapshot {
        let bucket = self.current(stored(state), now);
        [bucket.tat.max(now), bucket.credited, 0, 0, 0]
    }

    #[inline(always)]
    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64) -> Verdict {
        let (charge, level) = (self.charge(cost), snapshot[0].saturating_sub(now));
        let until_slot = match cost {
            0 => Some(0),
            _ => self.lead(charge).map(|lead| level.saturating_sub(lead)),
        };
        let max_wait = self.max_wait(charge, wait);
        let admitted = until_slot.is_some_and(|until_slot| until_slot <= max_wait);
        let after = if admitted { level + charge } else { level };
        // For a queue `retry_after` ends at a slot that is within the call's wait.
        let waited = if self.kind == GcraKind::Queue { max_wait } else { 0 };
        Verdict {
            admitted,
            wait: until_slot.filter(|_| admitted).unwrap_or(0),
            limit: self.limit(),
            remaining: self.permits(self.capacity.saturating_sub(after)),
            retry_after: until_slot.filter(|_| !admitted).map(|until_slot| until_slot - waited),
            reset_after: after,
            charge_id: ChargeId { at: now + after, level: 0, credited: snapshot[1] },
        }
    }

    /// Returns the snapshot for a call that starts at this slot, later than now, because another bucket makes it wait. Its charge is
    /// remembered like a refund: once it is gone, the arrival time does not tell the slots of those before it.
    pub(crate) fn moved_to([tat, credited, ..]: Snapshot, slot: u64) -> Snapshot {
        [tat.max(slot), (credited + 1) % CREDITS_WRAP, slot, 0, 0]
    }

    /// Decides such a call, which waits so long. The bucket is ready by then.
    pub(crate) fn verdict_at(&self, moved: Snapshot, now: u64, wait: u64, cost: u64) -> Verdict {
        let verdict = self.verdict(moved, now + wait, cost, 0);
        Verdict { wait, reset_after: verdict.reset_after + wait, ..verdict }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, now: u64, cost: u64) {
        let (bucket, charge) = (self.current(stored(state.as_ref()), now), self.charge(cost));
        let tat = snapshot[0] + charge;
        let waits = tat > now + self.capacity;
        let slot = if waits { snapshot[0].saturating_sub(self.lead(charge).unwrap_or(0)) } else { 0 };
        let (slot, until) = (bucket.slot.max(slot).max(snapshot[2]), bucket.until.max(tat));
        // That of a charge for the slot of another bucket has changed.
        let credited = if snapshot[2] > 0 { snapshot[1] } else { bucket.credited };
        *state = self.keep(GcraState { tat, slot, until, credited, ..bucket }, now);
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) -> bool {
        let (was, bucket) = (stored(state.as_ref()), self.current(stored(state.as_ref()), now));
        let is_future = bucket.tat < was.tat;
        if is_future {
            *state = self.keep(bucket, now);
        }
        is_future
    }

    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let bucket = self.current(stored(state.as_ref()), now);
        let Some((left, gone)) = self.refunded(bucket, now, self.worth(cost), charge_id) else { return };
        let bound = if gone && bucket.credited == 0 { self.capacity } else { self.interval };
        let slot = bucket.slot.min(left.tat.saturating_sub(bound));
        *state = self.keep(GcraState { slot, written: None, ..left }, now);
    }

    /// Charges a debt. Returns whether it was cut.
    pub(super) fn debit(&self, state: &mut Option<State>, now: u64, cost: u64) -> bool {
        let bucket = self.current(stored(state.as_ref()), now);
        let (tat, is_cut) = self.owing(bucket.tat.max(now), now, self.worth(cost));
        *state = self.keep(GcraState { tat, ..bucket }, now);
        is_cut
    }

    /// Stands still from `at` on for so long, with one permit at most afterwards. Receipts from before are worth nothing then.
    pub(super) fn pause(&self, state: &mut Option<State>, at: u64, by: u64) {
        let GcraState { tat, credited, until, slot, .. } = self.current(stored(state.as_ref()), at);
        let (end, missing) = (at + by, tat.saturating_sub(at));
        let tat = end + missing.max(self.missing_after_pause());
        let (credited, until) = ((credited + missing) % CREDITS_WRAP, (until + by).max(tat));
        let slot = if slot > at { slot + by } else { 0 };
        *state = self.keep(GcraState { tat, credited, until, slot, written: None }, end);
    }

    /// Returns the microseconds of refill that are missing at least when a pause ends.
    pub(crate) fn missing_after_pause(&self) -> u64 {
        self.lead(self.charge(1)).unwrap_or(0)
    }

    /// Returns the microseconds of refill that a cost is worth which may have been charged by other numbers or as a debt, cut to more
    /// than any bucket may owe.
    pub(crate) fn worth(&self, cost: u64) -> u64 {
        let most = 4 * MAX_PERIOD_MICROS;
        match self.kind {
            GcraKind::Borrowing(rate) => rate.micros_up_to(cost, most),
            _ => cost.saturating_mul(self.interval).min(most),
        }
    }

    /// Returns the arrival time after a debt, and whether that was cut to the longest that the bucket may have.
    pub(super) fn owing(&self, tat: u64, now: u64, debt: u64) -> (u64, bool) {
        let most = (now + self.most_missing()).max(tat);
        (most.min(tat + debt), tat + debt > most)
    }

    /// Returns the microseconds of refill that are missing at most once the bucket owes.
    pub(crate) fn most_missing(&self) -> u64 {
        self.capacity + longest_debt(self.capacity)
    }

    /// Refunds the part of the charge that has not refilled by now or by the last slot that a call waits for, assuming that
    /// nothing was charged after it: up to this amount a refund shifts all later charges equally. A slot in a queue is
    /// refunded only while it is the last.
    ///
    /// Returns the bucket without that part, with its last slot yet to be moved up, and whether no trace of the charge is
    /// left; `None` if nothing is refunded.
    pub(super) fn refunded(
        &self,
        bucket: GcraState,
        now: u64,
        charge: u64,
        charge_id: Option<ChargeId>,
    ) -> Option<(GcraState, bool)> {
        let GcraState { tat, credited, until, slot, .. } = bucket;
        let (at, then) = charge_id.map_or((tat, credited), |charge_id| (charge_id.at, charge_id.credited));
        let last = (at, then) == (tat, credited);
        let full = at.saturating_sub(since(then, credited));
        let worth = full.saturating_sub(now.max(slot));
        let credit = if last || self.kind != GcraKind::Queue { charge.min(worth) } else { 0 };
        // If the charged bucket would be full later than this one, it was lost.
        if credit == 0 || full > tat {
            return None;
        }
        // A full refund of the last charge leaves no trace. Any other one is remembered, as it lowers the value of the
        // charges before it.
        let gone = last && (charge_id.is_some() && credit == charge || self.kind == GcraKind::Queue);
        let (credited, until) =
            if gone { (credited, until) } else { ((credited + credit) % CREDITS_WRAP, until.max(tat)) };
        Some((GcraState { tat: tat - credit, credited, until, ..bucket }, gone))
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        let bucket = stored(Some(state));
        bucket.tat.max(bucket.until)
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GcraSpec { kind, interval, capacity } = self;
        match kind {
            GcraKind::TokenBucket => write!(out, "tb1-{interval}-{capacity}"),
            GcraKind::Meter => write!(out, "lb1-{interval}-{capacity}"),
            GcraKind::Queue => write!(out, "lq1-{interval}-{capacity}"),
            GcraKind::Borrowing(rate) => {
                write!(out, "bb1-{}-{}-{capacity}", rate.permits, rate.period.as_nanos())
            }
        }
    }

    /// Returns the state as of now. One written in the future is at most as far ahead of now as it was when written.
    fn current(&self, bucket: GcraState, now: u64) -> GcraState {
        let reach = bucket.written.map_or(0, |written| bucket.tat.saturating_sub(written)).max(self.capacity);
        let tat = bucket.tat.min(now + reach);
        let back = bucket.tat - tat;
        let (until, slot) = (bucket.until.saturating_sub(back), bucket.slot.saturating_sub(back));
        let credited = if until > now { bucket.credited } else { 0 };
        GcraState { tat, credited, until, slot, written: bucket.written }
    }

    /// Returns the state to store, without what has expired.
    fn keep(&self, bucket: GcraState, now: u64) -> Option<State> {
        let GcraState { tat, credited, .. } = bucket;
        let slot = if bucket.slot > now { bucket.slot } else { 0 };
        let until = if credited > 0 { bucket.until } else { 0 };
        let written = (tat > now + self.capacity || slot > 0 || credited > 0).then_some(now);
        (tat.max(until) > now).then_some(State::Gcra(GcraState { tat, credited, until, slot, written }))
    }
}

fn stored(state: Option<&State>) -> GcraState {
    match state {
        Some(State::Gcra(bucket)) => *bucket,
        _ => GcraState::default(),
    }
}
