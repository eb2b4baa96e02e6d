//! Connections that are dead, and of which nobody tells.

use std::time::{Duration, Instant};

use super::{Calls, OFTEN, recovers, store};
use crate::support::proxy::{Fault, Proxy};
use crate::support::server::Server;

const TARGET: Duration = Duration::from_secs(5);
/// Where calls come often.
const BUSY: Duration = Duration::from_secs(1);

fn assert_soon(took: Duration, calls: &Calls) {
    let stalled = calls.stalled();
    assert!(took < 2 * BUSY + stalled, "{took:?}, of which the machine stalled {stalled:?}");
}

#[tokio::test]
async fn a_connection_that_is_dead_is_left_once_the_way_is_open_again() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let calls = Calls::begin(&store(&proxy.url()), "a", OFTEN).await;
    for down in [0, 1, 3].map(Duration::from_secs) {
        let (began, before) = (Instant::now(), proxy.accepted());
        proxy.set(Fault::BlackHole);
        calls.fail_after(began).await;
        tokio::time::sleep(down).await;
        let attempts = proxy.accepted() - before;
        assert!(attempts <= 10 * (began.elapsed().as_secs() + 1), "{attempts} attempts in {down:?}");
        proxy.set(Fault::Pass);
        let took = recovers("a half-open connection", TARGET, Instant::now(), &calls).await;
        assert_soon(took, &calls);
    }
}

#[tokio::test]
async fn a_connection_that_died_while_it_was_hardly_used_is_left() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let calls = Calls::begin(&store(&proxy.url()), "a", Duration::from_secs(1)).await;
    for _ in 0..2 {
        // The way is open at once: only what was there is dead.
        proxy.set(Fault::BlackHole);
        proxy.set(Fault::Pass);
        let lifted = Instant::now();
        calls.fail_after(lifted).await;
        recovers("a half-open connection, a call a second", TARGET, lifted, &calls).await;
    }
}

#[tokio::test]
async fn replies_that_are_lost_for_a_while_are_no_lasting_harm() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let calls = Calls::begin(&store(&proxy.url()), "a", OFTEN).await;
    let began = Instant::now();
    proxy.set(Fault::SwallowReplies);
    calls.fail_after(began).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.set(Fault::Pass);
    let took = recovers("lost replies", TARGET, Instant::now(), &calls).await;
    assert_soon(took, &calls);
}
