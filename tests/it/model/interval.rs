//! A bucket that gets all permits of a refill at once, every period from the call that found it full.

use super::{Event, Receipt, Verdict, ceil};

/// So many permits are missing, and the last refill, or the call that found it full, was at `since`.
#[derive(Clone, Copy)]
struct Lack {
    missing: i128,
    since: i128,
}

pub(super) fn verdict(
    burst: i128,
    refill: i128,
    every: i128,
    history: &[Event],
    now: i128,
    cost: i128,
) -> Verdict {
    let mut lack = now_missing(refill, every, last(refill, every, history), now);
    let admitted = cost <= burst - lack.missing;
    if admitted {
        lack.missing += cost;
    }
    let refilled_by = |permits| lack.since + ceil(permits, refill) * every - now;
    Verdict {
        admitted,
        limit: burst,
        remaining: burst - lack.missing,
        retry_after: (!admitted && cost <= burst).then(|| refilled_by(lack.missing + cost - burst)),
        reset_after: if lack.missing > 0 { refilled_by(lack.missing) } else { 0 },
    }
}

pub(super) fn receipt(refill: i128, every: i128, history: &[Event]) -> Receipt {
    let Lack { missing, since } = last(refill, every, history).expect("a charge was made");
    Receipt::Missing(missing, since)
}

/// What a receipt gives back is at most what would still be missing had nothing happened after its charge.
pub(super) fn credit(
    refill: i128,
    every: i128,
    history: &[Event],
    now: i128,
    cost: i128,
    receipt: Option<Receipt>,
) -> i128 {
    let mut credit = cost.min(now_missing(refill, every, last(refill, every, history), now).missing);
    if let Some(receipt) = receipt {
        let Receipt::Missing(missing, since) = receipt else { unreachable!("an interval bucket's receipt") };
        credit = credit.min(now_missing(refill, every, Some(Lack { missing, since }), now).missing);
    }
    credit
}

pub(super) fn is_in_the_future(refill: i128, every: i128, history: &[Event], now: i128) -> bool {
    last(refill, every, history).is_some_and(|lack| lack.since > now)
}

pub(super) fn end(refill: i128, every: i128, history: &[Event]) -> Option<i128> {
    last(refill, every, history).map(|lack| lack.since + ceil(lack.missing, refill) * every)
}

/// What is missing at `now`, with the refills that have come; nothing missing, since now, if it is full.
fn now_missing(refill: i128, every: i128, lack: Option<Lack>, now: i128) -> Lack {
    match lack {
        None => Lack { missing: 0, since: now },
        Some(Lack { missing, since }) if since > now => Lack { missing, since: now },
        Some(Lack { missing, since }) => {
            let refills = (now - since) / every;
            if missing <= refills * refill {
                Lack { missing: 0, since: now }
            } else {
                Lack { missing: missing - refills * refill, since: since + refills * every }
            }
        }
    }
}

fn last(refill: i128, every: i128, history: &[Event]) -> Option<Lack> {
    let mut last = None;
    for event in history {
        last = Some(match event {
            Event::Charged { at, cost } => {
                let lack = now_missing(refill, every, last, *at);
                Lack { missing: lack.missing + cost, ..lack }
            }
            Event::Repaired { at } => now_missing(refill, every, last, *at),
            Event::Credited { at, amount, .. } => {
                let lack = now_missing(refill, every, last, *at);
                Lack { missing: lack.missing - amount, ..lack }
            }
        });
    }
    last
}
