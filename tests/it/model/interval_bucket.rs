//! A bucket that gets all permits of a refill at once, every period from the call that found it full. Calls may reserve
//! refills that are yet to come, and wait for them.

use super::{Algorithm, Event, Policy, Receipt, Verdict, ceil, longest_debt};

/// The most permits that can be missing, including those of waiting calls.
const MAX_MISSING: i128 = 1 << 52;

#[derive(Clone, Copy)]
pub(super) struct IntervalBucket {
    pub(super) burst: i128,
    pub(super) refill: i128,
    pub(super) every: i128,
    /// Whether the burst and the refill can change. The bucket then gets the refills of the last charge until the next one.
    pub(super) adjustable: bool,
}

/// The state after all events of a key.
#[derive(Clone, Copy)]
struct IntervalState {
    /// More than the burst while calls wait.
    missing: i128,
    /// The time of the last refill, or of the call that found the bucket full.
    since: i128,
    /// An upper bound of the last slot that a call waits for.
    slot: Option<i128>,
    /// Refunds of charges that were not the last one.
    credits: i128,
    /// Until when one of the charges counted in `credits` is worth anything.
    credits_until: i128,
    /// The permits of a refill.
    refill: i128,
    /// When the first charge with this refill was made.
    changed: i128,
}

impl Algorithm for IntervalBucket {
    fn limit(&self) -> i128 {
        self.burst
    }

    fn verdict(&self, history: &[Event], now: i128, cost: i128, max_wait: i128) -> Verdict {
        let state = self.as_of(self.last(history), now);
        let (since, mut missing) = (state.since, self.own_missing(state, now));
        let possible = cost <= self.burst;
        let until_slot = match cost {
            0 => 0,
            _ => self.slot(since, missing + cost, self.refill).map_or(0, |slot| slot - now),
        };
        // Without a charge the bucket keeps getting its own refills.
        let until_free = match self.slot(since, missing + cost, self.refill) {
            Some(slot) if self.refill <= state.refill || state.slot.is_none_or(|last| slot > last) => {
                self.slot(since, state.missing + cost, state.refill).map_or(0, |slot| slot - now)
            }
            _ => until_slot,
        };
        let own_reset = self.full_at(since, state.missing, state.refill) - now;
        let admitted = possible && until_slot <= max_wait && missing + cost <= MAX_MISSING;
        if admitted {
            missing += cost;
        }
        Verdict {
            admitted,
            wait: if admitted { until_slot } else { 0 },
            limit: self.burst,
            remaining: (self.burst - missing).max(0),
            retry_after: (!admitted && possible).then_some(until_free),
            reset_after: match admitted && cost > 0 {
                true => self.full_at(since, missing, self.refill) - now,
                false => own_reset,
            },
        }
    }

    fn receipt(&self, history: &[Event]) -> Receipt {
        let IntervalState { missing, since, credits, .. } = self.last(history).expect("a charge was made");
        let made = history.last().expect("a charge was made").at();
        Receipt::Missing { missing, since, credits, made }
    }

    /// Gives a charge back as far as it would still be missing, now and at the last slot that a call waits for, had nothing
    /// been charged after it. Of the last charge, gives back everything that is still missing.
    fn credits(&self, history: &[Event], now: i128, cost: i128, receipt: Option<Receipt>) -> Vec<Event> {
        let Some(last) = self.last(history) else { return Vec::new() };
        let state = self.as_of(Some(last), now);
        let slot = state.slot.map_or(now, |slot| slot.max(now));
        let (charged, credits) = match receipt {
            None => (state, state.credits),
            Some(Receipt::Missing { made, .. })
                if self.adjustable && (made < state.changed || self.refill != state.refill) =>
            {
                return Vec::new();
            }
            Some(Receipt::Missing { missing, credits, made, .. }) if self.adjustable => {
                let since = made - (made - state.since).rem_euclid(self.every);
                (IntervalState { missing, since, ..state }, credits)
            }
            Some(Receipt::Missing { missing, since, credits, .. }) => {
                (IntervalState { missing, since, ..state }, credits)
            }
            Some(_) => unreachable!("an interval bucket's receipt"),
        };
        let credited_since = state.credits - credits;
        let left = self.as_of(Some(charged), now);
        let is_last = receipt.is_some()
            && credited_since == 0
            && (left.missing, left.since) == (state.missing, state.since);
        let worth = if is_last { cost } else { self.as_of(Some(charged), slot).missing - credited_since };
        let amount = cost.min(worth).min(state.missing);
        // A receipt that says more is missing than the state does is from a state that was lost.
        if credited_since < 0 || amount <= 0 || left.missing - credited_since > state.missing {
            return Vec::new();
        }
        vec![if is_last && amount == cost {
            Event::Undone { at: now, amount }
        } else {
            Event::Credited { at: now, amount, stamp: None }
        }]
    }

    fn is_in_the_future(&self, history: &[Event], now: i128) -> bool {
        self.last(history).is_some_and(|state| state.since > now)
    }

    fn end(&self, history: &[Event]) -> Option<i128> {
        self.last(history).map(|state| {
            let full_at = self.full_at(state.since, state.missing, state.refill);
            if state.credits > 0 { full_at.max(state.credits_until) } else { full_at }
        })
    }
}

