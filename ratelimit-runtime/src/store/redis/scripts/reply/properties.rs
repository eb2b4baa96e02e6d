//! Parses arbitrary replies.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use redis::Value;

use super::*;
use crate::base::property_tests::config;
use crate::base::rate::Rate;
use crate::key::Key;
use crate::policy::{FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};
use crate::store::redis::testing::test_values::{numbers, texts, values};

const NOW: i64 = 1_700_000_000_000_000;

fn specs() -> Vec<AlgorithmSpec> {
    let (rate, second) = (Rate::new(3, Duration::from_secs(1)), Duration::from_secs(1));
    let bucket = TokenBucket::new(rate).burst(3);
    let policies: [Policy; 14] = [
        bucket.into(),
        bucket.borrow().into(),
        bucket.interval_refill().into(),
        TokenBucket::new(rate).warmup(second).into(),
        LeakyBucket::new(3, rate).queue().into(),
        bucket.adjustable().into(),
        bucket.settled().into(),
        bucket.interval_refill().adjustable().into(),
        TokenBucket::new(rate).warmup(second).adjustable().into(),
        LeakyBucket::new(3, rate).queue().adjustable().into(),
        FixedWindow::new(3, second).into(),
        FixedWindow::new(3, second).aligned().into(),
        SlidingWindow::new(3, second).into(),
        SlidingWindow::new(3, second).precision(second / 4).into(),
    ];
    let policies = policies.into_iter();
    #[cfg(feature = "calendar")]
    let policies = policies.chain([FixedWindow::calendar(3, crate::CalendarPeriod::Month).into()]);
    policies.map(|policy| policy.spec().unwrap()).collect()
}

fn charges() -> impl Strategy<Value = Charge> {
    let cost = select(vec![0, 1, 1, 1, 2, 4, u64::MAX]);
    let wait = select(vec![0, 0, 400_000, 1 << 53]);
    (select(specs()), cost, wait, proptest::bool::weighted(0.2))
        .prop_map(|(spec, cost, wait, shadow)| Charge { key: Key::raw("a"), spec, cost, wait, shadow })
}

/// Decisions, and what is mostly a reply to them.
fn decisions_and_reply() -> impl Strategy<Value = (Vec<Vec<Charge>>, Value)> {
    vec(vec(charges(), 1..4), 1..3).prop_flat_map(|decisions| {
        let now = int(prop_oneof![30 => Just(NOW), 1 => numbers()].boxed());
        let mut parts = vec![now.prop_map(|now| vec![now]).boxed()];
        for charges in &decisions {
            let list = list(charges).prop_map(|list| vec![list]);
            let error = texts().prop_map(|text| vec![Value::BulkString(text)]);
            let plain =
                if charges.iter().all(|charge| numbers_after_time(charge, true).is_some()) { 20 } else { 1 };
            parts.push(prop_oneof![20 => list, 1 => error, plain => first_pass(charges)].boxed());
        }
        (Just(decisions), parts, cut(), more(), any::<bool>()).prop_map(
            |(decisions, parts, cut, more, pack)| {
                let reply = altered(parts.into_iter().flatten().collect(), cut, more);
                let packed = pack.then(|| packed(&reply)).flatten();
                (decisions, packed.unwrap_or(Value::Array(reply)))
            },
        )
    })
}

/// Returns the same reply as one text, if it consists of numbers.
fn packed(values: &[Value]) -> Option<Value> {
    let number = |value: &Value| if let Value::Int(number) = value { Some(*number as f64) } else { None };
    let numbers: Option<Vec<f64>> = values.iter().map(number).collect();
    Some(Value::BulkString(numbers?.into_iter().flat_map(f64::to_le_bytes).collect()))
}

/// What the pass over plain states mostly replies to a decision.
fn first_pass(charges: &[Charge]) -> impl Strategy<Value = Vec<Value>> + use<> {
    let charges = charges.to_vec();
    let sign = prop_oneof![Just(1), Just(-1)];
    let snapshot = (sign, time(), prop_oneof![20 => 0..5_i64, 1 => numbers()], time());
    vec(snapshot, charges.len()).prop_map(move |snapshots| {
        let mut numbers = Vec::new();
        for ((sign, time, count, fits_at), charge) in snapshots.into_iter().zip(&charges) {
            let first = time.saturating_mul(sign);
            let after = numbers_after_time(charge, first > 0).unwrap_or(1);
            numbers.extend([first, count, fits_at, count].into_iter().take(1 + after));
        }
        numbers.into_iter().map(Value::Int).collect()
    })
}

