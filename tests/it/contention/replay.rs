//! Puts decisions into the order in which the store made them, and checks them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use crate::model::{Charge, Model, Policy, Verdict};
use crate::support::bound_checker::BoundChecker;
use crate::support::random::Random;

/// One decision, in microseconds of the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) now: i128,
    pub(super) cost: i128,
    pub(super) max_wait: i128,
    pub(super) verdict: Verdict,
}

/// What decisions say of their order.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreClock {
    /// Returns the number by which decisions are ordered, mostly their time.
    pub(super) made_at: fn(&Record) -> i128,
    /// By how much that steps back at most.
    pub(super) max_step_back: i128,
}

impl StoreClock {
    pub(super) fn new(max_step_back: i128) -> Self {
        StoreClock { made_at: |record| record.now, max_step_back }
    }

    /// That of single charges which the memory store decides without a lock.
    pub(super) fn lock_free(policy: Policy) -> Self {
        match policy {
            // The end of its window. What remains tells the order of charges with the same end.
            Policy::Fixed { .. } => {
                StoreClock { made_at: |record| record.now + record.verdict.reset_after, ..StoreClock::new(0) }
            }
            _ => StoreClock::new(0),
        }
    }
}

/// Checks all decisions on one key, given in any order, against the model and against the promise of the policy.
pub(super) fn replay(name: &str, policy: Policy, records: Vec<Record>, clock: StoreClock) {
    check_counts(name, policy, &records);
    let ordered =
        in_order(name, policy, records, clock).unwrap_or_else(|mismatch| panic!("{name}: {mismatch}"));
    check_bounds(name, policy, &ordered);
}

/// Checks that enough of the decisions are admitted, and wait.
pub(super) fn check_counts(name: &str, policy: Policy, records: &[Record]) {
    let admitted = records.iter().filter(|record| record.verdict.admitted).count();
    let waited = records.iter().filter(|record| record.verdict.wait > 0).count();
    println!("{name}: {admitted} of {} decisions admitted, {waited} wait", records.len());
    assert!(10 * admitted >= records.len(), "{name}: less than a tenth was admitted");
    assert!(policy.is_window() == (waited == 0), "{name}: {waited} wait");
}

/// The same for threads that share a store. A charge may be made after a later call was refused, so refusals are not in the
/// order of their times.
pub(super) fn replay_threads(name: &str, policy: Policy, records: Vec<Record>, clock: StoreClock) {
    let made_at = clock.made_at;
    let charges = |record: &Record| record.verdict.admitted && record.cost > 0;
    let (charges, mut others) = records.into_iter().partition::<Vec<_>, _>(charges);
    let ordered =
        in_order(name, policy, charges, clock).unwrap_or_else(|mismatch| panic!("{name}: {mismatch}"));
    let mut by_time = ordered.clone();
    by_time.sort_by_key(|record| record.now);
    check_bounds(name, policy, &by_time);
    others.sort_by_key(|record| record.now);
    let mut model = Model::default();
    for made in 0..=ordered.len() {
        let earliest = made.checked_sub(1).map_or(0, |last| made_at(&ordered[last]));
        // So many charges may be made after a call has read what it refuses by; in the order of windows, those of its window and some.
        let latest = ordered.get(made + 20).map_or(i128::MAX, made_at);
        others.retain(|it| {
            let is_near = (earliest..=latest).contains(&made_at(it));
            !is_near || model.verdict(it.now, name, policy, it.cost, it.max_wait) != it.verdict
        });
        ordered.get(made).map(|record| decide(&mut model, name, policy, record));
    }
    assert!(others.is_empty(), "{name}: the model never decides as in {:?}", others[0]);
}

/// The search gives up after this many dead ends.
const MAX_DEAD_ENDS: usize = 1_000;

/// A point of the search at which several decisions could have been the next one.
struct Choice {
    /// The decisions in order so far, and the model's events after them.
    ordered: usize,
    events: usize,
    alternatives: Vec<usize>,
}

