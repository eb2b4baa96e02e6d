//! A token bucket that warms up: `SmoothWarmingUp` of Guava's `RateLimiter` (cold factor 3), by the same operations on
//! doubles in the same order. Twin of lua/warming_up.lua: change both or neither.
//!
//! The idler the bucket, the more permits it has stored, and stored permits are slow: taking one takes from one to three
//! intervals of the rate, along a line that climbs from the threshold to the greatest store.

use std::fmt;

use super::{ChargeId, Snapshot, State, Verdict};
use crate::bounds::LONGEST_MICROS;
use crate::rate::Rate;

const COLD_FACTOR: f64 = 3.0;

/// Beyond what any policy admits, and exact in a double.
pub(crate) const COSTLIEST: u64 = 1 << 53;

/// A rate, and how long it takes to come to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WarmingUp {
    /// The rate when warm.
    pub rate: Rate,
    /// The microseconds from cold to warm.
    pub warmup: u64,
}

/// When the next call may go, and what is stored until then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warmth {
    next: u64,
    stored: f64,
    /// When it was written: from then on the debt reaches as far as it does, and no further.
    written: u64,
}

/// What follows from the policy.
struct Curve {
    interval: f64,
    threshold: f64,
    most: f64,
    slope: f64,
    cool_down: f64,
}

impl WarmingUp {
    /// The microseconds one permit takes when warm.
    pub(crate) fn interval(&self) -> f64 {
        self.rate.period.as_nanos() as f64 / 1000.0 / self.rate.permits as f64
    }

    fn curve(&self) -> Curve {
        let (interval, warmup) = (self.interval(), self.warmup as f64);
        let threshold = 0.5 * warmup / interval;
        let cold = interval * COLD_FACTOR;
        let most = threshold + 2.0 * warmup / (interval + cold);
        Curve {
            interval,
            threshold,
            most,
            slope: (cold - interval) / (most - threshold),
            cool_down: warmup / most,
        }
    }

    pub(super) fn limit(&self) -> u64 {
        (self.curve().most as u64).max(1)
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Snapshot {
        let (next, stored) = self.curve().current(stored(state), now);
        [next, stored.to_bits(), 0]
    }

    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64) -> Verdict {
        let curve = self.curve();
        let (next, stored) = (snapshot[0], f64::from_bits(snapshot[1]));
        let until_slot = if cost == 0 { 0 } else { next.saturating_sub(now) };
        let (takes, left) = curve.taken(stored, cost);
        let never = takes > LONGEST_MICROS;
        let admitted = until_slot <= wait && !never;
        let (next, left) = if admitted { (next + takes, left) } else { (next, stored) };
        Verdict {
            admitted,
            wait: if admitted { until_slot } else { 0 },
            limit: self.limit(),
            remaining: if next > now { 0 } else { left as u64 },
            retry_after: (!admitted && !never).then_some(until_slot),
            reset_after: curve.cold_at(next, left).saturating_sub(now),
            charge_id: ChargeId { at: next, level: stored.to_bits(), credited: 0 },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, now: u64, cost: u64) {
        let (takes, stored) = self.curve().taken(f64::from_bits(snapshot[1]), cost);
        *state = Some(State::WarmingUp(Warmth { next: snapshot[0] + takes, stored, written: now }));
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) {
        let warmth = stored(state.as_ref());
        if warmth.is_some_and(|warmth| warmth.written > now) {
            let (next, stored) = self.curve().current(warmth, now);
            *state = Some(State::WarmingUp(Warmth { next, stored, written: now }));
        }
    }

    /// The last charge is taken back as if it had never been, of those before it nothing is. Without a charge_id the debt is lowered.
    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let (curve, Some(warmth)) = (self.curve(), stored(state.as_ref())) else { return };
        let left = match charge_id {
            Some(charge_id) => {
                let before = f64::from_bits(charge_id.level);
                let (takes, left) = curve.taken(before, cost);
                if (charge_id.at, left) != (warmth.next, warmth.stored) {
                    return;
                }
                Warmth { next: charge_id.at.saturating_sub(takes), stored: before, written: warmth.written }
            }
            None => {
                let (next, stored) = curve.current(Some(warmth), now);
                if next == now {
                    return;
                }
                let next = next.saturating_sub(curve.fresh(cost as f64)).max(now);
                Warmth { next, stored, written: now }
            }
        };
        *state = (curve.cold_at(left.next, left.stored) > now).then_some(State::WarmingUp(left));
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        stored(Some(state)).map_or(0, |warmth| self.curve().cold_at(warmth.next, warmth.stored))
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rate { permits, period } = self.rate;
        write!(out, "wu1-{permits}-{}-{}", period.as_nanos(), self.warmup)
    }
}

impl Curve {
    /// When the next call may go, not before now, and what is stored then.
    fn current(&self, warmth: Option<Warmth>, now: u64) -> (u64, f64) {
        let Some(Warmth { next, stored, written }) = warmth else { return (now, self.most) };
        let next = next.saturating_sub(written.saturating_sub(now));
        if next >= now {
            return (next, stored);
        }
        // The sum below may miss it by the last bit.
        if self.cold_at(next, stored) <= now {
            return (now, self.most);
        }
        let new = (now - next) as f64 / self.cool_down;
        (now, (stored + new).min(self.most))
    }

    /// The microseconds that a call takes, and what it leaves in store. Each part is cut to whole microseconds, as Guava does;
    /// where that comes to less than the rate allows it is one more. It is less still, by under 2 µs, only where stored
    /// permits run out amid a call, and before that the bucket was idle for about as long.
    fn taken(&self, stored: f64, cost: u64) -> (u64, f64) {
        let cost = cost.min(COSTLIEST) as f64;
        let spent = cost.min(stored);
        let takes = self.stored_time(stored, spent).saturating_add(((cost - spent) * self.interval) as u64);
        (if takes < self.fresh(cost) { takes + 1 } else { takes }, stored - spent)
    }

    /// The microseconds that it takes to take so much of what is stored.
    fn stored_time(&self, stored: f64, mut spent: f64) -> u64 {
        let above = stored - self.threshold;
        let mut micros = 0;
        if above > 0.0 {
            let spent_above = above.min(spent);
            let length = self.time(above) + self.time(above - spent_above);
            micros = (spent_above * length / 2.0) as u64;
            spent -= spent_above;
        }
        micros + (self.interval * spent) as u64
    }

    /// The microseconds that one permit takes where so many are stored above the threshold.
    fn time(&self, above: f64) -> f64 {
        self.interval + above * self.slope
    }

    /// The microseconds of so many permits when warm.
    fn fresh(&self, permits: f64) -> u64 {
        (permits * self.interval).ceil() as u64
    }

    fn cold_at(&self, next: u64, stored: f64) -> u64 {
        next + ((self.most - stored) * self.cool_down).ceil() as u64
    }
}

fn stored(state: Option<&State>) -> Option<Warmth> {
    match state {
        Some(State::WarmingUp(warmth)) => Some(*warmth),
        _ => None,
    }
}
