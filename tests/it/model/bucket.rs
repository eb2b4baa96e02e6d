//! A bucket that fills by one microsecond's worth a microsecond, up to `full`, and is full before its first call. Calls may
//! take what is yet to come, and wait for it.

use super::{Event, LONGEST, Receipt, Verdict, ceil};

#[derive(Clone, Copy)]
pub(super) struct Bucket {
    /// The microseconds from empty to full.
    pub(super) full: i128,
    pub(super) takes: Takes,
}

/// What a call takes.
#[derive(Clone, Copy)]
pub(super) enum Takes {
    /// So many microseconds for each permit, and no more than the bucket holds.
    Each(i128),
    /// Anything, at this rate, once there is no debt.
    Borrowed { permits: i128, period_ns: i128 },
}

/// What all that happened comes to.
#[derive(Clone, Copy)]
struct Line {
    /// When the bucket will be full.
    full_at: i128,
    /// The last slot that a call waits for, as far as it is known: it is not later.
    slot: Option<i128>,
    /// What was given back of charges that others were made after, and until when one of these charges is worth anything.
    credits: i128,
    until: i128,
    /// When it was last written.
    written: i128,
}

impl Bucket {
    pub(super) fn takes(self, cost: i128) -> i128 {
        match self.takes {
            Takes::Each(permit) => cost * permit,
            Takes::Borrowed { permits, period_ns } => ceil(cost * period_ns, permits * 1000),
        }
    }

    fn permits(self, time: i128) -> i128 {
        match self.takes {
            Takes::Each(permit) => time / permit,
            Takes::Borrowed { permits, period_ns } => time * 1000 * permits / period_ns,
        }
    }

    /// How much a call that goes at its slot finds missing at the most. `None` if it never goes.
    fn missing_before(self, takes: i128) -> Option<i128> {
        match self.takes {
            Takes::Each(_) => (takes <= self.full).then(|| self.full - takes),
            Takes::Borrowed { .. } => (takes <= LONGEST).then_some(self.full),
        }
    }

    pub(super) fn limit(self) -> i128 {
        self.permits(self.full).max(1)
    }

    pub(super) fn verdict(self, history: &[Event], now: i128, cost: i128, wait: i128) -> Verdict {
        let missing = self.missing(history, now);
        let takes = self.takes(cost);
        let until_slot = if cost == 0 {
            Some(0)
        } else {
            self.missing_before(takes).map(|before| (missing - before).max(0))
        };
        let admitted = until_slot.is_some_and(|until_slot| until_slot <= wait);
        let after = if admitted { missing + takes } else { missing };
        Verdict {
            admitted,
            wait: until_slot.filter(|_| admitted).unwrap_or(0),
            limit: self.limit(),
            remaining: self.permits((self.full - after).max(0)),
            retry_after: until_slot.filter(|_| !admitted),
            reset_after: after,
        }
    }

    pub(super) fn receipt(self, history: &[Event]) -> Receipt {
        let line = self.line(history).expect("a charge was made");
        Receipt::Full { at: line.full_at, credits: line.credits }
    }

    /// A charge is given back as far as the bucket, had nothing been charged after it, would not be full before now nor
    /// before the last slot that a call waits for. What has been given back since to others made it full earlier.
    pub(super) fn credit(
        self,
        history: &[Event],
        now: i128,
        cost: i128,
        receipt: Option<Receipt>,
    ) -> Option<Event> {
        let line = self.as_of(self.line(history)?, now);
        let (at, then) = match receipt {
            None => (line.full_at, line.credits),
            Some(Receipt::Full { at, credits }) => (at, credits),
            Some(_) => unreachable!("a bucket's receipt"),
        };
        // What a receipt knows of, and nobody else any more, was worth nothing when it was forgotten.
        let since = line.credits - then;
        let worth = at - since - line.slot.map_or(now, |slot| slot.max(now));
        let takes = self.takes(cost);
        let amount = takes.min(worth);
        // Full later than it will be: the charge was to a state that is lost.
        if since < 0 || amount <= 0 || at - since > line.full_at {
            return None;
        }
        let last = receipt.is_some() && since == 0 && at == line.full_at;
        Some(if last && amount == takes {
            Event::Undone { at: now, amount }
        } else {
            Event::Credited { at: now, amount, stamp: None }
        })
    }

    pub(super) fn is_in_the_future(self, history: &[Event], now: i128) -> bool {
        self.line(history).is_some_and(|line| self.as_of(line, now).full_at < line.full_at)
    }

    pub(super) fn end(self, history: &[Event]) -> Option<i128> {
        self.line(history)
            .map(|line| if line.credits > 0 { line.full_at.max(line.until) } else { line.full_at })
    }

    fn missing(self, history: &[Event], now: i128) -> i128 {
        self.line(history).map_or(0, |line| (self.as_of(line, now).full_at - now).max(0))
    }

    /// A bucket is at most empty, or reaches as far from now as it did from when it was written: all of it moves by so much.
    fn as_of(self, line: Line, now: i128) -> Line {
        let reach = self.full.max(line.full_at - line.written);
        let back = (line.full_at - (now + reach)).max(0);
        let until = line.until - back;
        Line {
            full_at: line.full_at - back,
            slot: line.slot.map(|slot| slot - back),
            credits: if until > now { line.credits } else { 0 },
            until,
            written: line.written,
        }
    }

    fn line(self, history: &[Event]) -> Option<Line> {
        let mut last: Option<Line> = None;
        for event in history {
            let at = event.at();
            let before = match last {
                None => Line { full_at: at, slot: None, credits: 0, until: at, written: at },
                Some(line) => self.as_of(line, at),
            };
            let mut line = Line { written: at, ..before };
            match event {
                Event::Charged { cost, .. } => {
                    let takes = self.takes(*cost);
                    let found = before.full_at.max(at);
                    let slot = found - self.missing_before(takes).expect("it was admitted");
                    line.full_at = found + takes;
                    line.slot = line.slot.max(Some(slot));
                    line.until = line.until.max(line.full_at);
                }
                Event::Credited { amount, .. } => {
                    line.full_at -= amount;
                    line.credits += amount;
                    line.until = line.until.max(before.full_at);
                    // Of the charges that are left each takes a permit at the least.
                    line.slot = line.slot.map(|slot| slot.min(line.full_at - self.takes(1)));
                }
                Event::Undone { amount, .. } => {
                    line.full_at -= amount;
                    // If nothing else was given back, the last charge but one has left the bucket as it now is.
                    let above = if line.credits == 0 { self.full } else { self.takes(1) };
                    line.slot = line.slot.map(|slot| slot.min(line.full_at - above));
                }
                Event::Repaired { .. } | Event::Rewound { .. } => {}
            }
            line.slot = line.slot.filter(|slot| *slot > at);
            if line.credits == 0 {
                line.until = at;
            }
            last = Some(line);
        }
        last
    }
}
