//! Random schedules on which every store decides as the model does, every key in Redis has the right expiry afterwards, and
//! every bucket keeps its promise in all intervals. A failure prints its seed; `RATELIMITS_SEED` repeats the run.

mod moved_slots;
mod refunds;
mod schedule;

use ratelimit_runtime::store::{Charge, ChargeId, Outcome};

use crate::model::{self, DatedReceipt, Model};
use crate::support::bound_checker::BoundChecker;
use crate::support::budget::budget;
use crate::support::pause_checker::PauseChecker;
use crate::support::random::Random;
use crate::support::test_store::{StoredValue, TestStore, absolute};
use moved_slots::MovedSlots;
use schedule::{Operation, Request, TestKey};

const WORKERS: u64 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_decide_as_the_model() {
    run_schedules(budget(500, 100_000), false).await;
}

/// More of them, as these take less time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_in_process_decide_as_the_model() {
    run_schedules(budget(1000, 1_000_000), true).await;
}

async fn run_schedules(schedules: u64, in_process: bool) {
    let seeded = Random::seeded();
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let seeded = seeded.clone();
            tokio::spawn(async move {
                let mut stores = if in_process { TestStore::in_process() } else { TestStore::all().await };
                let (mut decisions, mut failures) = (0, Vec::new());
                for schedule in (worker..schedules).step_by(WORKERS as usize) {
                    stores.iter_mut().for_each(TestStore::clear_memory);
                    match run(&seeded, schedule, &stores, in_process).await {
                        Ok(made) => decisions += made,
                        Err(failure) => failures.push(failure),
                    }
                }
                (decisions, failures)
            })
        })
        .collect();
    let (mut decisions, mut failures) = (0, Vec::new());
    for worker in workers {
        let (made, failed) =
            worker.await.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()));
        decisions += made;
        failures.extend(failed);
    }
    // The shortest failure is the easiest to understand.
    if let Some(failure) = failures.iter().min_by_key(|failure| failure.steps) {
        panic!("{}", failure.report);
    }
    println!("{schedules} schedules, {decisions} decisions on each store");
}

struct Failure {
    steps: usize,
    report: String,
}

/// Returns the number of decisions.
async fn run(seeded: &Random, schedule: u64, stores: &[TestStore], in_process: bool) -> Result<u64, Failure> {
    let mut random = seeded.run(schedule);
    let keys = schedule::keys(&mut random, schedule, in_process);
    // In half of the schedules the clock never steps back, so that all promises hold.
    let steady = random.percent(50);
    let has_pauses = random.percent(60);
    let mut run = Run {
        stores,
        stored: stores.iter().map(|_| vec![None; keys.len()]).collect(),
        checkers: keys.iter().map(TestKey::checker).collect(),
        pause_checkers: keys.iter().map(TestKey::pause_checker).collect(),
        moved_slots: MovedSlots::default(),
        has_pauses,
        has_stepped_back: false,
        keys,
        model: Model::default(),
        receipts: Vec::new(),
        charges: 0,
        hints: Vec::new(),
        decisions: 0,
    };
    let mut now = random.below(10_000_000) as i64;
    let mut steps = Vec::new();
    for _ in 0..random.between(12, 25) {
        let then = now;
        now = schedule::time(&mut random, now, steady, &run.keys, &run.hints);
        if now < then {
            run.step_back();
        }
        let operation = schedule::operation(&mut random, &run.keys, run.receipts.len(), has_pauses);
        steps.push(format!("at {now} {operation:?}"));
        if let Err(problem) = run.step(now, &operation).await {
            let keys: Vec<String> = run.keys.iter().map(|key| format!("{key:?}")).collect();
            let (keys, list) = (keys.join("\n"), steps.join("\n"));
            let report = format!("{problem}\nschedule {schedule}\n{keys}\n{list}");
            return Err(Failure { steps: steps.len(), report });
        }
    }
    Ok(run.decisions)
}

/// A charge that was admitted and not refunded.
struct Charged {
    id: usize,
    /// When its call starts, without pauses.
    slot: i128,
    request: Request,
    receipt: DatedReceipt,
    /// One per store.
    charge_ids: Vec<ChargeId>,
}

struct Run<'a> {
    stores: &'a [TestStore],
    keys: Vec<TestKey>,
    model: Model,
    /// One per key.
    checkers: Vec<BoundChecker>,
    /// One per key.
    pause_checkers: Vec<PauseChecker>,
    moved_slots: MovedSlots,
    has_pauses: bool,
    has_stepped_back: bool,
    receipts: Vec<Charged>,
    /// The number of charges so far.
    charges: usize,
    /// The times that the last verdicts named.
    hints: Vec<i64>,
    /// What each store in Redis held after the last step, one value per key.
    stored: Vec<Vec<Option<StoredValue>>>,
    decisions: u64,
}

