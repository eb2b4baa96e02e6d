//! A replica with an older state takes over: what runs is soon known again, and calls that end release no permits of others.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ratelimits::{ConcurrencyLimit, Decision, Limiter, OnStoreError, Registry};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{SOON, until_remain};
use crate::support::proxy::Proxy;
use crate::support::registries::namespace;
use crate::support::server::sentinels::Sentinels;
use crate::support::server::{Server, run};
use crate::support::until::until;

const MAX: u64 = 5;
const HOLD_TTL: Duration = Duration::from_secs(3);
/// How many calls of each process ask for permits at once.
const TASKS: usize = 4;

/// What runs when the master fails: three calls of one process, and one of another. The replica knows of three as well: two of these, and
/// one that has ended since.
struct Calls {
    one: Limiter,
    other: Limiter,
    held: Vec<Decision>,
    /// A process that only looks.
    watcher: Limiter,
}

impl Calls {
    /// Calls `cut` to stop the replication.
    async fn start(
        url: &str,
        namespace: &str,
        [master, replica]: [&Server; 2],
        cut: impl AsyncFnOnce(),
    ) -> Self {
        let [one, other, watcher] = [(); 3].map(|()| exports(url, namespace));
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(one.try_acquire("key").await.unwrap());
        }
        let ends = one.try_acquire("key").await.unwrap();
        master.replicated_to(replica).await;
        cut().await;
        drop(ends);
        until_remain(&watcher, "key", 3).await;
        held.push(one.try_acquire("key").await.unwrap());
        held.push(other.try_acquire("key").await.unwrap());
        assert_eq!(watcher.peek("key").await.unwrap().remaining, 1);
        Calls { one, other, held, watcher }
    }

    /// Checks what becomes of them once the replica has taken over, until they have ended.
    async fn check(mut self) {
        until("the replica decides", SOON, async || {
            self.watcher.peek("key").await.map(drop).map_err(|error| error.to_string())
        })
        .await;
        // A third of that time, and what the messages take.
        let free = MAX - self.held.len() as u64;
        timeout(HOLD_TTL, until_remain(&self.watcher, "key", free))
            .await
            .expect("what runs is known in time");

        let load = Load::start([&self.one, &self.other], self.held.len());
        // What the replica knew has expired by then.
        sleep(HOLD_TTL).await;
        while let Some(held) = self.held.pop() {
            load.running.fetch_sub(1, Ordering::SeqCst);
            drop(held);
            sleep(HOLD_TTL / 10).await;
        }
        load.end().await;
        until_remain(&self.watcher, "key", MAX).await;
        let all = self.watcher.try_acquire_n("key", MAX).await.unwrap();
        assert!(self.one.try_acquire("key").await.unwrap_err().is_limited());
        drop(all);
        until_remain(&self.other, "key", MAX).await;
    }
}

/// Short calls, which run beside others: never more than `MAX` at once.
struct Load {
    running: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    tasks: JoinSet<u64>,
}

impl Load {
    fn start(processes: [&Limiter; 2], others: usize) -> Self {
        let (running, ends) = (Arc::new(AtomicU64::new(others as u64)), Arc::new(AtomicBool::new(false)));
        let mut tasks = JoinSet::new();
        for limiter in processes.into_iter().cycle().take(2 * TASKS) {
            let (limiter, running, ends) = (limiter.clone(), Arc::clone(&running), Arc::clone(&ends));
            tasks.spawn(async move {
                let mut started = 0;
                while !ends.load(Ordering::SeqCst) {
                    let Ok(held) = limiter.acquire_timeout("key", HOLD_TTL).await else { continue };
                    let before = running.fetch_add(1, Ordering::SeqCst);
                    assert!(before < MAX, "{before} calls run already");
                    sleep(Duration::from_millis(5)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    drop(held);
                    started += 1;
                }
                started
            });
        }
        Load { running, ends, tasks }
    }

    async fn end(self) {
        self.ends.store(true, Ordering::SeqCst);
        let started = timeout(SOON, self.tasks.join_all()).await.expect("all calls end");
        assert!(started.iter().all(|started| *started > 0), "{started:?}");
    }
}

fn exports(url: &str, namespace: &str) -> Limiter {
    let builder = Registry::builder().namespace(namespace).deadline(HOLD_TTL / 4).hold_ttl(HOLD_TTL);
    let registry = builder.on_store_error(OnStoreError::Deny).connect_lazy(url).unwrap();
    registry.limiter("exports", ConcurrencyLimit::new(MAX)).unwrap()
}

/// Looks all the time whether each key of a namespace expires.
async fn all_expire(server: &Server, namespace: &str) -> Infallible {
    let mut connection = server.connect().await;
    loop {
        let keys: Vec<String> = run(&mut connection, &["KEYS", &format!("{namespace}:*")]).await;
        for key in keys {
            let ttl: i64 = run(&mut connection, &["PTTL", &key]).await;
            assert_ne!(ttl, -1, "{key} has no expiry");
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// A replica that is promoted at once, before what it knows has expired. Meanwhile so many calls end.
async fn takes_over_at_once(ending: usize) {
    let (master, namespace) = (Server::start(), namespace());
    let replica = Server::start_with(&["--replicaof", "127.0.0.1", &master.port().to_string()]);
    replica.follows().await;
    let proxy = Proxy::to(master.address()).await;
    let promote = async || replica.replicate(None).await;
    let mut calls = Calls::start(&proxy.url(), &namespace, [&master, &replica], promote).await;
    let known = exports(&replica.url(), &namespace).peek("key").await.unwrap();
    assert_eq!(known.remaining, MAX - 3, "the replica has the older state");
    master.kill();
    calls.held.drain(..ending);
    proxy.set_target(replica.address());
    proxy.reset().await;
    tokio::select! {
        _ = all_expire(&replica, &namespace) => {}
        () = calls.check() => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_are_back_after_a_promotion() {
    takes_over_at_once(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_end_during_a_promotion() {
    takes_over_at_once(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_are_back_after_a_sentinel_failover() {
    let (sentinels, namespace) = (Sentinels::start().await, namespace());
    let master = sentinels.master().await;
    let replica = sentinels.other(master);
    let cut = async || {
        replica.pause();
        // An open link would buffer what comes for the replica.
        let killed: i64 = master.command(&["CLIENT", "KILL", "TYPE", "replica"]).await;
        assert_eq!(killed, 1);
    };
    let mut calls = Calls::start(&sentinels.url(), &namespace, [master, replica], cut).await;
    master.kill();
    replica.resume();
    // Nothing answers when these end. The replica knows of more than are left, so that the check waits until the process has spoken.
    calls.held.drain(2..);
    sentinels.master_after(master).await;
    tokio::select! {
        _ = all_expire(replica, &namespace) => {}
        () = calls.check() => {}
    }
}
