//! The pass over plain states corrects them as the functions do.

use ratelimit_runtime::store::{
    ChargeId, Corrected, Correction, CorrectionKind, Key, RedisStore, StoreError,
};

use super::states::{self, Algorithm, PERIOD, Value};
use super::{Algorithms, CLOCKS, KEYS, SECOND, Side, algorithm, key, stored, stores, write};
use crate::scripts::permissions::is_denial;
use crate::scripts::{Fault, Fixture};
use crate::support::budget::budget;
use crate::support::random::Random;

/// A correction of a key by its number. If one key can have policies of different numbers, it may be by that of another key.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    key: u64,
    policy: u64,
    cost: u64,
    kind: CorrectionKind,
}

fn corrections(algorithms: Algorithms, corrections: &[Numbered], side: Side) -> Vec<Correction> {
    let correction = |Numbered { key: number, policy, cost, kind }: &Numbered| Correction {
        key: Key::raw(key(side, *number)),
        spec: algorithm(algorithms, *number).spec(*policy),
        cost: *cost,
        kind: *kind,
    };
    corrections.iter().map(correction).collect()
}

/// Returns the numbers that a state consists of.
fn numbers(value: &Value) -> Vec<u64> {
    match value {
        Value::Text(text) if text.len().is_multiple_of(8) && text.contains(&0) => {
            text.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes) as u64).collect()
        }
        Value::Text(text) => {
            String::from_utf8_lossy(text).split(' ').filter_map(|word| word.parse().ok()).collect()
        }
        // More of the timestamps, which receipts have, than of the totals.
        Value::List(elements) => {
            let timestamps = elements.iter().skip(1).step_by(2);
            let all = timestamps.clone().chain(timestamps).chain(elements);
            all.filter_map(|element| element.parse().ok()).collect()
        }
    }
}

/// Returns a receipt of a charge of a key that holds these numbers, or nearly.
fn random_receipt(random: &mut Random, held: &[u64], now: u64) -> ChargeId {
    let mut number = || {
        let from = if held.is_empty() { now } else { random.pick(held).min(1 << 52) };
        let near = [from, from, from, from, from + 1, from.saturating_sub(1), now, now + SECOND];
        random.pick(&near)
    };
    let (at, level) = (number(), number());
    ChargeId { at, level, credited: random.pick(&[0, 0, 0, 0, 1, (1 << 50) - 1]) }
}

/// Returns corrections, which concern some keys several times in a row if they `may_repeat`, and others later once more.
fn random_corrections(
    algorithms: Algorithms,
    random: &mut Random,
    held: &[Vec<u64>],
    may_repeat: bool,
    now: u64,
) -> Vec<Numbered> {
    let mut free: Vec<u64> = (0..KEYS).collect();
    let mut all = Vec::new();
    for _ in 0..random.between(1, KEYS) {
        let index = random.below(free.len() as u64) as usize;
        let key = if may_repeat { free[index] } else { free.swap_remove(index) };
        for _ in 0..if may_repeat { random.pick(&[1, 1, 2, 3, 6]) } else { 1 } {
            let receipt = random_receipt(random, &held[key as usize], now);
            let kind = match random.below(20) {
                0..=8 => CorrectionKind::Refund(Some(receipt)),
                9 | 10 => CorrectionKind::Refund(None),
                11 => CorrectionKind::Pause,
                12 => CorrectionKind::Penalty(&[SECOND / 2, SECOND, 20 * SECOND]),
                _ => CorrectionKind::Debit,
            };
            let cost = match kind {
                CorrectionKind::Pause => random.pick(&[0, 1, SECOND, 20 * SECOND]),
                CorrectionKind::Penalty(_) => 0,
                CorrectionKind::Debit => random.pick(&[1, 1, 1, 2, 3, 5, 10, 11, 1000, u64::MAX]),
                CorrectionKind::Refund(_) | CorrectionKind::Holds(_) => {
                    random.pick(&[0, 1, 1, 1, 2, 3, 5, 10, 11, 1000, u64::MAX])
                }
            };
            let has_many = matches!(
                algorithm(algorithms, key),
                Algorithm::Computed | Algorithm::Settled | Algorithm::ComputedInterval
            );
            let policy = if has_many && random.below(8) == 0 { key ^ 1 } else { key };
            all.push(Numbered { key, policy, cost, kind });
        }
    }
    if random.below(2) == 0 {
        // As what is gathered is sent.
        all.sort_by_key(|Numbered { key, kind, .. }| match kind {
            CorrectionKind::Refund(Some(charge_id)) => (*key, charge_id.at),
            _ => (*key, u64::MAX),
        });
    }
    all
}

