//! Four processes choose their leases of the same buckets. They call about as fast as permits refill, stop with the leases that they have
//! just taken, spend these and all that the buckets hold at once, and rest until the buckets are full. No interval of their log exceeds a
//! bucket by more than its slack.

use std::time::{Duration, Instant};

use ratelimits::{Error, Registry, rate_limit};
use tokio::task::JoinSet;

use crate::faults::unix_micros;
use crate::support::bound_checker::BoundChecker;
use crate::support::budget::budget;
use crate::support::policies;
use crate::support::processes::{self, Child};
use crate::support::random::Random;
use crate::support::server::Server;

const PROCESSES: usize = 4;
/// How many tasks of a process call each function.
const TASKS: u64 = 2;
const SECOND: Duration = Duration::from_secs(1);

#[rate_limit("1000/s", 5_000, slack = "0.1%", on_store_error = deny, registry = registry)]
async fn tenth_of_a_percent(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("1000/s", 1_000, slack = "1%", on_store_error = deny, registry = registry)]
async fn one_percent(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("1000/s", 500, slack = "5%", on_store_error = deny, registry = registry)]
async fn five_percent(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[derive(Clone, Copy, Debug)]
struct Slack {
    text: &'static str,
    burst: u64,
    /// How long leased permits live, in microseconds.
    life: u64,
}

const SLACKS: [Slack; 3] = [
    Slack { text: "0.1%", burst: 5_000, life: 5_000 },
    Slack { text: "1%", burst: 1_000, life: 10_000 },
    Slack { text: "5%", burst: 500, life: 25_000 },
];

/// Of each bucket.
const RATE: u64 = 1_000;

/// Calls of a process.
#[derive(Default)]
struct Calls {
    count: u64,
    /// When those that were admitted began and ended, in microseconds.
    admitted: Vec<[u64; 2]>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_exceed_buckets_by_no_more_than_their_slack() {
    if let Some(child) = Child::from_env() {
        let registry = Registry::connect_lazy(&child.url).unwrap();
        child.barrier("start", PROCESSES).await;
        return child.report(lines(&registry).await);
    }
    let server = Server::start();
    let before = server.script_calls().await;
    let test = "processes_exceed_buckets_by_no_more_than_their_slack";
    let logs = processes::run(&server, PROCESSES, module_path!(), test).await;
    let requests = server.script_calls().await - before;
    let (mut count, mut admitted) = (0, SLACKS.map(|_| Vec::new()));
    for line in logs.concat() {
        match line.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<usize>>()[..] {
            [calls] => count += calls,
            [function, start, end] => admitted[function].push([start as i128, end as i128]),
            _ => panic!("{line}"),
        }
    }
    println!("{count} calls, {requests} requests");
    for (slack, admitted) in SLACKS.into_iter().zip(admitted) {
        // In a short run, a busy machine may not empty the largest bucket.
        let least = budget(100, slack.burst);
        assert!(admitted.len() as u64 > least, "{slack:?}: only {} calls admitted", admitted.len());
        // A clock cuts its time to a whole microsecond.
        let check = |lease: u64| checker(slack, &admitted).with_lease(i128::from(lease) + 1).check();
        check(slack.life).unwrap_or_else(|broken| panic!("{}: {broken:.200}", slack.text));
        let reached = (0..10).find(|tenths| check(slack.life * tenths / 10).is_ok()).unwrap_or(10);
        println!("{}: {} calls admitted, {reached} tenths of the slack used", slack.text, admitted.len());
    }
}

fn checker(Slack { burst, .. }: Slack, admitted: &[[i128; 2]]) -> BoundChecker {
    let mut checker = BoundChecker::new(policies::token_bucket(RATE, SECOND, burst).unwrap().model);
    for (id, [start, end]) in admitted.iter().enumerate() {
        checker.add_between(id, 1, *start, *end);
    }
    checker
}

/// Calls the functions. Returns a line for how many calls there were, and one for each that was admitted: its function, start and end.
async fn lines(registry: &Registry) -> Vec<String> {
    let (start, mut tasks) = (Instant::now(), JoinSet::new());
    for task in 0..TASKS * SLACKS.len() as u64 {
        let (registry, function) = (registry.clone(), task as usize % SLACKS.len());
        let random = Random::new(u64::from(std::process::id())).run(task);
        tasks.spawn(async move { (function, calls(&registry, function, random, start).await) });
    }
    let all = tasks.join_all().await;
    let mut lines = vec![all.iter().map(|(_, calls)| calls.count).sum::<u64>().to_string()];
    for (function, Calls { admitted, .. }) in all {
        lines.extend(admitted.into_iter().map(|[start, end]| format!("{function} {start} {end}")));
    }
    lines
}

async fn calls(registry: &Registry, function: usize, mut random: Random, start: Instant) -> Calls {
    let (mut calls, slack) = (Calls::default(), SLACKS[function]);
    let time = || start.elapsed().as_micros() as u64;
    while time() < budget(2_500_000, 15_000_000) {
        let began = unix_micros();
        let result = match function {
            0 => tenth_of_a_percent(registry).await,
            1 => one_percent(registry).await,
            _ => five_percent(registry).await,
        };
        calls.count += 1;
        if result.is_ok() {
            calls.admitted.push([began, unix_micros()]);
        }
        match slack.pause(time(), result.is_ok(), &mut random) {
            0 => tokio::task::yield_now().await,
            pause => tokio::time::sleep(Duration::from_micros(pause)).await,
        }
    }
    calls
}

impl Slack {
    /// Returns how long a task waits before its next call, in microseconds.
    fn pause(self, time: u64, is_admitted: bool, random: &mut Random) -> u64 {
        let Slack { burst, life, .. } = self;
        let full = burst * 1_000_000 / RATE;
        let (stop, rush) = (5 * life, burst * 100 + 4 * life);
        let cycle = stop + life + rush + full;
        // All processes stop together, for up to a life.
        let end_of_stop = stop + Random::new(time / cycle).below(life);
        match time % cycle {
            at if at < stop => random.below(2 * PROCESSES as u64 * TASKS * 1_000_000 / RATE),
            at if at < end_of_stop => end_of_stop - at,
            at if at < end_of_stop + rush && is_admitted => 0,
            at if at < end_of_stop + rush => random.below(1_000),
            at => cycle - at,
        }
    }
}
