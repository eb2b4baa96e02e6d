//! A token bucket that warms up: `SmoothWarmingUp` of Guava's `SmoothRateLimiter` with its cold factor of 3, by the same
//! operations on doubles in the same order. Twin of lua/warming_up.lua: change both or neither.
//!
//! The longer the bucket is idle, the more permits it stores, and stored permits are slow: each takes from one to three
//! intervals of the rate, rising linearly from the threshold to the maximum store.

use std::fmt;

use super::state::{State, WarmingUpState};
use super::verdict::{ChargeId, Snapshot, Verdict};
use crate::base::bounds::MAX_PERIOD_MICROS;
use crate::base::rate::Rate;

const COLD_FACTOR: f64 = 3.0;

/// Higher than any admitted cost, and exact in a double.
pub(crate) const MAX_COST: u64 = 1 << 53;

/// A rate, and the time it takes to reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WarmingUpSpec {
    /// The rate when warm.
    pub rate: Rate,
    /// The microseconds from cold to warm.
    pub warmup: u64,
    /// Whether the state is the same for all numbers.
    pub adjustable: bool,
}

/// Guava's constants, derived from the spec. Times are in microseconds.
struct Curve {
    /// The time of a permit when warm.
    interval: f64,
    /// The stored permits above which each takes longer.
    threshold: f64,
    /// The maximum of stored permits, when cold.
    max_stored: f64,
    /// The increase of a permit's time per permit above the threshold.
    slope: f64,
    /// The time in which an idle bucket stores one permit.
    cool_down: f64,
}

impl WarmingUpSpec {
    /// Returns the microseconds of one permit when warm.
    pub(crate) fn interval(&self) -> f64 {
        self.rate.micros_per_permit()
    }

    fn curve(&self) -> Curve {
        let (interval, warmup) = (self.interval(), self.warmup as f64);
        let threshold = 0.5 * warmup / interval;
        let cold = interval * COLD_FACTOR;
        let max_stored = threshold + 2.0 * warmup / (interval + cold);
        Curve {
            interval,
            threshold,
            max_stored,
            slope: (cold - interval) / (max_stored - threshold),
            cool_down: warmup / max_stored,
        }
    }

    pub(super) fn limit(&self) -> u64 {
        (self.curve().max_stored as u64).max(1)
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Snapshot {
        self.curve().read(stored(state), now)
    }

    /// Decides a call of at least one permit that does not wait, and charges it if it is admitted. Takes the steps of
    /// [`check`](Self::check), [`verdict`](Self::verdict) and [`commit`](Self::commit), but derives the curve once.
    pub(super) fn decide(&self, state: &mut Option<State>, now: u64, cost: u64) -> (Snapshot, bool) {
        let curve = self.curve();
        let snapshot = curve.read(stored(state.as_ref()), now);
        let next = snapshot[0];
        let (takes, left) = curve.taken(f64::from_bits(snapshot[1]), cost);
        let admitted = next <= now && takes <= MAX_PERIOD_MICROS;
        if admitted {
            *state = Some(curve.state(next + takes, left, now));
        } else {
            self.undo(state, now);
        }
        (snapshot, admitted)
    }

    #[inline(always)]
    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64) -> Verdict {
        let curve = self.curve();
        let (next, stored, cold_at) = (snapshot[0], f64::from_bits(snapshot[1]), snapshot[4]);
        let until_slot = if cost == 0 { 0 } else { next.saturating_sub(now) };
        let (takes, left) = curve.taken(stored, cost);
        let never = takes > MAX_PERIOD_MICROS;
        let admitted = until_slot <= wait && !never;
        let (next, left) = if admitted { (next + takes, left) } else { (next, stored) };
        let is_unchanged = self.adjustable && (cost == 0 || !admitted);
        let cold_at = if is_unchanged { cold_at } else { curve.cold_at(next, left) };
        Verdict {
            admitted,
            wait: if admitted { until_slot } else { 0 },
            limit: self.limit(),
            remaining: if next > now { 0 } else { left as u64 },
            retry_after: (!admitted && !never).then_some(until_slot),
            reset_after: cold_at.saturating_sub(now),
            charge_id: ChargeId { at: next, level: stored.to_bits(), credited: 0 },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, now: u64, cost: u64) {
        let curve = self.curve();
        let (takes, stored) = curve.taken(f64::from_bits(snapshot[1]), cost);
        *state = Some(curve.state(snapshot[0] + takes, stored, now));
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) -> bool {
        let bucket = stored(state.as_ref());
        let is_future = bucket.is_some_and(|bucket| bucket.written > now);
        if is_future {
            let (next, stored) = self.curve().current(bucket, now);
            let moved = self.curve().state(next, stored, now);
            *state = (self.ends(&moved) > now).then_some(moved);
        }
        is_future
    }

    /// Undoes the last charge completely, and refunds nothing of earlier ones. Without a charge it lowers the debt.
    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let (curve, Some(bucket)) = (self.curve(), stored(state.as_ref())) else { return };
        let left = match charge_id {
            Some(charge_id) => {
                let before = f64::from_bits(charge_id.level);
                let (takes, left) = curve.taken(before, cost);
                if (charge_id.at, left) != (bucket.next, bucket.stored) {
                    return;
                }
                curve.state(charge_id.at.saturating_sub(takes), before, bucket.written)
            }
            None => {
                let (next, stored) = curve.current(Some(bucket), now);
                if next == now {
                    return;
                }
                curve.state(next.saturating_sub(curve.fresh(cost as f64)).max(now), stored, now)
            }
        };
        *state = (self.ends(&left) > now).then_some(left);
    }

