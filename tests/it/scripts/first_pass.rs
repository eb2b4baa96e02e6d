//! The first passes over plain states decide as the full scripts do, and leave the same values and expiries.

mod states;

use std::collections::HashSet;

use ratelimit_runtime::store::{Charge, Key, Outcome, RedisStore, StoreError, Verdict};

use super::permissions::is_denial;
use super::{Fault, Fixture, Stored};
use crate::support::budget::budget;
use crate::support::random::Random;
use crate::support::registries::LONG_DEADLINE;
use states::{Algorithm, Value};

const SECOND: u64 = 1_000_000;
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

fn charges(algorithm: Algorithm, decisions: &Decisions, side: Side) -> Vec<Vec<Charge>> {
    let charge = |(number, cost): &(u64, u64)| Charge {
        key: Key::raw(key(side, *number)),
        spec: algorithm.spec(*number),
        cost: *cost,
        wait: 0,
        shadow: false,
    };
    decisions.iter().map(|list| list.iter().map(charge).collect()).collect()
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

async fn decide(store: &RedisStore, lists: &[Vec<Charge>]) -> Vec<Result<Box<Outcome>, StoreError>> {
    store.decide_many(&lists.iter().map(Vec::as_slice).collect::<Vec<_>>()).await
}

/// Returns whether the call is admitted, and all verdicts.
fn summary(outcome: &Outcome) -> (bool, Vec<Verdict>) {
    (outcome.admitted, outcome.verdicts.to_vec())
}

/// Stores a state under a key.
async fn write(fixture: &mut Fixture, key: &str, value: &Value, ends: u64) {
    let second = ends / SECOND + 1;
    let mut commands = redis::pipe();
    match value {
        Value::Text(text) => commands.cmd("SET").arg((key, text, "EXAT", second)),
        Value::List(elements) => {
            commands.cmd("RPUSH").arg(key).arg(elements).cmd("EXPIREAT").arg((key, second))
        }
    };
    commands.exec_async(&mut fixture.admin).await.unwrap();
}

#[tokio::test]
async fn first_pass_over_buckets_decides_as_the_full_script() {
    compare(Algorithm::Bucket, &["incrby", "set", "expireat", "del", "get"]).await;
}

#[tokio::test]
async fn first_pass_over_fixed_windows_decides_as_the_full_script() {
    compare(Algorithm::FixedWindow, &["get", "set", "del"]).await;
}

#[tokio::test]
async fn first_pass_over_sliding_windows_decides_as_the_full_script() {
    compare(
        Algorithm::SlidingWindow,
        &["llen", "lindex", "lrange", "lset", "rpush", "ltrim", "expireat", "del"],
    )
    .await;
}

/// Makes random decisions about random states, in two of three runs while one of these commands is denied.
async fn compare(algorithm: Algorithm, deniable: &[&str]) {
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
        let denied = (run % 3 > 0).then(|| random.pick(deniable));
        let decisions = random_decisions(random, denied.is_none());
        fixture.send("FLUSHALL").await;
        for number in 0..KEYS {
            let Some((value, ends)) = states::random(algorithm, number, random, now) else { continue };
            for side in [Side::Tested, Side::Full] {
                write(&mut fixture, &key(side, number), &value, ends).await;
            }
        }
        let before = stored(&mut fixture, Side::Tested).await;
        let expected = decide(&full, &charges(algorithm, &decisions, Side::Full)).await;
        let expected_after = stored(&mut fixture, Side::Full).await;
        let fault = denied.map_or(Fault::denied(&[]), |denied| Fault::denied(&[denied]));
        let lists = charges(algorithm, &decisions, Side::Tested);
        let (outcomes, _) = fixture.during(&fault, async |store| decide(store, &lists).await).await;
        let after = stored(&mut fixture, Side::Tested).await;

        let context = format!("{algorithm:?}, run {run}, {denied:?} denied, {decisions:?}");
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
                    let is_denial = denied.is_some_and(|denied| is_denial(&super::text(error), denied));
                    assert!(expected.is_err() || is_denial, "{context}: {error}");
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
