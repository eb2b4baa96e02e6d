//! A server that loses data, which costs at most one capacity per key and loss.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratelimit_runtime::store::RedisStore;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, PushInfo, PushKind};

use super::fixture::{CountingClient, Fixture};
use crate::faults::load::{Load, Shape};
use crate::faults::{RECOVERS_WITHIN, unix_micros};
use crate::support::budget::budget;
use crate::support::random::Random;
use crate::support::server::{Server, run};
use crate::support::store::{charge, decide, store};
use crate::support::until::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_kill_costs_one_capacity() {
    let server = Server::start();
    // An empty key fills up again only by a loss.
    let shape = Shape { tasks: 6, keys: 5, full_after: Duration::from_secs(60) };
    let load = Load::start(store(&server.url()), &Random::seeded(), shape);
    let mut losses = Vec::new();
    for _ in 0..budget(3, 20) {
        tokio::time::sleep(Duration::from_millis(400)).await;
        server.kill();
        losses.push(unix_micros());
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.restart().await;
        load.recovers().await;
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    load.finish(&losses, |_| true).await;
}

/// Counts how often each key is evicted. The connection must stay open.
async fn count_evictions(server: &Server) -> (MultiplexedConnection, Arc<Mutex<HashMap<Vec<u8>, u64>>>) {
    let evictions = Arc::new(Mutex::new(HashMap::<Vec<u8>, u64>::new()));
    let counted = Arc::clone(&evictions);
    let config = AsyncConnectionConfig::new().set_push_sender(move |push: PushInfo| {
        if let (PushKind::Message, Some(redis::Value::BulkString(key))) = (push.kind, push.data.last()) {
            *counted.lock().expect("nothing panics").entry(key.clone()).or_default() += 1;
        }
        Ok::<(), std::convert::Infallible>(())
    });
    let client = Client::open(format!("{}?protocol=resp3", server.url())).expect("the URL is valid");
    let listener = client.get_multiplexed_async_connection_with_config(&config).await;
    let mut listener = listener.expect("it connects");
    listener.subscribe("__keyevent@0__:evicted").await.expect("it subscribes");
    (listener, evictions)
}

#[tokio::test]
async fn each_eviction_costs_one_capacity() {
    let server =
        Server::start_with(&["--maxmemory-policy", "allkeys-random", "--notify-keyspace-events", "Ee"]);
    // Servers differ in how much memory they use when empty.
    let mut connection = server.connect().await;
    let memory: String = run(&mut connection, &["INFO", "memory"]).await;
    let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse::<u64>().ok());
    let max = used.expect("INFO has it") + 2 * 1024 * 1024;
    server.configure("maxmemory", &max.to_string()).await;
    let (mut listener, evictions) = count_evictions(&server).await;

    let store = store(&server.url());
    let mut admitted = HashMap::<String, u64>::new();
    for round in 0..40 {
        let mut pipe = redis::pipe();
        for i in 0..500 {
            pipe.cmd("SET").arg(format!("flood {round} {i}")).arg("x".repeat(200)).ignore();
        }
        let _: () = pipe.query_async(&mut connection).await.expect("it evicts");
        for key in 0..50 {
            let key = format!("{{{key}}}");
            if let Ok(remaining) = decide(&store, &charge(&key, 5)).await {
                *admitted.entry(key).or_default() += u64::from(remaining.is_some());
            }
        }
    }
    // Notifications arrive before this reply.
    run::<()>(&mut listener, &["PING"]).await;
    let evictions = evictions.lock().expect("nothing panics");
    let mut losses = 0;
    for (key, admitted) in admitted {
        let lost = evictions.get(key.as_bytes()).copied().unwrap_or_default();
        assert!(admitted <= 5 * (1 + lost), "{key}: {admitted} admitted after {lost} evictions");
        losses += lost;
    }
    println!("{losses} of {} evicted keys were limits", evictions.values().sum::<u64>());
    assert!(losses > 0, "no limit was evicted");
}

#[tokio::test]
async fn evicting_server_is_warned_about_once() {
    let fixture = Fixture::start().await;
    let warnings = || {
        let messages = fixture.log.messages();
        messages.iter().filter(|message| message.contains("this Redis evicts keys")).count()
    };
    assert_eq!(warnings(), 0, "this server does not evict");
    fixture.server.configure("maxmemory-policy", "allkeys-lru").await;
    fixture.server.configure("maxmemory", "100mb").await;
    // Absent at first.
    fixture.proxy.refuse().await;
    let client = CountingClient::new(&fixture.url(), RedisStore::DEADLINE);
    assert!(client.call().await.remaining.is_err());
    fixture.proxy.listen().await;
    until("it connects", RECOVERS_WITHIN, async || client.call().await.remaining).await;
    until("it warns", RECOVERS_WITHIN, async || match warnings() {
        1 => Ok(()),
        count => Err(format!("{count} warnings")),
    })
    .await;
    fixture.server.kill_clients().await;
    until("it connects again", RECOVERS_WITHIN, async || client.call().await.remaining).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(warnings(), 1);
}
