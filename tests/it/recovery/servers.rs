//! A server that is killed, paused, or made a replica.

use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use super::{Calls, OFTEN, recovers, store};
use crate::support::proxy::Proxy;
use crate::support::server::Server;

const TARGET: Duration = Duration::from_secs(1);
const DOWN: Duration = Duration::from_secs(2);

/// A server that is down is tried so often a second, and once more as the second begins.
fn assert_left_in_peace(attempts: u64, time: Duration) {
    let most = 10 * (time.as_secs() + 1);
    assert!(attempts <= most, "{attempts} attempts to connect in {time:?}");
}

/// Of the connections soon after the recovery: there were so many before it. On a busy machine an answer may come too late
/// even then, and a connection that does not answer the one call that asks is taken for dead.
async fn assert_few_are_new(proxy: &Proxy, before: u64, up: Instant, calls: &[&Calls]) {
    tokio::time::sleep(Duration::from_millis(500)).await;
    let new = proxy.accepted() - before;
    let late: u64 = calls.iter().map(|calls| calls.late_after(up)).sum();
    assert!(new <= 2 + late, "{new} new connections, and {late} late answers");
}

#[tokio::test]
async fn a_server_that_is_killed_and_comes_back_decides_again() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let calls = Calls::begin(&store(&proxy.url()), "a", OFTEN).await;
    for _ in 0..3 {
        let (down, before) = (Instant::now(), proxy.accepted());
        server.kill();
        calls.fail_after(down).await;
        tokio::time::sleep(DOWN).await;
        assert_left_in_peace(proxy.accepted() - before, down.elapsed());
        server.restart().await;
        let (up, before) = (Instant::now(), proxy.accepted());
        recovers("a killed server", TARGET, up, &calls).await;
        assert_few_are_new(&proxy, before, up, &[&calls]).await;
    }
}

#[tokio::test]
async fn a_server_whose_host_refuses_is_found_when_it_listens_again() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let calls = Calls::begin(&store(&proxy.url()), "a", OFTEN).await;
    let down = Instant::now();
    proxy.refuse().await;
    proxy.reset().await;
    calls.fail_after(down).await;
    tokio::time::sleep(DOWN).await;
    let before = proxy.accepted();
    proxy.listen().await;
    let up = Instant::now();
    recovers("a host that refused", TARGET, up, &calls).await;
    assert_few_are_new(&proxy, before, up, &[&calls]).await;
}

#[tokio::test]
async fn a_server_that_is_paused_decides_again_when_it_goes_on() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let calls = Calls::begin(&store(&proxy.url()), "a", OFTEN).await;
    let (down, before) = (Instant::now(), proxy.accepted());
    server.pause();
    calls.fail_after(down).await;
    tokio::time::sleep(DOWN).await;
    assert_left_in_peace(proxy.accepted() - before, down.elapsed());
    let before = proxy.accepted();
    server.resume();
    let up = Instant::now();
    recovers("a paused server", TARGET, up, &calls).await;
    assert_few_are_new(&proxy, before, up, &[&calls]).await;
}

#[tokio::test]
async fn a_master_that_was_a_replica_for_a_while_decides_again() {
    let [server, other] = [Server::start(), Server::start()];
    let calls = Calls::begin(&store(&server.url()), "a", OFTEN).await;
    let port = other.port().to_string();
    for _ in 0..3 {
        let down = Instant::now();
        follow(&server, "127.0.0.1", &port).await;
        calls.fail_after(down).await;
        tokio::time::sleep(DOWN / 2).await;
        follow(&server, "NO", "ONE").await;
        recovers("a demoted master", TARGET, Instant::now(), &calls).await;
    }
}

async fn follow(server: &Server, host: &str, port: &str) {
    let mut command = redis::cmd("REPLICAOF");
    let asked: Result<(), _> = command.arg(&[host, port]).query_async(&mut server.connect().await).await;
    asked.unwrap();
}

/// Each has a connection of its own, and what they know of the server is one.
#[test]
fn two_runtimes_at_once_come_back() {
    let [main, other] = [runtime(), runtime()];
    main.block_on(async {
        let server = Server::start();
        let proxy = Proxy::to(server.address()).await;
        let store = store(&proxy.url());
        let here = Calls::begin(&store, "a", OFTEN).await;
        let ours = proxy.accepted();
        let there = Calls::begin_on(other.handle(), &store, "a", OFTEN).await;
        assert!(proxy.accepted() > ours, "the other one has none of its own");
        let (down, before) = (Instant::now(), proxy.accepted());
        server.kill();
        here.fail_after(down).await;
        there.fail_after(down).await;
        tokio::time::sleep(DOWN).await;
        assert_left_in_peace(proxy.accepted() - before, down.elapsed());
        server.restart().await;
        let (up, before) = (Instant::now(), proxy.accepted());
        recovers("a killed server, one of two runtimes", TARGET, up, &here).await;
        recovers("a killed server, the other of two runtimes", TARGET, up, &there).await;
        assert_few_are_new(&proxy, before, up, &[&here, &there]).await;
    });
    other.shutdown_background();
}

/// The runtime in which a call tries to reach the server may end meanwhile.
#[test]
fn a_runtime_that_ends_during_an_outage_leaves_nobody_behind() {
    let main = runtime();
    main.block_on(async {
        let server = Server::start();
        let store = store(&server.url());
        let calls = Calls::begin(&store, "a", OFTEN).await;
        let others = [(); 3].map(|()| runtime());
        let mut theirs = Vec::new();
        for other in &others {
            theirs.push(Calls::begin_on(other.handle(), &store, "a", Duration::from_millis(1)).await);
        }
        let down = Instant::now();
        server.pause();
        calls.fail_after(down).await;
        for other in others {
            tokio::time::sleep(Duration::from_millis(300)).await;
            other.shutdown_background();
        }
        server.restart().await;
        recovers("a killed server, after other runtimes have ended", TARGET, Instant::now(), &calls).await;
    });
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}
