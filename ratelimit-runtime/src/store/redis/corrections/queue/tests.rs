use std::time::Duration;

use super::*;
use crate::algorithm::ChargeId;
use crate::key::Key;
use crate::policy::Policy;
use crate::{FixedWindow, SlidingWindow, TokenBucket};

fn call(keys: &[&str], urgency: Urgency) -> CallCorrections {
    let policy = Policy::from(TokenBucket::per_second(1).burst(10));
    let correction = |key: &&str| Correction::refund(Key::raw(*key), policy.spec().unwrap(), 1, None);
    CallCorrections::new(keys.iter().map(correction).collect(), urgency, None, Box::new(drop))
}

fn pause(key: &str, urgency: Urgency) -> CallCorrections {
    let spec = Policy::from(TokenBucket::per_second(1)).spec().unwrap();
    CallCorrections::new(vec![Correction::pause(Key::raw(key), spec, 1)], urgency, None, Box::new(drop))
}

/// Returns the keys of the corrections that share the next call.
fn taken(queue: &mut Queue, task: Task) -> Vec<String> {
    let batch = queue.take(task);
    let keys = batch.iter().flat_map(|call| &call.corrections);
    keys.map(|correction| key_text(&correction.key).unwrap().to_owned()).collect()
}

#[test]
fn one_task_sends_what_is_gathered_by_key() {
    let mut queue = Queue::default();
    assert_eq!(queue.push(call(&["a"], Urgency::Gathered)), Some(Task::Gathered));
    for key in ["b", "a", "c", "b", "a"] {
        assert_eq!(queue.push(call(&[key], Urgency::Gathered)), None);
    }
    let keys = taken(&mut queue, Task::Gathered);
    assert_eq!(keys.len(), 6);
    assert_eq!(keys.chunk_by(|one, other| one == other).count(), 3, "{keys:?}");
    assert!(!queue.has_due());
    assert!(taken(&mut queue, Task::Gathered).is_empty());
    assert!(queue.end(Task::Gathered));
}

#[test]
fn more_of_one_key_than_of_many_share_a_call() {
    let (mut same, mut different) = (Queue::default(), Queue::default());
    for i in 0..200 {
        same.push(call(&["a"], Urgency::Gathered));
        different.push(call(&[&i.to_string()], Urgency::Gathered));
    }
    let of_one = taken(&mut same, Task::Gathered).len();
    let of_many = taken(&mut different, Task::Gathered).len();
    assert!(of_one > 2 * of_many && of_one < 200, "{of_one} and {of_many}");
    assert!(same.has_due());
}

#[test]
fn what_was_gathered_of_a_key_goes_before_its_pause() {
    let mut queue = Queue::default();
    queue.push(call(&["a"], Urgency::Gathered));
    queue.push(call(&["b"], Urgency::Gathered));
    // Some are due already, and some are gathered since.
    let filling = (0..200).map(|i| i.to_string());
    filling.for_each(|key| assert_eq!(queue.push(call(&[&key], Urgency::Gathered)), None));
    taken(&mut queue, Task::Gathered);
    assert!(queue.has_due());
    queue.push(call(&["x", "late"], Urgency::Gathered));
    assert_eq!(queue.push(pause("late", Urgency::AtOnce)), Some(Task::Waiting));
    assert_eq!(taken(&mut queue, Task::Waiting), ["x", "late", "late"]);

    let due = key_text(&queue.due[0].corrections[0].key).unwrap().to_owned();
    queue.push(pause(&due, Urgency::Soon));
    assert_eq!(taken(&mut queue, Task::Waiting), [due.as_str(), due.as_str()]);
    let rest = queue.into_calls().flat_map(|call| call.keys().collect::<Vec<_>>());
    assert_eq!(rest.filter(|key| *key == Key::raw(due.as_str()).fingerprint()).count(), 0);
}

#[test]
fn receipts_of_few_logs_share_a_call() {
    let spec = Policy::from(SlidingWindow::new(10, Duration::from_secs(1))).spec().unwrap();
    let shared = |key: fn(u64) -> String| {
        let mut queue = Queue::default();
        for number in 0..200 {
            let charge_id = ChargeId { at: number, ..ChargeId::default() };
            let refund = Correction::refund(Key::raw(key(number).as_str()), spec, 1, Some(charge_id));
            queue.push(CallCorrections::new(vec![refund], Urgency::Gathered, None, Box::new(drop)));
        }
        taken(&mut queue, Task::Gathered).len()
    };
    assert_eq!(shared(|number| number.to_string()), 9);
    // Those of one key change its entries together.
    assert_eq!(shared(|_| "a".to_owned()), 63);
}

#[test]
fn corrections_that_add_to_each_other_share_a_call() {
    let (bucket, window) =
        (TokenBucket::per_second(1).burst(10), FixedWindow::new(10, Duration::from_secs(1)));
    let shared = |policy: &Policy, kind: fn(u64) -> CorrectionKind| {
        let (mut queue, spec) = (Queue::default(), policy.spec().unwrap());
        for number in 0..1000 {
            let correction = Correction { key: Key::raw("a"), spec, cost: 1, kind: kind(number) };
            queue.push(CallCorrections::new(vec![correction], Urgency::Gathered, None, Box::new(drop)));
        }
        taken(&mut queue, Task::Gathered).len()
    };
    let receipt = |at| CorrectionKind::Refund(Some(ChargeId { at, ..ChargeId::default() }));
    let same = |_| CorrectionKind::Refund(Some(ChargeId { at: 1, ..ChargeId::default() }));
    assert_eq!(shared(&bucket.into(), |_| CorrectionKind::Debit), 1000);
    assert_eq!(shared(&window.into(), same), 1000);
    // Those of different windows, and each of a bucket, give back on their own.
    for (policy, kind) in [(Policy::from(window), receipt as fn(u64) -> _), (Policy::from(bucket), same)] {
        assert_eq!(shared(&policy, kind), 131, "{policy:?}");
    }
}

#[test]
fn debts_follow_receipts_of_the_same_key() {
    let mut queue = Queue::default();
    for (key, debt) in [("a", true), ("b", true), ("a", false), ("b", false), ("a", true)] {
        let mut call = call(&[key], Urgency::Gathered);
        if debt {
            call.corrections[0].kind = CorrectionKind::Debit;
        }
        queue.push(call);
    }
    let of_a = Key::raw("a").fingerprint();
    let calls = queue.take(Task::Gathered);
    let debts = calls.iter().filter(|call| call.first_key() == Some(of_a)).map(CallCorrections::is_debit);
    assert_eq!(debts.collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn tasks_are_added_while_much_is_gathered() {
    let mut queue = Queue::default();
    let tasks = (0..3 * MOST_GATHERED).filter_map(|_| queue.push(call(&["a"], Urgency::Gathered)));
    assert_eq!(tasks.count(), 3);
    assert!(!queue.end(Task::Gathered));
    assert_eq!(queue.into_calls().count(), 3 * MOST_GATHERED);
}
