//! A storm over Redis: its scripts are flushed every 50 ms and all clients are killed every 200 ms, while many decide on many
//! keys. What was admitted keeps every promise. `RATELIMITS_STORM_CALLS` makes it longer: so many answers an algorithm.

mod otherwise;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{RedisStore, Store};
use redis::aio::MultiplexedConnection;
use tokio::time::{MissedTickBehavior, interval};

use crate::support::admitted::Crowd;
use crate::support::numbers::number;
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
    let calls = number("RATELIMITS_STORM_CALLS").unwrap_or(CALLS);
    // Some 300 permits a second and key.
    for (name, pair) in policies::each_for(20, Duration::from_millis(60)) {
        let crowd = Crowd {
            store: store.clone(),
            name: name.to_owned(),
            pair,
            tasks: TASKS,
            keys: KEYS,
            answered: Arc::default(),
        };
        let (answered, end) = (Arc::clone(&crowd.answered), Instant::now() + longest(calls));
        let go_on = move || answered.load(Ordering::Relaxed) < calls && Instant::now() < end;
        let decided = crowd.decide(&random, go_on).await;
        let answered = decided.decisions - decided.failures;
        let (count, failures) = (decided.admitted(), decided.failures);
        println!("{name}: {answered} decisions, {count} admitted, and {failures} not answered");
        assert!(answered * 10 >= calls, "{name}: only {answered} were answered in {:?}", longest(calls));
        assert!(count as u64 * 10 >= answered, "{name}: only {count} of {answered} were admitted");
        decided.keeps(pair.model, &[]).unwrap_or_else(|broken| panic!("{name}, {broken}"));
    }
    assert!(!storm.is_finished(), "the storm lasted");
    // Before the server goes.
    storm.abort();
}

/// So long they may take on a machine that is slow: who is not answered for a while asks again and again.
fn longest(calls: u64) -> Duration {
    Duration::from_secs(30).max(Duration::from_millis(5 * calls))
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
