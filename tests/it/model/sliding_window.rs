//! Charges that count for a period from their stamp: the time of the charge, or in a counter the end of its sub-window.

use super::{Algorithm, Event, Receipt, Verdict};

/// The most permits that are counted.
const MOST: i128 = 1 << 49;

#[derive(Clone, Copy)]
pub(super) struct SlidingWindow {
    pub(super) limit: i128,
    pub(super) period: i128,
    pub(super) precision: Option<i128>,
}

/// Oldest first, one entry per stamp.
type Log = Vec<Entry>;

#[derive(Clone, Copy)]
struct Entry {
    stamp: i128,
    permits: i128,
    /// The time of its first charge, by which a receipt finds it.
    born: i128,
}

impl Algorithm for SlidingWindow {
    fn limit(&self) -> i128 {
        self.limit
    }

    fn verdict(&self, history: &[Event], now: i128, cost: i128, _max_wait: i128) -> Verdict {
        let SlidingWindow { limit, period, .. } = *self;
        let mut log = self.current(self.last(history), now);
        let count = permits(&log);
        let admitted = cost == 0 || count + cost <= limit;
        // The oldest charges expire first; the call fits once enough of them have.
        let mut left = count;
        let fits_at = log.iter().find_map(|entry| {
            left -= entry.permits;
            (left + cost <= limit).then_some(entry.stamp + period)
        });
        let retry_after =
            (!admitted && cost <= limit).then(|| fits_at.expect("it fits into an empty log") - now);
        if admitted && cost > 0 {
            add(&mut log, self.stamp(now), cost, now);
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

    /// None waits for a window.
    fn longest_wait(&self, _cost: i128, _max_wait: i128) -> Option<i128> {
        None
    }

    fn receipt(&self, history: &[Event]) -> Receipt {
        Receipt::Stamp(self.last(history).last().expect("a charge was made").born)
    }

    /// Takes from the receipt's entry, or without a receipt from the newest first.
    fn credits(&self, history: &[Event], now: i128, cost: i128, receipt: Option<Receipt>) -> Vec<Event> {
        let mut left = cost;
        let mut credits = Vec::new();
        for Entry { stamp, permits, born } in self.last(history).into_iter().rev() {
            let amount = left.min(permits);
            let matches = receipt.is_none_or(|receipt| receipt == Receipt::Stamp(born));
            if amount > 0 && now < stamp + self.period && matches {
                left -= amount;
                credits.push(Event::Credited { at: now, amount, stamp: Some(stamp) });
            }
        }
        credits
    }

    fn is_in_the_future(&self, history: &[Event], now: i128) -> bool {
        self.last(history).iter().any(|entry| entry.stamp > self.stamp(now))
    }

    fn end(&self, history: &[Event]) -> Option<i128> {
        self.last(history).last().map(|newest| newest.stamp + self.period)
    }

    fn has_expired(&self, history: &[Event], now: i128) -> bool {
        self.verdict(history, now, 0, 0).reset_after == 0
    }
}

impl SlidingWindow {
    fn stamp(self, at: i128) -> i128 {
        match self.precision {
            None => at,
            Some(precision) => at - at.rem_euclid(precision) + precision,
        }
    }

    /// Returns what counts at `now`: without expired charges, and with those from the future moved to now.
    fn current(self, mut log: Log, now: i128) -> Log {
        let expired = log.iter().take_while(|entry| entry.stamp + self.period <= now).count();
        log.drain(..expired);
        self.moved(log, now)
    }

    /// If the newest entry lies in the future, merges everything from the present sub-window on into one charge made now.
    fn moved(self, mut log: Log, now: i128) -> Log {
        let present = self.stamp(now);
        if log.last().is_some_and(|newest| newest.stamp > present) {
            let mut permits = 0;
            while let Some(later) = log.pop_if(|entry| entry.stamp >= present) {
                permits += later.permits;
            }
            add(&mut log, present, permits, now);
        }
        log
    }

    fn last(self, history: &[Event]) -> Log {
        let mut log = Log::new();
        for event in history {
            match event {
                Event::Charged { at, cost, .. } => {
                    log = self.current(log, *at);
                    add(&mut log, self.stamp(*at), *cost, *at);
                }
                Event::Debited { at, cost, .. } => {
                    let mut current = self.current(log.clone(), *at);
                    let fits = (MOST - permits(&current)).min(*cost);
                    // One that is cut to nothing changes nothing.
                    if fits > 0 {
                        add(&mut current, self.stamp(*at), fits, *at);
                        log = current;
                    }
                }
                // Drops nothing that has expired.
                Event::Repaired { at, .. } => log = self.moved(log, *at),
                Event::Credited { amount, stamp, .. } => {
                    for entry in &mut log {
                        if Some(entry.stamp) == *stamp {
                            entry.permits -= amount;
                        }
                    }
                    log.retain(|entry| entry.permits > 0);
                }
                _ => unreachable!("only buckets undo"),
            }
        }
        log
    }
}

/// Adds permits at a stamp that is not before the newest.
fn add(log: &mut Log, stamp: i128, permits: i128, now: i128) {
    match log.last_mut() {
        Some(newest) if newest.stamp == stamp => newest.permits += permits,
        _ => log.push(Entry { stamp, permits, born: now }),
    }
}

fn permits(log: &Log) -> i128 {
    log.iter().map(|entry| entry.permits).sum()
}
