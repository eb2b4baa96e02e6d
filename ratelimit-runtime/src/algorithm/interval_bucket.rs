//! A token bucket that refills at intervals (`refillIntervally` of Bucket4j): a whole refill at once, every period from the
//! call that found the bucket full. Twin of lua/interval_bucket.lua: change both or neither.

use std::fmt;

use super::credits::{CREDITS_WRAP, since};
use super::debt::longest_debt;
use super::state::{ChangingRefill, IntervalBucketState, State};
use super::verdict::{ChargeId, Snapshot, Verdict};

/// The maximum of missing permits. Up to it, division by a refill is exact in Lua too.
pub(crate) const MOST_MISSING: u64 = 1 << 52;

/// A bucket in permits, and its refills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntervalBucketSpec {
    /// The permits the bucket holds.
    pub burst: u64,
    /// The permits of one refill.
    pub refill: u64,
    /// The microseconds from one refill to the next.
    pub period: u64,
    /// Whether the state is the same for all bursts and refills. It refills as for the last charge until the next one.
    pub adjustable: bool,
}

impl IntervalBucketSpec {
    pub(super) fn check(&self, state: Option<&State>, now: u64, cost: u64) -> Snapshot {
        let bucket = self.current(stored(state), now);
        let (anchor, missing, credited) = (bucket.anchor, bucket.missing, bucket.credited);
        if !self.adjustable {
            return [anchor, missing, credited, 0, 0];
        }
        let refills = self.refills_of(&bucket);
        let (own_missing, full_at) = (self.own_missing(&bucket, now), refills.full(anchor, missing));
        let free_at = match self.slot(self.refills(), anchor, own_missing.saturating_add(cost)) {
            free_at if self.refill > refills.permits && free_at <= bucket.slot => free_at,
            _ => self.slot(refills, anchor, missing.saturating_add(cost)),
        };
        let credited = if refills.permits == self.refill { credited } else { 0 };
        [anchor, own_missing, credited, free_at, full_at]
    }

