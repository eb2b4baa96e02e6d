//! A single server that is killed, paused, unreachable or demoted.

use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use super::{Attempts, DOWN, FREQUENT, Traffic, recovers};
use crate::support::budget::budget;
use crate::support::proxy::Proxy;
use crate::support::server::Server;
use crate::support::store::store;

const TARGET: Duration = Duration::from_secs(1);

/// Asserts that soon after the recovery there are as many new connections as there were before the outage. On a busy machine
/// a reply may be late even then, and a connection that leaves its only call unanswered is replaced.
async fn assert_few_are_new(attempts: &Attempts<'_>, traffic: &[&Traffic]) {
    tokio::time::sleep(Duration::from_millis(500)).await;
    let new = attempts.made();
    let timeouts: u64 = traffic.iter().map(|traffic| traffic.timeouts_after(attempts.start)).sum();
    assert!(new <= 2 + timeouts, "{new} new connections after {timeouts} timeouts");
}

#[tokio::test]
async fn killed_server_decides_after_restart() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let traffic = Traffic::start(&proxy.url()).await;
    for _ in 0..budget(1, 3) {
        let attempts = Attempts::count(&proxy);
        server.kill();
        traffic.failure_after(attempts.start).await;
        tokio::time::sleep(DOWN).await;
        attempts.assert_few();
        server.restart().await;
        let attempts = Attempts::count(&proxy);
        recovers("killed server", TARGET, attempts.start, &traffic).await;
        assert_few_are_new(&attempts, &[&traffic]).await;
    }
}

#[tokio::test]
async fn refusing_host_is_found_when_it_listens() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let traffic = Traffic::start(&proxy.url()).await;
    let down = Instant::now();
    proxy.cut().await;
    traffic.failure_after(down).await;
    tokio::time::sleep(DOWN).await;
    let attempts = Attempts::count(&proxy);
    proxy.listen().await;
    recovers("refusing host", TARGET, Instant::now(), &traffic).await;
    assert_few_are_new(&attempts, &[&traffic]).await;
}

#[tokio::test]
async fn paused_server_decides_after_it_resumes() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let traffic = Traffic::start(&proxy.url()).await;
    let attempts = Attempts::count(&proxy);
    server.pause();
    traffic.failure_after(attempts.start).await;
    tokio::time::sleep(DOWN).await;
    attempts.assert_few();
    server.resume();
    let attempts = Attempts::count(&proxy);
    recovers("paused server", TARGET, attempts.start, &traffic).await;
    assert_few_are_new(&attempts, &[&traffic]).await;
}

#[tokio::test]
async fn demoted_master_decides_after_promotion() {
    let [server, other] = [Server::start(), Server::start()];
    let traffic = Traffic::start(&server.url()).await;
    for _ in 0..budget(1, 3) {
        let down = Instant::now();
        server.replicate(Some(&other.address())).await;
        traffic.failure_after(down).await;
        tokio::time::sleep(DOWN).await;
        server.replicate(None).await;
        recovers("demoted master", TARGET, Instant::now(), &traffic).await;
    }
}

/// Each runtime has its own connection, and they share what they know of the server.
#[test]
fn two_runtimes_recover() {
    let [main, other] = [runtime(), runtime()];
    main.block_on(async {
        let server = Server::start();
        let proxy = Proxy::to(server.address()).await;
        let store = store(&proxy.url());
        let here = Traffic::start_on(main.handle(), &store, FREQUENT).await;
        let before = proxy.accepted();
        let there = Traffic::start_on(other.handle(), &store, FREQUENT).await;
        assert!(proxy.accepted() > before, "the other runtime connects");
        let attempts = Attempts::count(&proxy);
        server.kill();
        here.failure_after(attempts.start).await;
        there.failure_after(attempts.start).await;
        tokio::time::sleep(DOWN).await;
        attempts.assert_few();
        server.restart().await;
        let attempts = Attempts::count(&proxy);
        recovers("killed server, first runtime", TARGET, attempts.start, &here).await;
        recovers("killed server, second runtime", TARGET, attempts.start, &there).await;
        assert_few_are_new(&attempts, &[&here, &there]).await;
    });
    other.shutdown_background();
}

/// A runtime may end while one of its calls tries to reach the server.
#[test]
fn runtimes_that_end_in_an_outage_leave_others_working() {
    let main = runtime();
    main.block_on(async {
        let server = Server::start();
        let store = store(&server.url());
        let traffic = Traffic::start_on(main.handle(), &store, FREQUENT).await;
        let others = [(); 3].map(|()| runtime());
        let mut other_traffic = Vec::new();
        for other in &others {
            let pause = Duration::from_millis(1);
            other_traffic.push(Traffic::start_on(other.handle(), &store, pause).await);
        }
        let down = Instant::now();
        server.pause();
        traffic.failure_after(down).await;
        for other in others {
            tokio::time::sleep(Duration::from_millis(300)).await;
            other.shutdown_background();
        }
        server.restart().await;
        recovers("killed server, other runtimes ended", TARGET, Instant::now(), &traffic).await;
    });
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}
