//! The generic cell rate algorithm for numbers that change from call to call. Twin of lua/adjustable_gcra.lua: change both or
//! neither.
//!
//! A state counts in microseconds of refill at the rate of the last charge, and refills at this rate until the next one. A
//! call with another rate counts the same missing permits in microseconds of its own, rounded up.

use std::fmt;

use super::credits::CREDITS_WRAP;
use super::gcra::{GcraKind, GcraSpec};
use super::state::{AdjustableGcraState, GcraState, State};
use super::verdict::{ChargeId, Snapshot, Verdict};

/// Up to here products of doubles are exact.
const EXACT: f64 = (1u64 << 53) as f64;

/// More microseconds than any call waits, and few enough that times stay below 2^53.
const MAX_LEVEL: f64 = (1u64 << 51) as f64;

/// A bucket in microseconds of refill, whose state does not depend on these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdjustableGcraSpec(pub GcraSpec);

impl AdjustableGcraSpec {
    /// Returns the microseconds in which one permit refills.
    pub(crate) fn pace(&self) -> f64 {
        match self.0.kind {
            GcraKind::Borrowing(rate) => rate.micros_per_permit(),
            _ => self.0.interval as f64,
        }
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, cost: u64) -> Snapshot {
        self.check_current(self.current(stored(state), now), now, cost)
    }

    /// Checks a state as of now.
    #[inline]
    pub(super) fn check_current(&self, bucket: AdjustableGcraState, now: u64, cost: u64) -> Snapshot {
        let (from, to) = (bucket.pace, self.pace());
        let full_at = bucket.tat.max(now);
        if from == to {
            let snapshot = self.at_own_rate(full_at, now, cost);
            return [full_at, bucket.credited, now.max(bucket.changed), snapshot[3], full_at];
        }
        // Before a slot that a call waits for, a faster rate would refill what is reserved.
        let base = if to < from { bucket.slot.max(now) } else { now };
        let level = rounded_up(full_at.saturating_sub(base), from, to);
        let lead = self.0.lead(self.0.charge(cost)).unwrap_or(0);
        let free_at = if base > now && level <= lead {
            (base + level).saturating_sub(lead)
        } else {
            full_at.saturating_sub(rounded_down(lead, to, from))
        };
        // Later than all charges at the other rate, even those of the same microsecond.
        let made = now.max(bucket.changed + 1);
        [base + level, 0, made, free_at, full_at]
    }

    /// Returns what a check reads of a bucket of the same rate that is full at this time, and has nothing that few have.
    pub(crate) fn at_own_rate(&self, full_at: u64, now: u64, cost: u64) -> Snapshot {
        let lead = self.0.lead(self.0.charge(cost.max(1))).unwrap_or(0);
        [full_at, 0, now, full_at.saturating_sub(lead), full_at]
    }

