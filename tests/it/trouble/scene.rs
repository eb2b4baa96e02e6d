//! A server that lets nobody in without a password, a proxy before it, and a store that asks through the proxy.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{Charge, Key, RedisStore, StoreError};
use ratelimits::{FixedWindow, Policy, Rate, SlidingWindow, TokenBucket};
use redis::FromRedisValue;
use tracing::subscriber::DefaultGuard;

use crate::support::proxy::Proxy;
use crate::support::server::Server;
use crate::support::stalls::Stalls;
use crate::support::told::Told;
use crate::support::until::until;

/// No decision takes longer, however busy the machine is, unless it stands still.
pub(super) const LONGEST: Duration = Duration::from_secs(2);
/// So soon after trouble has ended decisions are right again.
const RECOVERS_WITHIN: Duration = Duration::from_secs(5);
/// A deadline that a busy machine keeps.
pub(super) const PATIENT: Duration = Duration::from_secs(2);

pub(super) const USER: &str = "ann";
pub(super) const PASSWORD: &str = "correct-horse";
const OPERATOR: &str = "battery-staple";
const PERSON: &str = "bob@example.com";
/// What each policy gives, and does not give back as long as a test runs.
const LIMIT: u64 = 10_000;

pub(super) struct Scene {
    pub(super) server: Server,
    pub(super) proxy: Proxy,
    pub(super) caller: Arc<Caller>,
    told: Told,
    _telling: DefaultGuard,
    stalls: Stalls,
}

/// Who decides, always on the same keys, and keeps the accounts.
#[derive(Debug)]
pub(super) struct Caller {
    store: RedisStore,
    deadline: Duration,
    answered: AtomicU64,
    /// Decisions that were errors after waiting for an answer, and at once.
    waited: AtomicU64,
    refused: AtomicU64,
    lost: AtomicBool,
}

/// How one decision ended: with what is left, or an error and its causes.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) left: Result<u64, String>,
    pub(super) took: Duration,
    /// It took as long as a decision may: for an answer.
    pub(super) has_waited: bool,
}

impl Scene {
    /// All is well.
    pub(super) async fn set() -> Scene {
        Scene::set_with(&[]).await
    }

    pub(super) async fn set_with(more: &[&str]) -> Scene {
        let [password, operator] = [PASSWORD, OPERATOR].map(|password| format!(">{password}"));
        let user = ["--user", USER, "on", &password, "~*", "+@all"];
        let operator = ["--user", "operator", "on", &operator, "~*", "&*", "+@all"];
        let server = Server::start_with(&[&user[..], &operator[..], more].concat());
        let proxy = Proxy::to(server.address()).await;
        let caller = Caller::of(&url(&proxy), RedisStore::DEADLINE);
        let told = Told::default();
        let _telling = tracing::subscriber::set_default(told.clone());
        let scene = Scene { server, proxy, caller, told, _telling, stalls: Stalls::watch() };
        scene.recovers().await;
        scene
    }

    /// All is well, and decisions may take so long.
    pub(super) async fn set_within(deadline: Duration) -> Scene {
        let mut scene = Scene::set().await;
        let caller = Caller::of(&scene.url(), deadline);
        scene.is_asked_by(caller).await;
        scene
    }

    /// By somebody else from now on, and from the beginning.
    pub(super) async fn is_asked_by(&mut self, caller: Arc<Caller>) {
        self.operate::<()>(&["FLUSHALL"]).await;
        self.caller = caller;
        self.recovers().await;
    }

    pub(super) fn url(&self) -> String {
        url(&self.proxy)
    }

    pub(super) async fn call(&self) -> Call {
        self.caller.call().await
    }

