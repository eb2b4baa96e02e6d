//! A single server that is killed, paused, unreachable or demoted.

use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use super::{Attempts, DOWN, FREQUENT, Fault, Fixture, Traffic, recovers};
use crate::support::budget::budget;
use crate::support::proxy::Proxy;
use crate::support::server::Server;
use crate::support::store::store;

const TARGET: Duration = Duration::from_secs(1);

#[tokio::test]
async fn killed_server_decides_after_restart() {
    let fixture = Fixture::start().await;
    for _ in 0..budget(1, 3) {
        let kill = async |fixture: &Fixture| fixture.server.kill();
        let restart = async |fixture: &Fixture| fixture.server.restart().await;
        let connections = fixture.recovers_from(Fault::new("killed server", TARGET), kill, restart).await;
        connections.assert_settled(&[&fixture.traffic]).await;
    }
}

#[tokio::test]
async fn refusing_host_is_found_when_it_listens() {
    let fixture = Fixture::start().await;
    let cut = async |fixture: &Fixture| fixture.proxy.cut().await;
    let listen = async |fixture: &Fixture| fixture.proxy.listen().await;
    let connections = fixture.recovers_from(Fault::new("refusing host", TARGET), cut, listen).await;
    connections.assert_settled(&[&fixture.traffic]).await;
}

#[tokio::test]
async fn paused_server_decides_after_it_resumes() {
    let fixture = Fixture::start().await;
    let pause = async |fixture: &Fixture| fixture.server.pause();
    let resume = async |fixture: &Fixture| fixture.server.resume();
    let connections = fixture.recovers_from(Fault::new("paused server", TARGET), pause, resume).await;
    connections.assert_settled(&[&fixture.traffic]).await;
}

#[tokio::test]
async fn demoted_master_decides_after_promotion() {
    let (fixture, other) = (Fixture::start().await, Server::start());
    let address = other.address();
    for _ in 0..budget(1, 3) {
        let demote = async |fixture: &Fixture| fixture.server.replicate(Some(&address)).await;
        let promote = async |fixture: &Fixture| fixture.server.replicate(None).await;
        fixture.recovers_from(Fault::new("demoted master", TARGET), demote, promote).await;
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
        attempts.assert_settled(&[&here, &there]).await;
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
