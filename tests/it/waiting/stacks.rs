//! Calls that wait for several buckets in Redis: all of them count when a call starts.

use futures_util::future::join_all;
use ratelimits::{Error, Registry, funnel_limit, rate_limit};

use super::CountingServer;

const USERS: u64 = 20;
const CALLS: u64 = 2000;

#[funnel_limit(capacity = 100, leak_rate = 100.0, queue, registry = registry)]
#[rate_limit(rate = "2/s", burst = 1, key = user, timeout = "1h", registry = registry)]
async fn queued(registry: &Registry, user: u64) -> Result<(), Error> {
    Ok(())
}

/// No call starts before its slot, so what a busy machine does to it makes the starts later than this, and never earlier.
#[tokio::test]
async fn queue_keeps_its_spacing_beside_slower_buckets() {
    let server = CountingServer::start().await;
    let registry = server.registry();
    queued(&registry, USERS).await.unwrap();
    let begin = server.time().await;
    let mut starts = join_all((0..2 * USERS).map(async |call| {
        queued(&registry, call % USERS).await.unwrap();
        server.time().await - begin
    }))
    .await;
    starts.sort_unstable();
    let millis = |count: u64| u128::from(count) * 1000;
    for (slot, start) in starts.iter().enumerate() {
        assert!(*start >= millis(10 * slot as u64), "{starts:?}");
    }
    // The second call of each user.
    for (slot, start) in starts[USERS as usize..].iter().enumerate() {
        assert!(*start >= millis(500 + 10 * slot as u64), "{starts:?}");
    }
}

#[funnel_limit(capacity = 5000, leak_rate = 1000.0, queue, registry = registry)]
#[rate_limit(rate = "1/s", burst = 1, key = user, timeout = "1h", registry = registry)]
async fn many(registry: &Registry, user: u64) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_calls_ask_seldom() {
    let server = CountingServer::start().await;
    // Each counts by itself who waits, as a process does.
    let registries: Vec<Registry> = (0..4).map(|_| server.registry()).collect();
    many(&registries[0], CALLS).await.unwrap();
    let before = server.calls().await;
    let calls = (0..CALLS).map(|call| {
        let registry = registries[(call % 4) as usize].clone();
        tokio::spawn(async move { many(&registry, call / 2).await })
    });
    for call in join_all(calls).await {
        call.unwrap().unwrap();
    }
    let commands = server.calls().await - before;
    println!("{commands} commands for {CALLS} calls");
    assert!(2 * commands <= 5 * CALLS, "{commands} commands for {CALLS} calls");
}
