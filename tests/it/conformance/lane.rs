//! The ways to decide on which every case runs: the reference model, and each store.

use std::cell::RefCell;
use std::time::Duration;

use ratelimit_runtime::store::{Charge, ChargeId};

use crate::model::{self, Model, Verdict};
use crate::support::policies::{self, Pair};
use crate::support::test_store::{StoredValue, TestStore, absolute};
use crate::support::until::until;

pub(super) enum Lane {
    Model(RefCell<Model>),
    Store(TestStore, RefCell<Kept>),
}

/// The outcomes of calls that hold permits in Redis until they are dropped, each with the number of charges that have not ended.
type Kept = Vec<Option<(ratelimit_runtime::store::Outcome, usize)>>;

/// How long Redis may take to hear of the end of a call.
const HEARS: Duration = Duration::from_secs(5);

/// A charge, whatever decides on it.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) key: &'a str,
    pub(super) pair: &'a Pair,
    pub(super) cost: u64,
    pub(super) max_wait: u64,
    pub(super) shadow: bool,
}

#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) admitted: bool,
    pub(super) verdicts: Vec<Verdict>,
    /// One for each charge that was made.
    pub(super) receipts: Vec<Option<Receipt>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Receipt {
    Model(model::DatedReceipt),
    Store(ChargeId),
    /// The number of an outcome that is kept.
    Held(usize),
}

/// Runs a test on every lane. A new one is a new entry in [`TestStore::all`].
pub(super) async fn on_each_lane(test: impl AsyncFn(Lane)) {
    on_model_and(TestStore::all().await, test).await;
}

/// Runs a test on every lane without Redis, where holds are what processes report.
pub(super) async fn on_each_lane_in_process(test: impl AsyncFn(Lane)) {
    on_model_and(TestStore::in_process(), test).await;
}

async fn on_model_and(stores: impl IntoIterator<Item = TestStore>, test: impl AsyncFn(Lane)) {
    test(Lane::Model(RefCell::default())).await;
    for store in stores {
        test(Lane::of(store)).await;
    }
}

impl<'a> Request<'a> {
    pub(super) fn new(key: &'a str, pair: &'a Pair, cost: u64) -> Self {
        Request { key, pair, cost, max_wait: 0, shadow: false }
    }

    pub(super) fn shadow(key: &'a str, pair: &'a Pair, cost: u64) -> Self {
        Request { shadow: true, ..Request::new(key, pair, cost) }
    }
}

impl Outcome {
    pub(super) fn admits(&self) -> Vec<bool> {
        self.verdicts.iter().map(|verdict| verdict.admitted).collect()
    }

    pub(super) fn remaining(&self) -> Vec<i128> {
        self.verdicts.iter().map(|verdict| verdict.remaining).collect()
    }
}