    #[inline(always)]
    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64) -> Verdict {
        let [anchor, missing, credited, free_at, full_at] = snapshot;
        let (refills, fits) = (self.refills(), cost <= self.burst);
        let slot = self.slot(refills, anchor, missing.saturating_add(cost));
        let until_slot = if cost == 0 { Some(0) } else { fits.then(|| slot.saturating_sub(now)) };
        let countable = cost == 0 || missing.saturating_add(cost) <= MOST_MISSING;
        let admitted = countable && until_slot.is_some_and(|until_slot| until_slot <= wait);
        let after = if admitted { missing + cost } else { missing };
        let (at, retry_after) = if self.adjustable {
            (now, fits.then(|| free_at.saturating_sub(now)))
        } else {
            (anchor, until_slot)
        };
        let is_unchanged = self.adjustable && (cost == 0 || !admitted);
        let full_at = if is_unchanged { full_at } else { refills.full(anchor, after) };
        Verdict {
            admitted,
            wait: until_slot.filter(|_| admitted).unwrap_or(0),
            limit: self.burst,
            remaining: self.burst.saturating_sub(after),
            retry_after: retry_after.filter(|_| !admitted),
            reset_after: full_at.saturating_sub(now),
            charge_id: ChargeId { at, level: after, credited },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, now: u64, cost: u64) {
        let mut bucket = self.current(stored(state.as_ref()), now);
        let (anchor, missing) = (snapshot[0], snapshot[1] + cost);
        let changed = self.adjustable && bucket.refill.as_ref().is_none_or(|of| of.permits != self.refill);
        if changed {
            // The receipts of earlier charges count with another refill.
            (bucket.credited, bucket.until) = (0, 0);
            bucket.refill = Some(Box::new(ChangingRefill { permits: self.refill, changed: now }));
        }
        let slot = bucket.slot.max(self.slot(self.refills(), anchor, missing));
        let until = bucket.until.max(self.refills().full(anchor, missing));
        *state = self.keep(IntervalBucketState { anchor, missing, slot, until, ..bucket }, now);
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) -> bool {
        let bucket = stored(state.as_ref());
        let is_future = bucket.anchor > now;
        if is_future {
            *state = self.keep(self.current(bucket, now), now);
        }
        is_future
    }

    /// Refunds, as [`GcraSpec`](super::gcra::GcraSpec) does, the part of the charge that has not refilled by now or by the
    /// last slot that a call waits for, assuming that nothing was charged after it. Of the last charge it refunds all that is
    /// still missing. Nothing is refunded of a charge that was made before the refill changed.
    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let bucket = self.current(stored(state.as_ref()), now);
        let refills = self.refills_of(&bucket);
        let IntervalBucketState { anchor, missing, credited, until, slot, .. } = bucket;
        let (mut at, level, then) = charge_id.map_or((anchor, missing, credited), |charge_id| {
            (charge_id.at, charge_id.level, charge_id.credited)
        });
        if let (Some(of), Some(_)) = (&bucket.refill, charge_id) {
            if at < of.changed || of.permits != self.refill {
                return;
            }
            at = refills.last_before(anchor, at);
        }
        let (_, left) = refills.refilled(at, level, now.max(slot));
        let (anchor_now, left_now) = refills.refilled(at, level, now);
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
        let before = self.not_full(refills, anchor, left);
        let slot = if gone && credited == 0 && !self.adjustable {
            self.slot(refills, anchor, left)
        } else {
            slot.min(before)
        };
        let (credited, until) = if gone {
            (credited, until)
        } else {
            ((credited + credit) % CREDITS_WRAP, until.max(refills.full(anchor, missing)))
        };
        *state = self.keep(IntervalBucketState { missing: left, credited, until, slot, ..bucket }, now);
    }

    /// Charges a debt. Returns whether it was cut.
    pub(super) fn debit(&self, state: &mut Option<State>, now: u64, cost: u64) -> bool {
        let mut bucket = self.current(stored(state.as_ref()), now);
        if self.adjustable && bucket.refill.is_none() {
            bucket.refill = Some(Box::new(ChangingRefill { permits: self.refill, changed: now }));
        }
        // The state gets its own refills until the next charge.
        let (refill, recovery) = (self.refills_of(&bucket).permits, self.burst.div_ceil(self.refill));
        let full = self.burst.min(recovery.saturating_mul(refill));
        let most = self.longest_debt().saturating_mul(refill).saturating_add(full).min(MOST_MISSING);
        let owed = bucket.missing.saturating_add(cost);
        let missing = owed.min(most.max(bucket.missing));
        *state = self.keep(IntervalBucketState { missing, ..bucket }, now);
        missing < owed
    }

    /// Stands still from `at` on for so long, with one permit at most afterwards. Receipts from before are worth nothing then.
    pub(super) fn pause(&self, state: &mut Option<State>, at: u64, by: u64) {
        let mut bucket = self.current(stored(state.as_ref()), at);
        let (anchor, lost) = (bucket.anchor + by, bucket.missing);
        let missing = lost.max(self.burst - 1);
        if self.adjustable {
            let own = ChangingRefill { permits: self.refill, changed: at };
            bucket.refill.get_or_insert_with(|| Box::new(own)).changed += by;
        }
        let full = self.refills_of(&bucket).full(anchor, missing);
        let (credited, until) = ((bucket.credited + lost) % CREDITS_WRAP, (bucket.until + by).max(full));
        let slot = if bucket.slot > at { bucket.slot + by } else { 0 };
        *state = self.keep(IntervalBucketState { anchor, missing, credited, until, slot, ..bucket }, at + by);
    }

    /// Returns the last slot that a call waits for; 0 if there is none.
    pub(super) fn last_slot(&self, bucket: &IntervalBucketState) -> u64 {
        let slot = if self.adjustable { 0 } else { self.slot(self.refills(), bucket.anchor, bucket.missing) };
        bucket.slot.max(slot)
    }

    /// Returns the refills that a debt takes at most.
    pub(crate) fn longest_debt(&self) -> u64 {
        let recovery = self.burst.div_ceil(self.refill).saturating_mul(self.period);
        longest_debt(recovery) / self.period
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        let bucket = stored(Some(state));
        self.refills_of(&bucket).full(bucket.anchor, bucket.missing).max(bucket.until)
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IntervalBucketSpec { burst, refill, period, adjustable } = self;
        if *adjustable { write!(out, "ib2-{period}") } else { write!(out, "ib1-{burst}-{refill}-{period}") }
    }

    fn refills(&self) -> Refills {
        Refills { permits: self.refill, period: self.period }
    }

    /// Returns the refills that the state gets until the next charge.
    fn refills_of(&self, bucket: &IntervalBucketState) -> Refills {
        let permits = bucket.refill.as_ref().map_or(self.refill, |refill| refill.permits);
        Refills { permits, period: self.period }
    }

    /// Returns the permits missing if the bucket gets refills of this spec. Before a slot that a call waits for, larger refills
    /// would return what is reserved.
    fn own_missing(&self, bucket: &IntervalBucketState, now: u64) -> u64 {
        let more = self.refill.saturating_sub(self.refills_of(bucket).permits);
        let refills = if bucket.slot > now { (bucket.slot - bucket.anchor) / self.period } else { 0 };
        bucket.missing.saturating_add(more.saturating_mul(refills)).min(MOST_MISSING + 1)
    }

    /// Returns when the bucket stops lacking more permits than it holds; 0 if it does not.
    fn slot(&self, refills: Refills, anchor: u64, missing: u64) -> u64 {
        match missing.saturating_sub(self.burst) {
            0 => 0,
            over => refills.full(anchor, over),
        }
    }

    /// Returns the last refill after which permits are still missing. No call waits for a later one, unless a refill is more
    /// than the bucket holds.
    fn not_full(&self, refills: Refills, anchor: u64, missing: u64) -> u64 {
        let full = refills.full(anchor, missing);
        if self.adjustable || self.burst < self.refill { full } else { full.saturating_sub(self.period) }
    }

    /// Returns the state as of now.
    fn current(&self, bucket: IntervalBucketState, now: u64) -> IntervalBucketState {
        let (anchor, missing) = self.refills_of(&bucket).refilled(bucket.anchor, bucket.missing, now);
        let ahead = bucket.anchor.saturating_sub(now);
        // With a changing burst the slot cannot be told from the missing permits.
        let slot = if self.adjustable { 0 } else { self.slot(self.refills(), bucket.anchor, bucket.missing) };
        let (until, slot) = (bucket.until.saturating_sub(ahead), bucket.slot.max(slot).saturating_sub(ahead));
        let credited = if until > now { bucket.credited } else { 0 };
        IntervalBucketState { anchor, missing, credited, until, slot, refill: bucket.refill }
    }

    /// Returns the state to store, without what has expired.
    fn keep(&self, bucket: IntervalBucketState, now: u64) -> Option<State> {
        let refills = self.refills_of(&bucket);
        let IntervalBucketState { anchor, missing, credited, .. } = bucket;
        let until = if credited > 0 { bucket.until } else { 0 };
        let slot = if credited > 0 || self.adjustable { bucket.slot } else { 0 };
        let ends = refills.full(anchor, missing).max(until);
        (ends > now).then_some(State::IntervalBucket(IntervalBucketState { until, slot, ..bucket }))
    }
}

