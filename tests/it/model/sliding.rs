//! Charges that count for a period from their stamp: the time of the charge, or in a counter the end of the sub-window
//! it fell in.

use super::{Event, Receipt, Verdict};

/// Oldest first, never two of one stamp.
type Log = Vec<Entry>;

#[derive(Clone, Copy)]
struct Entry {
    stamp: i128,
    permits: i128,
    /// The time of the first of its charges, by which a receipt finds it.
    born: i128,
}

pub(super) fn verdict(
    limit: i128,
    period: i128,
    precision: Option<i128>,
    history: &[Event],
    now: i128,
    cost: i128,
) -> Verdict {
    let mut log = current(period, precision, last(period, precision, history), now);
    let count = permits(&log);
    let admitted = cost == 0 || count + cost <= limit;
    // The oldest charges go first; the call fits once enough of them are gone.
    let mut left = count;
    let room_at = log.iter().find_map(|entry| {
        left -= entry.permits;
        (left + cost <= limit).then_some(entry.stamp + period)
    });
    let retry_after = (!admitted && cost <= limit).then(|| room_at.expect("an empty log has room") - now);
    if admitted && cost > 0 {
        add(&mut log, stamp(precision, now), cost, now);
    }
    Verdict {
        admitted,
        wait: 0,
        limit,
        remaining: (limit - permits(&log)).max(0),
        retry_after,
        reset_after: log.last().map_or(0, |newest| newest.stamp + period - now),
    }
}

/// What a refund takes from which stamps: from the receipt's alone, or else from the newest.
pub(super) fn credits(
    period: i128,
    precision: Option<i128>,
    history: &[Event],
    now: i128,
    cost: i128,
    receipt: Option<Receipt>,
) -> Vec<(Option<i128>, i128)> {
    let mut left = cost;
    let mut credits = Vec::new();
    for Entry { stamp, permits, born } in last(period, precision, history).into_iter().rev() {
        let amount = left.min(permits);
        if amount > 0 && now < stamp + period && receipt.is_none_or(|it| it == Receipt::Stamp(born)) {
            left -= amount;
            credits.push((Some(stamp), amount));
        }
    }
    credits
}

pub(super) fn receipt(period: i128, precision: Option<i128>, history: &[Event]) -> Receipt {
    Receipt::Stamp(last(period, precision, history).last().expect("a charge was made").born)
}

pub(super) fn is_in_the_future(period: i128, precision: Option<i128>, history: &[Event], now: i128) -> bool {
    last(period, precision, history).iter().any(|entry| entry.stamp > stamp(precision, now))
}

pub(super) fn end(period: i128, precision: Option<i128>, history: &[Event]) -> Option<i128> {
    last(period, precision, history).last().map(|newest| newest.stamp + period)
}

fn stamp(precision: Option<i128>, at: i128) -> i128 {
    match precision {
        None => at,
        Some(precision) => at - at.rem_euclid(precision) + precision,
    }
}

/// What counts at `now`: without what has ended, and with what lies in the future moved to now.
fn current(period: i128, precision: Option<i128>, mut log: Log, now: i128) -> Log {
    let ended = log.iter().take_while(|entry| entry.stamp + period <= now).count();
    log.drain(..ended);
    moved(precision, log, now)
}

/// If the newest lies in the future, it and all from the present sub-window on become one charge made now.
fn moved(precision: Option<i128>, mut log: Log, now: i128) -> Log {
    let present = stamp(precision, now);
    if log.last().is_some_and(|newest| newest.stamp > present) {
        let mut permits = 0;
        while let Some(later) = log.pop_if(|entry| entry.stamp >= present) {
            permits += later.permits;
        }
        add(&mut log, present, permits, now);
    }
    log
}

fn last(period: i128, precision: Option<i128>, history: &[Event]) -> Log {
    let mut log = Log::new();
    for event in history {
        match event {
            Event::Charged { at, cost } => {
                log = current(period, precision, log, *at);
                add(&mut log, stamp(precision, *at), *cost, *at);
            }
            // Moves what lies in the future, and forgets nothing.
            Event::Repaired { at } => log = moved(precision, log, *at),
            Event::Credited { amount, stamp, .. } => {
                for entry in &mut log {
                    if Some(entry.stamp) == *stamp {
                        entry.permits -= amount;
                    }
                }
                log.retain(|entry| entry.permits > 0);
            }
            Event::Undone { .. } | Event::Rewound { .. } => unreachable!("of buckets"),
        }
    }
    log
}

/// Adds permits of a stamp that is not before the newest.
fn add(log: &mut Log, stamp: i128, permits: i128, now: i128) {
    match log.last_mut() {
        Some(newest) if newest.stamp == stamp => newest.permits += permits,
        _ => log.push(Entry { stamp, permits, born: now }),
    }
}

fn permits(log: &Log) -> i128 {
    log.iter().map(|entry| entry.permits).sum()
}
