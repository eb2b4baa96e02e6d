//! Calls that wait on Redis are dropped at random: what is left is what the rule of the refund says. A failure names its
//! seed: `RATELIMITS_SEED` repeats the run.

use std::time::{Duration, SystemTime};

use ratelimits::algorithm::State;
use ratelimits::store::{Mark, Rule};
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

/// What Redis holds, of that which the mark of a charge tells too.
fn seen(rule: &Rule, held: &str) -> u64 {
    let mut numbers = held.split(' ');
    let place = usize::from(matches!(rule, Rule::IntervalBucket(_)));
    numbers.nth(place).unwrap().parse().unwrap()
}

fn told(rule: &Rule, mark: Mark) -> u64 {
    if matches!(rule, Rule::IntervalBucket(_)) { mark.level } else { mark.at }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros() as u64
}

struct Waits {
    call: Calling,
    cost: u64,
    mark: Mark,
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
        let rule = policy.rule().unwrap();
        limiter.try_acquire((), first).await.unwrap();
        // From here on nobody's slot comes, so that the time of the first call is that of all.
        let held = counted.held().await.unwrap();
        let mut state: Option<State> = None;
        let charged = rule.verdict(rule.check(None, 0, first), 0, first, 0).mark.at;
        let begin = held.split(' ').next().unwrap().parse::<u64>().unwrap() - charged;
        rule.commit(&mut state, rule.check(None, begin, first), begin, first);

        let mut waiting: Vec<Waits> = Vec::new();
        let mut calls = counted.calls().await;
        for _ in 0..random.between(10, 60) {
            if waiting.is_empty() || (waiting.len() < 12 && random.percent(50)) {
                let most = if rule.reserves() { rule.most().unwrap_or(4).min(4) } else { 1 };
                let cost = random.between(1, most);
                let mut call = acquire(&limiter, cost);
                assert!(poll(&mut call).is_pending());
                calls += 1;
                counted.reaches(calls).await;
                let reading = rule.check(state.as_ref(), begin, cost);
                let verdict = rule.verdict(reading, begin, cost, u64::MAX);
                if verdict.admitted {
                    rule.commit(&mut state, reading, begin, cost);
                    waiting.push(Waits { call, cost, mark: verdict.mark });
                }
            } else {
                let Waits { call, cost, mark } = waiting.remove(random.below(waiting.len() as u64) as usize);
                drop(call);
                drops += 1;
                calls += 1;
                counted.reaches(calls).await;
                let mut later = state.clone();
                rule.refund(&mut state, begin, cost, Some(mark));
                rule.refund(&mut later, now(), cost, Some(mark));
                let of = |state: &Option<State>| {
                    told(&rule, rule.verdict(rule.check(state.as_ref(), begin, 0), begin, 0, 0).mark)
                };
                if of(&state) != of(&later) {
                    // It stands on the microsecond of the refund, which nobody knows.
                    open += 1;
                    break;
                }
            }
            let expected = rule.verdict(rule.check(state.as_ref(), begin, 0), begin, 0, 0).mark;
            let held = counted.held().await.unwrap();
            assert_eq!(seen(&rule, &held), told(&rule, expected), "{held}, {waiting:?}");
        }
        // From the back to the front nothing is lost, whatever was before.
        let expected = waiting.len();
        for _ in 0..expected {
            let Waits { call, cost, mark } = waiting.pop().unwrap();
            drop(call);
            calls += 1;
            counted.reaches(calls).await;
            rule.refund(&mut state, begin, cost, Some(mark));
        }
    }
    println!("{drops} drops in {run} runs, {open} of them left open");
    assert!(open * 5 < drops, "{open}");
}

impl std::fmt::Debug for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} until {:?}", self.cost, self.mark)
    }
}
