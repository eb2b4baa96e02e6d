//! Random schedules, on which every decision of both stores equals the model's, every key of Redis is as it should be
//! afterwards, and every bucket has kept what it promises of all intervals, told without the model. A failure names its seed: `RATELIMITS_SEED` repeats the run, `RATELIMITS_SCHEDULES` its length.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use ratelimit_runtime::store::{Charge, ChargeId, Outcome};

use crate::model::{self, Model, Receipt};
use crate::support::given::Given;
use crate::support::numbers::number;
use crate::support::random::Random;
use crate::support::schedule::{self, Action, Ask, Slot};
use crate::support::scheduled::{Held, START, Scheduled};
use crate::support::server::Server;

const SCHEDULES: u64 = 10_000;
const WORKERS: u64 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_decision_equals_the_models() {
    let seed = number("RATELIMITS_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    let schedules = number("RATELIMITS_SCHEDULES").unwrap_or(SCHEDULES);
    println!("RATELIMITS_SEED={seed}");
    let server = Server::shared();
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                let redis = Scheduled::redis(server).await;
                let (mut decisions, mut shortest) = (0, None::<Failure>);
                for schedule in (worker..schedules).step_by(WORKERS as usize) {
                    match run(seed, schedule, &redis).await {
                        Ok(made) => decisions += made,
                        Err(failure) if shortest.as_ref().is_none_or(|it| failure.steps < it.steps) => {
                            shortest = Some(failure);
                        }
                        Err(_) => {}
                    }
                }
                (decisions, shortest)
            })
        })
        .collect();
    let (mut decisions, mut failures) = (0, Vec::new());
    for worker in workers {
        let (made, shortest) =
            worker.await.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()));
        decisions += made;
        failures.extend(shortest);
    }
    // The shortest is the easiest to understand.
    if let Some(failure) = failures.iter().min_by_key(|failure| failure.steps) {
        panic!("{}", failure.told);
    }
    println!("{schedules} schedules, {decisions} decisions on each store");
}

/// A schedule on which something was not as it should be.
struct Failure {
    steps: usize,
    told: String,
}

