//! Generic cell rate algorithm (ITU-T I.371): a continuous token bucket, a leaky bucket as a meter.
//! Twin of lua/gcra.lua: change both or neither.

use std::fmt;

use super::{Mark, Reading, State, Verdict};

/// One number is all the state: the theoretical arrival time, when the bucket will be full again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gcra {
    /// `tb` or `lb`: the same numbers as another algorithm are another policy.
    pub kind: &'static str,
    /// The microseconds one permit takes to come back.
    pub interval: u64,
    /// The microseconds from empty to full.
    pub capacity: u64,
}

impl Gcra {
    /// The microseconds of refill that a cost takes: one more than the capacity for all that never fit.
    pub(crate) fn charge(&self, cost: u64) -> u64 {
        cost.saturating_mul(self.interval).min(self.capacity + 1)
    }

    pub(super) const fn limit(&self) -> u64 {
        self.capacity / self.interval
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Reading {
        let stored = stored(state);
        let tat = stored.max(now).min(now + self.capacity);
        [tat, 0, 0]
    }

    pub(super) fn verdict(&self, reading: Reading, now: u64, cost: u64) -> Verdict {
        let (charge, level) = (self.charge(cost), reading[0].saturating_sub(now));
        let admitted = level + charge <= self.capacity;
        let after = if admitted { level + charge } else { level };
        Verdict {
            admitted,
            limit: self.limit(),
            remaining: (self.capacity - after) / self.interval,
            retry_after: (!admitted && charge <= self.capacity).then(|| level + charge - self.capacity),
            reset_after: after,
            mark: Mark { at: now + after, level: 0 },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, reading: Reading, _now: u64, cost: u64) {
        *state = Some(State::Gcra(reading[0] + self.charge(cost)));
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) {
        if stored(state.as_ref()) > now + self.capacity {
            *state = Some(State::Gcra(now + self.capacity));
        }
    }

    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, mark: Option<Mark>) {
        let mut credit = cost.saturating_mul(self.interval);
        let tat = stored(state.as_ref()).min(now + self.capacity);
        if let Some(mark) = mark {
            credit = credit.min(mark.at.saturating_sub(now));
        }
        if credit == 0 || tat <= now {
            return;
        }
        *state = (tat > now.saturating_add(credit)).then(|| State::Gcra(tat - credit));
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        stored(Some(state))
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}1-{}-{}", self.kind, self.interval, self.capacity)
    }
}

fn stored(state: Option<&State>) -> u64 {
    match state {
        Some(State::Gcra(tat)) => *tat,
        _ => 0,
    }
}
