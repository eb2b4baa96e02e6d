//! Calls that wait on Redis are admitted in the order in which their requests arrive, each at a slot of its own: tasks of one
//! process, and two processes. Redis and the tests read the same system clock.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ratelimit_runtime::store::{Charge, Key, RedisStore, Store};
use ratelimits::{Limiter, Policy, Rate, Registry, TokenBucket};

use crate::support::processes::{self, Child};
use crate::support::registries::{LONG_DEADLINE, on};
use crate::support::server::Server;
use crate::support::test_store::MAX_STEP_BACK;

const CALLS: usize = 100;
const INTERVAL: u64 = 10_000;

/// Permits that are taken in advance, so that no call is admitted for a second and all requests arrive meanwhile.
const DEBT: u64 = 100;

/// The number of attempts if requests arrive too late to wait.
const ROUNDS: usize = 10;

/// A call, in microseconds of the system clock. Its slot is between `called_at + waited` and `started_at`.
#[derive(Clone, Copy, Debug)]
struct Call {
    called_at: u64,
    waited: u64,
    started_at: u64,
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros() as u64
}

fn limiter(registry: &Registry) -> Limiter {
    let policy = TokenBucket::new(Rate::new(1, Duration::from_micros(INTERVAL))).burst(1).borrow();
    registry.limiter("order", policy).unwrap()
}

/// Connects, so that requests are sent in order, and leaves a debt, so that all calls wait in one queue without gaps.
async fn without_gaps(limiter: &Limiter, calls: impl AsyncFn() -> Vec<Call>) -> Vec<Call> {
    for _ in 0..ROUNDS {
        limiter.reset(()).await.unwrap();
        limiter.try_acquire_n((), DEBT).await.unwrap();
        let calls = calls().await;
        if calls.iter().all(|call| call.waited > 0) {
            return calls;
        }
    }
    panic!("in each of {ROUNDS} rounds a call did not wait")
}

/// Spawns the calls one after another. With `refund`, all but the last two return their permit after they were admitted.
async fn call(limiter: &Limiter, calls: usize, refund: bool) -> Vec<Call> {
    let tasks: Vec<_> = (0..calls)
        .map(|i| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let called_at = now();
                let decision = limiter.acquire(()).await.unwrap();
                let waited = decision.waited.as_micros() as u64;
                let call = Call { called_at, waited, started_at: now() };
                if refund && i + 2 < calls {
                    decision.refund().await.unwrap();
                }
                call
            })
        })
        .collect();
    let mut done = Vec::new();
    for task in tasks {
        done.push(task.await.unwrap());
    }
    done
}

/// Awaits the calls, and returns their result with the time at which the bucket will be full, two intervals after the last
/// slot. Reads the key all the time, as it expires soon after.
async fn with_full_at<T>(server: &Server, calls: impl Future<Output = T>) -> (T, u64) {
    let mut connection = server.connect().await;
    let (mut calls, mut full_at) = (pin!(calls), None);
    loop {
        let done = tokio::time::timeout(Duration::from_millis(20), &mut calls).await;
        let keys: Vec<String> =
            redis::cmd("KEYS").arg("*:order:*").query_async(&mut connection).await.unwrap();
        if let Some(key) = keys.first() {
            let value: Option<String> =
                redis::cmd("GET").arg(key).query_async(&mut connection).await.unwrap();
            full_at = value.map(|value| value.split(' ').next().unwrap().parse().unwrap()).or(full_at);
        }
        if let Ok(done) = done {
            return (done, full_at.expect("the key exists for longer than one read"));
        }
    }
}

impl Call {
    fn fits(&self, slot: u64) -> bool {
        self.called_at + self.waited <= slot && slot <= self.started_at
    }
}

/// Returns the slots of calls that waited without gaps, the last one first.
fn slots(full_at: u64) -> impl Iterator<Item = u64> {
    (2..).map(move |slot| full_at - slot * INTERVAL)
}

