//! Puts what was told in the order in which it was decided, and asks the model the same.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::model::{Charge, Model, Rule, Verdict};

/// What one decision said, at which time of the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) now: i128,
    pub(super) cost: i128,
    pub(super) verdict: Verdict,
}

/// Checks what a key said to all who asked, in no order.
pub(super) fn replay(name: &str, rule: Rule, mut records: Vec<Record>) {
    // Decisions of one time have an order too: each admitted one leaves less than the one before.
    records.sort_by_key(|record| (record.now, -record.verdict.remaining));
    let mut model = Model::default();
    for of_one_time in records.chunk_by(|a, b| a.now == b.now) {
        let (admitted, mut refused): (Vec<Record>, Vec<Record>) =
            of_one_time.iter().partition(|record| record.verdict.admitted);
        // A refused one changes nothing: it belongs wherever the model says the same.
        let mut next = admitted.into_iter();
        loop {
            refused.retain(|record| model.would_say(record.now, name, rule, record.cost) != record.verdict);
            let Some(record) = next.next() else { break };
            let charge = Charge { key: name, rule, cost: record.cost, shadow: false };
            let said = model.decide(record.now, &[charge]).verdicts;
            assert_eq!(said, [record.verdict], "{name} at {} for {}", record.now, record.cost);
        }
        let said = refused.first().map(|record| model.would_say(record.now, name, rule, record.cost));
        assert_eq!(said, refused.first().map(|record| record.verdict), "{name}: {refused:?}");
    }
    let admitted: Vec<Record> = records.iter().copied().filter(|record| record.verdict.admitted).collect();
    stays_within_its_bounds(name, rule, &admitted);
    println!("{name}: {} of {} decisions admitted", admitted.len(), records.len());
    assert!(10 * admitted.len() >= records.len(), "{name}: less than a tenth was admitted");
}

/// What DESIGN promises of every interval, by itself: between any two calls that were admitted.
fn stays_within_its_bounds(name: &str, rule: Rule, admitted: &[Record]) {
    for (i, first) in admitted.iter().enumerate() {
        let mut sum = 0;
        for last in &admitted[i..] {
            let span = last.now - first.now;
            sum += last.cost;
            let bound = match rule {
                Rule::Bucket { permit, full } => (full + span) / permit,
                Rule::Interval { burst, refill, every } => burst + refill * (span / every + 1),
                Rule::Fixed { limit, period, .. } => limit * (span / period + 2),
                Rule::Sliding { limit, period, .. } => limit * (span / period + 1),
            };
            assert!(sum <= bound, "{name}: {sum} permits within {span} µs from {}", first.now);
        }
    }
    if let Rule::Fixed { limit, period, aligned: true } = rule {
        let mut windows: HashMap<i128, i128> = HashMap::new();
        for record in admitted {
            *windows.entry(record.now / period).or_default() += record.cost;
        }
        assert!(windows.values().all(|permits| *permits <= limit), "{name}: {windows:?}");
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { now, cost, verdict } = self;
        let Verdict { admitted, limit, remaining, retry_after, reset_after } = verdict;
        let retry_after = retry_after.unwrap_or(-1);
        write!(f, "{now} {cost} {} {limit} {remaining} {retry_after} {reset_after}", i128::from(*admitted))
    }
}

impl FromStr for Record {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let numbers: Result<Vec<i128>, _> = line.split(' ').map(str::parse).collect();
        match numbers.map_err(|error| error.to_string())?[..] {
            [now, cost, admitted, limit, remaining, retry_after, reset_after] => {
                let retry_after = (retry_after >= 0).then_some(retry_after);
                let verdict = Verdict { admitted: admitted == 1, limit, remaining, retry_after, reset_after };
                Ok(Record { now, cost, verdict })
            }
            _ => Err(format!("`{line}` is no record")),
        }
    }
}
