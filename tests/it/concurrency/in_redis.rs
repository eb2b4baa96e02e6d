//! In Redis, where each process says what its calls hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ratelimits::{
    ConcurrencyLimit, DecidedBy, Decision, FixedWindow, Limiter, OnStoreError, Registry, TokenBucket,
};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::support::registries::namespace;
use crate::support::server::Server;
use crate::support::until::until;

const DAY: Duration = Duration::from_secs(86_400);
/// For how long holds are believed where that matters.
const HOLD_TTL: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(5);

/// A registry as another process has it, which Redis answers in time on a busy machine too.
fn patient(server: &Server, namespace: &str) -> Registry {
    let builder = Registry::builder().namespace(namespace).deadline(SOON);
    builder.on_store_error(OnStoreError::Deny).connect_lazy(&server.url()).unwrap()
}

/// The same, whose holds are not believed for long.
fn process(server: &Server, namespace: &str) -> Registry {
    let builder = Registry::builder().namespace(namespace).deadline(HOLD_TTL / 4).hold_ttl(HOLD_TTL);
    builder.on_store_error(OnStoreError::Deny).connect_lazy(&server.url()).unwrap()
}

fn exports(registry: &Registry, max: u64) -> Limiter {
    registry.limiter("exports", ConcurrencyLimit::new(max)).unwrap()
}

async fn until_remaining(limiter: &Limiter, expected: u64) {
    until("the permits are as they should be", SOON, async || {
        let remaining = limiter.peek("key").await.map_err(|error| error.to_string())?.remaining;
        if remaining == expected { Ok(()) } else { Err(format!("{remaining} remain, not {expected}")) }
    })
    .await;
}

/// Whether the server has the only key of this namespace, and it expires.
async fn expires(server: &Server, namespace: &str) -> bool {
    let keys: Vec<String> = server.command(&["KEYS", &format!("{namespace}:*")]).await;
    let ttl: i64 = server.command(&["PTTL", &keys[0]]).await;
    keys.len() == 1 && ttl > 0
}

#[tokio::test]
async fn processes_share_permits_that_end_with_their_calls() {
    let (server, namespace) = (Server::shared(), namespace());
    let [one, other] = [patient(&server, &namespace), patient(&server, &namespace)];
    let [one, other] = [exports(&one, 3), exports(&other, 3)];
    let first = one.try_acquire_n("key", 2).await.unwrap();
    assert_eq!((first.source, first.limit, first.remaining), (DecidedBy::Redis, 3, 1));
    let second = other.try_acquire("key").await.unwrap();
    assert_eq!(second.remaining, 0);
    for limiter in [&one, &other] {
        let refused = limiter.try_acquire("key").await.unwrap_err();
        assert!(refused.is_limited() && !refused.is_unsatisfiable() && refused.retry_after().is_none());
        assert!(limiter.try_acquire_n("key", 4).await.unwrap_err().is_unsatisfiable());
    }
    assert!(expires(&server, &namespace).await);
    drop(first);
    until_remaining(&other, 2).await;
    second.refund().await.unwrap();
    until_remaining(&one, 3).await;
}

#[tokio::test]
async fn calls_hold_their_permits_for_as_long_as_they_run() {
    let (server, namespace) = (Server::shared(), namespace());
    let [one, other] = [process(&server, &namespace), process(&server, &namespace)];
    let [one, other] = [exports(&one, 1), exports(&other, 1)];
    let held = one.try_acquire("key").await.unwrap();
    let start = Instant::now();
    while start.elapsed() < 2 * HOLD_TTL {
        assert!(other.try_acquire("key").await.is_err(), "after {:?}", start.elapsed());
        sleep(HOLD_TTL / 20).await;
    }
    assert!(expires(&server, &namespace).await);
    drop(held);
    until_remaining(&other, 1).await;
}