    /// Stands still from `at` on for so long, and is cold afterwards.
    pub(super) fn pause(&self, state: &mut Option<State>, at: u64, by: u64) {
        let curve = self.curve();
        let (next, _) = curve.current(stored(state.as_ref()), at);
        let cold = curve.state(next + by, curve.max_stored, at + by);
        *state = (self.ends(&cold) > at + by).then_some(cold);
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        stored(Some(state)).map_or(0, |bucket| bucket.cold_at)
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rate { permits, period } = self.rate;
        if self.adjustable {
            return out.write_str("wu2");
        }
        write!(out, "wu1-{permits}-{}-{}", period.as_nanos(), self.warmup)
    }
}

impl Curve {
    /// Returns what a decision at this time reads.
    fn read(&self, bucket: Option<WarmingUpState>, now: u64) -> Snapshot {
        let (next, stored) = self.current(bucket, now);
        [next, stored.to_bits(), 0, 0, bucket.map_or(0, |bucket| bucket.current_cold_at(now))]
    }

    /// Returns when the next call may start, not before now, and the permits stored then.
    fn current(&self, bucket: Option<WarmingUpState>, now: u64) -> (u64, f64) {
        let Some(bucket) = bucket else { return (now, self.max_stored) };
        let next = bucket.next.saturating_sub(bucket.written.saturating_sub(now));
        // The numbers may have changed since.
        let stored = bucket.stored.min(self.max_stored);
        if next >= now {
            return (next, stored);
        }
        // The sum below may be off by the last bit.
        if bucket.current_cold_at(now) <= now {
            return (now, self.max_stored);
        }
        let new = (now - next) as f64 / self.cool_down;
        (now, (stored + new).min(self.max_stored))
    }

    /// Returns the microseconds that a call takes, and the permits it leaves stored. As in Guava each part is cut to whole
    /// microseconds; if that is less than the rate requires, one is added. A call during which the stored permits run out
    /// may still be up to 2 µs short, after the bucket was idle for about as long.
    fn taken(&self, stored: f64, cost: u64) -> (u64, f64) {
        let cost = cost.min(MAX_COST) as f64;
        let spent = cost.min(stored);
        let takes = self.stored_time(stored, spent).saturating_add(((cost - spent) * self.interval) as u64);
        (if takes < self.fresh(cost) { takes + 1 } else { takes }, stored - spent)
    }

    /// Returns the microseconds in which stored permits are spent.
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

    /// Returns the microseconds of one permit with this many stored above the threshold.
    fn time(&self, above: f64) -> f64 {
        self.interval + above * self.slope
    }

    /// Returns the microseconds of permits when warm.
    fn fresh(&self, permits: f64) -> u64 {
        (permits * self.interval).ceil() as u64
    }

    fn state(&self, next: u64, stored: f64, written: u64) -> State {
        let cold_at = self.cold_at(next, stored);
        State::WarmingUp(WarmingUpState { next, stored, written, cold_at })
    }

    /// Returns when the bucket will be cold, which is its state when new.
    fn cold_at(&self, next: u64, stored: f64) -> u64 {
        next + ((self.max_stored - stored) * self.cool_down).ceil() as u64
    }
}

impl WarmingUpState {
    /// Returns when the bucket will be cold, given that a state from the future counts as of now.
    fn current_cold_at(&self, now: u64) -> u64 {
        self.cold_at.saturating_sub(self.written.saturating_sub(now))
    }
}

fn stored(state: Option<&State>) -> Option<WarmingUpState> {
    match state {
        Some(State::WarmingUp(bucket)) => Some(*bucket),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_decided_at_once_as_step_by_step() {
        let rate = Rate::new(1, std::time::Duration::from_millis(1));
        let calls = [(1000, 1), (1000, 1), (4000, 5), (3000, 1), (900_000, 1), (910_000, MAX_COST)];
        for adjustable in [false, true] {
            let bucket = WarmingUpSpec { rate, warmup: 100_000, adjustable };
            decides_alike(bucket, &calls);
        }
    }

    fn decides_alike(bucket: WarmingUpSpec, calls: &[(u64, u64)]) {
        let (mut at_once, mut by_steps) = (None, None);
        for &(now, cost) in calls {
            let snapshot = bucket.check(by_steps.as_ref(), now, cost);
            let admitted = bucket.verdict(snapshot, now, cost, 0).admitted;
            if admitted {
                bucket.commit(&mut by_steps, snapshot, now, cost);
            } else {
                bucket.undo(&mut by_steps, now);
            }
            assert_eq!(bucket.decide(&mut at_once, now, cost), (snapshot, admitted), "{cost} at {now}");
            assert_eq!(at_once, by_steps);
        }
    }
}
