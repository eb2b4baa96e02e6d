//! The passes over plain states decide as the full scripts do, and leave the same values and expiries.

mod corrections;
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
const KEYS: u64 = 12;
/// The times at which calls are made.
const CLOCKS: u64 = 7;

/// Whose keys a call charges: those of the script under test, or the same keys again for the script that it is compared to.
#[derive(Clone, Copy)]
enum Side {
    Tested,
    Full,
}

/// A charge of a key by its number.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    key: u64,
    cost: u64,
    wait: u64,
    shadow: bool,
}

type Decisions = Vec<Vec<Numbered>>;

/// The algorithms of the keys, in turns.
type Algorithms = &'static [Algorithm];

fn key(side: Side, key: u64) -> String {
    match side {
        Side::Tested => format!("rl:tested:{key}"),
        Side::Full => format!("rl:full:{key}"),
    }
}

fn charges(algorithms: Algorithms, decisions: &Decisions, side: Side) -> Vec<Vec<Charge>> {
    let charge = |charge: &Numbered| Charge {
        key: Key::raw(key(side, charge.key)),
        spec: algorithm(algorithms, charge.key).spec(charge.key),
        cost: charge.cost,
        wait: charge.wait,
        shadow: charge.shadow,
    };
    decisions.iter().map(|list| list.iter().map(charge).collect()).collect()
}

fn algorithm(algorithms: Algorithms, key: u64) -> Algorithm {
    algorithms[(key / 2) as usize % algorithms.len()]
}