/// Assigns each slot to a call that may have started in it: of those that fit, to the one that started first.
fn assert_each_has_its_slot(mut calls: Vec<Call>, full_at: u64) {
    let mut slots: Vec<u64> = slots(full_at).take(calls.len()).collect();
    slots.reverse();
    for slot in slots {
        let fits = (0..calls.len()).filter(|i| calls[*i].fits(slot));
        let Some(first) = fits.min_by_key(|i| calls[*i].started_at) else {
            panic!("no call started at {slot}: {calls:?}")
        };
        calls.remove(first);
    }
}

#[tokio::test]
async fn calls_of_one_process_are_admitted_in_order() {
    let server = Server::start();
    let limiter = limiter(&on(&server));
    let calls = without_gaps(&limiter, async || call(&limiter, CALLS, false).await);
    let (calls, full_at) = with_full_at(&server, calls).await;
    for (call, slot) in calls.iter().rev().zip(slots(full_at)) {
        assert!(call.fits(slot), "{slot}: {call:?}");
    }
}

#[tokio::test]
async fn refunds_of_admitted_calls_never_share_a_slot() {
    let server = Server::start();
    let limiter = limiter(&on(&server));
    let calls = without_gaps(&limiter, async || call(&limiter, CALLS / 2, true).await);
    let (calls, full_at) = with_full_at(&server, calls).await;
    assert_each_has_its_slot(calls, full_at);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_on_several_threads_have_a_slot_each() {
    let server = Server::start();
    let limiter = limiter(&on(&server));
    let calls = without_gaps(&limiter, async || call(&limiter, CALLS, false).await);
    let (calls, full_at) = with_full_at(&server, calls).await;
    assert_each_has_its_slot(calls, full_at);
}

/// A decision of the store, in microseconds of its clock, and when the process could start.
#[derive(Clone, Copy, Debug)]
struct Slot {
    now: u64,
    slot: u64,
    started_at: u64,
}

/// Returns a charge to a bucket of one permit without `borrow`, so that no two calls share a slot.
fn charge(cost: u64) -> Charge {
    let policy = Policy::from(TokenBucket::new(Rate::new(1, Duration::from_micros(INTERVAL))).burst(1));
    Charge { key: Key::raw("slots"), spec: policy.spec().unwrap(), cost, wait: 1 << 50, shadow: false }
}

/// Sends requests like those of waiting calls, five at a time, and returns their slots in the order of sending.
async fn request_slots(store: &Store, calls: usize) -> Vec<Slot> {
    let mut tasks = Vec::new();
    for i in 0..calls {
        let store = store.clone();
        let charge = charge(1);
        tasks.push(tokio::spawn(async move {
            let outcome = store.decide(&[charge]).await.unwrap();
            assert!(outcome.admitted, "{outcome:?}");
            tokio::time::sleep(Duration::from_micros(outcome.wait())).await;
            Slot { now: outcome.now, slot: outcome.now + outcome.wait(), started_at: now() }
        }));
        if i % 5 == 4 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let mut slots = Vec::new();
    for task in tasks {
        slots.push(task.await.unwrap());
    }
    slots
}

/// Each slot is one interval after the one before, or at the request's arrival if that is later. Slots are in the order of
/// arrival.
fn assert_evenly_spaced(mut slots: Vec<Slot>) {
    slots.sort_by_key(|call| call.slot);
    let mut waited = 0;
    for pair in slots.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        // A clock that steps back moves the queue.
        let step_back = before.now.saturating_sub(after.now);
        assert!(step_back <= MAX_STEP_BACK, "{before:?} {after:?}");
        assert_eq!(after.slot, after.now.max(before.slot + INTERVAL - step_back), "{before:?} {after:?}");
        waited += usize::from(after.slot > after.now);
    }
    println!("{waited} of {} waited", slots.len());
}

/// There is a way to give each call of two processes a slot in which it may have started, such that the calls of each process
/// are in order.
fn assert_admitted_in_order(one: &[Call], other: &[Call], full_at: u64) {
    let mut slots: Vec<u64> = slots(full_at).take(one.len() + other.len()).collect();
    slots.reverse();
    // How many of the first slots may be those of the one process, with the rest for the other.
    let mut ways = vec![0];
    for (given, slot) in slots.into_iter().enumerate() {
        let fits = |calls: &[Call], i: usize| calls.get(i).is_some_and(|call| call.fits(slot));
        let of_one = ways.iter().filter(|i| fits(one, **i)).map(|i| i + 1);
        let of_other = ways.iter().filter(|i| fits(other, given - **i)).copied();
        let mut next: Vec<usize> = of_one.chain(of_other).collect();
        next.sort_unstable();
        next.dedup();
        assert!(!next.is_empty(), "no call started at {slot}: {one:?} and {other:?}");
        ways = next;
    }
    assert!(ways.contains(&one.len()));
}

fn line([a, b, c]: [u64; 3]) -> String {
    format!("{a} {b} {c}")
}

/// Runs this test in two processes, and returns what `parse` makes of the lines that each of them reported.
async fn in_two_processes<T>(server: &Server, test: &str, parse: fn([u64; 3]) -> T) -> [Vec<T>; 2] {
    let numbers = |line: &String| -> [u64; 3] {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    };
    let reports = processes::run(server, 2, module_path!(), test).await;
    let parsed = reports.iter().map(|lines| lines.iter().map(|line| parse(numbers(line))).collect());
    parsed.collect::<Vec<Vec<T>>>().try_into().ok().expect("two processes")
}

#[tokio::test]
async fn calls_of_two_processes_are_admitted_in_order() {
    if let Some(child) = Child::from_env() {
        let registry = Registry::builder().deadline(LONG_DEADLINE).connect(&child.url).await.unwrap();
        let limiter = limiter(&registry);
        // One of the processes gets it, and both wait for it.
        let _ = limiter.try_acquire_n((), 2 * DEBT).await;
        child.barrier("calls", 2).await;
        let calls = call(&limiter, CALLS / 2, false).await;
        return child
            .report(calls.into_iter().map(|call| line([call.called_at, call.waited, call.started_at])));
    }
    let server = Server::start();
    for round in 0.. {
        let parse = |[called_at, waited, started_at]: [u64; 3]| Call { called_at, waited, started_at };
        let calls = in_two_processes(&server, "calls_of_two_processes_are_admitted_in_order", parse);
        let ([one, other], full_at) = with_full_at(&server, calls).await;
        assert_eq!((one.len(), other.len()), (CALLS / 2, CALLS / 2));
        if one.iter().chain(&other).all(|call| call.waited > 0) {
            assert_admitted_in_order(&one, &other, full_at);
            return;
        }
        assert!(round < ROUNDS, "in each of {ROUNDS} rounds a call did not wait");
        let mut connection = server.connect().await;
        let () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
    }
}

#[tokio::test]
async fn slots_follow_the_order_of_arrival_at_redis() {
    if let Some(child) = Child::from_env() {
        let store =
            Store::Redis(Arc::new(RedisStore::lazy(&child.url).unwrap().with_deadline(LONG_DEADLINE)));
        // Connects, so that requests are sent in order.
        store.decide(&[charge(0)]).await.unwrap();
        child.barrier("slots", 2).await;
        let slots = request_slots(&store, CALLS / 2).await;
        return child.report(slots.into_iter().map(|slot| line([slot.now, slot.slot, slot.started_at])));
    }
    let server = Server::start();
    let parse = |[now, slot, started_at]: [u64; 3]| Slot { now, slot, started_at };
    let processes = in_two_processes(&server, "slots_follow_the_order_of_arrival_at_redis", parse).await;
    for slots in &processes {
        assert_eq!(slots.len(), CALLS / 2);
        // In the order of sending.
        assert!(slots.is_sorted_by(|before, after| {
            before.slot < after.slot && before.now <= after.now + MAX_STEP_BACK
        }));
        for slot in slots {
            assert!(slot.started_at >= slot.slot, "{slot:?}");
        }
    }
    assert_evenly_spaced(processes.concat());
}