/// Returns how many numbers follow the time that the pass replies for a charge that its policy admits or refuses, or `None` if it
/// leaves the algorithm to others.
fn numbers_after_time(charge: &Charge, admitted: bool) -> Option<usize> {
    match charge.spec {
        AlgorithmSpec::Gcra(_) | AlgorithmSpec::AdjustableGcra(_) => Some(0),
        AlgorithmSpec::FixedWindow(_) | AlgorithmSpec::SettledGcra(_) => Some(1),
        AlgorithmSpec::IntervalBucket(spec) => (!spec.adjustable).then_some(1),
        AlgorithmSpec::SlidingWindow(_) => Some(if admitted && charge.cost > 0 { 1 } else { 2 }),
        AlgorithmSpec::Holds(_) => Some(if admitted { 0 } else { 1 }),
        AlgorithmSpec::CalendarWindow(_) => Some(3),
        AlgorithmSpec::WarmingUp(_) => None,
    }
}

/// What `decide` mostly replies to a decision.
fn list(charges: &[Charge]) -> impl Strategy<Value = Value> + use<> {
    let mut parts = Vec::new();
    for Charge { spec, .. } in charges {
        parts.push(flag());
        let one = |value: BoxedStrategy<Value>| value.prop_map(|value| vec![value]).boxed();
        let snapshot = || one(int(prop_oneof![3 => time(), 3 => 0..5_i64].boxed()));
        match spec {
            AlgorithmSpec::WarmingUp(_) => {
                let text = prop_oneof![4 => (0.0..9.0_f64).prop_map(|stored| stored.to_string().into_bytes()), 1 => texts()];
                parts.extend([snapshot(), one(text.prop_map(Value::BulkString).boxed())]);
                parts.extend((2..width(spec)).map(|_| snapshot()));
            }
            _ => parts.extend((0..width(spec)).map(|_| snapshot())),
        }
    }
    (parts, cut(), more()).prop_map(|(parts, cut, more)| {
        Value::Array(altered(parts.into_iter().flatten().collect(), cut, more))
    })
}

/// Whether a policy admits a charge: a flag, or of a key that is or was paused when that ends, with a sign, by how much slots have
/// moved, the step of its penalties, with a sign, and after how long one is forgiven.
fn flag() -> BoxedStrategy<Vec<Value>> {
    let flag = int(prop_oneof![20 => 0..2_i64, 1 => numbers()].boxed()).prop_map(|flag| vec![flag]);
    let until = (time(), prop_oneof![Just(1), Just(-1)]).prop_map(|(until, sign)| until.saturating_mul(sign));
    let moved = int(prop_oneof![8 => 0..2_000_000_i64, 1 => numbers()].boxed());
    let step = int(prop_oneof![8 => -4..4_i64, 1 => numbers()].boxed());
    let forgiven_in = int(prop_oneof![8 => 0..2_000_000_i64, 1 => numbers()].boxed());
    let pause = (int(until.boxed()), moved, step, forgiven_in)
        .prop_map(|(until, moved, step, forgiven_in)| vec![until, moved, step, forgiven_in]);
    prop_oneof![2 => flag, 1 => pause].boxed()
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![8 => NOW - 2_000_000..NOW + 2_000_000, 1 => numbers()]
}

/// A number, or rarely something else.
fn int(number: BoxedStrategy<i64>) -> BoxedStrategy<Value> {
    prop_oneof![
        60 => number.prop_map(Value::Int),
        1 => texts().prop_map(Value::BulkString),
        1 => values(),
    ]
    .boxed()
}

fn cut() -> impl Strategy<Value = usize> {
    prop_oneof![10 => Just(0_usize), 1 => 1..4_usize]
}

fn more() -> impl Strategy<Value = Vec<Value>> {
    prop_oneof![10 => Just(Vec::new()), 1 => vec(values(), 1..3)]
}

fn altered(mut values: Vec<Value>, cut: usize, more: Vec<Value>) -> Vec<Value> {
    values.truncate(values.len().saturating_sub(cut));
    values.extend(more);
    values
}

