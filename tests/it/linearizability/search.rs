//! The search for an order (Wing and Gong, 1993), in which no set of operations is tried twice after the same states (Lowe,
//! 2017).

use std::collections::HashMap;

use ratelimit_runtime::algorithm::State;
use ratelimit_runtime::store::{AlgorithmSpec, Charge, ChargeId, Key, Outcome};

use super::Request;

/// An operation that a thread has made.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// The order in which operations began and ended.
    pub(super) invoked: u64,
    pub(super) responded: u64,
    /// The time before the operation, and after it.
    pub(super) earliest: u64,
    pub(super) latest: u64,
    pub(super) event: Event,
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    Decided(Vec<Request>, Box<Outcome>),
    Refunded {
        key: usize,
        cost: u64,
        id: Option<ChargeId>,
    },
    /// Of a key, with whether it had state.
    Reset(usize, bool),
}

/// The states of all keys.
#[derive(Clone, PartialEq)]
struct Keys {
    states: Vec<Option<State>>,
    /// When each was last charged or refunded.
    written: Vec<u64>,
    /// Since when each has the end that it has; of an aligned window, its start.
    begun: Vec<u64>,
}

/// Whether there is an order of these operations in which they could have been made one after the other.
pub(super) fn is_linearizable(specs: &[AlgorithmSpec], records: &[Record]) -> bool {
    let keys =
        Keys { states: vec![None; specs.len()], written: vec![0; specs.len()], begun: vec![0; specs.len()] };
    Search { specs, records, tried: HashMap::new() }.ends(0, keys)
}

impl Record {
    /// Whether another operation began before this one had ended, and ended after it began.
    pub(super) fn overlaps(&self, others: &[Record]) -> bool {
        let overlaps = |other: &&Record| other.invoked < self.responded && self.invoked < other.responded;
        others.iter().filter(overlaps).count() > 1
    }
}

struct Search<'a> {
    specs: &'a [AlgorithmSpec],
    records: &'a [Record],
    /// The states after each set of operations that were tried.
    tried: HashMap<u64, Vec<Keys>>,
}

impl Search<'_> {
    /// Whether the operations that are not `made` yet can be made now.
    fn ends(&mut self, made: u64, keys: Keys) -> bool {
        let records = self.records;
        let left = || (0..records.len()).filter(|i| made & 1 << i == 0);
        let Some(first_end) = left().map(|i| records[i].responded).min() else { return true };
        let tried = self.tried.entry(made).or_default();
        if tried.contains(&keys) {
            return false;
        }
        tried.push(keys.clone());
        for i in left().filter(|i| records[*i].invoked < first_end) {
            for now in records[i].times() {
                if let Some(after) = keys.after(self.specs, &records[i].event, now)
                    && self.ends(made | 1 << i, after)
                {
                    return true;
                }
            }
        }
        false
    }
}

impl Record {
    /// The times at which the operation may have been made.
    fn times(&self) -> std::ops::RangeInclusive<u64> {
        match &self.event {
            Event::Decided(_, outcome) => outcome.now.max(self.earliest)..=outcome.now.min(self.latest),
            Event::Refunded { .. } | Event::Reset(..) => self.earliest..=self.latest,
        }
    }
}

impl Keys {
    /// Returns the keys after an operation, unless its result would have been another.
    fn after(&self, specs: &[AlgorithmSpec], event: &Event, now: u64) -> Option<Keys> {
        let mut after = self.clone();
        match event {
            Event::Decided(requests, outcome) => {
                let charge = |&Request { key, cost, wait }: &Request| Charge {
                    key: Key::raw(key.to_string()),
                    spec: specs[key],
                    cost,
                    wait,
                    shadow: false,
                };
                let charges: Vec<Charge> = requests.iter().map(charge).collect();
                let check = |request: &Request| {
                    let (spec, state) = (specs[request.key], self.states[request.key].as_ref());
                    spec.check(state, now, request.cost)
                };
                let mut snapshots: Vec<_> = requests.iter().map(check).collect();
                let mut expected = Outcome::clone(outcome);
                expected.now = now;
                expected.judge(&charges, &mut snapshots);
                let is_early = |request: &Request| match specs[request.key] {
                    // Until a window ends, a call with a single charge may be decided by the time when the call began, even if others have
                    // charged or refunded the window since.
                    AlgorithmSpec::FixedWindow(_) if requests.len() == 1 => self.begun[request.key] > now,
                    _ => self.written[request.key] > now,
                };
                if (expected.admitted, &expected.verdicts) != (outcome.admitted, &outcome.verdicts)
                    || requests.iter().any(is_early)
                {
                    return None;
                }
                let charged = requests.iter().zip(snapshots).filter(|(request, _)| request.cost > 0);
                for (&Request { key, cost, .. }, snapshot) in charged.filter(|_| outcome.admitted) {
                    specs[key].commit(&mut after.states[key], snapshot, now, cost);
                }
            }
            Event::Refunded { key, cost, id } => {
                if self.written[*key] > now {
                    return None;
                }
                specs[*key].refund(&mut after.states[*key], now, *cost, *id);
            }
            Event::Reset(key, was_state) => {
                let state = after.states[*key].take();
                if state.is_some_and(|state| specs[*key].ends(&state) > now) != *was_state {
                    return None;
                }
            }
        }
        for (key, (spec, before)) in specs.iter().zip(&self.states).enumerate() {
            let state = &after.states[key];
            if state != before {
                after.written[key] = now.max(self.written[key]);
            }
            if state.as_ref().map(|state| spec.ends(state)) != before.as_ref().map(|state| spec.ends(state)) {
                after.begun[key] = match spec {
                    AlgorithmSpec::FixedWindow(window) if window.aligned && state.is_some() => {
                        now - now % window.period
                    }
                    _ => now,
                };
            }
        }
        Some(after)
    }
}
