//! Windows that follow each other: a key's first call opens one, or they lie on multiples of the period.

use super::{Event, Receipt, Verdict};

#[derive(Clone, Copy)]
struct Window {
    start: i128,
    count: i128,
    /// The time of the first charge, which no other window of this key has.
    opened: i128,
}

pub(super) fn verdict(
    limit: i128,
    period: i128,
    aligned: bool,
    history: &[Event],
    now: i128,
    cost: i128,
) -> Verdict {
    let mut window = current(period, aligned, last(period, aligned, history), now);
    let admitted = cost == 0 || window.count + cost <= limit;
    if admitted {
        window.count += cost;
    }
    let left = window.start + period - now;
    Verdict {
        admitted,
        wait: 0,
        limit,
        remaining: (limit - window.count).max(0),
        retry_after: (!admitted && cost <= limit).then_some(left),
        reset_after: if window.count > 0 { left } else { 0 },
    }
}

pub(super) fn receipt(period: i128, aligned: bool, history: &[Event]) -> Receipt {
    Receipt::Window(last(period, aligned, history).expect("a charge was made").opened)
}

/// A receipt counts in its own window only, for as long as that is open.
pub(super) fn credit(
    period: i128,
    aligned: bool,
    history: &[Event],
    now: i128,
    cost: i128,
    receipt: Option<Receipt>,
) -> i128 {
    match last(period, aligned, history) {
        Some(window)
            if now < window.start + period
                && receipt.is_none_or(|it| it == Receipt::Window(window.opened)) =>
        {
            cost.min(window.count)
        }
        _ => 0,
    }
}

pub(super) fn is_in_the_future(period: i128, aligned: bool, history: &[Event], now: i128) -> bool {
    last(period, aligned, history).is_some_and(|window| window.start > now)
}

pub(super) fn end(period: i128, aligned: bool, history: &[Event]) -> Option<i128> {
    last(period, aligned, history).map(|window| window.start + period)
}

/// The window that is open at `now`: a fresh one, the last, or the last begun now if it lies in the future.
fn current(period: i128, aligned: bool, window: Option<Window>, now: i128) -> Window {
    let start = if aligned { now - now.rem_euclid(period) } else { now };
    match window {
        Some(window) if window.start <= now && now < window.start + period => window,
        Some(window) if window.start > now => Window { start, count: window.count, opened: now },
        _ => Window { start, count: 0, opened: now },
    }
}

fn last(period: i128, aligned: bool, history: &[Event]) -> Option<Window> {
    let mut last: Option<Window> = None;
    for event in history {
        last = Some(match event {
            Event::Charged { at, cost } => {
                let window = current(period, aligned, last, *at);
                Window { count: window.count + cost, ..window }
            }
            Event::Repaired { at } => current(period, aligned, last, *at),
            Event::Credited { amount, .. } => {
                let window = last.expect("something was charged before it is given back");
                Window { count: window.count - amount, ..window }
            }
            Event::Undone { .. } | Event::Rewound { .. } => unreachable!("of buckets"),
        });
    }
    last
}
