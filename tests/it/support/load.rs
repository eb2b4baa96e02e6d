//! Concurrent decisions on many keys of one policy, and a check of every key's promise.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{Charge, Key, Store};

use super::bound_checker::BoundChecker;
use super::policies::Pair;
use super::random::Random;
use crate::model::Policy;

/// A charge that was admitted. Times are in microseconds of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmittedCharge {
    pub(crate) cost: u64,
    pub(crate) now: u64,
    pub(crate) wait: u64,
    /// Identifies the window of a fixed window: the time of its first charge.
    pub(crate) window: u64,
}

/// Tasks that decide on random keys of one policy, one decision after another.
#[derive(Clone, Debug)]
pub(crate) struct LoadGenerator {
    pub(crate) store: Store,
    /// Starts each key.
    pub(crate) name: String,
    pub(crate) pair: Pair,
    pub(crate) tasks: u64,
    pub(crate) keys: u64,
    /// Counts the decisions that the store has answered.
    pub(crate) answered: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
pub(crate) struct LoadReport {
    pub(crate) decisions: u64,
    /// The number of decisions that the store did not answer.
    pub(crate) failures: u64,
    pub(crate) longest: Duration,
    /// The admitted charges of each key.
    pub(crate) admitted: HashMap<u64, Vec<AdmittedCharge>>,
}

impl LoadGenerator {
    /// Runs all tasks while `go_on` returns true.
    pub(crate) async fn decide(
        &self,
        random: &Random,
        go_on: impl Fn() -> bool + Clone + Send + 'static,
    ) -> LoadReport {
        let generator = Arc::new(self.clone());
        let tasks: Vec<_> = (0..self.tasks)
            .map(|task| {
                let (generator, random, go_on) = (Arc::clone(&generator), random.run(task), go_on.clone());
                tokio::spawn(async move { generator.run_task(random, go_on).await })
            })
            .collect();
        let mut total = LoadReport::default();
        for task in tasks {
            let report = task.await.expect("no decision panics");
            total.decisions += report.decisions;
            total.failures += report.failures;
            total.longest = total.longest.max(report.longest);
            for (key, admitted) in report.admitted {
                total.admitted.entry(key).or_default().extend(admitted);
            }
        }
        total
    }

    async fn run_task(&self, mut random: Random, go_on: impl Fn() -> bool) -> LoadReport {
        let mut report = LoadReport::default();
        while go_on() {
            let (id, cost) = (random.below(self.keys), random.between(1, 5));
            let wait = random.pick(&[0, 0, 0, 20_000]);
            let key = Key::raw(format!("{}:{{{id}}}", self.name));
            let charge = Charge { key, spec: self.pair.spec, cost, wait, shadow: false };
            let start = Instant::now();
            let outcome = self.store.decide(&[charge]).await;
            report.decisions += 1;
            report.longest = report.longest.max(start.elapsed());
            self.answered.fetch_add(u64::from(outcome.is_ok()), Ordering::Relaxed);
            match outcome {
                Ok(outcome) if outcome.admitted => {
                    let verdict = &outcome.verdicts[0];
                    let (now, wait, window) = (outcome.now, verdict.wait, verdict.charge_id.at);
                    let charge = AdmittedCharge { cost, now, wait, window };
                    report.admitted.entry(id).or_default().push(charge);
                }
                Ok(_) => {}
                Err(_) => {
                    report.failures += 1;
                    // While the breaker is open a failure takes no time.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
        report
    }
}

impl LoadReport {
    /// Checks that every key kept its promise between any two of the `losses`, the times at which the store lost all its data.
    pub(crate) fn check_bounds(&self, policy: Policy, losses: &[u64]) -> Result<(), String> {
        self.check_bounds_with(policy, losses, |_| true)
    }

    /// Like [`LoadReport::check_bounds`], where the losses concern only some keys.
    pub(crate) fn check_bounds_with(
        &self,
        policy: Policy,
        losses: &[u64],
        is_lost: impl Fn(u64) -> bool,
    ) -> Result<(), String> {
        for (key, admitted) in &self.admitted {
            let losses = if is_lost(*key) { losses } else { &[] };
            let mut between = BTreeMap::<usize, Vec<AdmittedCharge>>::new();
            for charge in admitted {
                let before = losses.iter().filter(|loss| **loss < charge.now).count();
                between.entry(before).or_default().push(*charge);
            }
            for (before, admitted) in between {
                check_key(policy, &admitted)
                    .map_err(|error| format!("key {key}, after {before} losses: {error}"))?;
            }
        }
        Ok(())
    }

    /// The number of calls that were admitted.
    pub(crate) fn admitted(&self) -> usize {
        self.admitted.values().map(Vec::len).sum()
    }

    /// The permits that they took.
    pub(crate) fn permits(&self) -> u64 {
        self.admitted.values().flatten().map(|charge| charge.cost).sum()
    }
}

/// Checks the promise of one key in every interval.
fn check_key(policy: Policy, admitted: &[AdmittedCharge]) -> Result<(), String> {
    match policy {
        Policy::Fixed { limit, period, aligned } => {
            let mut windows = BTreeMap::<i128, (i128, i128)>::new();
            for charge in admitted {
                let (sum, last) = windows.entry(charge.window.into()).or_default();
                (*sum, *last) = (*sum + i128::from(charge.cost), (*last).max(charge.now.into()));
            }
            let start = |opened: i128| if aligned { opened - opened % period } else { opened };
            for (opened, (sum, last)) in &windows {
                if *sum > limit || *last >= start(*opened) + period {
                    return Err(format!("{sum} in the window opened at {opened}, the last at {last}"));
                }
            }
            let starts: Vec<i128> = windows.keys().map(|opened| start(*opened)).collect();
            match starts.windows(2).find(|pair| pair[1] - pair[0] < period) {
                Some(pair) => Err(format!("the windows at {} and {} overlap", pair[0], pair[1])),
                None => Ok(()),
            }
        }
        Policy::Sliding { limit, period, .. } => {
            let mut charges: Vec<(i128, i128)> =
                admitted.iter().map(|charge| (charge.now.into(), charge.cost.into())).collect();
            charges.sort_unstable();
            let (mut sum, mut first) = (0, 0);
            for (now, cost) in &charges {
                sum += cost;
                while charges[first].0 + period <= *now {
                    sum -= charges[first].1;
                    first += 1;
                }
                if sum > limit {
                    return Err(format!("{sum} in the period before {now}"));
                }
            }
            Ok(())
        }
        _ => {
            let mut checker = BoundChecker::new(policy);
            for (id, AdmittedCharge { cost, now, wait, .. }) in admitted.iter().enumerate() {
                checker.add(id, (*cost).into(), (*now).into(), (*wait).into());
            }
            checker.check()
        }
    }
}