impl Lane {
    pub(super) fn of(store: TestStore) -> Self {
        Lane::Store(store, RefCell::default())
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Lane::Model(_) => "the model",
            Lane::Store(store, _) => store.name,
        }
    }

    pub(super) async fn decide(&self, at: i64, requests: &[Request<'_>]) -> Outcome {
        self.decide_lists(at, &[requests]).await.remove(0)
    }

    /// Decides several lists of charges in one call.
    pub(super) async fn decide_lists(&self, at: i64, lists: &[&[Request<'_>]]) -> Vec<Outcome> {
        match self {
            Lane::Model(model) => {
                let mut model = model.borrow_mut();
                lists.iter().map(|requests| decide_by_model(&mut model, at, requests)).collect()
            }
            Lane::Store(store, kept) => {
                store.set_time(at).await;
                let charges = |requests: &&[Request<'_>]| -> Vec<Charge> {
                    requests.iter().map(|request| charge(store, request)).collect()
                };
                let charges: Vec<Vec<Charge>> = lists.iter().map(charges).collect();
                let charge_lists: Vec<&[Charge]> = charges.iter().map(Vec::as_slice).collect();
                let outcomes = store.decide_lists(&charge_lists).await.into_iter().zip(lists);
                let mut kept = kept.borrow_mut();
                outcomes
                    .map(|(outcome, requests)| {
                        let from = from_store(&outcome, at, requests, store.is_redis().then_some(kept.len()));
                        let held = from.receipts.iter().filter(|it| matches!(it, Some(Receipt::Held(_))));
                        let held = held.count();
                        if held > 0 {
                            kept.push(Some((outcome, held)));
                        }
                        from
                    })
                    .collect()
            }
        }
    }

    pub(super) async fn refund(&self, at: i64, key: &str, pair: &Pair, cost: u64, receipt: Option<Receipt>) {
        match self {
            Lane::Model(model) => {
                let receipt = receipt.map(|receipt| match receipt {
                    Receipt::Model(receipt) => receipt,
                    _ => unreachable!("the model's receipt"),
                });
                model.borrow_mut().refund(absolute(at), key, pair.model, cost.into(), receipt);
            }
            Lane::Store(store, _) => {
                let charge_id = receipt.map(|receipt| match receipt {
                    Receipt::Store(charge_id) => charge_id,
                    _ => unreachable!("a store's receipt"),
                });
                store.set_time(at).await;
                store.refund(key, pair, cost, charge_id).await;
            }
        }
    }

    /// Ends a call that holds permits, and waits until its store knows it. In Redis, the call ends that has several charges when all
    /// of them have.
    pub(super) async fn release(&self, at: i64, key: &str, pair: &Pair, cost: u64, receipt: Receipt) {
        let (Lane::Store(store, kept), Receipt::Held(number)) = (self, receipt) else {
            return self.refund(at, key, pair, cost, Some(receipt)).await;
        };
        let ended = {
            let mut kept = kept.borrow_mut();
            let (_, left) = kept[number].as_mut().expect("it ends once");
            *left -= 1;
            if *left == 0 { kept[number].take() } else { None }
        };
        let Some((outcome, _)) = ended else { return };
        store.set_time(at).await;
        // A policy that nothing exceeds.
        let wide = policies::holds(1_000_000_000_000).expect("it is valid");
        let remaining = async || store.decide(&[store.charge(key, &wide, 0)]).await.verdicts[0].remaining;
        let before = remaining().await;
        drop(outcome);
        until("the end of the call is known", HEARS, async || {
            let now = remaining().await;
            if now == before + cost { Ok(()) } else { Err(format!("{before} and {now} of {cost}")) }
        })
        .await;
    }

    pub(super) async fn debit(&self, at: i64, key: &str, pair: &Pair, cost: u64) {
        match self {
            Lane::Model(model) => model.borrow_mut().debit(absolute(at), key, pair.model, cost.into()),
            Lane::Store(store, _) => {
                store.set_time(at).await;
                store.debit(key, pair, cost).await;
            }
        }
    }

    pub(super) async fn pause(&self, at: i64, key: &str, pair: &Pair, micros: i64) {
        match self {
            Lane::Model(model) => {
                model.borrow_mut().pause(absolute(at), key, pair.model, micros.into());
            }
            Lane::Store(store, _) => {
                store.set_time(at).await;
                store.pause(key, pair, micros as u64).await;
            }
        }
    }

    pub(super) async fn reset(&self, key: &str) {
        match self {
            Lane::Model(model) => model.borrow_mut().reset(key),
            Lane::Store(store, _) => store.reset(key).await,
        }
    }

    /// Returns what Redis holds under the keys, or `None` elsewhere.
    pub(super) async fn stored(&self, keys: &[&str]) -> Option<Vec<Option<StoredValue>>> {
        match self {
            Lane::Model(_) => None,
            Lane::Store(store, _) => store.stored(keys).await,
        }
    }
}

fn decide_by_model<'a>(model: &mut Model, at: i64, requests: &[Request<'a>]) -> Outcome {
    let charge = |request: &Request<'a>| {
        let Request { key, pair, cost, max_wait, shadow } = *request;
        model::Charge { key, policy: pair.model, cost: cost.into(), max_wait: max_wait.into(), shadow }
    };
    let charges: Vec<model::Charge<'_>> = requests.iter().map(charge).collect();
    let outcome = model.decide(absolute(at), &charges);
    let receipts = outcome.receipts.into_iter().map(|receipt| receipt.map(Receipt::Model));
    Outcome { admitted: outcome.admitted, verdicts: outcome.verdicts, receipts: receipts.collect() }
}

fn charge(store: &TestStore, request: &Request<'_>) -> Charge {
    let Request { key, pair, cost, max_wait, shadow } = *request;
    Charge { wait: max_wait, shadow, ..store.charge(key, pair, cost) }
}

/// Returns an outcome, in Redis with the number under which it is kept if its call holds permits.
fn from_store(
    outcome: &ratelimit_runtime::store::Outcome,
    at: i64,
    requests: &[Request<'_>],
    number: Option<usize>,
) -> Outcome {
    assert_eq!(i128::from(outcome.now), absolute(at));
    let charges = outcome.verdicts.iter().zip(requests);
    let receipts = charges.map(|(verdict, request)| {
        let is_charged = outcome.admitted && verdict.admitted && request.cost > 0;
        let is_held = matches!(request.pair.model, model::Policy::Holds { .. });
        let receipt = match number.filter(|_| is_held) {
            Some(number) => Receipt::Held(number),
            None => Receipt::Store(verdict.charge_id),
        };
        is_charged.then_some(receipt)
    });
    let (receipts, verdicts) = (receipts.collect(), outcome.verdicts.iter().map(Verdict::from).collect());
    Outcome { admitted: outcome.admitted, verdicts, receipts }
}
