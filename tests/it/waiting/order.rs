//! Those who wait on Redis are served in the order in which their reservations reached it, each at a slot of its own: tasks of
//! one process, and two processes. Redis and the tests read one system clock.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ratelimit_runtime::store::{Charge, Key, RedisStore, Store};
use ratelimits::{Limiter, Policy, Rate, Registry, TokenBucket};

use tokio::process::Command;

use super::PATIENCE;
use crate::support::registries::{PATIENT, on};
use crate::support::server::Server;

const CALLS: usize = 100;
const INTERVAL: u64 = 10_000;

/// Permits that are taken in advance: a second, in which all calls reach Redis.
const DEBT: u64 = 100;

/// Where they do not, as somebody did not have to wait, they come again so many times.
const ROUNDS: usize = 10;

/// What a process is told: the URL of the server, and where to write what its calls say.
const URL: &str = "RATELIMITS_ORDER_URL";
const LOG: &str = "RATELIMITS_ORDER_LOG";

/// A call, in microseconds of the system clock: it has its slot between `asked` and its wait, and its start.
#[derive(Clone, Copy, Debug)]
struct Call {
    asked: u64,
    waited: u64,
    started: u64,
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros() as u64
}

fn limiter(registry: &Registry) -> Limiter {
    let policy = TokenBucket::new(Rate::new(1, Duration::from_micros(INTERVAL))).burst(1).borrow();
    registry.limiter("order", policy).unwrap()
}

/// Connects, so that what is asked first is sent first, and leaves a debt, so that all who come wait in one line without a
/// gap: only who finds the bucket full does not wait.
async fn in_one_line(limiter: &Limiter, calls: impl AsyncFn() -> Vec<Call>) -> Vec<Call> {
    for _ in 0..ROUNDS {
        limiter.reset(()).await.unwrap();
        limiter.try_acquire((), DEBT).await.unwrap();
        let calls = calls().await;
        if calls.iter().all(|call| call.waited > 0) {
            return calls;
        }
    }
    panic!("of {ROUNDS} times somebody never waited")
}

/// As many calls as tasks, spawned one after another.
async fn call(limiter: &Limiter, calls: usize) -> Vec<Call> {
    let calls: Vec<_> = (0..calls)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let asked = now();
                let waited = limiter.acquire((), 1).await.unwrap().waited.as_micros() as u64;
                Call { asked, waited, started: now() }
            })
        })
        .collect();
    let mut done = Vec::new();
    for call in calls {
        done.push(call.await.unwrap());
    }
    done
}

/// What comes of the calls, and when the bucket will then be full, which is two intervals after the last slot. Redis is
/// asked for it all the time, as it forgets it soon after.
async fn watched<T>(server: &Server, calls: impl Future<Output = T>) -> (T, u64) {
    let mut connection = server.connect().await;
    let (mut calls, mut full) = (pin!(calls), None);
    loop {
        let done = tokio::time::timeout(Duration::from_millis(20), &mut calls).await;
        let keys: Vec<String> =
            redis::cmd("KEYS").arg("*:order:*").query_async(&mut connection).await.unwrap();
        if let Some(key) = keys.first() {
            let held: Option<String> = redis::cmd("GET").arg(key).query_async(&mut connection).await.unwrap();
            full = held.map(|held| held.split(' ').next().unwrap().parse().unwrap()).or(full);
        }
        if let Ok(done) = done {
            return (done, full.expect("the calls take longer than a look"));
        }
    }
}

impl Call {
    /// Whether this may be its slot.
    fn fits(&self, slot: u64) -> bool {
        self.asked + self.waited <= slot && slot <= self.started
    }
}

/// The slots of calls that waited without a pause in between, the last of them first.
fn slots(full: u64) -> impl Iterator<Item = u64> {
    (2..).map(move |slot| full - slot * INTERVAL)
}

/// Gives each call a slot of its own in which it may have started. It is one of those it fits whose bounds end first.
fn assert_each_has_its_slot(mut calls: Vec<Call>, full: u64) {
    let mut slots: Vec<u64> = slots(full).take(calls.len()).collect();
    slots.reverse();
    for slot in slots {
        let fits = (0..calls.len()).filter(|i| calls[*i].fits(slot));
        let Some(first) = fits.min_by_key(|i| calls[*i].started) else {
            panic!("nobody started at {slot}: {calls:?}")
        };
        calls.remove(first);
    }
}

