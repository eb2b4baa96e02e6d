//! Many who decide on many keys at once, what they were admitted, and whether it keeps the promises.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{Charge, Key, Store};

use super::given::Given;
use super::policies::Pair;
use super::random::Random;
use crate::model;

/// A charge that was admitted, in microseconds of Redis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    pub(crate) cost: u64,
    pub(crate) now: u64,
    pub(crate) wait: u64,
    /// What a window tells its charges by: when it was opened.
    pub(crate) window: u64,
}

/// Tasks that decide on the keys of one policy, one decision after another.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    pub(crate) store: Store,
    /// Begins each of its keys.
    pub(crate) name: String,
    pub(crate) pair: Pair,
    pub(crate) tasks: u64,
    pub(crate) keys: u64,
    /// How many decisions the store has answered so far.
    pub(crate) answered: Arc<AtomicU64>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    pub(crate) decisions: u64,
    /// Of these, those that the store did not answer.
    pub(crate) failures: u64,
    pub(crate) longest: Duration,
    /// What was admitted of each key.
    pub(crate) admitted: HashMap<u64, Vec<Admitted>>,
}

impl Crowd {
    /// Each task for as long as it is told to go on.
    pub(crate) async fn decide(
        &self,
        random: &Random,
        go_on: impl Fn() -> bool + Clone + Send + 'static,
    ) -> Decided {
        let crowd = Arc::new(self.clone());
        let tasks: Vec<_> = (0..self.tasks)
            .map(|task| {
                let (crowd, random, go_on) = (Arc::clone(&crowd), random.run(task), go_on.clone());
                tokio::spawn(async move { crowd.one_after_another(random, go_on).await })
            })
            .collect();
        let mut all = Decided::default();
        for task in tasks {
            let decided = task.await.expect("no decision panics");
            all.decisions += decided.decisions;
            all.failures += decided.failures;
            all.longest = all.longest.max(decided.longest);
            for (key, admitted) in decided.admitted {
                all.admitted.entry(key).or_default().extend(admitted);
            }
        }
        all
    }

    async fn one_after_another(&self, mut random: Random, go_on: impl Fn() -> bool) -> Decided {
        let mut decided = Decided::default();
        while go_on() {
            let (key, cost) = (random.below(self.keys), random.between(1, 5));
            let wait = random.pick(&[0, 0, 0, 20_000]);
            let text = Key::raw(format!("{}:{{{key}}}", self.name));
            let charge = Charge { key: text, spec: self.pair.spec, cost, wait, shadow: false };
            let begun = Instant::now();
            let outcome = self.store.decide(&[&[charge]]).await.remove(0);
            decided.decisions += 1;
            decided.longest = decided.longest.max(begun.elapsed());
            self.answered.fetch_add(u64::from(outcome.is_ok()), Ordering::Relaxed);
            match outcome {
                Ok(outcome) if outcome.admitted => {
                    let verdict = &outcome.verdicts[0];
                    let (now, wait, window) = (outcome.now, verdict.wait, verdict.charge_id.at);
                    let admitted = Admitted { cost, now, wait, window };
                    decided.admitted.entry(key).or_default().push(admitted);
                }
                Ok(_) => {}
                Err(_) => {
                    decided.failures += 1;
                    // While Redis is not asked a failure takes no time, and says nothing.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
        decided
    }
}

impl Decided {
    /// Holds every key to the promise of its policy, but for one capacity at each of these times, at which all that the store
    /// had was lost: what was admitted between two of them keeps the promise by itself.
    pub(crate) fn keeps(&self, spec: model::Policy, losses: &[u64]) -> Result<(), String> {
        self.keeps_but_for(spec, losses, |_| true)
    }

    /// The same, where only some keys have lost anything.
    pub(crate) fn keeps_but_for(
        &self,
        spec: model::Policy,
        losses: &[u64],
        has_lost: impl Fn(u64) -> bool,
    ) -> Result<(), String> {
        for (key, admitted) in &self.admitted {
            let losses = if has_lost(*key) { losses } else { &[] };
            let mut between = BTreeMap::<usize, Vec<Admitted>>::new();
            for charge in admitted {
                let before = losses.iter().filter(|loss| **loss < charge.now).count();
                between.entry(before).or_default().push(*charge);
            }
            for (before, admitted) in between {
                keeps(spec, &admitted)
                    .map_err(|broken| format!("key {key}, after {before} losses: {broken}"))?;
            }
        }
        Ok(())
    }

    pub(crate) fn admitted(&self) -> usize {
        self.admitted.values().map(Vec::len).sum()
    }
}

/// Whether what was admitted of one key keeps the promise of its policy in every interval.
fn keeps(spec: model::Policy, admitted: &[Admitted]) -> Result<(), String> {
    match spec {
        model::Policy::Fixed { limit, period, .. } => {
            let mut windows = BTreeMap::<i128, (i128, i128)>::new();
            for charge in admitted {
                let (sum, last) = windows.entry(charge.window.into()).or_default();
                (*sum, *last) = (*sum + i128::from(charge.cost), (*last).max(charge.now.into()));
            }
            let aligned = matches!(spec, model::Policy::Fixed { aligned: true, .. });
            let start = |opened: i128| if aligned { opened - opened % period } else { opened };
            for (opened, (sum, last)) in &windows {
                if *sum > limit || *last >= start(*opened) + period {
                    return Err(format!("{sum} in the window of {opened}, the last at {last}"));
                }
            }
            let starts: Vec<i128> = windows.keys().map(|opened| start(*opened)).collect();
            match starts.windows(2).find(|pair| pair[1] - pair[0] < period) {
                Some(pair) => Err(format!("a window of {} within that of {}", pair[1], pair[0])),
                None => Ok(()),
            }
        }
        model::Policy::Sliding { limit, period, .. } => {
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
            let mut given = Given::new(spec);
            for (id, Admitted { cost, now, wait, .. }) in admitted.iter().enumerate() {
                given.add(id, (*cost).into(), (*now).into(), (*wait).into());
            }
            given.check()
        }
    }
}
