//! Many concurrent calls with one key: from four processes, from threads, and on a clock that steps back. The model replays
//! the decisions in the order of the store and must agree with each, so that neither too many nor too few were admitted.

mod replay;
mod stacks;

use std::sync::Arc;
use std::time::Duration;

use ratelimit_runtime::store::{Charge, Clock, Key, MemoryStore, RedisStore, Store};

use crate::support::budget::budget;
use crate::support::policies::{self, Pair};
use crate::support::processes::{self, Child};
use crate::support::random::Random;
use crate::support::registries::LONG_DEADLINE;
use crate::support::server::Server;
use crate::support::test_store::MAX_STEP_BACK;
use replay::{Record, StoreClock, check_counts, replay, replay_threads};

const PROCESSES: u64 = 4;
const TASKS: u64 = 128;

/// Returns policies of some 5,000 permits per second or more that run out many times.
fn policies() -> [(&'static str, Pair); 10] {
    let (time, second) = (Duration::from_millis(20), Duration::from_secs(1));
    [
        ("token-bucket", policies::token_bucket(5_000, second, 100)),
        ("leaky-bucket", policies::draining_bucket(95, time)),
        ("borrowing", policies::borrowing(5_000, second, Some(100))),
        ("queue", policies::queue(95, 5_000, second)),
        ("warming-up", policies::warming_up(10_000, second, time)),
        ("interval-refill", policies::interval_refill(100, time, 150)),
        ("fixed-window", policies::fixed_window(100, time, false)),
        ("aligned-window", policies::fixed_window(100, time, true)),
        ("log", policies::sliding_window(100, time, None)),
        ("counter", policies::sliding_window(100, time, Some(Duration::from_millis(2)))),
    ]
    .map(|(name, pair)| (name, pair.expect("the policy is valid")))
}

fn redis_store(url: &str) -> RedisStore {
    RedisStore::lazy(url).expect("the URL is valid").with_deadline(LONG_DEADLINE)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_share_limits_exactly() {
    if let Some(child) = Child::from_env() {
        let (mut lines, process) = (Vec::new(), std::process::id());
        // Half of the processes send each decision alone.
        let store = redis_store(&child.url);
        let store = if child.barrier("start", 0).await % 2 == 0 { store } else { store.without_batches() };
        let store = Store::Redis(Arc::new(store));
        for (name, pair) in policies() {
            child.barrier(name, PROCESSES as usize).await;
            let records = decide_concurrently(&store, name, pair, process.into(), TASKS / PROCESSES).await;
            lines.extend(records.iter().map(|record| format!("{name} {record}")));
        }
        return child.report(lines);
    }
    let server = Server::start();
    let lines = processes::run(&server, PROCESSES as usize, module_path!(), "processes_share_limits_exactly")
        .await
        .concat();
    let store = Store::Redis(Arc::new(redis_store(&server.url())));
    let mut connection = server.connect().await;
    for (name, pair) in policies() {
        let lines = lines.iter().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let records = lines.map(|line| line.parse().expect("a record"));
        replay(name, pair.model, records.collect(), StoreClock::new(MAX_STEP_BACK.into()));
        // The key may expire between the two commands.
        let (reset_after, ttl) = loop {
            let peek = decide(&store, name, pair, &[Request { cost: 1, max_wait: 0 }]).await.remove(0);
            let ttl: i128 =
                redis::cmd("PTTL").arg(name).query_async(&mut connection).await.expect("the server responds");
            if ttl != -2 {
                break (peek.verdict.reset_after, ttl);
            }
        };
        assert!((0..=reset_after / 1000 + 1001).contains(&ttl), "{name}: {ttl} ms, {reset_after} µs");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_exact_on_a_clock_that_steps_back() {
    // As the step is even, a time tells by itself whether it has stepped back.
    const STEP: i128 = 50;
    let now = format!("time[1] * 1000000 + time[2] - {STEP} * (time[2] % 2)");
    let clock =
        StoreClock { made_at: |it| it.now + STEP * (it.now % 2), ..StoreClock::new(MAX_STEP_BACK.into()) };
    for change in [|store| store, RedisStore::without_batches, RedisStore::without_first_pass] {
        let server = Server::start();
        let store = redis_store(&server.url()).with_time(&now, "redis.call('EXPIREAT', key, second)");
        let store = Store::Redis(Arc::new(change(store)));
        for (name, pair) in policies() {
            replay(name, pair.model, decide_concurrently(&store, name, pair, 1, TASKS).await, clock);
        }
    }
}

/// Stores that decide plain charges without a lock, and never so.
fn memory_stores(clock: impl Fn() -> Clock) -> [MemoryStore; 2] {
    let store = || MemoryStore::new(1000, clock());
    [store(), store().locked()]
}

#[test]
fn threads_share_limits_exactly() {
    for (name, pair) in policies() {
        let clocks = [StoreClock::lock_free(pair.model), StoreClock::new(0)];
        for (store, clock) in memory_stores(Clock::process).into_iter().zip(clocks) {
            let store = Store::Memory(Arc::new(store));
            let threads: Vec<_> = (0..PROCESSES)
                .map(|thread| {
                    let store = store.clone();
                    std::thread::spawn(move || {
                        let runtime =
                            tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                        runtime.block_on(decide_concurrently(&store, name, pair, thread, TASKS / PROCESSES))
                    })
                })
                .collect();
            let records: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
            check_counts(name, pair.model, &records);
            replay_threads(name, pair.model, records, clock);
        }
    }
}

struct Request {
    cost: u64,
    max_wait: u64,
}

async fn decide_concurrently(
    store: &Store,
    name: &'static str,
    pair: Pair,
    seed: u64,
    tasks: u64,
) -> Vec<Record> {
    let calls = budget(6, 48);
    let tasks: Vec<_> = (0..tasks)
        .map(|task| {
            let store = store.clone();
            let mut random = Random::new(seed << 32 | task);
            tokio::spawn(async move {
                let mut records = Vec::new();
                for _ in 0..calls {
                    // Decisions in one call share its time.
                    let decisions = random.pick(&[1, 1, 1, 2, 3]);
                    let mut requests = Vec::new();
                    for _ in 0..decisions {
                        let longest = random.pick(&[0, 0, 0, 1000, 10_000]);
                        let (cost, max_wait) = (random.between(1, 3), random.between(0, longest));
                        requests.push(Request { cost, max_wait });
                    }
                    let made = decide(&store, name, pair, &requests).await;
                    let retry_after = made.iter().find_map(|record| record.verdict.retry_after);
                    records.extend(made);
                    // Most refused callers back off, so that others are admitted.
                    if let Some(retry_after) = retry_after.filter(|_| random.percent(90)) {
                        let pause = retry_after.min(20_000) as u64 + random.below(30_000);
                        tokio::time::sleep(Duration::from_micros(pause)).await;
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

/// Makes one decision for each request, in one call of the store. Does not wait for slots.
async fn decide(store: &Store, name: &str, pair: Pair, requests: &[Request]) -> Vec<Record> {
    let charge = |&Request { cost, max_wait }: &Request| Charge {
        key: Key::raw(name),
        spec: pair.spec,
        cost,
        wait: max_wait,
        shadow: false,
    };
    let charges: Vec<Charge> = requests.iter().map(charge).collect();
    let lists: Vec<&[Charge]> = charges.iter().map(std::slice::from_ref).collect();
    let outcomes = match &*lists {
        // Shares its call with others.
        [list] => vec![store.decide(list).await],
        lists => store.decide_many(lists).await,
    };
    let records = outcomes.into_iter().zip(requests).map(|(outcome, request)| {
        let outcome = outcome.expect("the store responds");
        let (cost, max_wait) = (request.cost.into(), request.max_wait.into());
        Record { now: outcome.now.into(), cost, max_wait, verdict: (&outcome.verdicts[0]).into() }
    });
    records.collect()
}
