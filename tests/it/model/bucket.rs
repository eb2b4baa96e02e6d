//! A bucket that fills by one microsecond's worth a microsecond, up to `full`, and is full before its first call.

use super::{Event, Receipt, Verdict};

pub(super) fn verdict(permit: i128, full: i128, history: &[Event], now: i128, cost: i128) -> Verdict {
    let level = level(permit, full, history, now);
    let asked = cost * permit;
    let admitted = asked <= level;
    let after = if admitted { level - asked } else { level };
    Verdict {
        admitted,
        limit: full / permit,
        remaining: after / permit,
        retry_after: (!admitted && asked <= full).then(|| asked - level),
        reset_after: full - after,
    }
}

/// What a receipt gives back is what the charge took and time has not brought back by itself.
pub(super) fn credit(
    permit: i128,
    full: i128,
    history: &[Event],
    now: i128,
    cost: i128,
    receipt: Option<Receipt>,
) -> i128 {
    let missing = full - level(permit, full, history, now);
    let mut credit = cost * permit;
    if let Some(receipt) = receipt {
        let Receipt::Full(at) = receipt else { unreachable!("a bucket's receipt") };
        credit = credit.min(at - now);
    }
    credit.clamp(0, missing)
}

/// Whether it lacks more than it can hold: the last event is so far ahead that the bucket would be below empty.
pub(super) fn is_in_the_future(permit: i128, full: i128, history: &[Event], now: i128) -> bool {
    last(permit, full, history).is_some_and(|(level, at)| level + (now - at) < 0)
}

pub(super) fn end(permit: i128, full: i128, history: &[Event]) -> Option<i128> {
    last(permit, full, history).map(|(level, at)| at + full - level)
}

fn level(permit: i128, full: i128, history: &[Event], now: i128) -> i128 {
    last(permit, full, history).map_or(full, |(level, at)| (level + (now - at)).clamp(0, full))
}

/// The level right after the last event, and when that was.
fn last(permit: i128, full: i128, history: &[Event]) -> Option<(i128, i128)> {
    let mut last = None;
    for event in history {
        let at = match event {
            Event::Charged { at, .. } | Event::Credited { at, .. } | Event::Repaired { at } => *at,
        };
        let before = match last {
            None => full,
            Some((level, then)) => i128::clamp(level + (at - then), 0, full),
        };
        let level = match event {
            Event::Charged { cost, .. } => before - cost * permit,
            Event::Credited { amount, .. } => before + amount,
            Event::Repaired { .. } => before,
        };
        assert!((0..=full).contains(&level), "the model charged what was not there");
        last = Some((level, at));
    }
    last
}