/// Returns the value of a key that is paused, or was.
fn paused(value: &Value, random: &mut Random, now: u64) -> Option<Value> {
    let Value::Text(text) = value else { return None };
    let written = random.pick(&[now - SECOND, now - SECOND, now + 1]);
    let until = random.pick(&[now - SECOND / 2, now + SECOND]);
    let pause = match random.below(3) {
        0 => format!("paused: {written} {until} 0 "),
        _ => format!("penalized: {written} {until} 0 {} {} {SECOND} ", random.below(3), random.below(2)),
    };
    Some(Value::Text([pause.as_bytes(), text].concat()))
}

fn text(result: &Result<Corrected, StoreError>) -> String {
    result.as_ref().map_or_else(crate::scripts::text, |corrected| format!("{corrected:?}"))
}

#[tokio::test]
async fn settled_buckets_are_corrected_as_in_full() {
    compare(&[Algorithm::Settled]).await;
}

#[tokio::test]
async fn other_buckets_are_corrected_as_in_full() {
    compare(&[Algorithm::Bucket, Algorithm::Borrowing, Algorithm::Queue, Algorithm::Computed]).await;
}

#[tokio::test]
async fn fixed_windows_are_corrected_as_in_full() {
    compare(&[Algorithm::FixedWindow]).await;
}

#[tokio::test]
async fn sliding_windows_are_corrected_as_in_full() {
    compare(&[Algorithm::SlidingWindow]).await;
}

#[tokio::test]
async fn calendar_windows_are_corrected_as_in_full() {
    compare(&[Algorithm::Calendar]).await;
}

#[tokio::test]
async fn changing_refills_are_corrected_as_in_full() {
    compare(&[Algorithm::ComputedInterval]).await;
}

#[tokio::test]
async fn mixed_keys_are_corrected_as_in_full() {
    compare(&[
        Algorithm::Settled,
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
        Algorithm::Calendar,
        Algorithm::ComputedInterval,
        Algorithm::Interval,
        Algorithm::Computed,
        Algorithm::Bucket,
    ])
    .await;
}

#[tokio::test]
async fn receipts_of_a_log_count_once_before_and_after_a_debt() {
    let mut fixture = Fixture::start().await;
    let stores = stores(&mut fixture).await;
    let (now, tested, full) = &stores[0];
    let [a, b, c] = [3, 2, 1].map(|seconds| now - seconds * SECOND);
    let log = [0, a, 3, b, 6, c, 9].map(|number: u64| number.to_string());
    let receipt = |at| CorrectionKind::Refund(Some(ChargeId { at, level: 0, credited: 0 }));
    let kinds = [receipt(a), CorrectionKind::Debit, receipt(b), CorrectionKind::Debit, receipt(a)];
    // Its number is odd, so it has a log.
    let numbered = kinds.map(|kind| Numbered { key: 1, policy: 1, cost: 1, kind });
    for (store, side) in [(tested, Side::Tested), (full, Side::Full)] {
        write(&mut fixture, &key(side, 1), &Value::List(log.to_vec()), now + SECOND).await;
        let results = store.correct_many(&corrections(&[Algorithm::SlidingWindow], &numbered, side)).await;
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        assert_eq!(log_of(&mut fixture, side, 1).await, [0, a, 1, b, 3, c, 6, *now, 8]);
    }
}

