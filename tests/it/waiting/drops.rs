//! Calls that wait on Redis are dropped at random: what is left is what the rule of the refund says. A failure names its
//! seed: `RATELIMITS_SEED` repeats the run.

use std::time::{Duration, SystemTime};

use ratelimit_runtime::algorithm::State;
use ratelimit_runtime::store::{AlgorithmSpec, ChargeId};
use ratelimits::{LeakyBucket, Policy, Rate, TokenBucket};

use super::{Calling, Counted, acquire, poll, warm};
use crate::support::random::Random;

const DROPS: usize = 1500;

fn policy(random: &mut Random) -> (Policy, u64) {
    let burst = random.between(1, 10);
    let rate = Rate::new(1, Duration::from_secs(random.between(600, 3600)));
    match random.below(5) {
        0 => (TokenBucket::new(rate).burst(burst).into(), burst),
        1 => (TokenBucket::new(rate).burst(burst).interval_refill().into(), burst),
        2 => (TokenBucket::new(rate).burst(burst).borrow().into(), burst + 1),
        3 => (TokenBucket::new(rate).warmup(Duration::from_secs(random.between(1, 10_000))).into(), 4),
        _ => (LeakyBucket::new(60, rate).queue().into(), 1),
    }
}

/// What Redis holds, of that which the charge_id of a charge tells too.
fn seen(spec: &AlgorithmSpec, held: &str) -> u64 {
    let mut numbers = held.split(' ');
    let place = usize::from(matches!(spec, AlgorithmSpec::IntervalBucket(_)));
    numbers.nth(place).unwrap().parse().unwrap()
}

fn told(spec: &AlgorithmSpec, charge_id: ChargeId) -> u64 {
    if matches!(spec, AlgorithmSpec::IntervalBucket(_)) { charge_id.level } else { charge_id.at }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros() as u64
}

struct Waits {
    call: Calling,
    cost: u64,
    charge_id: ChargeId,
}

#[tokio::test]
async fn what_is_left_is_what_no_later_slot_stands_on() {
    let seeded = Random::seeded();
    let counted = Counted::start().await;
    let (mut drops, mut run, mut open) = (0, 0u64, 0);
    while drops < DROPS {
        run += 1;
        assert!(run < DROPS as u64, "nobody waits, so that nobody can be dropped");
        let mut random = seeded.run(run);
        let (policy, first) = policy(&mut random);
        println!("run {run}: {policy:?}");
        counted.forget().await;
        let limiter = counted.registry().limiter("a", policy).unwrap();
        warm(&limiter).await;
        let spec = policy.spec().unwrap();
        limiter.try_acquire((), first).await.unwrap();
        // From here on nobody's slot comes, so that the time of the first call is that of all.
        let held = counted.held().await.unwrap();
        let mut state: Option<State> = None;
        let charged = spec.verdict(spec.check(None, 0, first), 0, first, 0).charge_id.at;
        let begin = held.split(' ').next().unwrap().parse::<u64>().unwrap() - charged;
        spec.commit(&mut state, spec.check(None, begin, first), begin, first);

        let mut waiting: Vec<Waits> = Vec::new();
        let mut calls = counted.calls().await;
        for _ in 0..random.between(10, 60) {
            if waiting.is_empty() || (waiting.len() < 12 && random.percent(50)) {
                let most = if spec.reserves() { spec.max_cost().unwrap_or(4).min(4) } else { 1 };
                let cost = random.between(1, most);
                let mut call = acquire(&limiter, cost);
                assert!(poll(&mut call).is_pending());
                calls += 1;
                counted.reaches(calls).await;
                let snapshot = spec.check(state.as_ref(), begin, cost);
                let verdict = spec.verdict(snapshot, begin, cost, u64::MAX);
                if verdict.admitted {
                    spec.commit(&mut state, snapshot, begin, cost);
                    waiting.push(Waits { call, cost, charge_id: verdict.charge_id });
                }
            } else {
                let Waits { call, cost, charge_id } =
                    waiting.remove(random.below(waiting.len() as u64) as usize);
                drop(call);
                drops += 1;
                calls += 1;
                counted.reaches(calls).await;
                let mut later = state.clone();
                spec.refund(&mut state, begin, cost, Some(charge_id));
                spec.refund(&mut later, now(), cost, Some(charge_id));
                let of = |state: &Option<State>| {
                    told(&spec, spec.verdict(spec.check(state.as_ref(), begin, 0), begin, 0, 0).charge_id)
                };
                if of(&state) != of(&later) {
                    // It stands on the microsecond of the refund, which nobody knows.
                    open += 1;
                    break;
                }
            }
            let expected = spec.verdict(spec.check(state.as_ref(), begin, 0), begin, 0, 0).charge_id;
            let held = counted.held().await.unwrap();
            assert_eq!(seen(&spec, &held), told(&spec, expected), "{held}, {waiting:?}");
        }
        // From the back to the front nothing is lost, whatever was before.
        let expected = waiting.len();
        for _ in 0..expected {
            let Waits { call, cost, charge_id } = waiting.pop().unwrap();
            drop(call);
            calls += 1;
            counted.reaches(calls).await;
            spec.refund(&mut state, begin, cost, Some(charge_id));
        }
    }
    println!("{drops} drops in {run} runs, {open} of them left open");
    assert!(open * 5 < drops, "{open}");
}

impl std::fmt::Debug for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} until {:?}", self.cost, self.charge_id)
    }
}
