//! Those who wait on Redis are served in the order in which their reservations reached it, each at a slot of its own: tasks of
//! one process, and two processes. Redis and the tests read one system clock.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use ratelimits::{Limiter, Rate, Registry, TokenBucket};

use crate::support::registries::on;
use crate::support::server::Server;

const CALLS: usize = 100;
const INTERVAL: u64 = 10_000;

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

/// Connects, so that what is asked first is sent first, and leaves a debt, so that all who come wait in one line.
async fn begin(limiter: &Limiter) {
    let _ = limiter.try_acquire((), 50).await;
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

/// When the bucket will be full, which is two intervals after the last slot.
async fn full(server: &Server) -> u64 {
    let mut connection = server.connect().await;
    let keys: Vec<String> =
        redis::cmd("KEYS").arg("*:order:*").query_async(&mut connection).await.expect("an answer");
    let held: String = redis::cmd("GET").arg(&keys[0]).query_async(&mut connection).await.expect("an answer");
    held.split(' ').next().unwrap().parse().unwrap()
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
    begin(&limiter).await;
    let calls = call(&limiter, CALLS).await;
    for (call, slot) in calls.iter().rev().zip(slots(full(&server).await)) {
        assert!(call.fits(slot), "{slot}: {call:?}");
    }
}

#[tokio::test]
async fn refunds_of_those_who_were_served_give_no_slot_to_two() {
    let server = Server::start();
    let limiter = limiter(&on(&server));
    begin(&limiter).await;
    let calls: Vec<_> = (0..CALLS / 2)
        .map(|i| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let asked = now();
                let decision = limiter.acquire((), 1).await.unwrap();
                let call = Call { asked, waited: decision.waited.as_micros() as u64, started: now() };
                // All but the last two, on whom nobody stands.
                if i + 2 < CALLS / 2 {
                    decision.refund().await.unwrap();
                }
                call
            })
        })
        .collect();
    let mut done = Vec::new();
    for call in calls {
        done.push(call.await.unwrap());
    }
    assert_each_has_its_slot(done, full(&server).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_on_several_threads_have_each_a_slot() {
    let server = Server::start();
    let limiter = limiter(&on(&server));
    begin(&limiter).await;
    let calls = call(&limiter, CALLS).await;
    assert_each_has_its_slot(calls, full(&server).await);
}

#[tokio::test]
async fn two_processes_are_served_as_one() {
    if let (Ok(url), Ok(log)) = (std::env::var(URL), std::env::var(LOG)) {
        let registry = Registry::connect(&url).await.unwrap();
        // Both begin together.
        let mut connection =
            redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap();
        let mut there: u64 = redis::cmd("INCR").arg("barrier").query_async(&mut connection).await.unwrap();
        while there < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            there = redis::cmd("GET").arg("barrier").query_async(&mut connection).await.unwrap();
        }
        let limiter = limiter(&registry);
        begin(&limiter).await;
        let calls = call(&limiter, CALLS / 2).await;
        let line = |call: &Call| format!("{} {} {}\n", call.asked, call.waited, call.started);
        std::fs::write(log, calls.iter().map(line).collect::<String>()).unwrap();
        return;
    }
    let server = Server::start();
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let logs = [1, 2].map(|i| dir.join(format!("order-{}-{i}.log", std::process::id())));
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::two_processes_are_served_as_one");
    let processes = logs.each_ref().map(|log| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &test, "--nocapture"]).env(URL, server.url()).env(LOG, log);
        command.stdout(Stdio::null()).spawn().unwrap()
    });
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    let [one, other] = logs.each_ref().map(|log| read(log));
    // Each in its own order.
    for calls in [&one, &other] {
        assert!(calls.is_sorted_by_key(|call| call.asked), "{calls:?}");
    }
    assert_eq!((one.len(), other.len()), (CALLS / 2, CALLS / 2));
    let calls: Vec<Call> = one.into_iter().chain(other).collect();
    assert_each_has_its_slot(calls, full(&server).await);
}

fn read(log: &Path) -> Vec<Call> {
    let text = std::fs::read_to_string(log).expect("the process has written its log");
    let _ = std::fs::remove_file(log);
    let call = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        Call { asked: numbers[0], waited: numbers[1], started: numbers[2] }
    };
    text.lines().map(call).collect()
}