#[tokio::test]
async fn a_debt_is_made_though_what_has_ended_must_stay() {
    let mut fixture = Fixture::start().await;
    let stores = stores(&mut fixture).await;
    let (now, tested, full) = &stores[0];
    let [ended, live] = [now - PERIOD - 1, now - SECOND];
    let log = [0, ended, 3, live, 6].map(|number: u64| number.to_string());
    let most = 1 << 49;
    for (cost, denied, expected) in [
        (1, &[][..], vec![3, live, 6, *now, 7]),
        (1, &["ltrim"], vec![0, ended, 3, live, 6, *now, 7]),
        (u64::MAX, &[], vec![3, live, 6, *now, most + 3]),
        (u64::MAX, &["ltrim"], vec![0, ended, 3, live, 6, *now, most + 3]),
    ] {
        let numbered = [Numbered { key: 1, policy: 1, cost, kind: CorrectionKind::Debit }];
        let fault = Fault::denied(denied);
        for (store, side) in [(tested, Side::Tested), (full, Side::Full)] {
            write(&mut fixture, &key(side, 1), &Value::List(log.to_vec()), now + SECOND).await;
            let correct = async |_: &RedisStore| {
                store.correct_many(&corrections(&[Algorithm::SlidingWindow], &numbered, side)).await
            };
            let (results, _) = fixture.during(&fault, correct).await;
            assert!(results[0].is_ok(), "{results:?}");
            assert_eq!(log_of(&mut fixture, side, 1).await, expected);
            fixture.send("FLUSHALL").await;
        }
    }
}

/// Receipts of a log that has begun anew have no entry, and some of them come first.
#[tokio::test]
async fn receipts_from_before_a_log_give_nothing_back() {
    let mut fixture = Fixture::start().await;
    let stores = stores(&mut fixture).await;
    let (now, tested, full) = &stores[0];
    let at = |number: u64| now - SECOND + number;
    for entries in [2, 100] {
        let log = (0..entries).flat_map(|number| [2 * number, at(number)]).chain([2 * entries]);
        let log: Vec<String> = log.map(|number| number.to_string()).collect();
        let receipts = [at(0) - 9, at(0) - 5, at(0), at(entries - 1)].map(|at| {
            let kind = CorrectionKind::Refund(Some(ChargeId { at, level: 0, credited: 0 }));
            Numbered { key: 1, policy: 1, cost: 1, kind }
        });
        for (store, side) in [(tested, Side::Tested), (full, Side::Full)] {
            write(&mut fixture, &key(side, 1), &Value::List(log.clone()), now + SECOND).await;
            let results =
                store.correct_many(&corrections(&[Algorithm::SlidingWindow], &receipts, side)).await;
            assert!(results.iter().all(Result::is_ok), "{results:?}");
            let mut expected: Vec<u64> = log.iter().map(|number| number.parse().unwrap()).collect();
            let last = expected.len() - 1;
            expected[2..last].iter_mut().step_by(2).for_each(|total| *total -= 1);
            expected[last] -= 2;
            assert_eq!(log_of(&mut fixture, side, 1).await, expected, "{entries} entries");
            fixture.send("FLUSHALL").await;
        }
    }
}

/// Nothing is replaced by more than a command takes.
#[tokio::test]
async fn a_long_log_takes_many_receipts_at_once() {
    let mut fixture = Fixture::start().await;
    let stores = stores(&mut fixture).await;
    let (now, tested, full) = &stores[0];
    let entries = 5_000;
    let at = |number: u64| now - SECOND + number;
    let log = (0..entries).flat_map(|number| [2 * number, at(number)]).chain([2 * entries]);
    let log: Vec<String> = log.map(|number| number.to_string()).collect();
    let receipts = (500..500 + 401).map(|number| {
        let kind = CorrectionKind::Refund(Some(ChargeId { at: at(number), level: 0, credited: 0 }));
        Numbered { key: 1, policy: 1, cost: 1, kind }
    });
    let numbered: Vec<_> = receipts.collect();
    for (store, side) in [(tested, Side::Tested), (full, Side::Full)] {
        write(&mut fixture, &key(side, 1), &Value::List(log.clone()), now + SECOND).await;
        let results = store.correct_many(&corrections(&[Algorithm::SlidingWindow], &numbered, side)).await;
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        let total = redis::Cmd::lindex(key(side, 1), -1).query_async(&mut fixture.admin).await;
        let total: u64 = total.expect("the server answers");
        assert_eq!(total, 2 * entries - 401);
    }
}

