//! Scripts are flushed every 50 ms and all clients killed every 200 ms, under load. Limits hold.

mod registry;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ratelimit_runtime::store::RedisStore;
use redis::aio::MultiplexedConnection;
use tokio::time::{MissedTickBehavior, interval};

use crate::support::budget::budget;
use crate::support::load::LoadGenerator;
use crate::support::policies;
use crate::support::random::Random;
use crate::support::server::{Server, run};
use crate::support::store::store_by;

const TASKS: u64 = 64;
/// Few enough that some calls are limited, in either build.
const KEYS: u64 = if cfg!(debug_assertions) { 30 } else { 100 };
/// What each key grants, about 300 permits per second.
const PERMITS: u64 = 20;
const PERIOD: Duration = Duration::from_millis(60);

/// How many decisions a test needs, and the time it takes at least and at most.
#[derive(Clone, Copy)]
struct Quota {
    decisions: u64,
    min: Duration,
    max: Duration,
}

impl Quota {
    /// Long enough for every kind of fault.
    fn new(decisions: u64, min: Duration) -> Quota {
        Quota { decisions, min, max: Duration::from_secs(10).max(Duration::from_millis(5 * decisions)) }
    }

    fn is_open(self, decisions: u64, start: Instant) -> bool {
        let elapsed = start.elapsed();
        (decisions < self.decisions || elapsed < self.min) && elapsed < self.max
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_in_a_storm() {
    check(|store| store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_in_a_storm_without_batches() {
    check(RedisStore::without_batches).await;
}

async fn check(change: impl FnOnce(RedisStore) -> RedisStore) {
    let server = Server::start();
    let storm = tokio::spawn(storm(server.connect().await));
    let store = store_by(&server.url(), change);
    let random = Random::seeded();
    let quota = Quota::new(budget(500, 6_000), Duration::from_millis(450));
    for (name, pair) in policies::each_for(PERMITS, PERIOD) {
        let crowd = LoadGenerator {
            store: store.clone(),
            name: name.to_owned(),
            pair,
            tasks: TASKS,
            keys: KEYS,
            answered: Arc::default(),
        };
        let (answered, start) = (Arc::clone(&crowd.answered), Instant::now());
        let go_on = move || quota.is_open(answered.load(Ordering::Relaxed), start);
        let decided = crowd.decide(&random, go_on).await;
        let granted = KEYS * PERMITS * start.elapsed().as_micros() as u64 / PERIOD.as_micros() as u64;
        let answered = decided.decisions - decided.failures;
        // A call costs 3 on average.
        let wanted = 3 * answered;
        let (permits, failures) = (decided.permits(), decided.failures);
        println!("{name}: {answered} decisions, {permits} of {granted} permits, and {failures} failed");
        assert!(answered * 10 >= quota.decisions, "{name}: only {answered} within {:?}", quota.max);
        // Half of what a cold bucket grants, which is a third of its rate.
        assert!(permits * 6 >= granted.min(wanted), "{name}: only {permits} of {granted} permits");
        decided.check_bounds(pair.model, &[]).unwrap_or_else(|broken| panic!("{name}, {broken}"));
    }
    assert!(!storm.is_finished(), "the storm ended early");
    // Before the server stops.
    storm.abort();
}

/// Never ends.
async fn storm(mut connection: MultiplexedConnection) {
    let mut tick = interval(Duration::from_millis(50));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for count in 0_u64.. {
        tick.tick().await;
        run::<()>(&mut connection, &["SCRIPT", "FLUSH"]).await;
        if count % 4 == 0 {
            run::<()>(&mut connection, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
        }
    }
}