impl Run<'_> {
    async fn step(&mut self, at: i64, operation: &Operation) -> Result<(), String> {
        for store in self.stores {
            store.set_time(at).await;
        }
        let written = match operation {
            Operation::Decide(decisions) => self.decide(at, decisions).await?,
            Operation::Refund(refunds) => {
                let mut written = Vec::new();
                self.hints.clear();
                for refund in refunds {
                    written.extend(self.refund(at, *refund).await?);
                }
                written
            }
            Operation::Reset(key) => {
                let name = &self.keys[*key].name;
                for store in self.stores {
                    store.reset(name).await;
                }
                self.model.reset(name);
                self.checkers[*key].reset();
                self.pause_checkers[*key].reset();
                self.moved_slots.forget(*key);
                if self.has_pauses {
                    // A pause makes it lack what they may have taken.
                    self.receipts.retain(|charged| charged.request.key != *key);
                }
                vec![*key]
            }
            Operation::Pause(key, pair, micros) => self.pause(at, *key, *pair, *micros).await,
            Operation::Penalize(key, pair, steps) => self.penalize(at, *key, *pair, steps).await?,
        };
        self.check_states(at)?;
        self.check_stored(at, &written).await
    }

    /// The clock has stepped back.
    fn step_back(&mut self) {
        self.checkers.iter_mut().for_each(BoundChecker::disable);
        self.pause_checkers.iter_mut().for_each(PauseChecker::disable);
        self.moved_slots = MovedSlots::default();
        self.has_stepped_back = true;
        self.drop_voided();
    }

    /// Drops what pauses have voided: after a clock that stepped back it may look as if it were from a later time.
    fn drop_voided(&mut self) {
        let Run { receipts, model, keys, .. } = self;
        receipts.retain(|Charged { request, receipt, .. }| {
            let TestKey { name, pairs, .. } = &keys[request.key];
            !model.has_voided(name, pairs[request.pair].model, *receipt)
        });
    }

    /// Returns the key if it was written.
    async fn pause(&mut self, at: i64, key: usize, pair: usize, micros: u64) -> Vec<usize> {
        let TestKey { name, pairs, .. } = &self.keys[key];
        for store in self.stores {
            store.pause(name, &pairs[pair], micros).await;
        }
        let longer = self.model.pause(absolute(at), name, pairs[pair].model, micros.into());
        let Some(longer) = longer else { return Vec::new() };
        self.note_pause(at, key, micros, longer);
        vec![key]
    }

    /// Returns the key if it was written.
    async fn penalize(
        &mut self,
        at: i64,
        key: usize,
        pair: usize,
        steps: &'static [u64],
    ) -> Result<Vec<usize>, String> {
        let TestKey { name, pairs, .. } = &self.keys[key];
        if self.model.is_free(absolute(at), name, pairs[pair].model) {
            return Ok(Vec::new());
        }
        let in_model: Vec<i128> = steps.iter().map(|step| (*step).into()).collect();
        let penalty = self.model.penalize(absolute(at), name, pairs[pair].model, &in_model);
        let expected = penalty.map(|(step, _)| step as u64);
        for store in self.stores {
            let step = store.penalize(name, &pairs[pair], steps).await;
            if step != expected {
                return Err(format!("a penalty in {} is of step {step:?}, not {expected:?}", store.name));
            }
        }
        let Some((step, longer)) = penalty else { return Ok(Vec::new()) };
        self.note_pause(at, key, steps[step - 1], longer);
        Ok(vec![key])
    }

    fn note_pause(&mut self, at: i64, key: usize, micros: u64, longer: i128) {
        let until = absolute(at) + i128::from(micros);
        self.checkers[key].pause(until - longer, longer);
        self.pause_checkers[key].pause(until);
        self.moved_slots.pause(key, absolute(at), longer);
        if self.has_stepped_back {
            self.drop_voided();
        }
    }

    /// Returns the keys that may have been written.
    async fn decide(&mut self, at: i64, decisions: &[Vec<Request>]) -> Result<Vec<usize>, String> {
        self.decisions += decisions.len() as u64;
        let mut all_outcomes = Vec::new();
        for store in self.stores {
            let charge = |request: &Request| {
                let TestKey { name, pairs, .. } = &self.keys[request.key];
                let charge = store.charge(name, &pairs[request.pair], request.cost);
                Charge { wait: request.max_wait, shadow: request.shadow, ..charge }
            };
            let charges: Vec<Vec<Charge>> =
                decisions.iter().map(|requests| requests.iter().map(charge).collect()).collect();
            let lists: Vec<&[Charge]> = charges.iter().map(Vec::as_slice).collect();
            all_outcomes.push(store.decide_lists(&lists).await);
        }
        let mut written = Vec::new();
        for (i, requests) in decisions.iter().enumerate() {
            let charge = |request: &Request| model::Charge {
                key: &self.keys[request.key].name,
                policy: self.keys[request.key].pairs[request.pair].model,
                cost: request.cost.into(),
                max_wait: request.max_wait.into(),
                shadow: request.shadow,
            };
            let charges: Vec<model::Charge<'_>> = requests.iter().map(charge).collect();
            let expected = self.model.decide(absolute(at), &charges);
            for (store, outcomes) in self.stores.iter().zip(&all_outcomes) {
                compare(&outcomes[i], &expected, at)
                    .map_err(|error| format!("decision {i} of the last step in {}: {error}", store.name))?;
            }
            self.hints = expected
                .verdicts
                .iter()
                .flat_map(|verdict| [verdict.retry_after, Some(verdict.reset_after), Some(verdict.wait)])
                .flatten()
                .filter(|after| *after < model::UNKNOWN)
                .map(|after| at + after as i64)
                .collect();
            for (j, request) in requests.iter().enumerate() {
                let moved: Vec<i128> =
                    all_outcomes.iter().map(|outcomes| moved_slots::of(&outcomes[i], j)).collect();
                let stood_still = self.model.stood_still(&self.keys[request.key].name);
                self.moved_slots.check(request.key, absolute(at), &moved, stood_still)?;
                if let Some(receipt) = expected.receipts[j] {
                    let of = |outcomes: &Vec<Outcome>| outcomes[i].verdicts[j].charge_id;
                    let charge_ids: Vec<ChargeId> = all_outcomes.iter().map(of).collect();
                    let (id, wait) = (self.charges, expected.verdicts[j].wait);
                    let checker = &mut self.checkers[request.key];
                    checker.add_anchor(charge_ids[0].at.into());
                    let policy = self.keys[request.key].pairs[request.pair].model;
                    let add =
                        if expected.moved[j] { BoundChecker::add_moved } else { BoundChecker::add_next };
                    add(checker, id, policy, request.cost.into(), absolute(at), wait)?;
                    self.pause_checkers[request.key].add(id, request.cost.into(), absolute(at), wait)?;
                    if !policy.is_window() {
                        self.moved_slots.add(request.key, id, absolute(at) + wait, moved, stood_still);
                    }
                    let slot = absolute(at) + wait;
                    self.receipts.push(Charged { id, slot, request: *request, receipt, charge_ids });
                    self.charges += 1;
                }
                if expected.written[j] {
                    written.push(request.key);
                }
            }
        }
        Ok(written)
    }

    /// Checks the model, and with it the stores, against the bound checkers.
    fn check_states(&mut self, at: i64) -> Result<(), String> {
        for (key, checker) in self.keys.iter().zip(&self.checkers) {
            let peek = self.model.verdict(absolute(at), &key.name, key.pairs[0].model, 0, 0);
            checker.check_state(absolute(at), &peek)?;
            self.hints.push(at + peek.reset_after as i64);
        }
        Ok(())
    }

    /// Checks that keys that were not written are unchanged, to the byte and the expiry, and that others expire at most a
    /// second after their state.
    async fn check_stored(&mut self, at: i64, written: &[usize]) -> Result<(), String> {
        let names: Vec<&str> = self.keys.iter().map(|key| key.name.as_str()).collect();
        for (store, before) in self.stores.iter().zip(&mut self.stored) {
            let Some(after) = store.stored(&names).await else { continue };
            for (i, key) in self.keys.iter().enumerate() {
                let end = self.model.end(&key.name, key.pairs[0].model);
                let problem = match (&after[i], end) {
                    (after, _) if !written.contains(&i) => (*after != before[i]).then_some("was written"),
                    (Some(_), None) => Some("exists without a state"),
                    (None, Some(end)) => (end > absolute(at)).then_some("is gone before its state ends"),
                    (None, None) => None,
                    (Some(value), Some(end)) => {
                        let expires_at = i128::from(value.expires_at) * 1_000_000;
                        (!(end..=end + 1_000_000).contains(&expires_at)).then_some("has a wrong expiry")
                    }
                };
                if let Some(problem) = problem {
                    let (before, after) = (&before[i], &after[i]);
                    return Err(format!("key {i} {problem}: from {before:?} to {after:?}, ends at {end:?}"));
                }
            }
            *before = after;
        }
        Ok(())
    }
}