/// Returns the number of decisions.
async fn run(seed: u64, schedule: u64, redis: &Scheduled) -> Result<u64, Failure> {
    let mut random = Random::new(seed ^ schedule.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let slots = schedule::slots(&mut random, schedule);
    let memory = Scheduled::memory();
    // In half of them the clock never steps back, and then all promises hold.
    let steady = random.percent(50);
    let mut world = World {
        stores: [&memory, redis],
        held: vec![None; slots.len()],
        given: slots.iter().map(|slot| Given::new(slot.pairs[0].model)).collect(),
        slots,
        model: Model::default(),
        receipts: Vec::new(),
        charges: 0,
        hints: Vec::new(),
        decisions: 0,
    };
    let mut now = random.below(10_000_000) as i64;
    let mut steps = Vec::new();
    for _ in 0..random.between(12, 25) {
        let action = schedule::action(&mut random, &world.slots, world.receipts.len());
        let then = now;
        now = schedule::time(&mut random, now, steady, &world.slots, &world.hints);
        if now < then {
            world.given.iter_mut().for_each(Given::distrust);
        }
        steps.push(format!("at {now} {action:?}"));
        if let Err(problem) = world.step(now, &action).await {
            let slots: Vec<String> = world.slots.iter().map(|slot| format!("{slot:?}")).collect();
            let (slots, list) = (slots.join("\n"), steps.join("\n"));
            let told = format!("{problem}\nRATELIMITS_SEED={seed}, schedule {schedule}\n{slots}\n{list}");
            return Err(Failure { steps: steps.len(), told });
        }
    }
    Ok(world.decisions)
}

/// A charge that was admitted, and not given back.
struct Charged {
    id: usize,
    ask: Ask,
    /// By what the model finds it again.
    receipt: Receipt,
    /// By what each store does.
    charge_ids: [ChargeId; 2],
}

struct World<'a> {
    stores: [&'a Scheduled; 2],
    slots: Vec<Slot>,
    model: Model,
    /// What each slot has given.
    given: Vec<Given>,
    receipts: Vec<Charged>,
    /// How many there were.
    charges: usize,
    /// When something was last said to happen.
    hints: Vec<i64>,
    /// What Redis held after the last step.
    held: Vec<Option<Held>>,
    decisions: u64,
}

impl World<'_> {
    async fn step(&mut self, at: i64, action: &Action) -> Result<(), String> {
        for store in self.stores {
            store.set(at).await;
        }
        let written = match action {
            Action::Decide(decisions) => self.decide(at, decisions).await?,
            Action::Refund(refunds) => {
                let mut written = Vec::new();
                self.hints.clear();
                for (ask, ago) in refunds {
                    written.extend(self.refund(at, *ask, *ago).await?);
                }
                written
            }
            Action::Reset(slot) => {
                let name = &self.slots[*slot].name;
                for store in self.stores {
                    store.store.reset(&store.key(name)).await.expect("the store answers");
                }
                self.model.reset(name);
                self.given[*slot].forget();
                vec![*slot]
            }
        };
        self.check_states(at)?;
        self.check_keys(at, &written).await
    }

    /// Returns the keys that may have been written.
    async fn decide(&mut self, at: i64, decisions: &[Vec<Ask>]) -> Result<Vec<usize>, String> {
        self.decisions += decisions.len() as u64;
        let mut outcomes = Vec::new();
        for store in self.stores {
            let charges: Vec<Vec<Charge>> = decisions
                .iter()
                .map(|asks| asks.iter().map(|ask| self.charge(store, ask)).collect())
                .collect();
            let lists: Vec<&[Charge]> = charges.iter().map(Vec::as_slice).collect();
            outcomes.push(store.store.decide(&lists).await);
        }
        let mut written = Vec::new();
        for (i, asks) in decisions.iter().enumerate() {
            let told = self.slots.clone();
            let charges: Vec<model::Charge<'_>> = asks
                .iter()
                .map(|ask| model::Charge {
                    key: &told[ask.slot].name,
                    policy: told[ask.slot].pairs[ask.pair].model,
                    cost: ask.cost.into(),
                    wait: ask.wait.into(),
                    shadow: ask.shadow,
                })
                .collect();
            let expected = self.model.decide(absolute(at), &charges);
            for (store, outcomes) in ["memory", "redis"].iter().zip(&outcomes) {
                let outcome = outcomes[i].as_ref().map_err(|error| format!("{store}: {error}"))?;
                differs(outcome, &expected, absolute(at)).map_or(Ok(()), |difference| {
                    Err(format!("decision {i} of the last step in {store}: {difference}"))
                })?;
            }
            self.hints = expected
                .verdicts
                .iter()
                .flat_map(|verdict| [verdict.retry_after, Some(verdict.reset_after), Some(verdict.wait)])
                .flatten()
                .map(|after| at + after as i64)
                .collect();
            for (j, ask) in asks.iter().enumerate() {
                if let Some(receipt) = expected.receipts[j] {
                    let charge_ids = [0, 1].map(|store: usize| charge_id(&outcomes[store][i], j));
                    self.receipts.push(Charged { id: self.charges, ask: *ask, receipt, charge_ids });
                    let wait = expected.verdicts[j].wait;
                    self.given[ask.slot].refilled(charge_ids[0].at.into());
                    self.given[ask.slot].charged(self.charges, ask.cost.into(), absolute(at), wait)?;
                    self.charges += 1;
                }
                if expected.written[j] {
                    written.push(ask.slot);
                }
            }
        }
        Ok(written)
    }

    /// Returns the key if it may have been written.
    async fn refund(&mut self, at: i64, ask: Ask, ago: Option<usize>) -> Result<Option<usize>, String> {
        // A receipt is consumed.
        let charged = ago.map(|ago| self.receipts.remove(self.receipts.len() - 1 - ago));
        let ask = charged.as_ref().map_or(ask, |charged| charged.ask);
        let Slot { name, pairs, .. } = &self.slots[ask.slot];
        let pair = pairs[ask.pair];
        for (i, store) in self.stores.iter().enumerate() {
            let charge_id = charged.as_ref().map(|charged| charged.charge_ids[i]);
            let refunded = store.store.refund(&store.key(name), &pair.spec, ask.cost, charge_id).await;
            refunded.expect("the store answers");
        }
        let receipt = charged.as_ref().map(|charged| charged.receipt);
        let refund = self.model.refund(absolute(at), name, pair.model, ask.cost.into(), receipt);
        let Some(refund) = refund else { return Ok(None) };
        match charged {
            Some(charged) => self.given[ask.slot].refunded(charged.id, refund)?,
            None => self.given[ask.slot].distrust(),
        }
        Ok(Some(ask.slot))
    }

    /// What the model says is what the stores said.
    fn check_states(&mut self, at: i64) -> Result<(), String> {
        for (slot, given) in self.slots.iter().zip(&self.given) {
            let look = self.model.would_say(absolute(at), &slot.name, slot.pairs[0].model, 0, 0);
            given.check_state(absolute(at), &look)?;
            self.hints.push(at + look.reset_after as i64);
        }
        Ok(())
    }

    /// Keys that nobody wrote are as they were, to the byte and the expiry; others expire when they say nothing more, or
    /// within a second of it.
    async fn check_keys(&mut self, at: i64, written: &[usize]) -> Result<(), String> {
        let names: Vec<&str> = self.slots.iter().map(|slot| slot.name.as_str()).collect();
        let held = self.stores[1].held(&names).await.expect("the second store is in Redis");
        for (i, slot) in self.slots.iter().enumerate() {
            let end = self.model.end(&slot.name, slot.pairs[0].model);
            let fault = match (&held[i], end) {
                (held, _) if !written.contains(&i) => (*held != self.held[i]).then_some("was written"),
                (Some(_), None) => Some("is kept, though it says nothing"),
                (None, Some(end)) => (end > absolute(at)).then_some("is gone, though it still counts"),
                (None, None) => None,
                (Some(held), Some(end)) => {
                    let expires = i128::from(held.expires) * 1_000_000;
                    (!(end..=end + 1_000_000).contains(&expires))
                        .then_some("expires at another time than it ends")
                }
            };
            if let Some(fault) = fault {
                return Err(format!(
                    "key {i} {fault}: from {:?} to {:?}, ends at {end:?}",
                    self.held[i], held[i]
                ));
            }
        }
        self.held = held;
        Ok(())
    }

    fn charge(&self, store: &Scheduled, ask: &Ask) -> Charge {
        let slot = &self.slots[ask.slot];
        Charge {
            key: store.key(&slot.name),
            spec: slot.pairs[ask.pair].spec,
            cost: ask.cost,
            wait: ask.wait,
            shadow: ask.shadow,
        }
    }
}

fn absolute(at: i64) -> i128 {
    i128::from(START) + i128::from(at)
}

fn charge_id<E>(outcome: &Result<Outcome, E>, charge: usize) -> ChargeId {
    match outcome {
        Ok(outcome) => outcome.verdicts[charge].charge_id,
        Err(_) => unreachable!("an error was told before"),
    }
}

fn differs(outcome: &Outcome, expected: &model::Outcome, now: i128) -> Option<String> {
    let told: Vec<model::Verdict> = outcome.verdicts.iter().map(model::Verdict::from).collect();
    let same =
        i128::from(outcome.now) == now && outcome.admitted == expected.admitted && told == expected.verdicts;
    (!same).then(|| format!("told {outcome:?}\nexpected {:?}", expected.verdicts))
}
