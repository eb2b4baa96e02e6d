//! Many callers of one key, in four processes on one Redis under its own time, and in the threads of one process. What
//! each decision said is replayed through the model, in the order of the store's time: it says the same of every one,
//! so that none too many was admitted and none too few. `RATELIMITS_HAMMER_CALLS` makes it longer.

mod replay;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ratelimit_runtime::store::{Charge, Clock, Key, MemoryStore, RedisStore, Store};

use crate::support::numbers::number;
use crate::support::policies::{self, Pair};
use crate::support::random::Random;
use crate::support::registries::PATIENT;
use crate::support::server::Server;
use replay::{Record, replay};

const PROCESSES: u64 = 4;
const TASKS: u64 = 64;
const CALLS: u64 = 24;

/// What a process that hammers is told: the URL of the server, and where to write what it was told.
const URL: &str = "RATELIMITS_HAMMER_URL";
const LOG: &str = "RATELIMITS_HAMMER_LOG";

/// Each gives some 10,000 permits a second, in portions that run out many times.
fn policies() -> [(&'static str, Pair); 10] {
    let time = Duration::from_millis(20);
    [
        ("token-bucket", policies::token_bucket(10_000, Duration::from_secs(1), 200)),
        ("leaky-bucket", policies::draining_bucket(190, time)),
        ("borrowing", policies::borrowing(10_000, Duration::from_secs(1), Some(200))),
        ("queue", policies::queue(190, 10_000, Duration::from_secs(1))),
        ("warming-up", policies::warming_up(10_000, Duration::from_secs(1), time)),
        ("interval-refill", policies::interval_refill(200, time, 300)),
        ("fixed-window", policies::fixed_window(200, time, false)),
        ("aligned-window", policies::fixed_window(200, time, true)),
        ("log", policies::sliding_window(200, time, None)),
        ("counter", policies::sliding_window(200, time, Some(Duration::from_millis(2)))),
    ]
    .map(|(name, pair)| (name, pair.expect("the policy is valid")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_are_limited_as_one() {
    if let (Ok(url), Ok(log)) = (std::env::var(URL), std::env::var(LOG)) {
        return be_one_of_four(&url, &log).await;
    }
    let server = Server::start();
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let logs: Vec<PathBuf> =
        (0..PROCESSES).map(|i| dir.join(format!("hammer-{}-{i}.log", std::process::id()))).collect();
    // The same binary, of which each process runs this one test.
    let (_, module) = module_path!().split_once("::").expect("a module of the binary");
    let test = format!("{module}::four_processes_are_limited_as_one");
    let processes: Vec<_> = logs
        .iter()
        .map(|log| {
            let mut command = Command::new(std::env::current_exe().expect("this binary"));
            command.args(["--exact", &test, "--nocapture"]).env(URL, server.url()).env(LOG, log);
            command.stdout(Stdio::null());
            command.spawn().expect("this binary runs")
        })
        .collect();
    for mut process in processes {
        assert!(process.wait().expect("it was started").success());
    }

    let records: Vec<(String, Record)> = logs.iter().flat_map(|log| read(log)).collect();
    let store = Store::Redis(Arc::new(
        RedisStore::lazy(&server.url()).expect("the URL is right").with_deadline(PATIENT),
    ));
    let mut connection = server.connect().await;
    for (name, pair) in policies() {
        let mine: Vec<Record> =
            records.iter().filter(|(key, _)| key == name).map(|(_, record)| *record).collect();
        replay(name, pair.model, mine);
        // A key may go in the moment between: its last second is soon over.
        let (told, ttl) = loop {
            let (told, _) = ask(&store, name, pair, &[(1, 0)]).await.remove(0);
            let ttl: i128 =
                redis::cmd("PTTL").arg(name).query_async(&mut connection).await.expect("an answer");
            if ttl != -2 {
                break (told, ttl);
            }
        };
        assert!((0..=told.verdict.reset_after / 1000 + 1001).contains(&ttl), "{name}: {ttl} {told:?}");
    }
}

async fn be_one_of_four(url: &str, log: &str) {
    let store =
        Store::Redis(Arc::new(RedisStore::lazy(url).expect("the URL is right").with_deadline(PATIENT)));
    let mut connection = redis::Client::open(url)
        .expect("the URL is right")
        .get_multiplexed_async_connection()
        .await
        .expect("the server answers");
    let mut text = String::new();
    for (name, pair) in policies() {
        // All begin together.
        let barrier = format!("barrier {name}");
        let mut there: u64 =
            redis::cmd("INCR").arg(&barrier).query_async(&mut connection).await.expect("an answer");
        while there < PROCESSES {
            tokio::time::sleep(Duration::from_millis(1)).await;
            there = redis::cmd("GET").arg(&barrier).query_async(&mut connection).await.expect("an answer");
        }
        for record in hammer(&store, name, pair, std::process::id().into()).await {
            writeln!(text, "{name} {record}").expect("a string takes everything");
        }
    }
    std::fs::write(log, text).expect("the log can be written");
}

#[test]
fn the_threads_of_a_process_are_limited_as_one() {
    for (name, pair) in policies() {
        let store = Store::Memory(Arc::new(MemoryStore::new(1000, Clock::process())));
        let threads: Vec<_> = (0..PROCESSES)
            .map(|thread| {
                let store = store.clone();
                std::thread::spawn(move || {
                    let runtime =
                        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                    runtime.block_on(hammer(&store, name, pair, thread))
                })
            })
            .collect();
        replay(name, pair.model, threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect());
    }
}

/// What the tasks of one process or thread were told.
async fn hammer(store: &Store, name: &'static str, pair: Pair, seed: u64) -> Vec<Record> {
    let calls = number("RATELIMITS_HAMMER_CALLS").unwrap_or(CALLS);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let store = store.clone();
            let mut random = Random::new(seed << 32 | task);
            tokio::spawn(async move {
                let mut records = Vec::new();
                for _ in 0..calls {
                    // Now and then several decisions in one call, which share its time.
                    let decisions = random.pick(&[1, 1, 1, 2, 3]);
                    let mut asked = Vec::new();
                    for _ in 0..decisions {
                        let most = random.pick(&[0, 0, 0, 1000, 10_000]);
                        asked.push((random.between(1, 3), random.between(0, most)));
                    }
                    let mut wait = None;
                    for (record, retry_after) in ask(&store, name, pair, &asked).await {
                        wait = wait.or(retry_after);
                        records.push(record);
                    }
                    // Who is refused mostly waits, lest the others get nothing: how long matters to nobody.
                    if let Some(wait) = wait.filter(|_| random.percent(90)) {
                        let wait = Duration::from_micros(wait.min(20_000) + random.below(30_000));
                        tokio::time::sleep(wait).await;
                    }
                }
                records
            })
        })
        .collect();
    let mut records = Vec::new();
    for task in tasks {
        records.extend(task.await.expect("the task ends"));
    }
    records
}

/// One decision for each of the costs, in one call, each with how long it would wait, and how long a refused one should. Nobody
/// does wait: the slots are told, and checked.
async fn ask(store: &Store, name: &str, pair: Pair, asked: &[(u64, u64)]) -> Vec<(Record, Option<u64>)> {
    let charge = |&(cost, wait): &(u64, u64)| Charge {
        key: Key::raw(name),
        spec: pair.spec,
        cost,
        wait,
        shadow: false,
    };
    let charges: Vec<Charge> = asked.iter().map(charge).collect();
    let decisions: Vec<&[Charge]> = charges.iter().map(std::slice::from_ref).collect();
    let outcomes = store.decide(&decisions).await;
    let told = outcomes.into_iter().zip(asked).map(|(outcome, (cost, wait))| {
        let outcome = outcome.expect("the store answers");
        let verdict = &outcome.verdicts[0];
        let (cost, wait) = ((*cost).into(), (*wait).into());
        (Record { now: outcome.now.into(), cost, wait, verdict: verdict.into() }, verdict.retry_after)
    });
    told.collect()
}

fn read(log: &Path) -> Vec<(String, Record)> {
    let text = std::fs::read_to_string(log).expect("the process has written its log");
    let _ = std::fs::remove_file(log);
    let parse = |line: &str| {
        let (name, record) = line.split_once(' ').expect("a name and a record");
        (name.to_owned(), record.parse().expect("a record"))
    };
    text.lines().map(parse).collect()
}
