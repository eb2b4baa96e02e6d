//! The generic cell rate algorithm for numbers that change and calls that are settled. Twin of lua/settled_gcra.lua: change both or
//! neither.
//!
//! A bucket that was never full since a charge would now be missing less by exactly what the charge is lowered by. So it remembers
//! lows: what has been missing at least since a few of its charges. As much of a charge can be given back as has been missing ever
//! since, which is more than a receipt of [`GcraSpec`] is worth, for which nothing counts that was charged later.

use std::fmt;

use super::adjustable_gcra::{AdjustableGcraSpec, rounded_up};
use super::gcra::{GcraKind, GcraSpec};
use super::lows::Lows;
use super::state::{AdjustableGcraState, SettledGcraState, State};
use super::verdict::{ChargeId, Snapshot, Verdict};

/// A bucket in microseconds of refill, whose state does not depend on these numbers. It is no queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SettledGcraSpec(pub GcraSpec);

impl SettledGcraSpec {
    pub(super) fn check(&self, state: Option<&State>, now: u64, cost: u64) -> Snapshot {
        let bucket = self.current(stored(state), now);
        let SettledGcraState { tat, written, slot, pace, .. } = bucket;
        let unsettled = AdjustableGcraState { tat, written, slot, pace, ..AdjustableGcraState::default() };
        let [tat, _, _, free_at, full_at] = self.adjustable().check_current(unsettled, now, cost);
        [tat, 0, next(&bucket, now), free_at, full_at]
    }

    /// Returns what a check reads of a bucket of the same rate that is full at this time, whose next charge is made at that one.
    #[cfg(feature = "redis")]
    pub(crate) fn at_own_rate(&self, full_at: u64, made: u64, now: u64, cost: u64) -> Snapshot {
        let [tat, _, _, free_at, full_at] = self.adjustable().at_own_rate(full_at, now, cost);
        [tat, 0, made, free_at, full_at]
    }

