//! Literal cases with numbers worked out by hand: on every store, and on the model, which they check too.

mod buckets;
mod changing;
mod debts;
mod errors;
mod guava;
mod holds;
mod lane;
mod lists;
mod pauses;
mod peeks;
mod queues;
mod receipts;
mod settled;
mod shadows;
mod starts;
mod windows;

use std::collections::HashSet;

use crate::model::{UNKNOWN, Verdict};
use crate::support::policies::Pair;
use crate::support::test_store::{FOREVER, S, on_each_store};
use lane::{Lane, Outcome, Receipt, Request, on_each_lane, on_each_lane_in_process};

struct Case {
    name: String,
    /// One, or several that share the key.
    policies: Vec<Pair>,
    steps: Vec<Step>,
}

enum Step {
    Decide {
        at: i64,
        /// 0 to peek.
        cost: u64,
        max_wait: i64,
        expected: Verdict,
    },
    Refund {
        at: i64,
        cost: u64,
    },
    /// Refunds the call that was admitted as the `nth`, from 0.
    RefundReceipt {
        at: i64,
        nth: usize,
    },
    /// Replaces what the call was charged that was admitted as the `nth` by what it has used.
    Settle {
        at: i64,
        nth: usize,
        used: u64,
    },
    /// Admits no call for so long.
    Pause {
        at: i64,
        micros: i64,
    },
    Reset,
    /// Ends the call that was admitted as the `nth` and holds permits.
    End {
        at: i64,
        nth: usize,
    },
    /// Decides by the policy with this index from here on.
    UsePolicy(usize),
}

fn case(name: impl Into<String>, policy: Option<Pair>) -> Case {
    case_of(name, [policy])
}

fn case_of<const N: usize>(name: impl Into<String>, policies: [Option<Pair>; N]) -> Case {
    let name = name.into();
    let policies = policies.map(|pair| pair.unwrap_or_else(|| panic!("{name}: invalid policy"))).to_vec();
    Case { name, policies, steps: Vec::new() }
}

impl Case {
    fn steps(self, steps: impl IntoIterator<Item = Step>) -> Case {
        Case { steps: steps.into_iter().collect(), ..self }
    }
}

fn admits(at: i64, cost: u64, remaining: i128, reset_after: i64) -> Step {
    decide(at, cost, true, remaining, None, reset_after)
}

fn refuses(at: i64, cost: u64, remaining: i128, retry_after: i64, reset_after: i64) -> Step {
    decide(at, cost, false, remaining, Some(retry_after.into()), reset_after)
}

/// Refuses a cost that the policy can never admit.
fn never(at: i64, cost: u64, remaining: i128, reset_after: i64) -> Step {
    decide(at, cost, false, remaining, None, reset_after)
}

/// Finds that a call would be admitted.
fn peek(at: i64, remaining: i128, reset_after: i64) -> Step {
    admits(at, 0, remaining, reset_after)
}

/// Finds that a call would be refused.
fn peek_refused(at: i64, remaining: i128, retry_after: i64, reset_after: i64) -> Step {
    refuses(at, 0, remaining, retry_after, reset_after)
}

/// Admits a call with a slot after `wait`.
fn waits(at: i64, cost: u64, max_wait: i64, wait: i64, remaining: i128, reset_after: i64) -> Step {
    within(max_wait, wait, admits(at, cost, remaining, reset_after))
}

/// Refuses a call that would wait, but not long enough.
fn times_out(at: i64, cost: u64, max_wait: i64, remaining: i128, retry_after: i64, reset_after: i64) -> Step {
    within(max_wait, 0, refuses(at, cost, remaining, retry_after, reset_after))
}

/// Makes a call wait for at most `max_wait`, and expects it to wait for `wait`.
fn within(max_wait: i64, wait: i64, step: Step) -> Step {
    let Step::Decide { at, cost, expected, .. } = step else { panic!("only a call waits") };
    Step::Decide { at, cost, max_wait, expected: Verdict { wait: wait.into(), ..expected } }
}

fn refund(at: i64, cost: u64) -> Step {
    Step::Refund { at, cost }
}

