//! Four processes share the permits of two keys, while Redis forgets its scripts and closes connections. Their log is replayed:
//! leases cost no more than they say.

use std::time::{Duration, Instant};

use ratelimits::{Error, Registry, count_limit, rate_limit};
use tokio::task::JoinSet;

use crate::faults::unix_micros;
use crate::support::processes::{self, Child};
use crate::support::random::Random;
use crate::support::server::Server;

const PROCESSES: usize = 4;
const TASKS: u64 = 8;
const TIME: Duration = Duration::from_millis(2500);

const RATE: u64 = 1000;
const BURST: u64 = 100;
/// 20 permits refill in this time (µs).
const LEASE_TIME: u64 = 20_000;

const LIMIT: u64 = 200;
/// In µs.
const PERIOD: u64 = 200_000;

#[rate_limit(1000, 100, lease = 20, on_store_error = deny, registry = registry)]
async fn bucket(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[count_limit(200, "200ms", aligned, lease = 20, on_store_error = deny, registry = registry)]
async fn window(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

/// How often all processes change their pace together, in µs.
const CYCLE: u64 = 600_000;

/// When a call was made, and when it was admitted, by the clock that Redis has too. In µs.
#[derive(Clone, Copy, Debug)]
struct Admitted {
    start: u64,
    end: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_keep_the_promise_of_leases() {
    if let Some(child) = Child::from_env() {
        child.barrier("leases", PROCESSES).await;
        let registry = Registry::connect_lazy(&child.url).unwrap();
        let deadline = Instant::now() + TIME;
        let mut tasks = JoinSet::new();
        for task in 0..2 * TASKS {
            let (registry, random) =
                (registry.clone(), Random::new(u64::from(std::process::id()) << 32 | task));
            tasks.spawn(calls(registry, task % 2 == 0, random, deadline));
        }
        return child.report(tasks.join_all().await.concat());
    }
    let server = Server::start();
    let children = processes::run(&server, PROCESSES, module_path!(), "processes_keep_the_promise_of_leases");
    let faults = async {
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            server.command::<()>(&["SCRIPT", "FLUSH"]).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            server.kill_clients().await;
        }
    };
    let lines = tokio::select! { lines = children => lines.concat(), () = faults => unreachable!() };
    let of = |name| {
        let lines = lines.iter().filter_map(|line| line.strip_prefix(name));
        lines.map(|line| line.parse().unwrap()).collect::<Vec<Admitted>>()
    };
    let (buckets, windows) = (of("bucket "), of("window "));
    println!("{} calls of the bucket, {} of the window", buckets.len(), windows.len());
    // The log would be of no use otherwise.
    assert!(buckets.len() as u64 > 3 * BURST && windows.len() as u64 > 3 * LIMIT);
    check_bucket(buckets);
    check_windows(&windows);
}

async fn calls(registry: Registry, is_bucket: bool, mut random: Random, deadline: Instant) -> Vec<String> {
    let mut admitted = Vec::new();
    while Instant::now() < deadline {
        let start = unix_micros();
        let result = if is_bucket { bucket(&registry).await } else { window(&registry).await };
        let end = unix_micros();
        if result.is_ok() {
            let name = if is_bucket { "bucket" } else { "window" };
            admitted.push(format!("{name} {start} {end}"));
        }
        // A rush, in which permits run out; few calls, so that leases lapse; and a break, in which the bucket fills up.
        let pause = match end % CYCLE {
            0..50_000 => random.below(2000),
            50_000..350_000 => random.between(50_000, 150_000),
            late => CYCLE - late,
        };
        tokio::time::sleep(Duration::from_micros(pause)).await;
    }
    admitted
}

/// What was spent between two times was charged at most a lease time before.
fn check_bucket(mut calls: Vec<Admitted>) {
    calls.sort_by_key(|call| call.end);
    for from in calls.iter().map(|call| call.start) {
        let mut spent = 0;
        for call in calls.iter().filter(|call| call.start >= from) {
            spent += 1;
            let time = call.end - from + LEASE_TIME;
            let most = BURST + RATE * time / 1_000_000 + 1;
            assert!(spent <= most, "{spent} permits within {} µs, at most {most}", call.end - from);
        }
    }
}

/// What is charged to a window is spent before it ends.
fn check_windows(calls: &[Admitted]) {
    let mut counts = std::collections::BTreeMap::new();
    for call in calls.iter().filter(|call| call.start / PERIOD == call.end / PERIOD) {
        *counts.entry(call.start / PERIOD).or_insert(0) += 1;
    }
    for (window, count) in counts {
        assert!(count <= LIMIT, "{count} permits of window {window}");
    }
}

impl std::str::FromStr for Admitted {
    type Err = std::num::ParseIntError;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let (start, end) = line.split_once(' ').unwrap_or((line, ""));
        Ok(Admitted { start: start.parse()?, end: end.parse()? })
    }
}
