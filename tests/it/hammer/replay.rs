//! Puts what was told in the order in which it was decided, and asks the model the same.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::model::{Charge, Model, Policy, Verdict};
use crate::support::given::Given;

/// What one decision said, at which time of the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) now: i128,
    pub(super) cost: i128,
    /// How long the call would have waited.
    pub(super) wait: i128,
    pub(super) verdict: Verdict,
}

/// Checks what a key said to all who asked, in no order.
pub(super) fn replay(name: &str, policy: Policy, mut records: Vec<Record>) {
    // Decisions of one time have an order too: each admitted one leaves less than the one before, or a longer line.
    records.sort_by_key(|record| {
        let Verdict { wait, remaining, reset_after, .. } = record.verdict;
        (record.now, -remaining, wait, reset_after)
    });
    let mut model = Model::default();
    let would_say =
        |model: &Model, record: &Record| model.would_say(record.now, name, policy, record.cost, record.wait);
    for of_one_time in records.chunk_by(|a, b| a.now == b.now) {
        let (admitted, mut refused): (Vec<Record>, Vec<Record>) =
            of_one_time.iter().partition(|record| record.verdict.admitted);
        // A refused one changes nothing: it belongs wherever the model says the same.
        let mut next = admitted.into_iter();
        loop {
            refused.retain(|record| would_say(&model, record) != record.verdict);
            let Some(record) = next.next() else { break };
            let charge = Charge { key: name, policy, cost: record.cost, wait: record.wait, shadow: false };
            let said = model.decide(record.now, &[charge]).verdicts;
            assert_eq!(said, [record.verdict], "{name} at {} for {}", record.now, record.cost);
        }
        let said = refused.first().map(|record| would_say(&model, record));
        assert_eq!(said, refused.first().map(|record| record.verdict), "{name}: {refused:?}");
    }
    let admitted: Vec<Record> = records.iter().copied().filter(|record| record.verdict.admitted).collect();
    stays_within_its_bounds(name, policy, &admitted);
    let waited = admitted.iter().filter(|record| record.verdict.wait > 0).count();
    println!("{name}: {} of {} decisions admitted, {waited} to wait", admitted.len(), records.len());
    assert!(10 * admitted.len() >= records.len(), "{name}: less than a tenth was admitted");
    assert!(policy.is_a_window() == (waited == 0), "{name}: {waited} waited");
}

/// What DESIGN promises of every interval, by itself: between any two calls that were admitted, each at its slot.
fn stays_within_its_bounds(name: &str, policy: Policy, admitted: &[Record]) {
    let mut given = Given::new(policy);
    for (id, record) in admitted.iter().enumerate() {
        given.add(id, record.cost, record.now, record.verdict.wait);
    }
    given.check().unwrap_or_else(|fault| panic!("{name}: {fault}"));
    for (i, first) in admitted.iter().enumerate() {
        let mut sum = 0;
        for last in &admitted[i..] {
            let span = last.now - first.now;
            sum += last.cost;
            let bound = match policy {
                Policy::Fixed { limit, period, .. } => limit * (span / period + 2),
                Policy::Sliding { limit, period, .. } => limit * (span / period + 1),
                _ => return,
            };
            assert!(sum <= bound, "{name}: {sum} permits within {span} µs from {}", first.now);
        }
    }
    if let Policy::Fixed { limit, period, aligned: true } = policy {
        let mut windows: HashMap<i128, i128> = HashMap::new();
        for record in admitted {
            *windows.entry(record.now / period).or_default() += record.cost;
        }
        assert!(windows.values().all(|permits| *permits <= limit), "{name}: {windows:?}");
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { now, cost, wait, verdict } = self;
        let Verdict { admitted, wait: slot, limit, remaining, retry_after, reset_after } = verdict;
        let (admitted, retry_after) = (i128::from(*admitted), retry_after.unwrap_or(-1));
        write!(f, "{now} {cost} {wait} {admitted} {slot} {limit} {remaining} {retry_after} {reset_after}")
    }
}

impl FromStr for Record {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let numbers: Result<Vec<i128>, _> = line.split(' ').map(str::parse).collect();
        match numbers.map_err(|error| error.to_string())?[..] {
            [now, cost, wait, admitted, slot, limit, remaining, retry_after, reset_after] => {
                let retry_after = (retry_after >= 0).then_some(retry_after);
                let admitted = admitted == 1;
                let verdict = Verdict { admitted, wait: slot, limit, remaining, retry_after, reset_after };
                Ok(Record { now, cost, wait, verdict })
            }
            _ => Err(format!("`{line}` is no record")),
        }
    }
}
