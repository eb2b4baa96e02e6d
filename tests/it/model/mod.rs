//! The reference model: what each algorithm promises, in the plainest form it can be written down. It keeps what
//! happened to every key as a list and works out the state from the whole list at every step, in `i128`, where nothing
//! rounds and nothing overflows. It shares no code with the library.

mod bucket;
mod fixed;
mod interval;
mod sliding;

use std::collections::HashMap;

/// A policy in the numbers of its promise, in microseconds and permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Holds `full` microseconds of refill; a permit takes `permit` of them. Token bucket and leaky bucket alike.
    Bucket {
        permit: i128,
        full: i128,
    },
    /// Holds `burst` permits and gets `refill` back at once every `every`, from the call that found it full.
    Interval {
        burst: i128,
        refill: i128,
        every: i128,
    },
    Fixed {
        limit: i128,
        period: i128,
        aligned: bool,
    },
    /// Without a precision an exact log, with one a counter of sub-windows.
    Sliding {
        limit: i128,
        period: i128,
        precision: Option<i128>,
    },
}

/// What happened to a key.
#[derive(Clone, Copy, Debug)]
enum Event {
    Charged {
        at: i128,
        cost: i128,
    },
    /// Given back: microseconds of refill in a bucket, permits elsewhere. A sliding window is told from which charge.
    Credited {
        at: i128,
        amount: i128,
        stamp: Option<i128>,
    },
    /// A call found the state in the future and made it count as of now.
    Repaired {
        at: i128,
    },
}

/// What one rule says about one charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) admitted: bool,
    pub(crate) limit: i128,
    pub(crate) remaining: i128,
    pub(crate) retry_after: Option<i128>,
    pub(crate) reset_after: i128,
}

/// What a charge can later be found again by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// When the bucket would be full if nothing happened after the charge.
    Full(i128),
    /// The permits missing right after the charge, and since when the next refill is under way.
    Missing(i128, i128),
    /// The time of the window's first charge.
    Window(i128),
    /// The time of the charge, or of the first that its sub-window counts.
    Stamp(i128),
}

pub(crate) struct Charge<'a> {
    pub(crate) key: &'a str,
    pub(crate) rule: Rule,
    pub(crate) cost: i128,
    /// Refuses nobody. It is charged with the others if its own rule admits.
    pub(crate) shadow: bool,
}

pub(crate) struct Outcome {
    pub(crate) admitted: bool,
    pub(crate) verdicts: Vec<Verdict>,
    /// One for each that was charged.
    pub(crate) receipts: Vec<Option<Receipt>>,
    /// Which keys the call may have written, because it charged them or repaired them.
    pub(crate) written: Vec<bool>,
}

#[derive(Default)]
pub(crate) struct Model {
    keys: HashMap<String, Vec<Event>>,
}

impl Model {
    /// Charges all, but for the shadows that have no room, or none. A charge of nothing only looks.
    pub(crate) fn decide(&mut self, now: i128, charges: &[Charge<'_>]) -> Outcome {
        let verdict = |charge: &Charge<'_>, cost| charge.rule.verdict(self.history(charge.key), now, cost);
        let mut verdicts: Vec<Verdict> = charges.iter().map(|charge| verdict(charge, charge.cost)).collect();
        let fits: Vec<bool> = verdicts.iter().map(|verdict| verdict.admitted).collect();
        let admitted = charges.iter().zip(&fits).all(|(charge, fits)| charge.shadow || *fits);
        if !admitted {
            // Who would have admitted tells of the state as it is, as nothing is charged.
            for (charge, told) in charges.iter().zip(&mut verdicts).filter(|(_, told)| told.admitted) {
                *told = verdict(charge, 0);
            }
        }
        let mut receipts = Vec::new();
        let mut written = Vec::new();
        for (Charge { key, rule, cost, .. }, fits) in charges.iter().zip(fits) {
            let repaired = *cost > 0 && rule.is_in_the_future(self.history(key), now);
            if repaired {
                self.record(key, Event::Repaired { at: now });
            }
            let charged = admitted && fits && *cost > 0;
            if charged {
                self.record(key, Event::Charged { at: now, cost: *cost });
            }
            receipts.push(charged.then(|| rule.receipt(self.history(key))));
            written.push(repaired || charged);
        }
        Outcome { admitted, verdicts, receipts, written }
    }

    /// Gives back permits; whether there was anything to give back.
    pub(crate) fn refund(
        &mut self,
        now: i128,
        key: &str,
        rule: Rule,
        cost: i128,
        receipt: Option<Receipt>,
    ) -> bool {
        let credits = rule.credits(self.history(key), now, cost, receipt);
        for (stamp, amount) in &credits {
            self.record(key, Event::Credited { at: now, amount: *amount, stamp: *stamp });
        }
        if !credits.is_empty() && rule.says_nothing(self.history(key), now) {
            self.reset(key);
        }
        !credits.is_empty()
    }

    /// What the rule would say of a charge, which is not made.
    pub(crate) fn would_say(&self, now: i128, key: &str, rule: Rule, cost: i128) -> Verdict {
        rule.verdict(self.history(key), now, cost)
    }

    pub(crate) fn reset(&mut self, key: &str) {
        self.keys.remove(key);
    }

    /// When the key's state says nothing more, or `None` if it never said anything.
    pub(crate) fn end(&self, key: &str, rule: Rule) -> Option<i128> {
        rule.end(self.history(key))
    }

    fn history(&self, key: &str) -> &[Event] {
        self.keys.get(key).map_or(&[], Vec::as_slice)
    }

    fn record(&mut self, key: &str, event: Event) {
        self.keys.entry(key.to_owned()).or_default().push(event);
    }
}

impl Rule {
    /// A bucket at an exact rate of `permits` per `period_ns`, that holds `burst` permits.
    pub(crate) fn bucket(permits: i128, period_ns: i128, burst: i128) -> Rule {
        let permit = ceil(period_ns, permits * 1000);
        Rule::Bucket { permit, full: burst * permit }
    }

