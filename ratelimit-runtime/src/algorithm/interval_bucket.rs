//! Token bucket with interval refill: all of a refill at once, every period from the call that found the bucket full.
//! Twin of lua/interval_bucket.lua: change both or neither.

use std::fmt;

use super::{CREDITS_WRAP, ChargeId, Snapshot, State, Verdict, since};

/// No line takes more than this: below it, dividing by a refill is exact in Lua too.
const MOST_MISSING: u64 = 1 << 52;

/// A bucket in permits, and the time from one refill to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntervalBucket {
    /// The permits the bucket holds.
    pub burst: u64,
    /// The permits that come back at once.
    pub refill: u64,
    /// The microseconds from one refill to the next.
    pub period: u64,
}

/// A moment of refill, and the permits missing right after it: more than there are while calls wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Portions {
    anchor: u64,
    missing: u64,
    /// All that was given back to charges that others were made after, as a running total.
    credited: u64,
    /// When none of the charges that this concerns can be given back any more.
    until: u64,
    /// The last slot that a call waits for, or a little later; 0 for none.
    slot: u64,
}

impl IntervalBucket {
    /// The bucket as of its last refill.
    fn refilled(&self, anchor: u64, missing: u64, now: u64) -> (u64, u64) {
        let refills = now.saturating_sub(anchor) / self.period;
        if anchor > now {
            return (now, missing);
        } else if refills >= missing.div_ceil(self.refill) {
            return (now, 0);
        }
        (anchor + refills * self.period, missing - refills * self.refill)
    }

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
        *state = self.kept(Portions { anchor, missing, slot, until, ..bucket }, now);
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) {
        let bucket = stored(state.as_ref());
        if bucket.anchor > now {
            *state = self.kept(self.current(bucket, now), now);
        }
    }

    /// As in [`gcra`](super::gcra): a charge is given back as far as the bucket, had nothing been charged after it, would not be
    /// full before now, nor before the last slot that a call waits for. Of the last charge that is all that is still missing.
    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let bucket = self.current(stored(state.as_ref()), now);
        let Portions { anchor, missing, credited, until, slot } = bucket;
        let (at, level, then) = charge_id.map_or((anchor, missing, credited), |charge_id| {
            (charge_id.at, charge_id.level, charge_id.credited)
        });
        let (_, left) = self.refilled(at, level, now.max(slot));
        let (anchor_now, left_now) = self.refilled(at, level, now);
        let last = charge_id.is_some() && then == credited && (anchor_now, left_now) == (anchor, missing);
        let worth = if last { cost } else { left.saturating_sub(since(then, credited)) };
        let credit = cost.min(worth).min(missing);
        // Where more would be missing than there is, the charge was to a state that is lost.
        if credit == 0 || left_now.saturating_sub(since(then, credited)) > missing {
            return;
        }
        let left = missing - credit;
        // Of the last charge, given back whole, no trace remains. Else the charges before are worth less from here on.
        let gone = last && credit == cost;
        let before = self.not_full(anchor, left);
        let slot = if gone && credited == 0 { self.slot(anchor, left) } else { slot.min(before) };
        let (credited, until) = if gone {
            (credited, until)
        } else {
            ((credited + credit) % CREDITS_WRAP, until.max(self.full(anchor, missing)))
        };
        *state = self.kept(Portions { anchor, missing: left, credited, until, slot }, now);
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        let bucket = stored(Some(state));
        self.full(bucket.anchor, bucket.missing).max(bucket.until)
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ib1-{}-{}-{}", self.burst, self.refill, self.period)
    }

    /// When so many permits are no longer more than there are.
    fn slot(&self, anchor: u64, missing: u64) -> u64 {
        match missing.saturating_sub(self.burst) {
            0 => 0,
            over => self.full(anchor, over),
        }
    }

    /// The last refill that leaves so many missing, or some: no call waits for one beyond, unless a refill is more than the
    /// bucket holds.
    fn not_full(&self, anchor: u64, missing: u64) -> u64 {
        let full = self.full(anchor, missing);
        if self.burst < self.refill { full } else { full.saturating_sub(self.period) }
    }

    /// The bucket as of now.
    fn current(&self, bucket: Portions, now: u64) -> Portions {
        let (anchor, missing) = self.refilled(bucket.anchor, bucket.missing, now);
        let ahead = bucket.anchor.saturating_sub(now);
        let [until, slot] = [bucket.until, bucket.slot.max(self.slot(bucket.anchor, bucket.missing))]
            .map(|time| time.saturating_sub(ahead));
        let credited = if until > now { bucket.credited } else { 0 };
        Portions { anchor, missing, credited, until, slot }
    }

    /// The bucket as it is stored: with no more than what says something.
    fn kept(&self, bucket: Portions, now: u64) -> Option<State> {
        let Portions { anchor, missing, credited, .. } = bucket;
        let (until, slot) = if credited > 0 { (bucket.until, bucket.slot) } else { (0, 0) };
        let ends = self.full(anchor, missing).max(until);
        (ends > now).then_some(State::IntervalBucket(Portions { anchor, missing, credited, until, slot }))
    }
}

fn stored(state: Option<&State>) -> Portions {
    match state {
        Some(State::IntervalBucket(portions)) => *portions,
        _ => Portions::default(),
    }
}