    #[inline(always)]
    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64) -> Verdict {
        let [tat, credited, made, free_at, full_at] = snapshot;
        let (charge, level) = (self.0.charge(cost), tat.saturating_sub(now));
        let until_slot = match cost {
            0 => Some(0),
            _ => self.0.lead(charge).map(|lead| match level.saturating_sub(lead) {
                _ if free_at <= now => 0,
                until_slot => until_slot.max(1),
            }),
        };
        let max_wait = self.0.max_wait(charge, wait);
        let admitted = until_slot.is_some_and(|until_slot| until_slot <= max_wait);
        let after = if admitted { level + charge } else { level };
        // For a queue `retry_after` ends at a slot that is within the call's wait. A queue that moves at another rate is within
        // it at the latest when it is empty, which is when a faster call retries.
        let retry_after = until_slot.map(|until_slot| match self.0.kind {
            GcraKind::Queue if tat < full_at => full_at.saturating_sub(now),
            GcraKind::Queue => (until_slot - max_wait.min(until_slot)).min(full_at.saturating_sub(now)),
            _ => free_at.saturating_sub(now),
        });
        Verdict {
            admitted,
            wait: until_slot.filter(|_| admitted).unwrap_or(0),
            limit: self.0.limit(),
            remaining: self.0.permits(self.0.capacity.saturating_sub(after)),
            retry_after: retry_after.filter(|_| !admitted),
            reset_after: if admitted && cost > 0 { after } else { full_at.saturating_sub(now) },
            charge_id: ChargeId { at: now + after, level: made, credited },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, now: u64, cost: u64) {
        let (bucket, charge) = (self.current(stored(state.as_ref()), now), self.0.charge(cost));
        let (pace, made, tat) = (self.pace(), snapshot[2], snapshot[0] + charge);
        let slot = bucket.slot.max(snapshot[0].saturating_sub(self.0.lead(charge).unwrap_or(0)));
        let AdjustableGcraState { until, credited, .. } = bucket;
        let bucket = if pace == bucket.pace {
            let until = if credited > 0 { until.max(tat) } else { until };
            AdjustableGcraState { tat, slot, until, ..bucket }
        } else {
            // The receipts of earlier charges count at another rate, for as long as they do.
            let until = until.max(bucket.tat);
            AdjustableGcraState { tat, slot, until, credited: 0, changed: made, pace, written: now }
        };
        store(state, keep(bucket, now));
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) -> bool {
        let (was, bucket) = (stored(state.as_ref()), self.current(stored(state.as_ref()), now));
        let is_future = bucket.tat < was.tat;
        if is_future {
            store(state, keep(bucket, now));
        }
        is_future
    }

    /// Refunds as [`GcraSpec`] does, but nothing of a charge that was made before the rate changed.
    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let bucket = self.current(stored(state.as_ref()), now);
        let AdjustableGcraState { tat, credited, until, slot, changed, pace, .. } = bucket;
        if charge_id.is_some_and(|charge_id| charge_id.level < changed || self.pace() != pace) {
            return;
        }
        let (charge, own) = (self.0.worth(cost), self.pace());
        let charge = if own == pace { charge } else { rounded_up(charge, own, pace) };
        let unchanging = GcraState { tat, credited, until, slot, written: None };
        let Some((left, _)) = self.0.refunded(unchanging, now, charge, charge_id) else { return };
        let GcraState { tat, credited, until, .. } = left;
        // Each of the remaining charges takes at least a permit.
        let slot = slot.min(tat.saturating_sub(pace as u64));
        store(state, keep(AdjustableGcraState { tat, credited, until, slot, ..bucket }, now));
    }

    /// Charges a debt as [`GcraSpec`] does, at the rate of the state.
    pub(super) fn debit(&self, state: &mut Option<State>, now: u64, cost: u64) -> bool {
        let (bucket, own) = (self.current(stored(state.as_ref()), now), self.pace());
        let debt = self.0.worth(cost);
        let debt = if own == bucket.pace { debt } else { rounded_up(debt, own, bucket.pace) };
        let (tat, is_cut) = self.0.owing(bucket.tat.max(now), now, debt);
        store(state, keep(AdjustableGcraState { tat, ..bucket }, now));
        is_cut
    }

    /// Stands still as [`GcraSpec`] does, at the rate of the state.
    pub(super) fn pause(&self, state: &mut Option<State>, at: u64, by: u64) {
        let bucket = self.current(stored(state.as_ref()), at);
        let AdjustableGcraState { tat, credited, until, slot, changed, pace, .. } = bucket;
        let (end, missing) = (at + by, tat.saturating_sub(at));
        let tat = end + missing.max(self.missing_after_pause(pace));
        let (credited, until) = ((credited + missing) % CREDITS_WRAP, (until + by).max(tat));
        let slot = if slot > at { slot + by } else { 0 };
        let changed = if changed > 0 { changed + by } else { 0 };
        store(state, keep(AdjustableGcraState { tat, credited, until, slot, changed, ..bucket }, end));
    }

    /// Returns the microseconds of refill at this pace that are missing at least when a pause ends.
    pub(super) fn missing_after_pause(&self, pace: f64) -> u64 {
        let (missing, own) = (self.0.missing_after_pause(), self.pace());
        if own == pace { missing } else { rounded_up(missing, own, pace) }
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        let bucket = stored(Some(state));
        bucket.tat.max(bucket.until)
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.0.kind {
            GcraKind::TokenBucket => "tb3",
            GcraKind::Meter => "lb3",
            GcraKind::Queue => "lq3",
            GcraKind::Borrowing(_) => "bb3",
        })
    }

    /// Returns the state as of now. One written in the future is as far ahead of now as it was when written.
    fn current(&self, bucket: AdjustableGcraState, now: u64) -> AdjustableGcraState {
        let AdjustableGcraState { tat, written, .. } = bucket;
        if tat.max(bucket.until) <= now {
            return AdjustableGcraState { tat, written, pace: self.pace(), ..AdjustableGcraState::default() };
        }
        let tat = tat.min(now + tat.saturating_sub(written));
        let back = bucket.tat - tat;
        let (until, slot) = (bucket.until.saturating_sub(back), bucket.slot.saturating_sub(back));
        let bucket = AdjustableGcraState { tat, until, slot, ..bucket };
        if until > now { bucket } else { AdjustableGcraState { until: 0, credited: 0, changed: 0, ..bucket } }
    }
}

/// Returns the state to store, without what has expired.
fn keep(bucket: AdjustableGcraState, now: u64) -> Option<AdjustableGcraState> {
    let AdjustableGcraState { tat, credited, changed, .. } = bucket;
    let slot = if bucket.slot > now { bucket.slot } else { 0 };
    let until = if credited > 0 || changed > 0 { bucket.until } else { 0 };
    let kept = AdjustableGcraState { slot, until, written: now, ..bucket };
    (tat.max(until) > now).then_some(kept)
}

/// Stores a state where the one before it was.
fn store(state: &mut Option<State>, kept: Option<AdjustableGcraState>) {
    match (state, kept) {
        (Some(State::AdjustableGcra(bucket)), Some(kept)) => **bucket = kept,
        (state, kept) => *state = kept.map(|kept| State::AdjustableGcra(Box::new(kept))),
    }
}

/// Returns the time in which the permits refill at pace `to` that refill in this time at pace `from`, rounded up.
pub(super) fn rounded_up(micros: u64, from: f64, to: f64) -> u64 {
    if micros == 0 {
        return 0;
    }
    let product = micros as f64 * to;
    let least = (product / from).ceil() + if is_exact(product, from, to) { 0.0 } else { 1.0 };
    least.min(MAX_LEVEL) as u64
}

/// Returns the same rounded down.
fn rounded_down(micros: u64, from: f64, to: f64) -> u64 {
    let product = micros as f64 * to;
    let most = (product / from).floor() - if is_exact(product, from, to) { 0.0 } else { 1.0 };
    most.clamp(0.0, MAX_LEVEL) as u64
}

/// Returns whether the quotient of the product is exact up to its own rounding. Otherwise it is off by less than one, which the
/// callers add or subtract.
fn is_exact(product: f64, from: f64, to: f64) -> bool {
    product <= EXACT && from.fract() == 0.0 && to.fract() == 0.0
}

fn stored(state: Option<&State>) -> AdjustableGcraState {
    match state {
        Some(State::AdjustableGcra(bucket)) => **bucket,
        _ => AdjustableGcraState::default(),
    }
}

#[cfg(test)]
mod properties;
