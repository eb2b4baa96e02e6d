//! Calls that wait for two buckets, dropped at random: each bucket ends up as if the dropped calls had never been made.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{random, seed};
use crate::algorithm::{AlgorithmSpec, State};
use crate::decide::acquire::{EndpointFuture, acquire, decide_at_once};
use crate::decide::endpoint::Endpoint;
use crate::decide::request::{AcquireRequest, max_wait};
use crate::decide::waiter_limit::WaiterLimit;
use crate::store::{Charge, Clock, Key, MemoryStore, Store};
use crate::{LeakyBucket, Policy, Rate, TokenBucket};

const RUNS: u64 = 200;
const CALLS: usize = 60;

/// A call that charges both buckets.
struct Call {
    made: u64,
    costs: [u64; 2],
    slots: [u64; 2],
    dropped: bool,
    waits: Option<EndpointFuture>,
}

fn spec(state: &mut u64) -> AlgorithmSpec {
    let bucket = TokenBucket::new(Rate::new(1 + random(state) % 5, Duration::from_secs(60)));
    let burst = 4 + random(state) % 7;
    let policy: Policy = match random(state) % 5 {
        0 => bucket.burst(burst).into(),
        1 => bucket.burst(burst).interval_refill().into(),
        2 => bucket.burst(burst).borrow().into(),
        3 => bucket.warmup(Duration::from_secs(1 + random(state) % 100)).into(),
        _ => LeakyBucket::new(10_000, Rate::new(1, Duration::from_secs(7))).queue().into(),
    };
    policy.spec().unwrap()
}

/// Returns the state of one bucket after those of the calls that were not dropped.
fn state(spec: &AlgorithmSpec, calls: &[Call], bucket: usize) -> Option<State> {
    let mut state = None;
    for call in calls.iter().filter(|call| !call.dropped) {
        let snapshot = spec.check(state.as_ref(), call.made, call.costs[bucket]);
        spec.commit(&mut state, snapshot, call.made, call.costs[bucket]);
    }
    state
}

fn request(specs: &[AlgorithmSpec; 2], costs: [u64; 2]) -> AcquireRequest {
    AcquireRequest::of_test(["a", "b"].into_iter().enumerate().map(|(index, name)| {
        let (key, spec) = (Key::raw(name), specs[index]);
        Charge { key, spec, cost: costs[index], wait: max_wait(Duration::MAX), shadow: false }
    }))
}

#[tokio::test]
async fn dropped_calls_leave_no_trace_in_either_bucket() {
    let mut rng = seed();
    let mut drops = 0;
    for run in 0..RUNS {
        let specs = [spec(&mut rng), spec(&mut rng)];
        println!("run {run}: {specs:?}");
        let time = Arc::new(AtomicU64::new(1_000_000_000));
        let memory = Arc::new(MemoryStore::new(100, Clock::manual(Arc::clone(&time))));
        let store = Store::Memory(Arc::clone(&memory));
        let endpoint = Endpoint::new(store, WaiterLimit::new(1000));
        let mut calls: Vec<Call> = Vec::new();
        while calls.len() < CALLS {
            let now = time.load(Ordering::SeqCst);
            if !random(&mut rng).is_multiple_of(3) {
                let costs = [1 + random(&mut rng) % 4, 1 + random(&mut rng) % 4];
                let slots = [0, 1].map(|bucket| {
                    let snapshot = specs[bucket].check(
                        state(&specs[bucket], &calls, bucket).as_ref(),
                        now,
                        costs[bucket],
                    );
                    now + specs[bucket].verdict(snapshot, now, costs[bucket], u64::MAX).wait
                });
                let mut request = request(&specs, costs);
                let mut waits = match decide_at_once(&mut request, &endpoint) {
                    Some(outcome) => {
                        assert!(outcome.admitted && slots == [now; 2]);
                        None
                    }
                    None => Some(acquire(Arc::new(request), &endpoint)),
                };
                if let Some(waits) = &mut waits {
                    assert!(slots.iter().any(|slot| *slot > now));
                    assert!(Pin::new(waits).poll(&mut Context::from_waker(Waker::noop())).is_pending());
                }
                calls.push(Call { made: now, costs, slots, dropped: false, waits });
            } else if random(&mut rng).is_multiple_of(2) {
                time.store(now + random(&mut rng) % 20_000_000, Ordering::SeqCst);
            } else {
                // Neither slot has come.
                let waits =
                    |i: &usize| calls[*i].waits.is_some() && calls[*i].slots.iter().all(|slot| *slot > now);
                let waiting: Vec<usize> = (0..calls.len()).filter(waits).collect();
                if waiting.is_empty() {
                    continue;
                }
                let dropped = waiting[random(&mut rng) as usize % waiting.len()];
                calls[dropped].waits = None;
                calls[dropped].dropped = true;
                drops += 1;
                for bucket in [0, 1] {
                    for i in dropped + 1..calls.len() {
                        if calls[i].slots[bucket] > now && !calls[i].dropped {
                            let (made, cost) = (calls[i].made, calls[i].costs[bucket]);
                            let before = state(&specs[bucket], &calls[..i], bucket);
                            let snapshot = specs[bucket].check(before.as_ref(), made, cost);
                            let slot = made + specs[bucket].verdict(snapshot, made, cost, u64::MAX).wait;
                            calls[i].slots[bucket] = slot.max(now);
                        }
                    }
                }
            }
            check(&specs, &calls, &memory, time.load(Ordering::SeqCst));
        }
        // Calls whose slots have come finish at the next poll and report when that was.
        let now = time.load(Ordering::SeqCst);
        for call in &mut calls {
            let start = call.slots.into_iter().max().unwrap_or(0);
            let Some(mut waits) = call.waits.take().filter(|_| start <= now) else { continue };
            // The timer follows the runtime's clock and may not have fired.
            if let Poll::Ready(answer) = Pin::new(&mut waits).poll(&mut Context::from_waker(Waker::noop())) {
                assert_eq!(answer.unwrap().waited, Duration::from_micros(start - call.made));
            }
        }
        calls.clear();
        assert_eq!(endpoint.waiters.waiting(), 0);
        assert!(!memory.has_queues());
    }
    println!("{drops} drops");
    assert!(drops > 1000);
}

fn check(specs: &[AlgorithmSpec; 2], calls: &[Call], memory: &MemoryStore, now: u64) {
    let outcome = memory.decide(request(specs, [0, 0]).charges());
    for bucket in [0, 1] {
        let snapshot = specs[bucket].check(state(&specs[bucket], calls, bucket).as_ref(), now, 0);
        let expected = specs[bucket].verdict(snapshot, now, 0, 0);
        let actual = outcome.verdicts[bucket];
        assert_eq!(
            (actual.remaining, actual.reset_after),
            (expected.remaining, expected.reset_after),
            "{bucket}"
        );
    }
}