#[tokio::test]
async fn holds_are_back_after_data_was_lost() {
    let (server, namespace) = (Server::start(), namespace());
    let [one, other] = [process(&server, &namespace), process(&server, &namespace)];
    let [one, other] = [exports(&one, 4), exports(&other, 4)];
    let held = [one.try_acquire_n("key", 3).await.unwrap(), one.try_acquire("key").await.unwrap()];
    for _ in 0..5 {
        let () = server.command(&["FLUSHALL"]).await;
        // A third of that time, and what the messages take.
        timeout(HOLD_TTL, until_remaining(&other, 0)).await.expect("the holds are back in time");
    }
    // Its own calls ask again as soon as they have reported what runs.
    let () = server.command(&["FLUSHALL"]).await;
    assert!(one.try_acquire("key").await.unwrap_err().is_limited());
    drop(held);
    until_remaining(&other, 4).await;
}

#[tokio::test]
async fn resets_forget_holds_until_their_process_speaks() {
    let (server, namespace) = (Server::shared(), namespace());
    let [one, other] = [process(&server, &namespace), process(&server, &namespace)];
    let [one, other] = [exports(&one, 1), exports(&other, 1)];
    let held = one.try_acquire("key").await.unwrap();
    assert!(other.reset("key").await.unwrap());
    until_remaining(&other, 0).await;
    drop(held);
    until_remaining(&other, 1).await;
    assert!(other.try_acquire("key").await.is_ok());
}

#[tokio::test]
async fn refusal_by_another_policy_holds_nothing_in_redis() {
    let (server, namespace) = (Server::shared(), namespace());
    let registry = patient(&server, &namespace);
    let (exports, daily) =
        (exports(&registry, 2), registry.limiter("daily", FixedWindow::new(1, DAY)).unwrap());
    let burst = registry.limiter("burst", TokenBucket::per_second(1).burst(9)).unwrap();
    let charges = || [exports.charge("key"), daily.charge("key"), burst.charge("key")];
    let first = registry.try_acquire_all(charges()).await.unwrap();
    for _ in 0..3 {
        assert!(registry.try_acquire_all(charges()).await.unwrap_err().retry_after().is_some());
        assert!(registry.try_acquire_all([daily.charge("key"), exports.charge("key")]).await.is_err());
    }
    assert_eq!(exports.peek("key").await.unwrap().remaining, 1);
    drop(first);
    until_remaining(&exports, 2).await;
}

