//! Literal cases, decision by decision, with numbers worked out by hand: on every store, and on the model, which is
//! checked by them too.

mod buckets;
mod errors;
mod guava;
mod lines;
mod lists;
mod receipts;
mod shadows;
mod windows;

use ratelimit_runtime::store::{Charge, ChargeId};

use crate::model::{self, Model, Receipt, Verdict};
use crate::support::policies::Pair;
use crate::support::scheduled::{START, Scheduled, on_each_store};

/// A second in microseconds.
const S: i64 = 1_000_000;

struct Case {
    name: &'static str,
    /// One, or several that share the key.
    policies: Vec<Option<Pair>>,
    steps: Vec<Step>,
}

enum Step {
    /// Asks for permits, 0 to look, and is told so.
    Ask {
        at: i64,
        cost: u64,
        /// Waits so long at the most.
        wait: u64,
        told: Verdict,
    },
    Refund {
        at: i64,
        cost: u64,
    },
    /// Of the call that was admitted as the `nth`, from 0.
    RefundOf {
        at: i64,
        nth: usize,
    },
    Reset,
    /// From here on by another of the policies.
    Under(usize),
}

/// Admitted: so many are left, and so long until the state says nothing more.
fn yes(at: i64, cost: u64, remaining: i128, reset_after: i64) -> Step {
    ask(at, cost, true, remaining, None, reset_after)
}

fn no(at: i64, cost: u64, remaining: i128, retry_after: i64, reset_after: i64) -> Step {
    ask(at, cost, false, remaining, Some(retry_after.into()), reset_after)
}

/// Refused for good: more than the policy could ever give.
fn never(at: i64, cost: u64, remaining: i128, reset_after: i64) -> Step {
    ask(at, cost, false, remaining, None, reset_after)
}

fn peek(at: i64, remaining: i128, reset_after: i64) -> Step {
    yes(at, 0, remaining, reset_after)
}

/// Longer than anything lasts here.
const FOREVER: i64 = 3650 * 86_400 * S;

/// Waits for so long at the most, and is admitted to wait for `wait`.
fn waits(at: i64, cost: u64, most: i64, wait: i64, remaining: i128, reset_after: i64) -> Step {
    waiting(most, wait, yes(at, cost, remaining, reset_after))
}

/// Is refused, though it would wait for so long.
fn gives_up(at: i64, cost: u64, most: i64, remaining: i128, retry_after: i64, reset_after: i64) -> Step {
    waiting(most, 0, no(at, cost, remaining, retry_after, reset_after))
}

/// The same call, that waits for `most` at the most, and is told to wait for `until_slot`.
fn waiting(most: i64, until_slot: i64, step: Step) -> Step {
    let Step::Ask { at, cost, told, .. } = step else { panic!("only a call waits") };
    Step::Ask { at, cost, wait: most as u64, told: Verdict { wait: until_slot.into(), ..told } }
}

fn refund(at: i64, cost: u64) -> Step {
    Step::Refund { at, cost }
}

fn refund_of(at: i64, nth: usize) -> Step {
    Step::RefundOf { at, nth }
}

fn ask(
    at: i64,
    cost: u64,
    admitted: bool,
    remaining: i128,
    retry_after: Option<i128>,
    reset_after: i64,
) -> Step {
    // The limit is filled in from the policy.
    let told =
        Verdict { admitted, wait: 0, limit: 0, remaining, retry_after, reset_after: reset_after.into() };
    Step::Ask { at, cost, wait: 0, told }
}

fn cases() -> impl Iterator<Item = Case> {
    let files = [buckets::cases(), lines::cases(), receipts::cases(), guava::cases(), windows::cases()];
    files.into_iter().flatten()
}

#[tokio::test]
async fn the_cases_hold_on_every_store() {
    on_each_store(async |store| {
        for case in cases() {
            run(&case, &store).await;
        }
    })
    .await;
}

#[tokio::test]
async fn counts_stay_exact_in_a_long_life() {
    on_each_store(async |store| run(&windows::a_long_life(), &store).await).await;
}

#[tokio::test]
async fn a_line_stays_exact_however_long() {
    on_each_store(async |store| run(&lines::a_long_line(), &store).await).await;
}

#[test]
fn the_cases_hold_on_the_model() {
    for case in cases() {
        let mut model = Model::default();
        let mut receipts: Vec<(u64, Receipt)> = Vec::new();
        let mut spec = first(&case).model;
        for (i, step) in case.steps.iter().enumerate() {
            match *step {
                Step::Ask { at, cost, wait, told } => {
                    let charge = model::Charge {
                        key: case.name,
                        policy: spec,
                        cost: cost.into(),
                        wait: wait.into(),
                        shadow: false,
                    };
                    let outcome = model.decide(absolute(at), &[charge]);
                    let told = Verdict { limit: spec.limit(), ..told };
                    assert_eq!(outcome.verdicts, [told], "{}, step {i} at {at}", case.name);
                    receipts.extend(outcome.receipts[0].map(|receipt| (cost, receipt)));
                }
                Step::Refund { at, cost } => {
                    model.refund(absolute(at), case.name, spec, cost.into(), None);
                }
                Step::RefundOf { at, nth } => {
                    let (cost, receipt) = receipts[nth];
                    model.refund(absolute(at), case.name, spec, cost.into(), Some(receipt));
                }
                Step::Reset => model.reset(case.name),
                Step::Under(policy) => spec = pair(&case, policy).model,
            }
        }
    }
}

async fn run(case: &Case, store: &Scheduled) {
    let key = store.key(case.name);
    let mut receipts: Vec<(u64, ChargeId)> = Vec::new();
    let mut pair = first(case);
    for (i, step) in case.steps.iter().enumerate() {
        match *step {
            Step::Ask { at, cost, wait, told } => {
                store.set(at).await;
                let outcome = store
                    .decide(&[Charge { key: key.clone(), spec: pair.spec, cost, wait, shadow: false }])
                    .await;
                let expected = Verdict { limit: pair.model.limit(), ..told };
                let [verdict] = &outcome.verdicts[..] else { panic!("one charge has one verdict") };
                let kind = if store.connection().is_some() { "Redis" } else { "memory" };
                let step = format!("{} in {kind}, step {i} at {at}", case.name);
                assert_eq!(Verdict::from(verdict), expected, "{step}");
                assert_eq!(
                    (i128::from(outcome.now), outcome.admitted),
                    (absolute(at), told.admitted),
                    "{step}"
                );
                if cost > 0 && outcome.admitted {
                    receipts.push((cost, verdict.charge_id));
                }
            }
            Step::Refund { at, cost } => {
                store.set(at).await;
                store.store.refund(&key, &pair.spec, cost, None).await.expect("the store answers");
            }
            Step::RefundOf { at, nth } => {
                store.set(at).await;
                let (cost, charge_id) = receipts[nth];
                store.store.refund(&key, &pair.spec, cost, Some(charge_id)).await.expect("the store answers");
            }
            Step::Reset => store.store.reset(&key).await.expect("the store answers"),
            Step::Under(policy) => pair = self::pair(case, policy),
        }
    }
}

fn first(case: &Case) -> Pair {
    pair(case, 0)
}

fn pair(case: &Case, policy: usize) -> Pair {
    case.policies[policy].unwrap_or_else(|| panic!("{} has an invalid policy", case.name))
}

fn absolute(at: i64) -> i128 {
    i128::from(START) + i128::from(at)
}
