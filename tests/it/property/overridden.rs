//! Random schedules of calls with other numbers on the keys of literal buckets: all stores agree about every decision and
//! receipt, and in every interval a key gets no more than the largest numbers allow.

use ratelimit_runtime::store::{Charge, ChargeId, Outcome};

use super::schedule::{self, Operation, Refund, Request, TestKey};
use crate::support::bound_checker::BoundChecker;
use crate::support::budget::budget;
use crate::support::random::Random;
use crate::support::test_store::{TestStore, absolute};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_agree_about_overridden_buckets() {
    let seeded = Random::seeded();
    let mut stores = TestStore::all().await;
    for schedule in 0..budget(150, 30_000) {
        stores.iter_mut().for_each(TestStore::clear_memory);
        let mut random = seeded.run(schedule);
        let keys = schedule::overridden_keys(&mut random, schedule);
        // In half of the schedules the clock never steps back, so that all promises hold.
        let steady = random.percent(50);
        // The checkers do not know how much a refund returns.
        let has_refunds = random.percent(50);
        let checkers = keys.iter().map(TestKey::checker).collect();
        let mut run = Run { stores: &stores, checkers, keys, receipts: Vec::new(), hints: Vec::new() };
        let mut now = random.below(10_000_000) as i64;
        let mut steps = Vec::new();
        for _ in 0..random.between(12, 25) {
            let operation = schedule::operation(&mut random, &run.keys, run.receipts.len());
            if matches!(operation, Operation::Refund(_)) && !has_refunds {
                continue;
            }
            let then = now;
            now = schedule::time(&mut random, now, steady, &run.keys, &run.hints);
            if now < then {
                run.checkers.iter_mut().for_each(BoundChecker::disable);
            }
            steps.push(format!("at {now} {operation:?}"));
            if let Err(problem) = run.step(now, &operation).await {
                panic!("{problem}\nschedule {schedule}\n{:#?}\n{}", run.keys, steps.join("\n"));
            }
        }
    }
}

/// A charge that was admitted and not refunded, with its id, which is the same in all stores.
struct Charged {
    request: Request,
    charge_id: ChargeId,
}

struct Run<'a> {
    stores: &'a [TestStore],
    keys: Vec<TestKey>,
    /// One per key.
    checkers: Vec<BoundChecker>,
    receipts: Vec<Charged>,
    /// The times that the last verdicts named.
    hints: Vec<i64>,
}

impl Run<'_> {
    async fn step(&mut self, at: i64, operation: &Operation) -> Result<(), String> {
        for store in self.stores {
            store.set_time(at).await;
        }
        match operation {
            Operation::Decide(decisions) => self.decide(at, decisions).await?,
            Operation::Refund(refunds) => {
                for refund in refunds {
                    self.refund(*refund).await;
                }
            }
            Operation::Reset(key) => {
                for store in self.stores {
                    store.reset(&self.keys[*key].name).await;
                }
                self.checkers[*key].reset();
            }
        }
        self.check_stored(at).await
    }

    /// Checks that keys in Redis have the same value and expiry in both ways, and expire no earlier than their state ends.
    async fn check_stored(&self, at: i64) -> Result<(), String> {
        let names: Vec<&str> = self.keys.iter().map(|key| key.name.as_str()).collect();
        let mut expected = None;
        for store in self.stores {
            let Some(stored) = store.stored(&names).await else { continue };
            for (key, value) in self.keys.iter().zip(&stored) {
                let peek = store.decide(&[store.charge(&key.name, &key.pairs[0], 0)]).await;
                let reset_after = peek.verdicts[0].reset_after;
                let end = absolute(at) + i128::from(reset_after);
                // The test's clock removes no key.
                let is_kept = match value {
                    Some(value) => {
                        let expires_at = i128::from(value.expires_at) * 1_000_000;
                        value.expires_at < u64::MAX && (reset_after == 0 || end <= expires_at)
                    }
                    None => reset_after == 0,
                };
                if !is_kept {
                    return Err(format!("{} has {value:?} in {}, but ends at {end}", key.name, store.name));
                }
            }
            let expected = expected.get_or_insert_with(|| stored.clone());
            if *expected != stored {
                return Err(format!("{} has {stored:?}\nexpected {expected:?}", store.name));
            }
        }
        Ok(())
    }

    async fn decide(&mut self, at: i64, decisions: &[Vec<Request>]) -> Result<(), String> {
        let mut expected: Option<Vec<Outcome>> = None;
        for store in self.stores {
            let charge = |request: &Request| {
                let TestKey { name, pairs, .. } = &self.keys[request.key];
                let charge = store.charge(name, &pairs[request.pair], request.cost);
                Charge { wait: request.max_wait, shadow: request.shadow, ..charge }
            };
            let charges: Vec<Vec<Charge>> =
                decisions.iter().map(|requests| requests.iter().map(charge).collect()).collect();
            let lists: Vec<&[Charge]> = charges.iter().map(Vec::as_slice).collect();
            let outcomes = store.decide_lists(&lists).await;
            let expected = expected.get_or_insert_with(|| outcomes.clone());
            let differing = outcomes.iter().zip(expected).find(|(outcome, expected)| {
                (outcome.admitted, &outcome.verdicts) != (expected.admitted, &expected.verdicts)
            });
            if let Some((outcome, expected)) = differing {
                return Err(format!("{} got {outcome:?}\nexpected {expected:?}", store.name));
            }
        }
        for (outcome, requests) in expected.iter().flatten().zip(decisions) {
            let times = outcome.verdicts.iter().flat_map(|verdict| [verdict.reset_after, verdict.wait]);
            self.hints = times.map(|after| at + after as i64).collect();
            for (verdict, request) in outcome.verdicts.iter().zip(requests) {
                if outcome.admitted && verdict.admitted && request.cost > 0 {
                    let policy = self.keys[request.key].pairs[request.pair].model;
                    let (id, cost, wait) =
                        (self.receipts.len(), request.cost.into(), i128::from(verdict.wait));
                    self.checkers[request.key].add_next(id, policy, cost, absolute(at), wait)?;
                    self.receipts.push(Charged { request: *request, charge_id: verdict.charge_id });
                }
            }
        }
        Ok(())
    }

    async fn refund(&mut self, refund: Refund) {
        let (request, charge_id) = match refund {
            Refund::Unchecked(request) => (request, None),
            Refund::Receipt(index) => {
                let Charged { request, charge_id } = self.receipts.remove(self.receipts.len() - 1 - index);
                (request, Some(charge_id))
            }
        };
        let TestKey { name, pairs, .. } = &self.keys[request.key];
        for store in self.stores {
            store.refund(name, &pairs[request.pair], request.cost, charge_id).await;
        }
        // How much was refunded is not known.
        self.checkers[request.key].disable();
    }
}