fn refund_of(at: i64, nth: usize) -> Step {
    Step::RefundReceipt { at, nth }
}

/// Takes permits that are held.
fn takes(at: i64, cost: u64, remaining: i128) -> Step {
    admits(at, cost, remaining, 0)
}

/// Refuses a call until others have ended.
fn must_wait(at: i64, cost: u64, remaining: i128) -> Step {
    decide(at, cost, false, remaining, Some(UNKNOWN), 0)
}

fn ends(at: i64, nth: usize) -> Step {
    Step::End { at, nth }
}

fn settle(at: i64, nth: usize, used: u64) -> Step {
    Step::Settle { at, nth, used }
}

fn pause(at: i64, micros: i64) -> Step {
    Step::Pause { at, micros }
}

fn decide(
    at: i64,
    cost: u64,
    admitted: bool,
    remaining: i128,
    retry_after: Option<i128>,
    reset_after: i64,
) -> Step {
    let reset_after = reset_after.into();
    // The limit comes from the policy.
    let expected = Verdict { admitted, wait: 0, limit: 0, remaining, retry_after, reset_after };
    Step::Decide { at, cost, max_wait: 0, expected }
}

#[tokio::test]
async fn cases_hold() {
    let files = [
        buckets::cases(),
        changing::cases(),
        debts::cases(),
        pauses::cases(),
        queues::cases(),
        receipts::cases(),
        settled::cases(),
        guava::cases(),
        holds::cases(),
        windows::cases(),
    ];
    let cases: Vec<Case> = files.into_iter().flatten().collect();
    let names: HashSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "names are keys");
    on_each_lane(async |lane| {
        for case in &cases {
            run(case, &lane).await;
        }
    })
    .await;
}

#[tokio::test]
async fn counters_stay_exact_beyond_2_pow_50() {
    run_on_stores(&windows::long_lived_counter()).await;
}

#[tokio::test]
async fn wait_queues_stay_exact_up_to_2_pow_52() {
    run_on_stores(&queues::longest_wait_queue()).await;
}

/// For long cases, as the model takes quadratic time.
async fn run_on_stores(case: &Case) {
    on_each_store(async |store| run(case, &Lane::of(store)).await).await;
}

async fn run(case: &Case, lane: &Lane) {
    let mut receipts: Vec<(u64, Receipt)> = Vec::new();
    let mut pair = &case.policies[0];
    // With a shape, as limiters write it.
    let key = format!("{}:{}:{{}}", case.name, pair.spec);
    for (i, step) in case.steps.iter().enumerate() {
        match *step {
            Step::Decide { at, cost, max_wait, expected } => {
                let request = Request { max_wait: max_wait as u64, ..Request::new(&key, pair, cost) };
                let outcome = lane.decide(at, &[request]).await;
                let expected = Verdict { limit: pair.model.limit(), ..expected };
                let step = format!("{}: step {i} at {at} in {}", case.name, lane.name());
                assert_eq!(outcome.verdicts, [expected], "{step}");
                assert_eq!(outcome.admitted, expected.admitted, "{step}");
                receipts.extend(outcome.receipts.into_iter().next().flatten().map(|receipt| (cost, receipt)));
            }
            Step::Refund { at, cost } => lane.refund(at, &key, pair, cost, None).await,
            Step::RefundReceipt { at, nth } => {
                let (cost, receipt) = receipts[nth];
                lane.refund(at, &key, pair, cost, Some(receipt)).await;
            }
            Step::Settle { at, nth, used } => {
                let (cost, receipt) = receipts[nth];
                match used.checked_sub(cost) {
                    Some(more) => lane.debit(at, &key, pair, more).await,
                    None => lane.refund(at, &key, pair, cost - used, Some(receipt)).await,
                }
            }
            Step::Pause { at, micros } => lane.pause(at, &key, pair, micros).await,
            Step::End { at, nth } => {
                let (cost, receipt) = receipts[nth];
                lane.release(at, &key, pair, cost, receipt).await;
            }
            Step::Reset => lane.reset(&key).await,
            Step::UsePolicy(policy) => pair = &case.policies[policy],
        }
    }
}