impl IntervalBucket {
    fn full_at(self, since: i128, missing: i128, refill: i128) -> i128 {
        since + ceil(missing, refill) * self.every
    }

    /// Returns the time of the refill after which at most the burst is missing.
    fn slot(self, since: i128, missing: i128, refill: i128) -> Option<i128> {
        (missing > self.burst).then(|| self.full_at(since, missing - self.burst, refill))
    }

    /// Returns what is missing if the bucket gets refills of this size, of which larger ones count only after the last slot that
    /// a call waits for.
    fn own_missing(self, state: IntervalState, now: i128) -> i128 {
        let refills =
            state.slot.filter(|slot| *slot > now).map_or(0, |slot| (slot - state.since) / self.every);
        (state.missing + refills * (self.refill - state.refill).max(0)).min(MAX_MISSING + 1)
    }

    /// Adds the refills that have come by `now`. A full bucket is full since now; a state from the future starts now.
    fn as_of(self, state: Option<IntervalState>, now: i128) -> IntervalState {
        let Some(state) = state else {
            let refill = self.refill;
            return IntervalState {
                missing: 0,
                since: now,
                slot: None,
                credits: 0,
                credits_until: now,
                refill,
                changed: now,
            };
        };
        let back = (state.since - now).max(0);
        let (since, credits_until) = (state.since - back, state.credits_until - back);
        let refills = (now - since) / self.every;
        let (missing, since) = if state.missing <= refills * state.refill {
            (0, now)
        } else {
            (state.missing - refills * state.refill, since + refills * self.every)
        };
        let credits = if credits_until > now { state.credits } else { 0 };
        let slot = state.slot.map(|slot| slot - back);
        IntervalState { missing, since, slot, credits, credits_until, ..state }
    }

    fn last(self, history: &[Event]) -> Option<IntervalState> {
        let mut last = None;
        for event in history {
            let at = event.at();
            let before = self.as_of(last, at);
            let mut state = before;
            match event {
                Event::Charged { cost, policy, .. } => {
                    let &Policy::Interval { burst, refill, .. } = policy else {
                        unreachable!("an interval bucket")
                    };
                    let charged = IntervalBucket { burst, refill, ..self };
                    state.missing = charged.own_missing(before, at) + cost;
                    if last.is_none() || refill != before.refill {
                        (state.credits, state.credits_until) = (0, at);
                        (state.refill, state.changed) = (refill, at);
                    }
                    state.credits_until =
                        state.credits_until.max(self.full_at(state.since, state.missing, refill));
                    state.slot = state.slot.max(charged.slot(state.since, state.missing, refill));
                }
                Event::Credited { amount, .. } => {
                    state.missing -= amount;
                    state.credits += amount;
                    let full_at = self.full_at(state.since, before.missing, state.refill);
                    state.credits_until = state.credits_until.max(full_at);
                    state.slot = state.slot.map(|slot| slot.min(self.not_full_at(state)));
                }
                Event::Undone { amount, .. } => {
                    state.missing -= amount;
                    state.slot = match state.credits {
                        0 if !self.adjustable => self.slot(state.since, state.missing, state.refill),
                        _ => state.slot.map(|slot| slot.min(self.not_full_at(state))),
                    };
                }
                Event::Debited { cost, policy, .. } => {
                    let &Policy::Interval { burst, refill, .. } = policy else {
                        unreachable!("an interval bucket")
                    };
                    if last.is_none() {
                        (state.refill, state.changed) = (refill, at);
                    }
                    let refills = ceil(burst, refill);
                    let most = longest_debt(refills * self.every) / self.every * state.refill
                        + burst.min(refills * state.refill);
                    let most = most.min(MAX_MISSING);
                    state.missing = (before.missing + cost).min(most.max(before.missing));
                    if !self.adjustable {
                        // From what is missing alone, a debt is a call that waits.
                        state.slot = state.slot.max(self.slot(state.since, state.missing, refill));
                    }
                }
                Event::Paused { policy, .. } => {
                    let &Policy::Interval { burst, refill, .. } = policy else {
                        unreachable!("an interval bucket")
                    };
                    if last.is_none() {
                        (state.refill, state.changed) = (refill, at);
                    }
                    state.missing = before.missing.max(burst - 1);
                    // What was charged before is forgotten like what is refunded.
                    state.credits = before.credits + before.missing;
                    let full_at = self.full_at(state.since, state.missing, state.refill);
                    state.credits_until = before.credits_until.max(full_at);
                }
                Event::Repaired { .. } | Event::Rewound { .. } | Event::Lowered { .. } => {}
            }
            if state.credits == 0 {
                state.credits_until = at;
            }
            last = Some(state);
        }
        last
    }

    /// Returns the time of the refill before the one that fills the bucket. A call with a later slot would find the bucket
    /// full, which none does if the bucket holds a whole refill.
    fn not_full_at(self, state: IntervalState) -> i128 {
        let full_at = self.full_at(state.since, state.missing, state.refill);
        if self.adjustable || self.burst < self.refill { full_at } else { full_at - self.every }
    }
}