/// Returns decisions about lists of the same keys, or of others. `may_repeat` a key, and `may_vary` in what the buckets' own script
/// has not.
fn random_decisions(random: &mut Random, may_repeat: bool, may_vary: bool) -> Decisions {
    let size = random.between(1, 3);
    let mut free: Vec<u64> = (0..KEYS).collect();
    let mut decisions = Vec::new();
    for _ in 0..random.between(1, 3) {
        if may_repeat {
            free = (0..KEYS).collect();
        }
        let size = if may_vary { random.between(1, 3) } else { size };
        if (free.len() as u64) < size {
            break;
        }
        let list = (0..size).map(|_| Numbered {
            key: free.swap_remove(random.below(free.len() as u64) as usize),
            cost: random.pick(&[1, 1, 1, 2, 5, 10, 11, u64::MAX, if may_vary { 0 } else { 1 }]),
            wait: if may_vary { random.pick(&[0, 0, 0, SECOND, 20 * SECOND]) } else { 0 },
            shadow: may_vary && random.below(4) == 0,
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

/// Returns whether the call is admitted, and the verdicts on all charges but the shadows that could not be decided in one of the
/// two outcomes.
fn summary(outcome: &Outcome, other: &Outcome) -> (bool, Vec<Verdict>) {
    let failed = |index| outcome.failed.iter().chain(&other.failed).any(|(failed, _)| *failed == index);
    let verdicts = outcome.verdicts.iter().enumerate().filter(|(index, _)| !failed(*index));
    (outcome.admitted, verdicts.map(|(_, verdict)| *verdict).collect())
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
async fn buckets_are_decided_as_in_full() {
    compare(&[Algorithm::Bucket], false, &["incrby", "set", "expireat", "del", "get"]).await;
}

#[tokio::test]
async fn shadows_and_waits_of_buckets_are_decided_as_in_full() {
    compare(&[Algorithm::Bucket], true, &["incrby", "set", "expireat", "del", "get"]).await;
}

#[tokio::test]
async fn other_buckets_are_decided_as_in_full() {
    let buckets = &[
        Algorithm::Bucket,
        Algorithm::Borrowing,
        Algorithm::Queue,
        Algorithm::Interval,
        Algorithm::Computed,
        Algorithm::Settled,
    ];
    compare(buckets, true, &["incrby", "set", "expireat", "del", "get"]).await;
}

#[tokio::test]
async fn fixed_windows_are_decided_as_in_full() {
    compare(&[Algorithm::FixedWindow], true, &["get", "set", "del"]).await;
}

#[tokio::test]
async fn sliding_windows_are_decided_as_in_full() {
    let commands = &["llen", "lindex", "lrange", "lset", "rpush", "ltrim", "expireat", "del"];
    compare(&[Algorithm::SlidingWindow], true, commands).await;
}

#[tokio::test]
async fn mixed_lists_are_decided_as_in_full() {
    let all = &[
        Algorithm::Bucket,
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::Interval,
        Algorithm::Computed,
        Algorithm::Settled,
    ];
    let commands =
        &["incrby", "get", "set", "llen", "lindex", "lrange", "lset", "rpush", "ltrim", "expireat", "del"];
    compare(all, true, commands).await;
}

/// Returns each time at which calls are made, the store under test and the one that it is compared to.
async fn stores(fixture: &mut Fixture) -> Vec<(u64, RedisStore, RedisStore)> {
    // The scripts' time is ahead of Redis's, so that no key expires. Windows are aligned to some of the times, and not to others.
    let start = fixture.now().await / SECOND * SECOND + 1000 * SECOND;
    let at_once = "do return call(command, key, ...) end";
    (0..CLOCKS)
        .map(|i| {
            let now = start + i * 5 * SECOND / CLOCKS + i * i;
            let at =
                |store: RedisStore| store.with_time(&now.to_string(), at_once).with_deadline(LONG_DEADLINE);
            let full = at(super::store(&fixture.server)).without_first_pass();
            (now, at(super::store(&fixture.server)), full)
        })
        .collect()
}

/// Makes random decisions about random states, in two of three runs while one of these commands is denied.
async fn compare(algorithms: Algorithms, may_vary: bool, deniable: &[&str]) {
    let mut fixture = Fixture::start().await;
    let stores = stores(&mut fixture).await;
    let random = Random::seeded();
    for run in 0..budget(800, 50_000) {
        let random = &mut random.run(run);
        let (now, tested, full) = &stores[random.below(CLOCKS) as usize];
        let denied = (run % 3 > 0).then(|| random.pick(deniable));
        let decisions = random_decisions(random, denied.is_none(), may_vary);
        fixture.send("FLUSHALL").await;
        for number in 0..KEYS {
            let Some((value, ends)) = states::random(algorithm(algorithms, number), number, random, *now)
            else {
                continue;
            };
            for side in [Side::Tested, Side::Full] {
                write(&mut fixture, &key(side, number), &value, ends).await;
            }
        }
        let before = stored(&mut fixture, Side::Tested).await;
        let expected = decide(full, &charges(algorithms, &decisions, Side::Full)).await;
        let expected_after = stored(&mut fixture, Side::Full).await;
        let fault = denied.map_or(Fault::denied(&[]), |denied| Fault::denied(&[denied]));
        let lists = charges(algorithms, &decisions, Side::Tested);
        let (outcomes, _) = fixture.during(&fault, async |_| decide(tested, &lists).await).await;
        let after = stored(&mut fixture, Side::Tested).await;

        let context = format!("{algorithms:?}, run {run}, {denied:?} denied, {decisions:?}");
        let mut failed = HashSet::new();
        for ((outcome, expected), list) in outcomes.iter().zip(&expected).zip(&decisions) {
            match (outcome, expected) {
                (Ok(outcome), Ok(expected)) => {
                    assert_eq!(summary(outcome, expected), summary(expected, outcome), "{context}");
                    assert!(denied.is_some() || outcome.failed == expected.failed, "{context}: {outcome:?}");
                    for (index, error) in &outcome.failed {
                        let as_expected = expected.failed.iter().any(|(expected, _)| expected == index);
                        let is_denial = denied.is_some_and(|denied| is_denial(&error.to_lowercase(), denied));
                        assert!(as_expected || is_denial, "{context}: {error}");
                        // Without a denial, another decision may have charged what this one finds corrupt.
                        if denied.is_some() {
                            failed.insert(list[*index].key);
                        }
                    }
                }
                (Err(error), Err(expected)) if denied.is_none() => {
                    assert_eq!(error.to_string(), expected.to_string(), "{context}");
                }
                (Err(error), _) if denied.is_some() => {
                    let is_denial = denied.is_some_and(|denied| is_denial(&super::text(error), denied));
                    assert!(expected.is_err() || is_denial, "{context}: {error}");
                    failed.extend(list.iter().map(|charge| charge.key));
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
