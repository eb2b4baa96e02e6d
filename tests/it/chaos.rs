//! Everything that happens to a Redis, in any order, while many decide on many keys: no decision takes long, none panics, every
//! promise is kept but for one capacity a key and loss of data, and soon after the last fault all is well. For 30 s, or
//! `RATELIMITS_CHAOS_SECONDS`; `RATELIMITS_SEED` brings an order again.

mod events;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{Charge, Key, RedisStore, Store};
use redis::AsyncTypedCommands;
use tokio::task::JoinHandle;

use crate::support::admitted::{Crowd, Decided};
use crate::support::numbers::number;
use crate::support::policies::{self, Pair};
use crate::support::random::Random;
use crate::support::stalls::Stalls;
use crate::support::until::until;
use events::{Event, Stage};

const SECONDS: u64 = 30;
/// What was admitted is checked after so long, and then evicted.
const ROUND: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(2);
const RECOVERS_WITHIN: Duration = Duration::from_secs(5);
/// Of 64 in all.
const TASKS: [u64; 10] = [7, 7, 7, 7, 6, 6, 6, 6, 6, 6];
const KEYS: u64 = 20;
/// Longer than a loss takes, which would not show otherwise.
const FULL_AFTER: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_admitted_beyond_a_policy_and_nobody_waits_long_whatever_happens_to_redis() {
    let mut left = Duration::from_secs(number("RATELIMITS_CHAOS_SECONDS").unwrap_or(SECONDS));
    let mut random = Random::seeded();
    let mut stage = Stage::set().await;
    let store = Store::Redis(Arc::new(RedisStore::lazy(&stage.proxy.url()).expect("the URL is right")));
    while !left.is_zero() {
        let time = left.min(ROUND);
        left -= time;
        round(&mut stage, &store, &mut random, time).await;
    }
}

async fn round(stage: &mut Stage, store: &Store, random: &mut Random, time: Duration) {
    let policies = policies::each_for(20, FULL_AFTER);
    let over = Arc::new(AtomicBool::new(false));
    let crowds: Vec<_> = policies
        .into_iter()
        .zip(TASKS)
        .map(|((name, pair), tasks)| {
            let crowd = Crowd {
                store: store.clone(),
                name: name.to_owned(),
                pair,
                tasks,
                keys: KEYS,
                answered: Arc::default(),
            };
            (name, pair, begin(crowd, random.run(random.clone().next()), &over))
        })
        .collect();
    let (stalls, end) = (Stalls::watch(), Instant::now() + time);
    let mut events = Vec::new();
    while Instant::now() < end {
        if events.is_empty() {
            events = Event::ALL.to_vec();
        }
        let event = events.swap_remove(random.below(events.len() as u64) as usize);
        stage.play(event, Duration::from_millis(random.between(50, 600))).await;
        tokio::time::sleep(Duration::from_millis(random.between(0, 500))).await;
    }
    stage.calm().await;
    let calm = Instant::now();
    for (name, pair) in policies {
        answers(store, name, pair).await;
    }
    println!("decisions came from Redis again within {:?}", calm.elapsed());
    tokio::time::sleep(Duration::from_millis(500)).await;
    // Before they are gone by themselves.
    every_key_expires(stage).await;
    over.store(true, Ordering::Relaxed);
    for (name, pair, crowd) in crowds {
        let decided = crowd.await.expect("no decision panics");
        let (count, admitted, failures) = (decided.decisions, decided.admitted(), decided.failures);
        println!(
            "{name}: {count} decisions, {admitted} admitted, {failures} not answered, at most {:?}",
            decided.longest
        );
        let (longest, stalled) = (decided.longest, stalls.longest());
        assert!(longest < LONGEST + stalled, "{name}: {longest:?}, of which the machine stalled {stalled:?}");
        assert!(failures < count && admitted > 0, "{name}: {admitted} of {count} were admitted");
        decided.keeps(pair.model, &stage.losses).unwrap_or_else(|broken| panic!("{name}, {broken}"));
    }
    few_connections(stage).await;
}

fn begin(crowd: Crowd, random: Random, over: &Arc<AtomicBool>) -> JoinHandle<Decided> {
    let over = Arc::clone(over);
    tokio::spawn(async move { crowd.decide(&random, move || !over.load(Ordering::Relaxed)).await })
}

async fn answers(store: &Store, name: &str, pair: Pair) {
    until("decisions come from Redis again", RECOVERS_WITHIN, async || {
        let key = Key::raw(format!("{name}:calm"));
        let charge = Charge { key, spec: pair.spec, cost: 1, wait: 0, shadow: false };
        store.decide(&[&[charge]]).await.remove(0).map(drop).map_err(|error| format!("{error:?}"))
    })
    .await;
}

async fn every_key_expires(stage: &Stage) {
    let mut connection = stage.server.connect().await;
    let keys: Vec<String> = connection.keys("*").await.expect("an answer");
    assert!(!keys.is_empty(), "all decided on something");
    for key in keys {
        let ttl: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.expect("an answer");
        assert!(
            (1..=2 * FULL_AFTER.as_millis() as i64).contains(&ttl) || ttl == -2 || ttl == 0,
            "{key} expires in {ttl} ms"
        );
    }
}

async fn few_connections(stage: &Stage) {
    until("dead connections end", Duration::from_secs(10), async || match stage.proxy.open() {
        0..=2 => Ok(()),
        open => Err(format!("{open} are open")),
    })
    .await;
}
