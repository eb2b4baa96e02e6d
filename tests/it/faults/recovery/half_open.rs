//! Connections that are dead without being closed.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::{Attempts, DOWN, Traffic, recovers};
use crate::support::budget::budget;
use crate::support::proxy::{Fault, Proxy};
use crate::support::server::Server;
use crate::support::store::store;

const TARGET: Duration = Duration::from_secs(5);
/// With frequent calls.
const FREQUENT_TARGET: Duration = Duration::from_secs(1);

#[tokio::test]
async fn dead_connection_is_replaced() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let traffic = Traffic::start(&proxy.url()).await;
    let seconds = [0, 1, 3];
    for seconds in &seconds[..budget(2, 3) as usize] {
        let (start, attempts) = (Instant::now(), Attempts::count(&proxy));
        proxy.set(Fault::BlackHole);
        traffic.failure_after(start).await;
        tokio::time::sleep(Duration::from_secs(*seconds)).await;
        attempts.assert_few();
        proxy.set(Fault::Pass);
        let took = recovers("half-open connection", TARGET, Instant::now(), &traffic).await;
        traffic.stalls.assert_within(2 * FREQUENT_TARGET, took, "recovery");
    }
}

#[tokio::test]
async fn rarely_used_dead_connection_is_replaced() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let (runtime, pause) = (Handle::current(), Duration::from_secs(1));
    let traffic = Traffic::start_on(&runtime, &store(&proxy.url()), pause).await;
    for _ in 0..budget(1, 2) {
        // New connections work at once.
        proxy.set(Fault::BlackHole);
        proxy.set(Fault::Pass);
        let lifted = Instant::now();
        traffic.failure_after(lifted).await;
        recovers("half-open connection, one call per second", TARGET, lifted, &traffic).await;
    }
}

#[tokio::test]
async fn calls_recover_from_lost_replies() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let traffic = Traffic::start(&proxy.url()).await;
    let start = Instant::now();
    proxy.set(Fault::SwallowReplies);
    traffic.failure_after(start).await;
    tokio::time::sleep(DOWN).await;
    proxy.set(Fault::Pass);
    let took = recovers("lost replies", TARGET, Instant::now(), &traffic).await;
    traffic.stalls.assert_within(2 * FREQUENT_TARGET, took, "recovery");
}
