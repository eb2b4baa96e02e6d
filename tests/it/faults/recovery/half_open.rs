//! Connections that are dead without being closed.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::{Fault, Fixture, Traffic, recovers};
use crate::support::budget::budget;
use crate::support::proxy::{self, Proxy};
use crate::support::server::Server;
use crate::support::store::store;

const TARGET: Duration = Duration::from_secs(5);

async fn pass(fixture: &Fixture) {
    fixture.proxy.set(proxy::Fault::Pass);
}

#[tokio::test]
async fn dead_connection_is_replaced() {
    let fixture = Fixture::start().await;
    let black_hole = async |fixture: &Fixture| fixture.proxy.set(proxy::Fault::BlackHole);
    let seconds = [0, 1, 3];
    for seconds in &seconds[..budget(2, 3) as usize] {
        let fault = Fault { down: Duration::from_secs(*seconds), ..FREQUENTLY_USED };
        fixture.recovers_from(fault, black_hole, pass).await;
    }
}

/// Frequent calls notice sooner.
const FREQUENTLY_USED: Fault = Fault::new("half-open connection", Duration::from_millis(400));

#[tokio::test]
async fn rarely_used_dead_connection_is_replaced() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let (runtime, pause) = (Handle::current(), Duration::from_secs(1));
    let traffic = Traffic::start_on(&runtime, &store(&proxy.url()), pause).await;
    for _ in 0..budget(1, 2) {
        // New connections work at once.
        proxy.set(proxy::Fault::BlackHole);
        proxy.set(proxy::Fault::Pass);
        let lifted = Instant::now();
        traffic.failure_after(lifted).await;
        recovers("half-open connection, one call per second", TARGET, lifted, &traffic).await;
    }
}

#[tokio::test]
async fn calls_recover_from_lost_replies() {
    let fixture = Fixture::start().await;
    let swallow = async |fixture: &Fixture| fixture.proxy.set(proxy::Fault::SwallowReplies);
    let fault = Fault { name: "lost replies", ..FREQUENTLY_USED };
    fixture.recovers_from(fault, swallow, pass).await;
}
