//! Token bucket with interval refill: all of a refill at once, every period from the call that found the bucket full.
//! Twin of lua/interval_bucket.lua: change both or neither.

use std::fmt;

use super::{Mark, Reading, State, Verdict};

/// The state is a moment of refill, and the permits missing right after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntervalBucket {
    /// The permits the bucket holds.
    pub burst: u64,
    /// The permits that come back at once.
    pub refill: u64,
    /// The microseconds from one refill to the next.
    pub period: u64,
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
        anchor + missing.div_ceil(self.refill) * self.period
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Reading {
        let (anchor, missing) = match stored(state) {
            Some((anchor, missing)) => self.refilled(anchor, missing, now),
            None => (now, 0),
        };
        [anchor, missing, 0]
    }

    pub(super) fn verdict(&self, reading: Reading, now: u64, cost: u64) -> Verdict {
        let [anchor, missing, _] = reading;
        let admitted = cost <= self.burst.saturating_sub(missing);
        let after = if admitted { missing + cost } else { missing };
        let retry_at = || self.full(anchor, missing + cost - self.burst);
        Verdict {
            admitted,
            limit: self.burst,
            remaining: self.burst.saturating_sub(after),
            retry_after: (!admitted && cost <= self.burst).then(|| retry_at() - now),
            reset_after: self.full(anchor, after) - now,
            mark: Mark { at: anchor, level: after },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, reading: Reading, _now: u64, cost: u64) {
        let [anchor, missing, _] = reading;
        *state = Some(State::IntervalBucket { anchor, missing: missing + cost });
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) {
        if let Some((anchor, missing)) = stored(state.as_ref())
            && anchor > now
        {
            *state = Some(State::IntervalBucket { anchor: now, missing });
        }
    }

    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, mut cost: u64, mark: Option<Mark>) {
        let Some((anchor, missing)) = stored(state.as_ref()) else { return };
        let (anchor, missing) = self.refilled(anchor, missing, now);
        if let Some(mark) = mark {
            let (_, left) = self.refilled(mark.at, mark.level, now);
            cost = cost.min(left);
        }
        if cost == 0 || missing == 0 {
            return;
        }
        *state = (missing > cost).then(|| State::IntervalBucket { anchor, missing: missing - cost });
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        match stored(Some(state)) {
            Some((anchor, missing)) => self.full(anchor, missing),
            None => 0,
        }
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ib1-{}-{}-{}", self.burst, self.refill, self.period)
    }
}

fn stored(state: Option<&State>) -> Option<(u64, u64)> {
    match state {
        Some(State::IntervalBucket { anchor, missing }) => Some((*anchor, *missing)),
        _ => None,
    }
}