    /// The same, that holds so long a time's worth, fractions kept, and at least one permit.
    pub(crate) fn bucket_for(permits: i128, period_ns: i128, time_ns: i128) -> Rule {
        let permit = ceil(period_ns, permits * 1000);
        Rule::Bucket { permit, full: (time_ns * permits * permit / period_ns).max(permit) }
    }

    fn verdict(self, history: &[Event], now: i128, cost: i128) -> Verdict {
        match self {
            Rule::Bucket { permit, full } => bucket::verdict(permit, full, history, now, cost),
            Rule::Interval { burst, refill, every } => {
                interval::verdict(burst, refill, every, history, now, cost)
            }
            Rule::Fixed { limit, period, aligned } => {
                fixed::verdict(limit, period, aligned, history, now, cost)
            }
            Rule::Sliding { limit, period, precision } => {
                sliding::verdict(limit, period, precision, history, now, cost)
            }
        }
    }

    fn is_in_the_future(self, history: &[Event], now: i128) -> bool {
        match self {
            Rule::Bucket { permit, full } => bucket::is_in_the_future(permit, full, history, now),
            Rule::Interval { refill, every, .. } => interval::is_in_the_future(refill, every, history, now),
            Rule::Fixed { period, aligned, .. } => fixed::is_in_the_future(period, aligned, history, now),
            Rule::Sliding { period, precision, .. } => {
                sliding::is_in_the_future(period, precision, history, now)
            }
        }
    }

    fn receipt(self, history: &[Event]) -> Receipt {
        match self {
            Rule::Bucket { .. } => Receipt::Full(self.end(history).expect("a charge was made")),
            Rule::Interval { refill, every, .. } => interval::receipt(refill, every, history),
            Rule::Fixed { period, aligned, .. } => fixed::receipt(period, aligned, history),
            Rule::Sliding { period, precision, .. } => sliding::receipt(period, precision, history),
        }
    }

    /// What a refund adds, each to the charge of the stamp where stamps matter.
    fn credits(
        self,
        history: &[Event],
        now: i128,
        cost: i128,
        receipt: Option<Receipt>,
    ) -> Vec<(Option<i128>, i128)> {
        let amount = match self {
            Rule::Bucket { permit, full } => bucket::credit(permit, full, history, now, cost, receipt),
            Rule::Interval { refill, every, .. } => {
                interval::credit(refill, every, history, now, cost, receipt)
            }
            Rule::Fixed { period, aligned, .. } => {
                fixed::credit(period, aligned, history, now, cost, receipt)
            }
            Rule::Sliding { period, precision, .. } => {
                return sliding::credits(period, precision, history, now, cost, receipt);
            }
        };
        if amount > 0 { vec![(None, amount)] } else { Vec::new() }
    }

    fn says_nothing(self, history: &[Event], now: i128) -> bool {
        self.verdict(history, now, 0).reset_after == 0
    }

    fn end(self, history: &[Event]) -> Option<i128> {
        match self {
            Rule::Bucket { permit, full } => bucket::end(permit, full, history),
            Rule::Interval { refill, every, .. } => interval::end(refill, every, history),
            Rule::Fixed { period, aligned, .. } => fixed::end(period, aligned, history),
            Rule::Sliding { period, precision, .. } => sliding::end(period, precision, history),
        }
    }
}

fn ceil(dividend: i128, divisor: i128) -> i128 {
    (dividend + divisor - 1).div_euclid(divisor)
}
