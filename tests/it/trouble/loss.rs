//! A server that loses what it had: that costs one capacity a key and loss, and no more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use ratelimit_runtime::store::{Charge, Key, RedisStore, Store};
use ratelimits::FixedWindow;
use ratelimits::Policy;
use redis::{AsyncConnectionConfig, Client, PushInfo, PushKind};

use super::scene::{Caller, LONGEST, Scene, told};
use crate::support::admitted::Crowd;
use crate::support::numbers::number;
use crate::support::policies;
use crate::support::random::Random;
use crate::support::server::Server;
use crate::support::stalls::Stalls;
use crate::support::until::until;

/// Kills one after another. More by `RATELIMITS_KILLS`.
const KILLS: u64 = 5;
const CAPACITY: u64 = 20;

/// By the clock of the machine, which is that of the server too.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    since.as_micros() as u64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_again_and_again_gives_one_capacity_each_time() {
    let kills = number("RATELIMITS_KILLS").unwrap_or(KILLS);
    let server = Server::start();
    let store = Store::Redis(Arc::new(RedisStore::lazy(&server.url()).expect("the URL is right")));
    let random = Random::seeded();
    let over = Arc::new(AtomicBool::new(false));
    let stalls = Stalls::watch();
    // Once a key is empty, only what is lost fills it.
    let crowds: Vec<_> = policies::each_for(CAPACITY, Duration::from_secs(60))
        .into_iter()
        .map(|(name, pair)| {
            let crowd = Crowd {
                store: store.clone(),
                name: name.to_owned(),
                pair,
                tasks: 6,
                keys: 5,
                answered: Arc::default(),
            };
            let (random, over) = (random.clone(), Arc::clone(&over));
            tokio::spawn(async move {
                let decided = crowd.decide(&random, move || !over.load(Ordering::Relaxed)).await;
                (name, pair, decided)
            })
        })
        .collect();
    let mut losses = Vec::new();
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(400)).await;
        server.kill();
        losses.push(now());
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.restart().await;
        let spec = Policy::from(FixedWindow::new(1000, Duration::from_secs(60))).spec().expect("it is valid");
        until("decisions come from Redis again", Duration::from_secs(5), async || {
            let charge = Charge { key: Key::raw("again"), spec, cost: 1, wait: 0, shadow: false };
            store.decide(&[&[charge]]).await.remove(0).map(drop).map_err(|error| told(&error))
        })
        .await;
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    over.store(true, Ordering::Relaxed);
    for crowd in crowds {
        let (name, pair, decided) = crowd.await.expect("no decision panics");
        let (admitted, failures) = (decided.admitted(), decided.failures);
        println!("{name}: {} decisions, {admitted} admitted, {failures} not answered", decided.decisions);
        let (longest, stalled) = (decided.longest, stalls.longest());
        assert!(longest < LONGEST + stalled, "{name}: {longest:?}, of which the machine stalled {stalled:?}");
        decided.keeps(pair.model, &losses).unwrap_or_else(|broken| panic!("{name}, {broken}"));
        assert!(admitted > 5, "{name}: {admitted} were admitted");
    }
}

#[tokio::test]
async fn a_key_that_is_evicted_gives_one_capacity_each_time() {
    let server = Server::start_with(&["--maxmemory-policy", "allkeys-lru", "--notify-keyspace-events", "Ee"]);
    // Of what the server itself takes, versions differ.
    let mut flood = server.connect().await;
    let memory: String = redis::cmd("INFO").arg("memory").query_async(&mut flood).await.expect("an answer");
    let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse::<u64>().ok());
    let most = used.expect("it tells") + 2 * 1024 * 1024;
    let set = redis::cmd("CONFIG").arg(&["SET", "maxmemory"]).arg(most).exec_async(&mut flood).await;
    set.expect("it may have so much");
    let evicted = Arc::new(Mutex::new(HashMap::<Vec<u8>, u64>::new()));
    let counted = Arc::clone(&evicted);
    let config = AsyncConnectionConfig::new().set_push_sender(move |push: PushInfo| {
        if let (PushKind::Message, Some(redis::Value::BulkString(key))) = (push.kind, push.data.last()) {
            *counted.lock().expect("nobody panics").entry(key.clone()).or_default() += 1;
        }
        Ok::<(), std::convert::Infallible>(())
    });
    let client = Client::open(format!("{}?protocol=resp3", server.url())).expect("the URL is right");
    let mut listener =
        client.get_multiplexed_async_connection_with_config(&config).await.expect("it connects");
    listener.subscribe("__keyevent@0__:evicted").await.expect("it tells");

    let store = RedisStore::lazy(&server.url()).expect("the URL is right");
    let spec = Policy::from(FixedWindow::new(5, Duration::from_secs(86_400))).spec().expect("it is valid");
    let mut admitted = HashMap::<String, u64>::new();
    for round in 0..40 {
        let mut pipe = redis::pipe();
        for i in 0..500 {
            pipe.cmd("SET").arg(format!("flood {round} {i}")).arg("x".repeat(200)).ignore();
        }
        let _: () = pipe.query_async(&mut flood).await.expect("something is evicted");
        for key in 0..50 {
            let text = format!("{{{key}}}");
            let charge = Charge { key: Key::raw(&*text), spec, cost: 1, wait: 0, shadow: false };
            if let Ok(outcome) = store.decide(&[charge]).await {
                *admitted.entry(text).or_default() += u64::from(outcome.admitted);
            }
        }
    }
    // What was told before an answer has come with it.
    redis::cmd("PING").exec_async(&mut listener).await.expect("an answer");
    let evicted = evicted.lock().expect("nobody panics");
    let mut losses = 0;
    for (key, admitted) in admitted {
        let lost = evicted.get(key.as_bytes()).copied().unwrap_or_default();
        assert!(admitted <= 5 * (1 + lost), "{key}: {admitted} admitted, and {lost} times evicted");
        losses += lost;
    }
    println!("{losses} of {} evicted keys were those of limits", evicted.values().sum::<u64>());
    assert!(losses > 0, "no key of a limit was evicted");
}

#[tokio::test]
async fn a_server_that_evicts_is_warned_of_once_even_where_it_was_absent_at_first() {
    let scene = Scene::set().await;
    let warned = || scene.told().iter().filter(|told| told.contains("this Redis evicts keys")).count();
    assert_eq!(warned(), 0, "nothing is evicted here");
    scene.configure("maxmemory-policy", "allkeys-lru").await;
    scene.configure("maxmemory", "100mb").await;
    scene.proxy.refuse().await;
    let late = Caller::of(&scene.url(), RedisStore::DEADLINE);
    assert!(late.call().await.left.is_err());
    scene.proxy.listen().await;
    until("it connects", Duration::from_secs(5), async || late.call().await.left).await;
    until("it warns", Duration::from_secs(5), async || match warned() {
        1 => Ok(()),
        count => Err(format!("{count} warnings")),
    })
    .await;
    scene.kill_clients().await;
    until("it connects again", Duration::from_secs(5), async || late.call().await.left).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(warned(), 1);
}