#[tokio::test]
async fn a_hundred_of_one_process_are_served_in_the_order_of_their_calls() {
    let server = Server::start();
    let limiter = limiter(&on(&server));
    let calls = in_one_line(&limiter, async || call(&limiter, CALLS).await);
    let (calls, full) = watched(&server, calls).await;
    for (call, slot) in calls.iter().rev().zip(slots(full)) {
        assert!(call.fits(slot), "{slot}: {call:?}");
    }
}

#[tokio::test]
async fn refunds_of_those_who_were_served_give_no_slot_to_two() {
    let server = Server::start();
    let limiter = limiter(&on(&server));
    let calls = in_one_line(&limiter, async || call_and_give_back(&limiter, CALLS / 2).await);
    let (calls, full) = watched(&server, calls).await;
    assert_each_has_its_slot(calls, full);
}

/// As above, where all but the last two, on whom nobody stands, give back their permit once they were served.
async fn call_and_give_back(limiter: &Limiter, calls: usize) -> Vec<Call> {
    let tasks: Vec<_> = (0..calls)
        .map(|i| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let asked = now();
                let decision = limiter.acquire((), 1).await.unwrap();
                let call = Call { asked, waited: decision.waited.as_micros() as u64, started: now() };
                if i + 2 < calls {
                    decision.refund().await.unwrap();
                }
                call
            })
        })
        .collect();
    let mut done = Vec::new();
    for call in tasks {
        done.push(call.await.unwrap());
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_on_several_threads_have_each_a_slot() {
    let server = Server::start();
    let limiter = limiter(&on(&server));
    let calls = in_one_line(&limiter, async || call(&limiter, CALLS).await);
    let (calls, full) = watched(&server, calls).await;
    assert_each_has_its_slot(calls, full);
}

/// A decision of the store, in microseconds of its clock, and when the process that asked for it could begin.
#[derive(Clone, Copy, Debug)]
struct Slot {
    now: u64,
    slot: u64,
    started: u64,
}

/// Of a bucket that holds one permit and never borrows, so that none has the slot of another.
fn charge(cost: u64) -> Charge {
    let policy = Policy::from(TokenBucket::new(Rate::new(1, Duration::from_micros(INTERVAL))).burst(1));
    Charge { key: Key::raw("slots"), spec: policy.spec().unwrap(), cost, wait: 1 << 50, shadow: false }
}

/// Asks the store as calls do that wait, five at a time, in the order in which they are returned.
async fn slots_of_calls(store: &Store, calls: usize) -> Vec<Slot> {
    let mut tasks = Vec::new();
    for i in 0..calls {
        let store = store.clone();
        let charge = charge(1);
        tasks.push(tokio::spawn(async move {
            let outcome = store.decide(&[&[charge]]).await.remove(0).unwrap();
            assert!(outcome.admitted, "{outcome:?}");
            tokio::time::sleep(Duration::from_micros(outcome.wait())).await;
            Slot { now: outcome.now, slot: outcome.now + outcome.wait(), started: now() }
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

/// Each slot is one interval after the one before it, or where that has passed when the call reaches Redis. They are given
/// in the order in which calls reach it.
fn assert_evenly_spaced(mut slots: Vec<Slot>) {
    slots.sort_by_key(|call| call.slot);
    let mut waited = 0;
    for pair in slots.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        assert_eq!(after.slot, after.now.max(before.slot + INTERVAL), "{before:?} {after:?}");
        assert!(before.now <= after.now, "{before:?} {after:?}");
        waited += usize::from(after.slot > after.now);
    }
    println!("{waited} of {} waited", slots.len());
}

/// The same of calls of two processes whose slots nobody tells: there is a way to give each a slot in which it may have
/// started, such that in each process they come in the order in which they were made.
fn assert_served_in_order(one: &[Call], other: &[Call], full: u64) {
    let mut slots: Vec<u64> = slots(full).take(one.len() + other.len()).collect();
    slots.reverse();
    // So many of the one may have the first slots, with the rest of them for the other.
    let mut ways = vec![0];
    for (given, slot) in slots.into_iter().enumerate() {
        let fits = |calls: &[Call], i: usize| calls.get(i).is_some_and(|call| call.fits(slot));
        let of_one = ways.iter().filter(|i| fits(one, **i)).map(|i| i + 1);
        let of_other = ways.iter().filter(|i| fits(other, given - **i)).copied();
        let mut next: Vec<usize> = of_one.chain(of_other).collect();
        next.sort_unstable();
        next.dedup();
        assert!(!next.is_empty(), "nobody may have started at {slot}: {one:?} and {other:?}");
        ways = next;
    }
    assert!(ways.contains(&one.len()));
}

/// Returns when both processes are here.
async fn meet(url: &str, place: &str) {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let begin = std::time::Instant::now();
    let mut there: u64 = redis::cmd("INCR").arg(place).query_async(&mut connection).await.unwrap();
    while there < 2 {
        assert!(begin.elapsed() < PATIENCE, "the other process does not come");
        tokio::time::sleep(Duration::from_millis(1)).await;
        there = redis::cmd("GET").arg(place).query_async(&mut connection).await.unwrap();
    }
}

fn child() -> Option<(String, PathBuf)> {
    Some((std::env::var(URL).ok()?, std::env::var_os(LOG)?.into()))
}

/// Runs this test in two processes more, and returns what they wrote, by lines of numbers.
async fn in_two_processes(server: &Server, test: &str) -> [Vec<[u64; 3]>; 2] {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let logs = [1, 2].map(|i| dir.join(format!("{test}-{}-{i}.log", std::process::id())));
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::{test}");
    let processes = logs.each_ref().map(|log| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &test, "--nocapture"]).env(URL, server.url()).env(LOG, log);
        command.stdout(Stdio::null()).spawn().unwrap()
    });
    for mut process in processes {
        assert!(process.wait().await.unwrap().success());
    }
    logs.each_ref().map(|log| read(log))
}

#[tokio::test]
async fn two_processes_are_served_as_one() {
    if let Some((url, log)) = child() {
        let registry = Registry::builder().deadline(PATIENT).connect(&url).await.unwrap();
        let limiter = limiter(&registry);
        // One of them takes it, and both wait behind it.
        let _ = limiter.try_acquire((), 2 * DEBT).await;
        meet(&url, "barrier").await;
        let calls = call(&limiter, CALLS / 2).await;
        write(&log, calls.iter().map(|call| [call.asked, call.waited, call.started]));
        return;
    }
    let server = Server::start();
    for round in 0.. {
        let told = in_two_processes(&server, "two_processes_are_served_as_one");
        let (told, full) = watched(&server, told).await;
        let call = |[asked, waited, started]: [u64; 3]| Call { asked, waited, started };
        let [one, other] = told.map(|calls| calls.into_iter().map(call).collect::<Vec<_>>());
        assert_eq!((one.len(), other.len()), (CALLS / 2, CALLS / 2));
        if one.iter().chain(&other).all(|call| call.waited > 0) {
            assert_served_in_order(&one, &other, full);
            return;
        }
        assert!(round < ROUNDS, "somebody never waited");
        let mut connection = server.connect().await;
        let () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
    }
}

#[tokio::test]
async fn slots_of_two_processes_follow_the_order_of_arrival_at_redis() {
    if let Some((url, log)) = child() {
        let store = Store::Redis(Arc::new(RedisStore::lazy(&url).unwrap().with_deadline(PATIENT)));
        // Connects, so that what is asked first is sent first.
        store.decide(&[&[charge(0)]]).await.remove(0).unwrap();
        meet(&url, "barrier").await;
        let slots = slots_of_calls(&store, CALLS / 2).await;
        write(&log, slots.iter().map(|call| [call.now, call.slot, call.started]));
        return;
    }
    let server = Server::start();
    let told = in_two_processes(&server, "slots_of_two_processes_follow_the_order_of_arrival_at_redis").await;
    let call = |[now, slot, started]: [u64; 3]| Slot { now, slot, started };
    let processes = told.map(|calls| calls.into_iter().map(call).collect::<Vec<_>>());
    for calls in &processes {
        assert_eq!(calls.len(), CALLS / 2);
        // As they were sent.
        assert!(calls.is_sorted_by(|before, after| before.slot < after.slot && before.now <= after.now));
        for call in calls {
            assert!(call.started >= call.slot, "{call:?}");
        }
    }
    assert_evenly_spaced(processes.concat());
}

fn write(log: &Path, lines: impl Iterator<Item = [u64; 3]>) {
    let line = |[a, b, c]: [u64; 3]| format!("{a} {b} {c}\n");
    std::fs::write(log, lines.map(line).collect::<String>()).unwrap();
}

fn read(log: &Path) -> Vec<[u64; 3]> {
    let text = std::fs::read_to_string(log).expect("the process has written its log");
    let _ = std::fs::remove_file(log);
    let numbers = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    };
    text.lines().map(numbers).collect()
}
