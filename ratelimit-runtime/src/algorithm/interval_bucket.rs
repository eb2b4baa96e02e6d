//! A token bucket that refills at intervals (`refillIntervally` of Bucket4j): a whole refill at once, every period from the
//! call that found the bucket full. Twin of lua/interval_bucket.lua: change both or neither.

use std::fmt;

use super::credits::{CREDITS_WRAP, since};
use super::state::{IntervalBucketState, State};
use super::verdict::{ChargeId, Snapshot, Verdict};

/// The maximum of missing permits. Up to it, division by a refill is exact in Lua too.
const MOST_MISSING: u64 = 1 << 52;

/// A bucket in permits, and its refills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntervalBucketSpec {
    /// The permits the bucket holds.
    pub burst: u64,
    /// The permits of one refill.
    pub refill: u64,
    /// The microseconds from one refill to the next.
    pub period: u64,
}

impl IntervalBucketSpec {
    /// Returns the last refill and the permits missing after it.
    fn refilled(&self, anchor: u64, missing: u64, now: u64) -> (u64, u64) {
        let refills = now.saturating_sub(anchor) / self.period;
        if anchor > now {
            return (now, missing);
        } else if refills >= missing.div_ceil(self.refill) {
            return (now, 0);
        }
        (anchor + refills * self.period, missing - refills * self.refill)
    }

    /// Returns when nothing will be missing.
    fn full(&self, anchor: u64, missing: u64) -> u64 {
        anchor.saturating_add(missing.div_ceil(self.refill).saturating_mul(self.period))
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Snapshot {
        let bucket = self.current(stored(state), now);
        [bucket.anchor, bucket.missing, bucket.credited]
    }

    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64) -> Verdict {
        let [anchor, missing, credited] = snapshot;
        let until_slot =
            (cost <= self.burst).then(|| self.slot(anchor, missing.saturating_add(cost)).saturating_sub(now));
        let until_slot = if cost == 0 { Some(0) } else { until_slot };
        let countable = cost == 0 || missing.saturating_add(cost) <= MOST_MISSING;
        let admitted = countable && until_slot.is_some_and(|until_slot| until_slot <= wait);
        let after = if admitted { missing + cost } else { missing };
        Verdict {
            admitted,
            wait: until_slot.filter(|_| admitted).unwrap_or(0),
            limit: self.burst,
            remaining: self.burst.saturating_sub(after),
            retry_after: until_slot.filter(|_| !admitted),
            reset_after: self.full(anchor, after).saturating_sub(now),
            charge_id: ChargeId { at: anchor, level: after, credited },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, now: u64, cost: u64) {
        let bucket = self.current(stored(state.as_ref()), now);
        let (anchor, missing) = (snapshot[0], snapshot[1] + cost);
        let (slot, until) =
            (bucket.slot.max(self.slot(anchor, missing)), bucket.until.max(self.full(anchor, missing)));
        *state = self.keep(IntervalBucketState { anchor, missing, slot, until, ..bucket }, now);
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) {
        let bucket = stored(state.as_ref());
        if bucket.anchor > now {
            *state = self.keep(self.current(bucket, now), now);
        }
    }

    /// Refunds, as [`GcraSpec`](super::gcra::GcraSpec) does, the part of the charge that has not refilled by now or by the
    /// last slot that a call waits for, assuming that nothing was charged after it. Of the last charge it refunds all that is
    /// still missing.
    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let bucket = self.current(stored(state.as_ref()), now);
        let IntervalBucketState { anchor, missing, credited, until, slot } = bucket;
        let (at, level, then) = charge_id.map_or((anchor, missing, credited), |charge_id| {
            (charge_id.at, charge_id.level, charge_id.credited)
        });
        let (_, left) = self.refilled(at, level, now.max(slot));
        let (anchor_now, left_now) = self.refilled(at, level, now);
        let last = charge_id.is_some() && then == credited && (anchor_now, left_now) == (anchor, missing);
        let worth = if last { cost } else { left.saturating_sub(since(then, credited)) };
        let credit = cost.min(worth).min(missing);
        // If more would be missing from the charged bucket than from this one, it was lost.
        if credit == 0 || left_now.saturating_sub(since(then, credited)) > missing {
            return;
        }
        let left = missing - credit;
        // A full refund of the last charge leaves no trace. Any other one is remembered, as it lowers the value of the
        // charges before it.
        let gone = last && credit == cost;
        let before = self.not_full(anchor, left);
        let slot = if gone && credited == 0 { self.slot(anchor, left) } else { slot.min(before) };
        let (credited, until) = if gone {
            (credited, until)
        } else {
            ((credited + credit) % CREDITS_WRAP, until.max(self.full(anchor, missing)))
        };
        *state = self.keep(IntervalBucketState { anchor, missing: left, credited, until, slot }, now);
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        let bucket = stored(Some(state));
        self.full(bucket.anchor, bucket.missing).max(bucket.until)
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ib1-{}-{}-{}", self.burst, self.refill, self.period)
    }

    /// Returns when the bucket stops lacking more permits than it holds; 0 if it does not.
    fn slot(&self, anchor: u64, missing: u64) -> u64 {
        match missing.saturating_sub(self.burst) {
            0 => 0,
            over => self.full(anchor, over),
        }
    }

    /// Returns the last refill after which permits are still missing. No call waits for a later one, unless a refill is more
    /// than the bucket holds.
    fn not_full(&self, anchor: u64, missing: u64) -> u64 {
        let full = self.full(anchor, missing);
        if self.burst < self.refill { full } else { full.saturating_sub(self.period) }
    }

    /// Returns the state as of now.
    fn current(&self, bucket: IntervalBucketState, now: u64) -> IntervalBucketState {
        let (anchor, missing) = self.refilled(bucket.anchor, bucket.missing, now);
        let ahead = bucket.anchor.saturating_sub(now);
        let [until, slot] = [bucket.until, bucket.slot.max(self.slot(bucket.anchor, bucket.missing))]
            .map(|time| time.saturating_sub(ahead));
        let credited = if until > now { bucket.credited } else { 0 };
        IntervalBucketState { anchor, missing, credited, until, slot }
    }

    /// Returns the state to store, without what has expired.
    fn keep(&self, bucket: IntervalBucketState, now: u64) -> Option<State> {
        let IntervalBucketState { anchor, missing, credited, .. } = bucket;
        let (until, slot) = if credited > 0 { (bucket.until, bucket.slot) } else { (0, 0) };
        let ends = self.full(anchor, missing).max(until);
        (ends > now).then_some(State::IntervalBucket(IntervalBucketState {
            anchor,
            missing,
            credited,
            until,
            slot,
        }))
    }
}

fn stored(state: Option<&State>) -> IntervalBucketState {
    match state {
        Some(State::IntervalBucket(bucket)) => *bucket,
        _ => IntervalBucketState::default(),
    }
}