/// Refills of this many permits, one every period.
#[derive(Clone, Copy)]
struct Refills {
    permits: u64,
    period: u64,
}

impl Refills {
    /// Returns the last refill and the permits missing after it.
    fn refilled(self, anchor: u64, missing: u64, now: u64) -> (u64, u64) {
        if missing == 0 || anchor > now {
            return (now, missing);
        }
        // Mostly there was none since the last call, and then nothing is divided.
        let refills = if now - anchor < self.period { 0 } else { (now - anchor) / self.period };
        if refills >= self.of(missing) {
            return (now, 0);
        }
        (anchor + refills * self.period, missing - refills * self.permits)
    }

    /// Returns when nothing will be missing.
    fn full(self, anchor: u64, missing: u64) -> u64 {
        anchor.saturating_add(self.of(missing).saturating_mul(self.period))
    }

    /// Returns the number of refills until so many permits are back. Mostly it is one, and then nothing is divided.
    fn of(self, missing: u64) -> u64 {
        if missing <= self.permits { (missing > 0).into() } else { missing.div_ceil(self.permits) }
    }

    /// Returns the last refill up to this time, given any refill.
    fn last_before(self, anchor: u64, time: u64) -> u64 {
        time.saturating_sub((i128::from(time) - i128::from(anchor)).rem_euclid(self.period.into()) as u64)
    }
}

fn stored(state: Option<&State>) -> IntervalBucketState {
    match state {
        Some(State::IntervalBucket(bucket)) => bucket.clone(),
        _ => IntervalBucketState::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refills_come_every_period_until_nothing_is_missing() {
        let refills = Refills { permits: 3, period: 10 };
        for missing in 0..12 {
            // Counted one by one.
            let mut left = (100, missing);
            let mut full = 100;
            for now in 100..150 {
                if now > 100 && now % 10 == 0 && left.1 > 0 {
                    left = (now, u64::saturating_sub(left.1, 3));
                    full = if left.1 == 0 { now } else { full };
                }
                let of_now = if left.1 == 0 { (now, 0) } else { left };
                assert_eq!(refills.refilled(100, missing, now), of_now, "{missing} at {now}");
            }
            assert_eq!(refills.full(100, missing), full);
            assert_eq!(refills.refilled(100, missing, 99), (99, missing));
        }
    }
}
