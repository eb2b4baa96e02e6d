//! The reference model: what each algorithm promises, in the plainest form it can be written down. It keeps what
//! happened to every key as a list and works out the state from the whole list at every step, in `i128`, where nothing
//! rounds and nothing overflows; but for the warm-up, which is promised in doubles. It shares no code with the library.

mod bucket;
mod fixed;
mod interval;
mod policy;
mod queue;
mod sliding;
mod warming;

use std::collections::HashMap;

pub(crate) use policy::Policy;

/// The longest that a call may be in debt, in microseconds.
const LONGEST: i128 = 3650 * 86_400 * 1_000_000;

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
    /// The last charge was given back whole, as if it had never been: microseconds of refill or permits.
    Undone {
        at: i128,
        amount: i128,
    },
    /// The same of a bucket that warms up: when the next call may go again, and what is stored until then.
    Rewound {
        at: i128,
        next: i128,
        stored: f64,
    },
    /// A call found the state in the future and made it count as of now.
    Repaired {
        at: i128,
    },
}

impl Event {
    fn at(&self) -> i128 {
        match self {
            Event::Charged { at, .. }
            | Event::Credited { at, .. }
            | Event::Undone { at, .. }
            | Event::Rewound { at, .. }
            | Event::Repaired { at } => *at,
        }
    }
}

/// What one policy says about one charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) admitted: bool,
    /// How long an admitted call waits for its slot.
    pub(crate) wait: i128,
    pub(crate) limit: i128,
    pub(crate) remaining: i128,
    pub(crate) retry_after: Option<i128>,
    pub(crate) reset_after: i128,
}

/// What a charge can later be found again by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Receipt {
    /// When the bucket would be full if nothing happened after the charge, and what was given back until then.
    Full { at: i128, credits: i128 },
    /// The permits missing right after the charge, since when the next refill is under way, and what was given back until then.
    Missing { missing: i128, since: i128, credits: i128 },
    /// When the next call might go, and what was stored until then.
    Warmth { before: (i128, f64), after: (i128, f64) },
    /// The time of the window's first charge.
    Window(i128),
    /// The time of the charge, or of the first that its sub-window counts.
    Stamp(i128),
}

pub(crate) struct Charge<'a> {
    pub(crate) key: &'a str,
    pub(crate) policy: Policy,
    pub(crate) cost: i128,
    /// How long the call waits at the most.
    pub(crate) wait: i128,
    /// Refuses nobody. It is charged with the others if its own policy admits.
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

/// What was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refund {
    /// Microseconds of refill in a bucket, permits elsewhere.
    Of(i128),
    /// Whatever the charge took.
    All,
}

#[derive(Default)]
pub(crate) struct Model {
    keys: HashMap<String, Vec<Event>>,
}

impl Model {
    /// Charges all, but for the shadows that have no room, or none. A charge of nothing only looks.
    pub(crate) fn decide(&mut self, now: i128, charges: &[Charge<'_>]) -> Outcome {
        let verdict = |charge: &Charge<'_>, cost| {
            charge.policy.verdict(self.history(charge.key), now, cost, charge.wait)
        };
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
        for (Charge { key, policy, cost, .. }, fits) in charges.iter().zip(fits) {
            let repaired = *cost > 0 && policy.is_in_the_future(self.history(key), now);
            if repaired {
                self.record(key, Event::Repaired { at: now });
            }
            let charged = admitted && fits && *cost > 0;
            if charged {
                self.record(key, Event::Charged { at: now, cost: *cost });
            }
            receipts.push(charged.then(|| policy.receipt(self.history(key))));
            written.push(repaired || charged);
        }
        Outcome { admitted, verdicts, receipts, written }
    }

    /// Gives back permits. `None` if there was nothing to give back.
    pub(crate) fn refund(
        &mut self,
        now: i128,
        key: &str,
        policy: Policy,
        cost: i128,
        receipt: Option<Receipt>,
    ) -> Option<Refund> {
        let credits = policy.credits(self.history(key), now, cost, receipt);
        for event in &credits {
            self.record(key, *event);
        }
        if !credits.is_empty() && policy.says_nothing(self.history(key), now) {
            self.reset(key);
        }
        credits.first().map(|event| match event {
            Event::Credited { amount, .. } | Event::Undone { amount, .. } => Refund::Of(*amount),
            _ => Refund::All,
        })
    }

    /// What the policy would say of a charge, which is not made.
    pub(crate) fn would_say(&self, now: i128, key: &str, policy: Policy, cost: i128, wait: i128) -> Verdict {
        policy.verdict(self.history(key), now, cost, wait)
    }

    pub(crate) fn reset(&mut self, key: &str) {
        self.keys.remove(key);
    }

    /// When the key's state says nothing more, or `None` if it never said anything.
    pub(crate) fn end(&self, key: &str, policy: Policy) -> Option<i128> {
        policy.end(self.history(key))
    }

    fn history(&self, key: &str) -> &[Event] {
        self.keys.get(key).map_or(&[], Vec::as_slice)
    }

    fn record(&mut self, key: &str, event: Event) {
        self.keys.entry(key.to_owned()).or_default().push(event);
    }
}

fn ceil(dividend: i128, divisor: i128) -> i128 {
    (dividend + divisor - 1).div_euclid(divisor)
}