    #[inline(always)]
    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64) -> Verdict {
        self.adjustable().verdict(snapshot, now, cost, wait)
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, now: u64, cost: u64) {
        let (mut bucket, charge, pace) =
            (self.taken(state, now), self.0.charge(cost), self.adjustable().pace());
        let (tat, made, lead) = (snapshot[0], snapshot[2], self.0.lead(charge).unwrap_or(0));
        if pace == bucket.pace {
            // At the slot of a call that waits, less is missing than now.
            let missing = tat.saturating_sub(now).min(lead);
            bucket.lows.add(bucket.made, missing, made);
        } else {
            // Charges at another rate were worth something else.
            bucket.lows = Lows::default();
        }
        bucket.slot = bucket.slot.max(tat.saturating_sub(lead));
        (bucket.tat, bucket.pace, bucket.made) = (tat + charge, pace, made);
        keep(state, bucket, now);
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) -> bool {
        let tat = stored(state.as_ref()).tat;
        let is_future = self.current(stored(state.as_ref()), now).tat < tat;
        if is_future {
            let bucket = self.taken(state, now);
            keep(state, bucket, now);
        }
        is_future
    }

    /// Refunds as much of a charge as has been missing ever since; without one, what is missing now or after the last slot.
    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let bucket = self.current(stored(state.as_ref()), now);
        let SettledGcraState { tat, slot, pace, made, lows, .. } = bucket;
        let (charge, own, missing) = (self.0.worth(cost), self.adjustable().pace(), tat.saturating_sub(now));
        let worth = match charge_id {
            None => tat.saturating_sub(now.max(slot)),
            Some(_) if own != pace => 0,
            Some(charge_id) if charge_id.level == made => missing,
            Some(charge_id) if charge_id.level < made => lows.since(charge_id.level).min(missing),
            // Of a bucket that was lost.
            Some(_) => 0,
        };
        let charge = if own == pace { charge } else { rounded_up(charge, own, pace) };
        let credit = charge.min(worth);
        if credit == 0 {
            return;
        }
        let mut bucket = self.taken(state, now);
        bucket.lows.lower(charge_id.map_or(0, |charge_id| charge_id.level), credit, worth - credit);
        bucket.tat -= credit;
        // Each of the remaining charges takes at least a permit.
        bucket.slot = slot.min(bucket.tat.saturating_sub(pace as u64));
        keep(state, bucket, now);
    }

    /// Charges a debt as [`GcraSpec`] does, at the rate of the state.
    pub(super) fn debit(&self, state: &mut Option<State>, now: u64, cost: u64) -> bool {
        let (mut bucket, own, debt) = (self.taken(state, now), self.adjustable().pace(), self.0.worth(cost));
        let debt = if own == bucket.pace { debt } else { rounded_up(debt, own, bucket.pace) };
        let (tat, made) = (bucket.tat.max(now), next(&bucket, now));
        bucket.lows.add(bucket.made, tat - now, made);
        let is_cut;
        (bucket.tat, is_cut) = self.0.owing(tat, now, debt);
        bucket.made = made;
        keep(state, bucket, now);
        is_cut
    }

    /// Stands still as [`GcraSpec`] does, at the rate of the state.
    pub(super) fn pause(&self, state: &mut Option<State>, at: u64, by: u64) {
        let mut bucket = self.taken(state, at);
        let missing = bucket.tat.saturating_sub(at);
        bucket.tat = at + by + missing.max(self.adjustable().missing_after_pause(bucket.pace));
        bucket.made = (at + by).max(bucket.made + by + 1);
        bucket.lows = Lows::default();
        bucket.slot = if bucket.slot > at { bucket.slot + by } else { 0 };
        keep(state, bucket, at + by);
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        ends(stored(Some(state)))
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.0.kind {
            GcraKind::TokenBucket => "tb4",
            GcraKind::Meter => "lb4",
            GcraKind::Queue => "lq4",
            GcraKind::Borrowing(_) => "bb4",
        })
    }

    /// Returns the same bucket for calls that are not settled.
    fn adjustable(&self) -> AdjustableGcraSpec {
        AdjustableGcraSpec(self.0)
    }

    /// Returns the state as of now. One written in the future is as far ahead of now as it was when written.
    fn current(&self, bucket: SettledGcraState, now: u64) -> SettledGcraState {
        let SettledGcraState { tat, written, .. } = bucket;
        if ends(bucket) <= now {
            return SettledGcraState {
                tat,
                written,
                pace: self.adjustable().pace(),
                ..SettledGcraState::default()
            };
        }
        let tat = tat.min(now + tat.saturating_sub(written));
        let back = bucket.tat - tat;
        SettledGcraState {
            tat,
            slot: bucket.slot.saturating_sub(back),
            made: bucket.made.saturating_sub(back),
            lows: bucket.lows.back(back),
            ..bucket
        }
    }

    /// Takes the state as of now out of its place.
    fn taken(&self, state: &mut Option<State>, now: u64) -> Box<SettledGcraState> {
        let mut bucket = match state.take() {
            Some(State::SettledGcra(bucket)) => bucket,
            _ => Box::default(),
        };
        *bucket = self.current(*bucket, now);
        bucket
    }
}

/// Puts the state to store, without what has expired.
fn keep(state: &mut Option<State>, mut bucket: Box<SettledGcraState>, now: u64) {
    if bucket.slot <= now {
        bucket.slot = 0;
    }
    bucket.written = now;
    *state = (ends(*bucket) > now).then_some(State::SettledGcra(bucket));
}

/// Returns when the state expires: when the bucket is full, and later charges have other times than those before.
fn ends(bucket: SettledGcraState) -> u64 {
    bucket.tat.max(bucket.made + 1)
}

/// Returns the time of the next charge, later than all before.
fn next(bucket: &SettledGcraState, now: u64) -> u64 {
    now.max(bucket.made + 1)
}

fn stored(state: Option<&State>) -> SettledGcraState {
    match state {
        Some(State::SettledGcra(bucket)) => **bucket,
        _ => SettledGcraState::default(),
    }
}

#[cfg(test)]
mod properties;
