//! What is counted of a log, key by key.

use std::collections::HashMap;

use ratelimit_runtime::algorithm::Verdict;

use super::key_states::{Charge, KeyStates};
use crate::log::LoggedCall;

/// The calls of a log and what has become of them.
#[derive(Debug)]
pub(super) struct Counts {
    charges: Vec<Charge>,
    pub(super) calls: u64,
    pub(super) refused: u64,
    /// How many admitted calls have waited, and the longest wait in microseconds.
    pub(super) waited: u64,
    pub(super) longest_wait: u64,
    /// How many calls have a time before that of an earlier line.
    pub(super) late: u64,
    /// How many calls each policy has refused.
    pub(super) refused_by: Vec<u64>,
    pub(super) keys: HashMap<Box<str>, KeyCounts>,
    /// The times of the first and the last decision.
    pub(super) first: u64,
    pub(super) last: u64,
    /// The line whose time the last decision has, and how many calls after it have an earlier time.
    pub(super) newest_line: u64,
    pub(super) after_newest: u64,
    /// The calls since states that have ended were looked for.
    since_sweep: usize,
    verdicts: Vec<Verdict>,
}

/// The calls of one key.
#[derive(Debug, Default)]
pub(super) struct KeyCounts {
    pub(super) calls: u64,
    pub(super) refused: u64,
    /// The time of the first refusal, if there is one.
    pub(super) first_refusal: u64,
    states: KeyStates,
}

/// The lowest number of calls between two searches for states that have ended.
const SWEEP: usize = 65_536;

impl Counts {
    pub(super) fn new(charges: Vec<Charge>) -> Self {
        Counts {
            calls: 0,
            refused: 0,
            waited: 0,
            longest_wait: 0,
            late: 0,
            refused_by: vec![0; charges.len()],
            keys: HashMap::new(),
            first: 0,
            last: 0,
            newest_line: 0,
            after_newest: 0,
            since_sweep: 0,
            verdicts: Vec::new(),
            charges,
        }
    }

    /// Decides the call of a line and counts it. One from before the last call is decided at the time of the last call.
    pub(super) fn add(&mut self, line: u64, call: &LoggedCall<'_>) {
        let time = call.time / 1_000;
        let now = time.max(self.last);
        if self.calls == 0 {
            self.first = now;
        }
        if time < now {
            self.late += 1;
            self.after_newest += 1;
        } else {
            (self.newest_line, self.after_newest) = (line, 0);
        }
        (self.last, self.calls) = (now, self.calls + 1);
        if let Some(cost) = call.cost {
            self.charges.iter_mut().for_each(|charge| charge.cost = cost);
        }
        if !self.keys.contains_key(&*call.key) {
            self.keys.insert((&*call.key).into(), KeyCounts::default());
        }
        let Some(key) = self.keys.get_mut(&*call.key) else { return };
        key.calls += 1;
        if key.states.decide(&self.charges, now, &mut self.verdicts) {
            let wait = self.verdicts.iter().map(|verdict| verdict.wait).max().unwrap_or(0);
            self.waited += u64::from(wait > 0);
            self.longest_wait = self.longest_wait.max(wait);
        } else {
            if key.refused == 0 {
                key.first_refusal = now;
            }
            key.refused += 1;
            self.refused += 1;
            let verdicts = self.refused_by.iter_mut().zip(&self.verdicts);
            verdicts.for_each(|(refused, verdict)| *refused += u64::from(!verdict.admitted));
        }
        self.sweep(now);
    }

    /// Returns whether so many calls come after the newest time that its line or the order of the log is likely wrong: more than a
    /// tenth. In a log of calls that end out of order, few do.
    pub(super) fn is_out_of_order(&self) -> bool {
        self.after_newest > self.calls / 10
    }

    /// Drops the states that have ended. Their keys are still counted.
    fn sweep(&mut self, now: u64) {
        self.since_sweep += 1;
        if self.since_sweep < self.keys.len().max(SWEEP) {
            return;
        }
        self.since_sweep = 0;
        for key in self.keys.values_mut() {
            if key.states.end(&self.charges) <= now {
                key.states = KeyStates::default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratelimit_runtime::{FixedWindow, Policy};

    use super::*;

    fn one_per_second() -> Counts {
        let policy = Policy::from(FixedWindow::new(1, Duration::from_secs(1)));
        Counts::new(vec![Charge { spec: policy.spec().unwrap(), cost: 1 }])
    }

    #[test]
    fn states_that_have_ended_are_dropped() {
        let mut counts = one_per_second();
        let calls = 3 * SWEEP as u64;
        for i in 0..calls {
            let key = (i / 2).to_string().into();
            counts.add(i, &LoggedCall { time: 100_000 * i, key, cost: None });
        }
        assert_eq!((counts.keys.len() as u64, counts.refused), (calls / 2, calls / 2));
        let with_state = counts.keys.values().filter(|key| key.states.end(&counts.charges) > 0).count();
        assert!(with_state < 2 * SWEEP, "{with_state}");
    }

    #[test]
    fn calls_from_before_the_last_one_are_decided_at_its_time() {
        let mut counts = one_per_second();
        for (line, time) in (1..).zip([5_000_000, 1_000_000, 5_999_999, 0, 6_000_000]) {
            counts.add(line, &LoggedCall { time: 1_000 * time, key: "a".into(), cost: None });
        }
        assert_eq!((counts.refused, counts.late), (3, 2));
        assert_eq!((counts.first, counts.last), (5_000_000, 6_000_000));
        assert_eq!((counts.newest_line, counts.after_newest), (5, 0));
        assert_eq!(counts.keys["a"].first_refusal, 5_000_000);
    }

    #[test]
    fn few_calls_after_the_newest_time_are_in_order() {
        let mut counts = one_per_second();
        let mut add = |line, time| {
            counts.add(line, &LoggedCall { time: 1_000 * time, key: "a".into(), cost: None });
            counts.is_out_of_order()
        };
        assert!((1..=16).all(|line| !add(line, line)));
        assert!(!add(17, 1_000));
        assert!(!add(18, 18));
        assert!(add(19, 19));
        // Another one is as new.
        assert!(!add(20, 1_000));
    }
}
