//! Permits that calls hold until they end, at most so many of a key at once. They do not depend on the time.

use super::{Algorithm, Event, Receipt, Verdict};

/// The `retry_after` of a call that others have to end for first: longer than any time.
pub(crate) const UNKNOWN: i128 = 1 << 60;

#[derive(Clone, Copy)]
pub(super) struct Holds {
    pub(super) max: i128,
}

/// What is held, and when the first call of those began that have not left the key free since.
#[derive(Clone, Copy)]
struct Held {
    since: i128,
    permits: i128,
}

impl Algorithm for Holds {
    fn limit(&self) -> i128 {
        self.max
    }

    fn verdict(&self, history: &[Event], _now: i128, cost: i128, _max_wait: i128) -> Verdict {
        let held = held(history).map_or(0, |held| held.permits);
        let admitted = cost == 0 || held + cost <= self.max;
        Verdict {
            admitted,
            wait: 0,
            limit: self.max,
            remaining: (self.max - held - if admitted { cost } else { 0 }).max(0),
            retry_after: (!admitted && cost <= self.max).then_some(UNKNOWN),
            reset_after: 0,
        }
    }

    fn longest_wait(&self, _cost: i128, _max_wait: i128) -> Option<i128> {
        None
    }

    fn receipt(&self, history: &[Event]) -> Receipt {
        Receipt::Window(held(history).expect("a call holds permits").since)
    }

    /// A call ends what it holds itself. One from before a reset ends nothing.
    fn credits(&self, history: &[Event], now: i128, cost: i128, receipt: Option<Receipt>) -> Vec<Event> {
        let held =
            held(history).filter(|held| receipt.is_none_or(|receipt| receipt == Receipt::Window(held.since)));
        let amount = held.map_or(0, |held| cost.min(held.permits));
        if amount > 0 { vec![Event::Credited { at: now, amount, stamp: None }] } else { Vec::new() }
    }

    fn is_in_the_future(&self, _history: &[Event], _now: i128) -> bool {
        false
    }

    fn end(&self, history: &[Event]) -> Option<i128> {
        held(history).map(|_| i128::MAX)
    }
}

fn held(history: &[Event]) -> Option<Held> {
    let mut held: Option<Held> = None;
    for event in history {
        held = match event {
            Event::Charged { at, cost, .. } => {
                let Held { since, permits } = held.unwrap_or(Held { since: *at, permits: 0 });
                Some(Held { since, permits: permits + cost })
            }
            Event::Credited { amount, .. } => held
                .map(|held| Held { permits: held.permits - amount, ..held })
                .filter(|held| held.permits > 0),
            _ => unreachable!("holds are taken and released"),
        };
    }
    held
}
