//! The first pass over plain buckets decides as the full script does, and leaves the same values and expiries.

use std::collections::HashSet;
use std::time::Duration;

use ratelimit_runtime::store::{AlgorithmSpec, Charge, Key, Outcome, RedisStore, StoreError, Verdict};

use super::{Fault, Fixture, Stored};
use crate::support::budget::budget;
use crate::support::policies;
use crate::support::random::Random;
use crate::support::registries::LONG_DEADLINE;

const SECOND: u64 = 1_000_000;
const CAPACITY: u64 = 5 * SECOND;
const KEYS: u64 = 5;

/// Whose keys a call charges: those of the script under test, or the same keys again for the script that it is compared to.
#[derive(Clone, Copy)]
enum Side {
    Tested,
    Full,
}

/// The keys and costs of some decisions.
type Decisions = Vec<Vec<(u64, u64)>>;

fn key(side: Side, key: u64) -> String {
    match side {
        Side::Tested => format!("rl:tested:{key}"),
        Side::Full => format!("rl:full:{key}"),
    }
}

fn charges(decisions: &Decisions, side: Side) -> Vec<Vec<Charge>> {
    let spec = |key| -> AlgorithmSpec {
        // Two buckets, so that numbers differ within a call.
        let rate = if key % 2 == 0 { 1 } else { 2 };
        policies::token_bucket(rate, Duration::from_secs(1), 5 * rate).expect("the policy is valid").spec
    };
    let charge = |(number, cost): &(u64, u64)| Charge {
        key: Key::raw(key(side, *number)),
        spec: spec(*number),
        cost: *cost,
        wait: 0,
        shadow: false,
    };
    decisions.iter().map(|list| list.iter().map(charge).collect()).collect()
}

/// Returns the value of a key and when it expires, or `None` for no key.
fn random_value(random: &mut Random, now: u64) -> Option<(String, u64)> {
    let busy = |tat: u64| (tat.to_string(), tat);
    Some(match random.below(12) {
        0..=2 => return None,
        3 | 4 => busy(now - random.between(0, 2 * SECOND)),
        5..=7 => busy(now + random.between(0, CAPACITY)),
        8 => busy(now - now % SECOND + SECOND * random.below(3)),
        // Another process whose clock is ahead.
        9 => busy(now + CAPACITY + random.between(1, SECOND)),
        10 => {
            let tat = now + random.between(1, CAPACITY);
            (format!("{tat} {} {} {tat} 0", now - 1, random.below(SECOND)), tat)
        }
        _ => (random.pick(&["-5", "x", "9223372036854775807", "9007199254740999"]).into(), now + CAPACITY),
    })
}

fn random_decisions(random: &mut Random, may_repeat: bool) -> Decisions {
    let size = random.between(1, 3);
    let mut free: Vec<u64> = (0..KEYS).collect();
    let mut decisions = Vec::new();
    for _ in 0..random.between(1, 3) {
        if may_repeat {
            free = (0..KEYS).collect();
        }
        if (free.len() as u64) < size {
            break;
        }
        let list = (0..size).map(|_| {
            let key = free.swap_remove(random.below(free.len() as u64) as usize);
            (key, random.pick(&[1, 1, 1, 2, 5, 10, 11, u64::MAX]))
        });
        decisions.push(list.collect());
    }
    decisions
}

/// Returns what Redis stores under the keys of a side.
async fn stored(fixture: &mut Fixture, side: Side) -> Vec<Stored> {
    let keys: Vec<_> = (0..KEYS).map(|number| key(side, number)).collect();
    fixture.stored_under(&keys).await
}

async fn decide(store: &RedisStore, lists: &[Vec<Charge>]) -> Vec<Result<Outcome, StoreError>> {
    store.decide_many(&lists.iter().map(Vec::as_slice).collect::<Vec<_>>()).await
}

/// Returns whether the call is admitted, and all verdicts.
fn summary(outcome: &Outcome) -> (bool, Vec<Verdict>) {
    (outcome.admitted, outcome.verdicts.to_vec())
}

#[tokio::test]
async fn first_pass_decides_as_the_full_script() {
    const DENIABLE: [&str; 5] = ["incrby", "set", "expireat", "del", "get"];
    let mut fixture = Fixture::start().await;
    // The scripts' time is ahead of Redis's, so that no key expires.
    let now = fixture.now().await + 1000 * SECOND;
    let at_once = "do return call(command, key, ...) end";
    let at = |store: RedisStore| store.with_time(&now.to_string(), at_once).with_deadline(LONG_DEADLINE);
    let full = at(RedisStore::lazy(&fixture.server.url()).unwrap()).without_first_pass();
    fixture.store = at(fixture.store);
    let random = Random::seeded();
    for run in 0..budget(1500, 50_000) {
        let random = &mut random.run(run);
        let denied = (run % 3 > 0).then(|| random.pick(&DENIABLE));
        let decisions = random_decisions(random, denied.is_none());
        fixture.send("FLUSHALL").await;
        for number in 0..KEYS {
            let Some((value, ends)) = random_value(random, now) else { continue };
            for side in [Side::Tested, Side::Full] {
                let set: Result<(), _> = redis::cmd("SET")
                    .arg((key(side, number), &value, "EXAT", ends / SECOND + 1))
                    .query_async(&mut fixture.admin)
                    .await;
                set.unwrap();
            }
        }
        let before = stored(&mut fixture, Side::Tested).await;
        let expected = decide(&full, &charges(&decisions, Side::Full)).await;
        let expected_after = stored(&mut fixture, Side::Full).await;
        let fault = denied.map_or(Fault::denied(&[]), |denied| Fault::denied(&[denied]));
        let lists = charges(&decisions, Side::Tested);
        let (outcomes, _) = fixture.during(&fault, async |store| decide(store, &lists).await).await;
        let after = stored(&mut fixture, Side::Tested).await;

        let context = format!("run {run}, {denied:?} denied, {decisions:?}");
        let mut failed = HashSet::new();
        for ((outcome, expected), list) in outcomes.iter().zip(&expected).zip(&decisions) {
            match (outcome, expected) {
                (Ok(outcome), Ok(expected)) => {
                    assert_eq!(summary(outcome), summary(expected), "{context}");
                }
                (Err(error), Err(expected)) if denied.is_none() => {
                    assert_eq!(error.to_string(), expected.to_string(), "{context}");
                }
                (Err(error), _) if denied.is_some() => {
                    assert!(expected.is_err() || super::text(error).contains("perm"), "{context}: {error}");
                    failed.extend(list.iter().map(|(key, _)| *key));
                }
                _ => panic!("{context}: {outcome:?} instead of {expected:?}"),
            }
        }
        for (number, after) in after.iter().enumerate() {
            let right = if failed.contains(&(number as u64)) { &before } else { &expected_after };
            assert_eq!(*after, right[number], "{context}: key {number}, {before:?}");
        }
    }
}