/// A user of Redis 7 may run a command on some keys only.
#[tokio::test]
async fn logs_lose_nothing_if_only_some_may_be_written() {
    let mut fixture = Fixture::start().await;
    let info: String = redis::cmd("INFO").arg("server").query_async(&mut fixture.admin).await.unwrap();
    if info.contains("redis_version:6.") {
        return;
    }
    let stores = stores(&mut fixture).await;
    let (now, tested, _) = &stores[0];
    let [a, b, c] = [3, 2, 1].map(|seconds| now - seconds * SECOND);
    let log = [0, a, 3, b, 6, c, 9].map(|number: u64| number.to_string());
    let kind = CorrectionKind::Refund(Some(ChargeId { at: a, level: 0, credited: 0 }));
    // Their numbers are odd, so both have a log.
    let [allowed, denied] = [1, 3];
    let numbered = [allowed, denied].map(|key| Numbered { key, policy: 1, cost: 1, kind });
    for key in [allowed, denied].map(|number| key(Side::Tested, number)) {
        write(&mut fixture, &key, &Value::List(log.to_vec()), now + SECOND).await;
    }
    let only = key(Side::Tested, allowed);
    let fault = Fault::new(
        &format!("ACL SETUSER least -rpush (+rpush ~{only})"),
        "ACL SETUSER least clearselectors +rpush",
    );
    let correct = async |_: &RedisStore| {
        tested.correct_many(&corrections(&[Algorithm::SlidingWindow], &numbered, Side::Tested)).await
    };
    let (results, _) = fixture.during(&fault, correct).await;
    assert!(results[0].is_ok() && results[1].is_err(), "{results:?}");
    for (number, expected) in [(allowed, [0, a, 2, b, 5, c, 8]), (denied, [0, a, 3, b, 6, c, 9])] {
        assert_eq!(log_of(&mut fixture, Side::Tested, number).await, expected, "key {number}");
    }
}

/// Returns the elements of a key that is a list.
async fn log_of(fixture: &mut Fixture, side: Side, number: u64) -> Vec<u64> {
    let range = redis::Cmd::lrange(key(side, number), 0, -1);
    range.query_async(&mut fixture.admin).await.expect("the server answers")
}

/// Makes random corrections of random states, in one of three runs while one of their commands is denied.
async fn compare(algorithms: Algorithms) {
    let mut fixture = Fixture::start().await;
    let stores = stores(&mut fixture).await;
    let random = Random::seeded();
    for run in 0..budget(800, 50_000) {
        let random = &mut random.run(run);
        let (now, tested, full) = &stores[random.below(CLOCKS) as usize];
        let now = *now;
        let denied = (run % 3 == 0).then(|| random.pick(&["get", "set", "del", "lset"]));
        fixture.send("FLUSHALL").await;
        let mut held = vec![Vec::new(); KEYS as usize];
        for number in 0..KEYS {
            let state = states::random(algorithm(algorithms, number), number, random, now);
            let Some((mut value, ends)) = state else { continue };
            held[number as usize] = numbers(&value);
            if random.below(10) == 0 {
                value = paused(&value, random, now).unwrap_or(value);
            }
            for side in [Side::Tested, Side::Full] {
                write(&mut fixture, &key(side, number), &value, ends).await;
            }
        }
        let may_repeat = random.below(3) > 0;
        let numbered = random_corrections(algorithms, random, &held, may_repeat, now);
        let before = stored(&mut fixture, Side::Tested).await;
        let fault = denied.map_or(Fault::denied(&[]), |denied| Fault::denied(&[denied]));
        let correct = async |store: &RedisStore, side| {
            store.correct_many(&corrections(algorithms, &numbered, side)).await
        };
        let ((results, expected), _) = fixture
            .during(&fault, async |_| (correct(tested, Side::Tested).await, correct(full, Side::Full).await))
            .await;
        let after = stored(&mut fixture, Side::Tested).await;
        let expected_after = stored(&mut fixture, Side::Full).await;

        let context = format!("{algorithms:?}, run {run}, {denied:?} denied, {numbered:?}, {before:?}");
        for number in 0..KEYS {
            let of_key = |results: &[Result<Corrected, StoreError>]| -> Vec<_> {
                let of_key = numbered.iter().zip(results).filter(|(correction, _)| correction.key == number);
                of_key.map(|(_, result)| text(result)).collect()
            };
            let (own, expected, index) = (of_key(&results), of_key(&expected), number as usize);
            let Some(denied) = denied.filter(|_| own.len() > 1) else {
                assert_eq!(own, expected, "{context}: key {number}");
                assert_eq!(after[index], expected_after[index], "{context}: key {number}");
                continue;
            };
            // Several corrections need one command less than each of them alone.
            assert!(after[index].is_absent_or_expires(), "{context}: key {number}");
            if own.iter().all(|result| is_denial(result, denied)) {
                assert_eq!(after[index], before[index], "{context}: key {number}");
            }
        }
    }
}