    /// So many decide for so long, each one decision after another.
    pub(super) async fn crowd(&self, callers: usize, time: Duration) -> Vec<Call> {
        let end = Instant::now() + time;
        let tasks: Vec<_> = (0..callers)
            .map(|_| {
                let caller = Arc::clone(&self.caller);
                tokio::spawn(async move {
                    let mut calls = Vec::new();
                    while Instant::now() < end {
                        calls.push(caller.call().await);
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    calls
                })
            })
            .collect();
        let mut calls = Vec::new();
        for task in tasks {
            calls.extend(task.await.expect("no decision panics"));
        }
        let longest = calls.iter().map(|call| call.took).max().unwrap_or_default();
        let stalled = self.stalls.longest();
        assert!(
            longest < LONGEST + stalled,
            "a decision took {longest:?}, and the machine stalled for {stalled:?}"
        );
        calls
    }

    /// Until decisions are right again, one after another, and what the last of them left. They, and what was told meanwhile,
    /// hold no secret.
    pub(super) async fn recovers(&self) -> u64 {
        let begun = Instant::now();
        let left = until("decisions are right again", RECOVERS_WITHIN, async || {
            let mut left = self.call().await.left?;
            for _ in 0..5 {
                let next = self.call().await.left?;
                // A decision that was late may have charged as well.
                if next + 1 != left {
                    return Err(format!("{next} are left after {left}"));
                }
                left = next;
            }
            Ok(left)
        })
        .await;
        println!("right again after {:?}", begun.elapsed());
        let [least, most] = self.caller.charged();
        assert!((least..=most).contains(&(LIMIT - left)), "{} of {least} to {most}", LIMIT - left);
        keeps_secrets(&format!("{} {:?}", self.told.text(), self.caller.store));
        left
    }

    /// Until no connection is left but the one in use.
    pub(super) async fn has_one_connection(&self) {
        until("dead connections end", RECOVERS_WITHIN, async || match self.proxy.open() {
            0 | 1 => Ok(()),
            open => Err(format!("{open} are open")),
        })
        .await;
    }

    /// What the operator of the server does.
    pub(super) async fn operate<T: FromRedisValue>(&self, command: &[&str]) -> T {
        let server = &self.server;
        let client = redis::Client::open(server.url_as("operator", OPERATOR)).expect("the URL is right");
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(10)));
        let mut connection =
            client.get_multiplexed_async_connection_with_config(&config).await.expect("it connects");
        let reply = redis::cmd(command[0]).arg(&command[1..]).query_async(&mut connection).await;
        reply.unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    pub(super) async fn configure(&self, name: &str, value: &str) {
        self.operate::<()>(&["CONFIG", "SET", name, value]).await;
    }

    pub(super) async fn kill_clients(&self) {
        self.operate::<i64>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
    }

    /// How many scripts the server was asked for, by hash and by text.
    pub(super) async fn executed(&self) -> [u64; 2] {
        let stats: String = self.operate(&["INFO", "commandstats"]).await;
        ["evalsha", "eval"].map(|name| {
            let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
            line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or(0)
        })
    }

    pub(super) fn told(&self) -> Vec<String> {
        self.told.events().into_iter().map(|(_, message)| message).collect()
    }
}

fn url(proxy: &Proxy) -> String {
    format!("redis://{USER}:{PASSWORD}@{}", proxy.address())
}

impl Caller {
    pub(super) fn of(url: &str, deadline: Duration) -> Arc<Caller> {
        let store = RedisStore::lazy(url).expect("the URL is right").with_deadline(deadline);
        let counts = [(); 3].map(|()| AtomicU64::new(0));
        let [answered, waited, refused] = counts;
        Arc::new(Caller { store, deadline, answered, waited, refused, lost: AtomicBool::new(false) })
    }

    /// All or nothing of three policies, of which each gives as much.
    pub(super) async fn call(&self) -> Call {
        let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(86_400));
        let policies: [Policy; 3] = [
            TokenBucket::new(Rate::new(1, hour)).burst(LIMIT).into(),
            FixedWindow::new(LIMIT, day).into(),
            SlidingWindow::new(LIMIT, day).into(),
        ];
        let charges = policies.iter().enumerate().map(|(at, policy)| {
            let spec = policy.spec().expect("the policy is valid");
            Charge { key: Key::raw(format!("{{{PERSON}}}:{at}")), spec, cost: 1, wait: 0, shadow: false }
        });
        let charges: Vec<_> = charges.collect();
        let begun = Instant::now();
        let outcome = self.store.decide(&charges).await;
        let took = begun.elapsed();
        let has_waited = took + Duration::from_millis(2) >= self.deadline;
        let left = match outcome {
            Ok(outcome) => {
                assert!(outcome.admitted);
                let left: Vec<u64> = outcome.verdicts.iter().map(|verdict| verdict.remaining).collect();
                assert!(
                    left.iter().all(|each| *each == left[0]),
                    "one was charged without the others: {left:?}"
                );
                Ok(left[0])
            }
            Err(error) => Err(told(&error)),
        };
        let count = match &left {
            Ok(_) => &self.answered,
            Err(_) if has_waited => &self.waited,
            Err(_) => &self.refused,
        };
        count.fetch_add(1, Ordering::Relaxed);
        Call { left, took, has_waited }
    }

    /// What was charged at the least and at the most: a decision is never sent twice.
    fn charged(&self) -> [u64; 2] {
        let [answered, waited, refused] = self.counts();
        let least = if self.lost.load(Ordering::Relaxed) { 0 } else { answered };
        [least, answered + waited + refused]
    }

    /// How many were answered, were errors after waiting for an answer, and were errors at once.
    pub(super) fn counts(&self) -> [u64; 3] {
        [&self.answered, &self.waited, &self.refused].map(|count| count.load(Ordering::Relaxed))
    }

    /// The server loses some of what it had.
    pub(super) fn loses(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }
}

/// An error and its causes, which hold no secret.
pub(super) fn told(error: &StoreError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause} {cause:?}");
        source = cause.source();
    }
    keeps_secrets(&text);
    text
}

fn keeps_secrets(text: &str) {
    for secret in [PASSWORD, OPERATOR, PERSON, "redis://"] {
        assert!(!text.contains(secret), "{text}");
    }
}