/// Returns an order in which the model makes every decision as the store did. The next decision is one of those that were made
/// up to `max_step_back` later than the earliest one left.
fn in_order(
    name: &str,
    policy: Policy,
    mut records: Vec<Record>,
    StoreClock { made_at, max_step_back }: StoreClock,
) -> Result<Vec<Record>, String> {
    // At one time each admitted decision leaves fewer permits or a longer queue than the one before.
    records.sort_by_key(|record| {
        let Verdict { admitted, remaining, wait, reset_after, .. } = record.verdict;
        (made_at(record), admitted, -remaining, wait, reset_after)
    });
    let mut model = Model::default();
    let peek = |model: &Model, it: &Record| model.verdict(it.now, name, policy, it.cost, it.max_wait);
    let (mut ordered, mut used) = (Vec::new(), vec![false; records.len()]);
    let (mut choices, mut failure, mut dead_ends) = (Vec::<Choice>::new(), None, 0);
    let mut used_up_to = 0;
    while let Some(earliest) = (used_up_to..records.len()).find(|i| !used[*i]) {
        used_up_to = earliest;
        let end = made_at(&records[earliest]) + max_step_back;
        let window = (earliest..records.len()).take_while(|i| made_at(&records[*i]) <= end);
        let mut candidates: Vec<usize> =
            window.filter(|i| !used[*i] && peek(&model, &records[*i]) == records[*i].verdict).collect();
        // Where states from the future are moved to now, several decisions match: then the latest is the next one. A decision
        // that changes nothing may come at any point at which it matches.
        candidates.sort_by_key(|i| (records[*i].now, -(*i as i128)));
        if candidates.len() > 1 {
            let events = model.events(name);
            let unchanging = candidates.iter().position(|i| {
                let changes = decide(&mut model, name, policy, &records[*i]);
                model.rewind(name, events);
                !changes
            });
            if let Some(i) = unchanging {
                candidates = vec![candidates[i]];
            }
        }
        let next = candidates.pop().or_else(|| {
            failure.get_or_insert_with(|| {
                let (record, decided) = (&records[earliest], peek(&model, &records[earliest]));
                format!("the model decides {decided:?} instead of {record:?}")
            });
            dead_ends += 1;
            while let Some(mut choice) = choices.pop().filter(|_| dead_ends < MAX_DEAD_ENDS) {
                for i in ordered.drain(choice.ordered..) {
                    used[i] = false;
                    used_up_to = used_up_to.min(i);
                }
                model.rewind(name, choice.events);
                if let Some(next) = choice.alternatives.pop() {
                    candidates = choice.alternatives;
                    return Some(next);
                }
            }
            None
        });
        let Some(next) = next else { return Err(failure.expect("a decision does not match")) };
        if !candidates.is_empty() {
            let (ordered, events) = (ordered.len(), model.events(name));
            choices.push(Choice { ordered, events, alternatives: candidates });
        }
        decide(&mut model, name, policy, &records[next]);
        used[next] = true;
        ordered.push(next);
    }
    Ok(ordered.into_iter().map(|i| records[i]).collect())
}

/// Returns whether the decision changed anything.
fn decide(model: &mut Model, name: &str, policy: Policy, record: &Record) -> bool {
    let Record { now, cost, max_wait, .. } = *record;
    let charge = Charge { key: name, policy, cost, max_wait, shadow: false };
    model.decide(now, &[charge]).written[0]
}

/// Checks the promise in every interval between two admitted calls, independently of the model.
fn check_bounds(name: &str, policy: Policy, ordered: &[Record]) {
    // A state from the future counts as of now, so for the promise a clock that steps back stands still.
    let (mut time, mut last) = (0, ordered[0].now);
    let mut stepped_over = HashSet::new();
    let mut admitted = Vec::new();
    for record in ordered {
        time += (record.now - last).max(0);
        if let Policy::Fixed { period, .. } = policy {
            let (window, before) = (record.now / period, last / period);
            stepped_over.extend((window..=before).filter(|_| window < before));
        }
        last = record.now;
        if record.verdict.admitted {
            admitted.push((time, record));
        }
    }
    let mut checker = BoundChecker::new(policy);
    for (id, (time, record)) in admitted.iter().enumerate() {
        checker.add(id, record.cost, *time, record.verdict.wait);
    }
    checker.check().unwrap_or_else(|error| panic!("{name}: {error}"));
    for (i, (first, _)) in admitted.iter().enumerate() {
        let mut sum = 0;
        for (time, record) in &admitted[i..] {
            let span = time - first;
            sum += record.cost;
            let bound = match policy {
                // A window that the clock steps back into starts again.
                Policy::Fixed { limit, period, .. } => {
                    limit * (span / period + 2 + stepped_over.len() as i128)
                }
                Policy::Sliding { limit, period, .. } => limit * (span / period + 1),
                _ => return,
            };
            assert!(sum <= bound, "{name}: {sum} permits within {span} µs from {first}");
        }
    }
    if let Policy::Fixed { limit, period, aligned: true } = policy {
        let mut windows: HashMap<i128, i128> = HashMap::new();
        for (_, record) in admitted {
            *windows.entry(record.now / period).or_default() += record.cost;
        }
        windows.retain(|window, _| !stepped_over.contains(window));
        assert!(windows.values().all(|permits| *permits <= limit), "{name}: {windows:?}");
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { now, cost, max_wait, verdict } = self;
        let Verdict { admitted, wait, limit, remaining, retry_after, reset_after } = verdict;
        let (admitted, retry_after) = (i128::from(*admitted), retry_after.unwrap_or(-1));
        write!(f, "{now} {cost} {max_wait} {admitted} {wait} {limit} {remaining} {retry_after} {reset_after}")
    }
}