#[tokio::test]
async fn calls_that_go_away_at_any_time_hold_nothing() {
    let (server, namespace) = (Server::shared(), namespace());
    let exports = exports(&patient(&server, &namespace), 1000);
    let mut calls = JoinSet::new();
    for call in 0..300 {
        let exports = exports.clone();
        calls.spawn(async move {
            let acquire = exports.try_acquire_n("key", 2);
            drop(timeout(Duration::from_micros(5 * call), acquire).await);
        });
    }
    while let Some(ended) = calls.join_next().await {
        ended.unwrap();
    }
    until_remaining(&exports, 1000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_for_those_of_other_processes() {
    const CALLS: u64 = 40;
    let (server, namespace) = (Server::shared(), namespace());
    let (running, started) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut calls = JoinSet::new();
    for _ in 0..2 {
        let exports = exports(&patient(&server, &namespace), 3);
        for _ in 0..CALLS {
            let (exports, running, started) = (exports.clone(), Arc::clone(&running), Arc::clone(&started));
            calls.spawn(async move {
                let decision: Decision = exports.acquire("key").await.unwrap();
                assert!(running.fetch_add(1, Ordering::SeqCst) < 3);
                sleep(Duration::from_millis(2)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                started.fetch_add(1, Ordering::SeqCst);
                drop(decision);
            });
        }
    }
    while let Some(ended) = timeout(Duration::from_secs(60), calls.join_next()).await.expect("all start") {
        ended.unwrap();
    }
    assert_eq!(started.load(Ordering::SeqCst), 2 * CALLS);
}

#[tokio::test]
async fn holds_survive_an_outage() {
    let (server, namespace) = (Server::start(), namespace());
    let [one, other] = [process(&server, &namespace), process(&server, &namespace)];
    let [one, other] = [exports(&one, 2), exports(&other, 2)];
    let _held = one.try_acquire("key").await.unwrap();
    let ends = one.try_acquire("key").await.unwrap();
    server.pause();
    sleep(HOLD_TTL / 2).await;
    assert!(one.try_acquire("key").await.is_err());
    drop(ends);
    server.resume();
    until_remaining(&other, 1).await;
    server.kill();
    server.restart().await;
    until_remaining(&other, 1).await;
    assert!(expires(&server, &namespace).await);
}

#[tokio::test]
async fn outage_leaves_each_process_its_share_of_what_runs() {
    let (server, namespace) = (Server::start(), namespace());
    let local =
        Registry::builder().namespace(&*namespace).deadline(HOLD_TTL / 4).hold_ttl(HOLD_TTL).instances(2);
    let local = exports(&local.connect_lazy(&server.url()).unwrap(), 5);
    let other = exports(&process(&server, &namespace), 5);
    let before = local.try_acquire("key").await.unwrap();
    assert_eq!(before.source, DecidedBy::Redis);
    server.pause();
    // Half of five, rounded up, of which one runs already.
    let during = local.try_acquire_n("key", 2).await.unwrap();
    assert_eq!((during.source, during.limit, during.remaining), (DecidedBy::Local, 3, 0));
    let refused = local.try_acquire("key").await.unwrap_err();
    assert!(refused.is_limited() && !refused.is_unsatisfiable(), "{refused}");
    drop(before);
    let again = local.try_acquire("key").await.unwrap();
    assert_eq!(again.source, DecidedBy::Local);
    server.resume();
    // What runs is reported, whoever has admitted it.
    until_remaining(&other, 2).await;
    drop((during, again));
    until_remaining(&other, 5).await;
    until("Redis decides again", SOON, async || {
        let decision = local.try_acquire("key").await.map_err(|error| error.to_string())?;
        if decision.source == DecidedBy::Redis { Ok(()) } else { Err("not yet".to_owned()) }
    })
    .await;
}

#[tokio::test]
async fn runtimes_release_in_any_order() {
    const THREADS: u64 = 4;
    let (server, namespace) = (Server::shared(), namespace());
    // What was lost would be back only after a third of this.
    let registry = Registry::builder().namespace(&*namespace).hold_ttl(Duration::from_secs(60));
    let registry = registry.deadline(SOON).on_store_error(OnStoreError::Deny);
    let exports = exports(&registry.connect_lazy(&server.url()).unwrap(), 2 * THREADS);
    let calls = |exports: Limiter| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut admitted = 0;
            for _ in 0..300 {
                // Another runtime may have a release on its way that this one has made.
                let pair = tokio::join!(exports.try_acquire("key"), exports.try_acquire("key"));
                admitted += u64::from(pair.0.is_ok()) + u64::from(pair.1.is_ok());
            }
            assert!(admitted > 300, "{admitted}");
        });
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let exports = exports.clone();
            std::thread::spawn(move || calls(exports))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    until_remaining(&exports, 2 * THREADS).await;
}

#[tokio::test]
async fn last_decision_releases_after_its_registry_is_gone() {
    let (server, namespace) = (Server::shared(), namespace());
    let other = exports(&patient(&server, &namespace), 1);
    let registry =
        Registry::builder().namespace(&*namespace).hold_ttl(Duration::from_secs(60)).deadline(SOON);
    let registry = registry.connect_lazy(&server.url()).unwrap();
    let held = exports(&registry, 1).try_acquire("key").await.unwrap();
    drop(registry);
    assert!(other.try_acquire("key").await.is_err());
    drop(held);
    until_remaining(&other, 1).await;
}

#[tokio::test]
async fn costs_without_bound_are_refused() {
    let (server, namespace) = (Server::shared(), namespace());
    let exports = exports(&patient(&server, &namespace), 2);
    let _held = exports.try_acquire("key").await.unwrap();
    for _ in 0..3 {
        assert!(exports.try_acquire_n("key", u64::MAX).await.unwrap_err().is_unsatisfiable());
    }
    assert_eq!(exports.peek("key").await.unwrap().remaining, 1);
}
