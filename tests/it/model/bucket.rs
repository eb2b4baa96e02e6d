//! A bucket that refills continuously, one microsecond of refill per microsecond, and starts full. Calls may reserve refill
//! that is yet to come, and wait for it.

use super::{Algorithm, Event, LONGEST, Receipt, Verdict, ceil, longest_debt};

#[derive(Clone, Copy)]
pub(super) struct Bucket {
    /// The microseconds from empty to full.
    pub(super) full: i128,
    pub(super) price: Price,
}

/// What a call takes from a bucket.
#[derive(Clone, Copy)]
pub(super) enum Price {
    /// This many microseconds of refill per permit, and at most what the bucket holds.
    PerPermit(i128),
    /// Any amount, at this rate, once the bucket is out of debt.
    Borrowed { permits: i128, period_ns: i128 },
}

/// The state after all events of a key.
#[derive(Clone, Copy)]
struct BucketState {
    /// When the bucket will be full.
    full_at: i128,
    /// An upper bound of the last slot that a call waits for.
    slot: Option<i128>,
    /// Refunds of charges that were not the last one.
    credits: i128,
    /// Until when one of the charges counted in `credits` is worth anything.
    credits_until: i128,
    written: i128,
}

impl Algorithm for Bucket {
    fn limit(&self) -> i128 {
        self.permits(self.full).max(1)
    }

    fn price(&self, cost: i128) -> i128 {
        match self.price {
            Price::PerPermit(permit) => cost * permit,
            Price::Borrowed { permits, period_ns } => ceil(cost * period_ns, permits * 1000),
        }
    }

    fn verdict(&self, history: &[Event], now: i128, cost: i128, max_wait: i128) -> Verdict {
        let missing = self.state(history).map_or(0, |state| (self.as_of(state, now).full_at - now).max(0));
        let price = self.price(cost);
        let until_slot =
            if cost == 0 { Some(0) } else { self.most_missing(price).map(|most| (missing - most).max(0)) };
        let admitted = until_slot.is_some_and(|until_slot| until_slot <= max_wait);
        let after = if admitted { missing + price } else { missing };
        Verdict {
            admitted,
            wait: until_slot.filter(|_| admitted).unwrap_or(0),
            limit: self.limit(),
            remaining: self.permits((self.full - after).max(0)),
            retry_after: until_slot.filter(|_| !admitted),
            reset_after: after,
        }
    }

    fn receipt(&self, history: &[Event]) -> Receipt {
        let state = self.state(history).expect("a charge was made");
        Receipt::Full { at: state.full_at, credits: state.credits }
    }

    /// Gives a charge back as far as the bucket, had nothing been charged after it, would not be full before now or before
    /// the last slot that a call waits for. Refunds since then made it full earlier.
    fn credits(&self, history: &[Event], now: i128, cost: i128, receipt: Option<Receipt>) -> Vec<Event> {
        let Some(state) = self.state(history) else { return Vec::new() };
        let state = self.as_of(state, now);
        let (at, credits) = match receipt {
            None => (state.full_at, state.credits),
            Some(Receipt::Full { at, credits }) => (at, credits),
            Some(_) => unreachable!("a bucket's receipt"),
        };
        // Credits that only the receipt still knows were worth nothing when the state dropped them.
        let credited_since = state.credits - credits;
        let worth = at - credited_since - state.slot.map_or(now, |slot| slot.max(now));
        let price = self.price(cost);
        let amount = price.min(worth);
        // A receipt that says full later than the state does is from a state that was lost.
        if credited_since < 0 || amount <= 0 || at - credited_since > state.full_at {
            return Vec::new();
        }
        let is_last = receipt.is_some() && credited_since == 0 && at == state.full_at;
        vec![if is_last && amount == price {
            Event::Undone { at: now, amount }
        } else {
            Event::Credited { at: now, amount, stamp: None }
        }]
    }

    fn is_in_the_future(&self, history: &[Event], now: i128) -> bool {
        self.state(history).is_some_and(|state| self.as_of(state, now).full_at < state.full_at)
    }

    fn end(&self, history: &[Event]) -> Option<i128> {
        self.state(history).map(|state| {
            if state.credits > 0 { state.full_at.max(state.credits_until) } else { state.full_at }
        })
    }
}

