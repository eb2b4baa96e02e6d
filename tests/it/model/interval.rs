//! A bucket that gets all permits of a refill at once, every period from the call that found it full. Calls may take of
//! refills that are yet to come, and wait for them.

use super::{Event, Receipt, Verdict, ceil};

/// The permits that all who wait can ask for together.
const MOST_MISSING: i128 = 1 << 52;

#[derive(Clone, Copy)]
pub(super) struct Portions {
    pub(super) burst: i128,
    pub(super) refill: i128,
    pub(super) every: i128,
}

/// So many permits are missing, more than there are while calls wait, and the last refill, or the call that found the bucket
/// full, was at `since`.
#[derive(Clone, Copy)]
struct Lack {
    missing: i128,
    since: i128,
    /// The last slot that a call waits for, as far as it is known: it is not later.
    slot: Option<i128>,
    /// What was given back of charges that others were made after, and until when one of these charges is worth anything.
    credits: i128,
    until: i128,
}

impl Portions {
    pub(super) fn verdict(self, history: &[Event], now: i128, cost: i128, wait: i128) -> Verdict {
        let Lack { mut missing, since, .. } = self.now(self.last(history), now);
        let possible = cost <= self.burst;
        let until_slot = match cost {
            0 => 0,
            _ => self.slot(since, missing + cost).map_or(0, |slot| slot - now),
        };
        let admitted = possible && until_slot <= wait && missing + cost <= MOST_MISSING;
        if admitted {
            missing += cost;
        }
        Verdict {
            admitted,
            wait: if admitted { until_slot } else { 0 },
            limit: self.burst,
            remaining: (self.burst - missing).max(0),
            retry_after: (!admitted && possible).then_some(until_slot),
            reset_after: if missing > 0 { self.full_at(since, missing) - now } else { 0 },
        }
    }

    pub(super) fn receipt(self, history: &[Event]) -> Receipt {
        let Lack { missing, since, credits, .. } = self.last(history).expect("a charge was made");
        Receipt::Missing { missing, since, credits }
    }

    /// A charge is given back as far as it would still be missing, now and at the last slot that a call waits for, had nothing
    /// been charged after it. After the last charge there is nothing: of that all is given back that is still missing.
    pub(super) fn credit(
        self,
        history: &[Event],
        now: i128,
        cost: i128,
        receipt: Option<Receipt>,
    ) -> Option<Event> {
        let lack = self.now(Some(self.last(history)?), now);
        let slot = lack.slot.map_or(now, |slot| slot.max(now));
        let (charged, then) = match receipt {
            None => (lack, lack.credits),
            Some(Receipt::Missing { missing, since, credits }) => (Lack { missing, since, ..lack }, credits),
            Some(_) => unreachable!("an interval bucket's receipt"),
        };
        let credited_since = lack.credits - then;
        let left = self.now(Some(charged), now);
        let last = receipt.is_some()
            && credited_since == 0
            && (left.missing, left.since) == (lack.missing, lack.since);
        let worth = if last { cost } else { self.now(Some(charged), slot).missing - credited_since };
        let amount = cost.min(worth).min(lack.missing);
        // More missing than there is: the charge was to a state that is lost.
        if credited_since < 0 || amount <= 0 || left.missing - credited_since > lack.missing {
            return None;
        }
        Some(if last && amount == cost {
            Event::Undone { at: now, amount }
        } else {
            Event::Credited { at: now, amount, stamp: None }
        })
    }

    pub(super) fn is_in_the_future(self, history: &[Event], now: i128) -> bool {
        self.last(history).is_some_and(|lack| lack.since > now)
    }

    pub(super) fn end(self, history: &[Event]) -> Option<i128> {
        self.last(history).map(|lack| {
            let full_at = self.full_at(lack.since, lack.missing);
            if lack.credits > 0 { full_at.max(lack.until) } else { full_at }
        })
    }

    fn full_at(self, since: i128, missing: i128) -> i128 {
        since + ceil(missing, self.refill) * self.every
    }

    /// The refill after which so many missing are no more than there are.
    fn slot(self, since: i128, missing: i128) -> Option<i128> {
        (missing > self.burst).then(|| self.full_at(since, missing - self.burst))
    }

    /// What is missing at `now`, with the refills that have come; nothing missing, since now, if it is full. What lies in the
    /// future begins now.
    fn now(self, lack: Option<Lack>, now: i128) -> Lack {
        let Some(lack) = lack else {
            return Lack { missing: 0, since: now, slot: None, credits: 0, until: now };
        };
        let back = (lack.since - now).max(0);
        let (since, until) = (lack.since - back, lack.until - back);
        let refills = (now - since) / self.every;
        let (missing, since) = if lack.missing <= refills * self.refill {
            (0, now)
        } else {
            (lack.missing - refills * self.refill, since + refills * self.every)
        };
        let credits = if until > now { lack.credits } else { 0 };
        Lack { missing, since, slot: lack.slot.map(|slot| slot - back), credits, until }
    }

    fn last(self, history: &[Event]) -> Option<Lack> {
        let mut last = None;
        for event in history {
            let at = event.at();
            let before = self.now(last, at);
            let mut lack = before;
            match event {
                Event::Charged { cost, .. } => {
                    lack.missing += cost;
                    lack.until = lack.until.max(self.full_at(lack.since, lack.missing));
                    lack.slot = lack.slot.max(self.slot(lack.since, lack.missing));
                }
                Event::Credited { amount, .. } => {
                    lack.missing -= amount;
                    lack.credits += amount;
                    lack.until = lack.until.max(self.full_at(lack.since, before.missing));
                    lack.slot = lack.slot.map(|slot| slot.min(self.not_full_at(lack)));
                }
                Event::Undone { amount, .. } => {
                    lack.missing -= amount;
                    lack.slot = match lack.credits {
                        0 => self.slot(lack.since, lack.missing),
                        _ => lack.slot.map(|slot| slot.min(self.not_full_at(lack))),
                    };
                }
                Event::Repaired { .. } | Event::Rewound { .. } => {}
            }
            if lack.credits == 0 {
                lack.until = at;
            }
            last = Some(lack);
        }
        last
    }

    /// The last refill but the one that fills it: a call that waits beyond would find it full, which none does where the
    /// bucket holds a refill.
    fn not_full_at(self, lack: Lack) -> i128 {
        let full_at = self.full_at(lack.since, lack.missing);
        if self.burst < self.refill { full_at } else { full_at - self.every }
    }
}