impl FromStr for Record {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let numbers: Result<Vec<i128>, _> = line.split(' ').map(str::parse).collect();
        match numbers.map_err(|error| error.to_string())?[..] {
            [now, cost, max_wait, admitted, wait, limit, remaining, retry_after, reset_after] => {
                let retry_after = (retry_after >= 0).then_some(retry_after);
                let admitted = admitted == 1;
                let verdict = Verdict { admitted, wait, limit, remaining, retry_after, reset_after };
                Ok(Record { now, cost, max_wait, verdict })
            }
            _ => Err(format!("`{line}` is not a record")),
        }
    }
}

#[test]
fn replay_of_windows_detects_missing_changed_and_early_charges() {
    const PERIOD: u64 = 1000;
    const CHARGES: usize = 10;
    let policy = Policy::Fixed { limit: 20, period: PERIOD.into(), aligned: false };
    let (mut random, mut model, mut records) = (Random::new(1), Model::default(), Vec::new());
    for start in (1..).step_by(2 * PERIOD as usize).take(5) {
        for i in 0..CHARGES {
            // Only the first comes in the order of its time.
            let now = (if i == 0 { start } else { start + random.below(PERIOD) }).into();
            let cost = random.between(1, 2).into();
            let charge = Charge { key: "a", policy, cost, max_wait: 0, shadow: false };
            let verdict = model.decide(now, &[charge]).verdicts[0];
            records.push(Record { now, cost, max_wait: 0, verdict });
        }
    }
    let replay = |records: Vec<Record>| in_order("a", policy, records, StoreClock::lock_free(policy));
    assert_eq!(replay(records.clone()).map(|ordered| ordered.len()), Ok(records.len()));
    for i in 0..records.len() {
        // Nothing tells whether the last one of a window is missing.
        if i % CHARGES < CHARGES - 1 {
            replay(without(&records, i)).unwrap_err();
        }
        replay(changed(&records, i, |record| record.verdict.reset_after += 1)).unwrap_err();
        let by = records[i].now - records[i - i % CHARGES].now + 1;
        let early = |record: &mut Record| {
            record.now -= by;
            record.verdict.reset_after += by;
        };
        replay(changed(&records, i, early)).unwrap_err();
    }
}

#[test]
fn replay_detects_missing_and_changed_decisions() {
    const STEP: u64 = 50;
    let policy = Policy::bucket(5_000, 1_000_000_000, 20);
    let (mut random, mut model, mut time) = (Random::new(1), Model::default(), 0);
    let mut records = Vec::new();
    while records.len() < 100 {
        time += random.between(20, 300);
        let (now, cost) = ((time - random.below(STEP.min(time))).into(), random.between(1, 3).into());
        let max_wait = random.pick(&[0, 1000]);
        let charge = Charge { key: "a", policy, cost, max_wait, shadow: false };
        let verdict = model.decide(now, &[charge]).verdicts[0];
        records.push(Record { now, cost, max_wait, verdict });
    }
    let replay = |records: Vec<Record>| in_order("a", policy, records, StoreClock::new(STEP.into()));
    assert_eq!(replay(records.clone()).map(|ordered| ordered.len()), Ok(100));
    for i in (30..60).filter(|i| records[*i].verdict.admitted) {
        replay(without(&records, i)).unwrap_err();
        replay(changed(&records, i, |record| record.verdict.reset_after += 1)).unwrap_err();
    }
}

/// Returns the records but for one.
fn without(records: &[Record], i: usize) -> Vec<Record> {
    [&records[..i], &records[i + 1..]].concat()
}

/// Returns the records with a change to one.
fn changed(records: &[Record], i: usize, change: impl Fn(&mut Record)) -> Vec<Record> {
    let mut records = records.to_vec();
    change(&mut records[i]);
    records
}