impl Bucket {
    /// Decides about a call that starts later than now, when the bucket is ready.
    pub(super) fn verdict_at(self, history: &[Event], now: i128, cost: i128, start: i128) -> Verdict {
        let full_at = self.state(history).map_or(start, |state| self.as_of(state, now).full_at);
        let after = (full_at - start).max(0) + self.price(cost);
        Verdict {
            admitted: true,
            wait: start - now,
            limit: self.limit(),
            remaining: self.permits((self.full - after).max(0)),
            retry_after: None,
            reset_after: start - now + after,
        }
    }

    fn permits(self, time: i128) -> i128 {
        match self.price {
            Price::PerPermit(permit) => time / permit,
            Price::Borrowed { permits, period_ns } => time * 1000 * permits / period_ns,
        }
    }

    /// Returns how much may be missing when a call of this price goes ahead, or `None` if it never does.
    fn most_missing(self, price: i128) -> Option<i128> {
        match self.price {
            Price::PerPermit(_) => (price <= self.full).then(|| self.full - price),
            Price::Borrowed { .. } => (price <= LONGEST).then_some(self.full),
        }
    }

    /// Moves a state from the future back to now: a bucket is at most empty, or reaches as far from now as it did from when it
    /// was written.
    fn as_of(self, state: BucketState, now: i128) -> BucketState {
        let reach = self.full.max(state.full_at - state.written);
        let back = (state.full_at - (now + reach)).max(0);
        let credits_until = state.credits_until - back;
        BucketState {
            full_at: state.full_at - back,
            slot: state.slot.map(|slot| slot - back),
            credits: if credits_until > now { state.credits } else { 0 },
            credits_until,
            written: state.written,
        }
    }

    fn state(self, history: &[Event]) -> Option<BucketState> {
        let mut last: Option<BucketState> = None;
        for event in history {
            let at = event.at();
            let before = match last {
                None => BucketState { full_at: at, slot: None, credits: 0, credits_until: at, written: at },
                Some(state) => self.as_of(state, at),
            };
            let mut state = BucketState { written: at, ..before };
            match event {
                Event::Charged { start, cost, .. } => {
                    let price = self.price(*cost);
                    let found = before.full_at.max(*start);
                    let slot = found - self.most_missing(price).expect("it was admitted");
                    state.full_at = found + price;
                    state.slot = state.slot.max(Some(slot));
                    if *start > at {
                        state.slot = state.slot.max(Some(*start));
                        // From then on the state does not tell the slots before it once the last charge is undone.
                        state.credits += 1;
                    }
                    state.credits_until = state.credits_until.max(state.full_at);
                }
                Event::Credited { amount, .. } => {
                    state.full_at -= amount;
                    state.credits += amount;
                    state.credits_until = state.credits_until.max(before.full_at);
                    // Each of the remaining charges takes at least a permit.
                    state.slot = state.slot.map(|slot| slot.min(state.full_at - self.price(1)));
                }
                Event::Undone { amount, .. } => {
                    state.full_at -= amount;
                    // Without other refunds the bucket is now as the charge before the last one left it.
                    let above = if state.credits == 0 { self.full } else { self.price(1) };
                    state.slot = state.slot.map(|slot| slot.min(state.full_at - above));
                }
                Event::Debited { cost, .. } => {
                    let found = before.full_at.max(at);
                    let most = at + self.full + longest_debt(self.full);
                    state.full_at = (found + self.price(*cost)).min(most.max(found));
                }
                Event::Paused { .. } => {
                    let least = self.most_missing(self.price(1)).unwrap_or(0);
                    state.full_at = before.full_at.max(at + least);
                    // What was charged before is forgotten like what is refunded.
                    let missing = (before.full_at - at).max(0);
                    state.credits = before.credits + missing;
                    state.credits_until = before.credits_until.max(state.full_at);
                }
                Event::Repaired { .. } | Event::Rewound { .. } | Event::Lowered { .. } => {}
            }
            state.slot = state.slot.filter(|slot| *slot > at);
            if state.credits == 0 {
                state.credits_until = at;
            }
            last = Some(state);
        }
        last
    }
}