fn compare(outcome: &Outcome, expected: &model::Outcome, at: i64) -> Result<(), String> {
    let verdicts: Vec<model::Verdict> = outcome.verdicts.iter().map(model::Verdict::from).collect();
    // What is over of a pause depends on calls that wait.
    let paused_until = |index| {
        let mut pauses =
            outcome.paused.iter().filter(|(of, pause)| *of == index && pause.until > outcome.now);
        pauses.next().map(|(_, pause)| pause.until.into())
    };
    let paused_until: Vec<Option<i128>> = (0..verdicts.len()).map(paused_until).collect();
    let penalty = |index| outcome.paused.iter().find(|(of, _)| *of == index).map(|(_, pause)| pause);
    let penalties: Vec<i128> = (0..verdicts.len())
        .map(|index| penalty(index).map_or(0, |pause| pause.step(outcome.now)).into())
        .collect();
    let same = i128::from(outcome.now) == absolute(at)
        && outcome.admitted == expected.admitted
        && verdicts == expected.verdicts
        && paused_until == expected.paused_until
        && penalties == expected.penalties;
    let expected = || {
        let model::Outcome { verdicts, paused_until, penalties, .. } = expected;
        format!("{verdicts:?}, paused until {paused_until:?}, with penalties {penalties:?}")
    };
    same.then_some(()).ok_or_else(|| format!("got {outcome:?}\nexpected {}", expected()))
}
