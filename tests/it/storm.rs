//! A storm over Redis: its scripts are flushed every 50 ms and all clients are killed every 200 ms, while many decide on many
//! keys. What was admitted keeps every promise. `RATELIMITS_STORM_CALLS` makes it longer: so many decisions an algorithm.

mod otherwise;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratelimits::store::{RedisStore, Store};
use redis::aio::MultiplexedConnection;
use tokio::time::{MissedTickBehavior, interval};

use crate::support::admitted::Crowd;
use crate::support::policies;
use crate::support::random::Random;
use crate::support::server::Server;

const TASKS: u64 = 64;
/// As many as make some of the calls too many, in either build.
const KEYS: u64 = if cfg!(debug_assertions) { 30 } else { 100 };
const CALLS: u64 = 6_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_admitted_beyond_a_policy_while_scripts_are_flushed_and_clients_killed() {
    let server = Server::start();
    let storm = tokio::spawn(storm(server.connect().await));
    let store = Store::Redis(Arc::new(RedisStore::lazy(&server.url()).expect("the URL is right")));
    let random = Random::seeded();
    let calls =
        std::env::var("RATELIMITS_STORM_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(CALLS);
    // Some 300 permits a second and key.
    for (name, pair) in policies::each_for(20, Duration::from_millis(60)) {
        let crowd = Crowd { store: store.clone(), name: name.to_owned(), pair, tasks: TASKS, keys: KEYS };
        let made = Arc::new(AtomicU64::new(0));
        let decided = crowd.decide(&random, move || made.fetch_add(1, Ordering::Relaxed) < calls).await;
        let (count, failures) = (decided.admitted(), decided.failures);
        println!("{name}: {calls} decisions, {count} admitted, {failures} not answered");
        assert!(count as u64 * 10 >= calls, "{name}: only {count} of {calls} were admitted");
        assert!(failures * 2 < calls, "{name}: {failures} of {calls} were not answered");
        decided.keeps(pair.model, &[]).unwrap_or_else(|broken| panic!("{name}, {broken}"));
    }
    assert!(!storm.is_finished(), "the storm lasted");
}

/// Never ends.
async fn storm(mut connection: MultiplexedConnection) {
    let mut tick = interval(Duration::from_millis(50));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for count in 0_u64.. {
        tick.tick().await;
        let mut flush = redis::cmd("SCRIPT");
        let _: () = flush.arg("FLUSH").query_async(&mut connection).await.expect("an answer");
        if count % 4 == 0 {
            let mut kill = redis::cmd("CLIENT");
            kill.arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"]);
            let _: i64 = kill.query_async(&mut connection).await.expect("an answer");
        }
    }
}
