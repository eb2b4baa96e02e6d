//! A master that dies, and a replica in its place: what that loses costs one capacity a key, and the new one is found soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{Charge, Key, RedisStore, Store};
use ratelimits::{FixedWindow, Policy};
use tokio::task::JoinHandle;

use super::loss::now;
use super::scene::{LONGEST, PATIENT, told};
use crate::support::admitted::{Crowd, Decided};
use crate::support::policies::{self, Pair};
use crate::support::random::Random;
use crate::support::server::cluster::Cluster;
use crate::support::server::sentinels::{NAME, Sentinels};
use crate::support::stalls::Stalls;
use crate::support::until::until;

const CAPACITY: u64 = 20;
const KEYS: u64 = 20;
const FOUND_WITHIN: Duration = Duration::from_secs(5);

/// Those who decide until it is over, on some keys of each policy.
struct Deciding {
    store: Store,
    crowds: Vec<(&'static str, Pair, JoinHandle<Decided>)>,
    over: Arc<AtomicBool>,
    stalls: Stalls,
}

impl Deciding {
    fn begin(url: &str) -> Deciding {
        let store = Store::Redis(Arc::new(RedisStore::lazy(url).expect("the URL is right")));
        let (random, over) = (Random::seeded(), Arc::new(AtomicBool::new(false)));
        let crowd = |(name, pair): (&'static str, Pair)| {
            let crowd = Crowd {
                store: store.clone(),
                name: name.to_owned(),
                pair,
                tasks: 3,
                keys: KEYS,
                answered: Arc::default(),
            };
            let (random, over) = (random.clone(), Arc::clone(&over));
            let decided = async move { crowd.decide(&random, move || !over.load(Ordering::Relaxed)).await };
            (name, pair, tokio::spawn(decided))
        };
        let crowds = policies::each_for(CAPACITY, Duration::from_secs(10)).into_iter().map(crowd).collect();
        Deciding { store, crowds, over, stalls: Stalls::watch() }
    }

    /// Until every key of one policy is decided again.
    async fn answers(&self) {
        let begun = Instant::now();
        for key in 0..KEYS {
            let spec = self.crowds[0].1.spec;
            until("decisions come from Redis again", FOUND_WITHIN, async || {
                let charge = Charge {
                    key: Key::raw(format!("look:{{{key}}}")),
                    spec,
                    cost: 0,
                    wait: 0,
                    shadow: false,
                };
                self.store.decide(&[&[charge]]).await.remove(0).map(drop).map_err(|error| told(&error))
            })
            .await;
        }
        println!("answers after {:?}", begun.elapsed());
    }

    /// At that time each of these keys may have lost what it had.
    async fn end(self, loss: u64, keys: &[u64]) {
        self.over.store(true, Ordering::Relaxed);
        for (name, pair, decided) in self.crowds {
            let decided = decided.await.expect("no decision panics");
            let (count, admitted, failures) = (decided.decisions, decided.admitted(), decided.failures);
            println!("{name}: {count} decisions, {admitted} admitted, {failures} not answered");
            let (longest, stalled) = (decided.longest, self.stalls.longest());
            assert!(
                longest < LONGEST + stalled,
                "{name}: {longest:?}, of which the machine stalled {stalled:?}"
            );
            assert!(failures < count, "{name}: nothing was answered");
            let kept = decided.keeps_but_for(pair.model, &[loss], |key| keys.contains(&key));
            kept.unwrap_or_else(|broken| panic!("{name}, {broken}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_master_that_sentinels_name_dies() {
    let sentinels = Sentinels::start().await;
    let url = format!("redis+sentinel://{}/{NAME}", sentinels.addresses().join(","));
    let deciding = Deciding::begin(&url);
    deciding.answers().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let former = sentinels.master().await;
    former.kill();
    let loss = now();
    sentinels.master_after(former).await;
    deciding.answers().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    deciding.end(loss, &(0..KEYS).collect::<Vec<_>>()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_master_that_sentinels_name_is_stopped_and_comes_back_as_a_replica() {
    let sentinels = Sentinels::start().await;
    let url = format!("redis+sentinel://{}/{NAME}", sentinels.addresses().join(","));
    let deciding = Deciding::begin(&url);
    deciding.answers().await;
    let former = sentinels.master().await;
    former.pause();
    let loss = now();
    sentinels.master_after(former).await;
    deciding.answers().await;
    former.resume();
    former.follows().await;
    deciding.answers().await;
    // What had been sent to the former master is decided by it when it goes on, and nobody listens any more.
    deciding.end(loss, &(0..KEYS).collect::<Vec<_>>()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_of_a_cluster_dies() {
    let cluster = Cluster::start().await;
    let deciding = Deciding::begin(&format!("redis+cluster://{}", cluster.addresses().join(",")));
    deciding.answers().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let former = cluster.master_of("{0}").await;
    let mut lost = Vec::new();
    for key in 0..KEYS {
        if cluster.master_of(&format!("{{{key}}}")).await.port() == former.port() {
            lost.push(key);
        }
    }
    assert!(lost.len() < KEYS as usize, "the others have some too");
    former.kill();
    let loss = now();
    cluster.settles().await;
    deciding.answers().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    deciding.end(loss, &lost).await;
}

/// What a replica has not got when its master dies is lost, and is admitted once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_replica_of_a_master_has_not_got_is_admitted_again() {
    let cluster = Cluster::start().await;
    let store = RedisStore::lazy(&format!("redis+cluster://{}", cluster.addresses().join(",")));
    let store = store.expect("the URL is right").with_deadline(PATIENT);
    let spec = Policy::from(FixedWindow::new(5, Duration::from_secs(3600))).spec().expect("it is valid");
    let take = async || {
        let charge = Charge { key: Key::raw("{0}"), spec, cost: 1, wait: 0, shadow: false };
        let outcome = store.decide(&[charge]).await;
        outcome.map(|outcome| outcome.admitted).map_err(|error| told(&error))
    };
    let master = cluster.master_of("{0}").await;
    let replica = cluster.replica_of(master);
    for _ in 0..2 {
        assert_eq!(take().await, Ok(true));
    }
    master.replicated().await;
    // A line that stays open would hold the rest for it.
    replica.pause();
    let mut kill = redis::cmd("CLIENT");
    let killed: i64 = kill
        .arg(&["KILL", "TYPE", "replica"])
        .query_async(&mut master.connect().await)
        .await
        .expect("the master answers");
    assert_eq!(killed, 1);
    for _ in 0..3 {
        assert_eq!(take().await, Ok(true));
    }
    assert_eq!(take().await, Ok(false));
    master.kill();
    replica.resume();
    cluster.settles().await;
    let mut again = u64::from(until("the replica decides", FOUND_WITHIN, take).await);
    while take().await == Ok(true) {
        again += 1;
    }
    assert_eq!(again, 3, "as many as were lost");
}