/// What the script decided about each charge, `None` where the decision or a shadow failed, if all of the reply is valid.
fn decided(decisions: &[Vec<Charge>], reply: &Value) -> Option<Vec<Option<Vec<Option<bool>>>>> {
    let unpacked = match reply {
        Value::Array(values) => values.clone(),
        Value::BulkString(packed) => unpacked(packed)?,
        _ => return None,
    };
    let mut values = unpacked.iter();
    values.next().filter(|now| is_number(now))?;
    let mut decided = Vec::new();
    for charges in decisions {
        let first = match values.as_slice().first() {
            // A script may leave the rest undecided.
            None if !decided.is_empty() => break,
            first => first?,
        };
        decided.push(match first {
            Value::BulkString(_) => values.next().map(|_| None)?,
            Value::Int(_) => {
                let mut own = Vec::new();
                for charge in charges {
                    if charge.shadow && matches!(values.as_slice().first(), Some(Value::BulkString(_))) {
                        values.next();
                        own.push(None);
                        continue;
                    }
                    let Value::Int(number) = values.next()? else { return None };
                    let time = Value::Int(number.saturating_abs());
                    (*number != 0 && is_number(&time)).then_some(())?;
                    for _ in 0..numbers_after_time(charge, *number > 0)? {
                        values.next().filter(|value| is_number(value))?;
                    }
                    own.push(Some(*number > 0));
                }
                Some(own)
            }
            list => values.next().and(Some(decided_by_list(charges, list)?)),
        });
    }
    values.as_slice().is_empty().then_some(decided)
}

fn decided_by_list(charges: &[Charge], list: &Value) -> Option<Vec<Option<bool>>> {
    let Value::Array(values) = list else { return None };
    let mut values = values.iter().peekable();
    let is_stored = |value: &Value| match value {
        Value::BulkString(text) => String::from_utf8(text.clone())
            .is_ok_and(|text| text.parse::<f64>().is_ok_and(|number| (0.0..=1e16).contains(&number))),
        _ => false,
    };
    let mut decided = Vec::new();
    for Charge { spec, shadow, .. } in charges {
        if *shadow && matches!(values.peek(), Some(Value::BulkString(_))) {
            values.next();
            decided.push(None);
            continue;
        }
        let Some(Value::Int(flag)) = values.next() else { return None };
        if !matches!(flag, 0 | 1) {
            // When a pause ends, by how much slots have moved, and the penalties.
            is_number(&Value::Int(flag.saturating_abs())).then_some(())?;
            values.next().filter(|moved| is_number(moved))?;
            let Some(Value::Int(step)) = values.next() else { return None };
            is_number(&Value::Int(step.saturating_abs())).then_some(())?;
            values.next().filter(|forgiven_in| is_number(forgiven_in))?;
        }
        decided.push(Some(*flag > 0));
        for index in 0..width(spec) {
            let is_text = index == 1 && matches!(spec, AlgorithmSpec::WarmingUp(_));
            values.next().filter(|value| if is_text { is_stored(value) } else { is_number(value) })?;
        }
    }
    values.next().is_none().then_some(decided)
}

fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(0..=9_007_199_254_740_992))
}

fn read(
    decisions: &[Vec<Charge>],
    reply: &Value,
) -> Result<Vec<Result<Box<Outcome>, StoreError>>, StoreError> {
    let lists: Vec<&[Charge]> = decisions.iter().map(Vec::as_slice).collect();
    outcomes(&lists, reply.clone())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn arbitrary_values_are_rejected(decisions in vec(vec(charges(), 1..4), 1..3), reply in values()) {
        prop_assert_eq!(read(&decisions, &reply).is_ok(), decided(&decisions, &reply).is_some());
    }

    #[test]
    fn only_the_script_admits((decisions, reply) in decisions_and_reply()) {
        let decided = decided(&decisions, &reply);
        let read = read(&decisions, &reply);
        prop_assert_eq!(read.is_ok(), decided.is_some(), "{:?}", read);
        let decided = decided.into_iter().flatten();
        for ((outcome, decided), charges) in read.into_iter().flatten().zip(decided).zip(&decisions) {
            let mut own = decided.iter().flatten().zip(charges);
            let admitted = own.all(|(admitted, charge)| admitted.unwrap_or(false) || charge.shadow);
            match outcome {
                Ok(_) if is_peek(charges) => prop_assert!(admitted),
                Ok(outcome) => prop_assert_eq!(outcome.admitted, admitted),
                // The decision failed, or does not follow from what the script read.
                Err(error) => prop_assert!(decided.is_none() || error.is_permanent(), "{error}"),
            }
        }
    }
}

#[test]
fn most_generated_replies_are_valid() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut admitted, mut refused) = (0, 0);
    for _ in 0..2_000 {
        let (decisions, reply) = decisions_and_reply().new_tree(&mut runner).unwrap().current();
        for outcome in read(&decisions, &reply).into_iter().flatten().flatten() {
            if outcome.admitted { admitted += 1 } else { refused += 1 }
        }
    }
    assert!(admitted > 100 && refused > 100, "{admitted} admitted, {refused} refused");
}
