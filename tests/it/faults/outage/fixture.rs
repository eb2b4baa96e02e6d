//! A password-protected server, a proxy in front of it, and a client that counts its outcomes.

use std::error::Error;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{Charge, Key, RedisStore, StoreError};
use ratelimits::{FixedWindow, Policy, Rate, SlidingWindow, TokenBucket};
use tracing::subscriber::DefaultGuard;

use crate::faults::{MAX_LATENCY, RECOVERS_WITHIN};
use crate::support::log_capture::LogCapture;
use crate::support::proxy::Proxy;
use crate::support::server::Server;
use crate::support::stall_monitor::StallMonitor;
use crate::support::until::until;

/// A deadline that a busy machine meets.
pub(super) const LONG_DEADLINE: Duration = Duration::from_secs(2);

pub(super) const USER: &str = "ann";
pub(super) const PASSWORD: &str = "correct-horse";
const OPERATOR: &str = "operator";
const OPERATOR_PASSWORD: &str = "battery-staple";
const KEY: &str = "bob@example.com";
/// What each policy admits. Nothing comes back during a test.
const LIMIT: u64 = 10_000;

pub(super) struct Fixture {
    pub(super) server: Server,
    pub(super) proxy: Proxy,
    pub(super) client: Arc<CountingClient>,
    pub(super) log: LogCapture,
    _subscriber: DefaultGuard,
    stalls: StallMonitor,
}

/// Decides on the same keys each time, and counts the outcomes.
#[derive(Debug)]
pub(super) struct CountingClient {
    store: RedisStore,
    deadline: Duration,
    succeeded: AtomicU64,
    timed_out: AtomicU64,
    failed_early: AtomicU64,
    data_lost: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub(super) succeeded: u64,
    pub(super) timed_out: u64,
    /// Errors before the deadline.
    pub(super) failed_early: u64,
}

/// How many scripts the server was asked to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ScriptCalls {
    pub(super) evalsha: u64,
    pub(super) eval: u64,
}

/// The command that each decision of a [`CountingClient`] runs once, for its fixed window.
const OF_EACH_DECISION: &str = "get";

/// The outcome of one decision.
#[derive(Debug)]
pub(super) struct Call {
    /// What remains, or the error with its causes.
    pub(super) remaining: Result<u64, String>,
    pub(super) start: Instant,
    pub(super) took: Duration,
    pub(super) reached_deadline: bool,
}

impl Fixture {
    pub(super) async fn start() -> Fixture {
        Fixture::start_with(&[]).await
    }

    /// With more arguments to the server.
    pub(super) async fn start_with(more: &[&str]) -> Fixture {
        let [user, operator] = [PASSWORD, OPERATOR_PASSWORD].map(|password| format!(">{password}"));
        let user = ["--user", USER, "on", &user, "~*", "+@all"];
        let operator = ["--user", OPERATOR, "on", &operator, "~*", "&*", "+@all"];
        let server = Server::start_with(&[&user[..], &operator[..], more].concat());
        let server = server.operated_by(OPERATOR, OPERATOR_PASSWORD);
        let proxy = Proxy::to(server.address()).await;
        let client = CountingClient::new(&url(&proxy), RedisStore::DEADLINE);
        let log = LogCapture::default();
        let _subscriber = tracing::subscriber::set_default(log.clone());
        let fixture = Fixture { server, proxy, client, log, _subscriber, stalls: StallMonitor::start() };
        fixture.recovers().await;
        fixture
    }

    pub(super) async fn start_with_deadline(deadline: Duration) -> Fixture {
        let mut fixture = Fixture::start().await;
        let client = CountingClient::new(&fixture.url(), deadline);
        fixture.replace_client(client).await;
        fixture
    }

    /// Starts over with another client and no data.
    pub(super) async fn replace_client(&mut self, client: Arc<CountingClient>) {
        self.server.command::<()>(&["FLUSHALL"]).await;
        self.client = client;
        self.recovers().await;
    }

    pub(super) fn url(&self) -> String {
        url(&self.proxy)
    }

    pub(super) async fn call(&self) -> Call {
        self.client.call().await
    }

    /// Calls from concurrent tasks for this time.
    pub(super) async fn crowd(&self, tasks: usize, time: Duration) -> Vec<Call> {
        let end = Instant::now() + time;
        let tasks: Vec<_> = (0..tasks)
            .map(|_| {
                let client = Arc::clone(&self.client);
                tokio::spawn(async move {
                    let mut calls = Vec::new();
                    while Instant::now() < end {
                        calls.push(client.call().await);
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
        self.stalls.assert_within(MAX_LATENCY, longest, "a decision");
        calls
    }

    /// Waits until consecutive decisions are correct, and returns what remains. Neither they nor the log reveal a secret.
    pub(super) async fn recovers(&self) -> u64 {
        let start = Instant::now();
        let remaining = until("decisions are correct", RECOVERS_WITHIN, async || {
            let mut remaining = self.call().await.remaining?;
            for _ in 0..5 {
                let next = self.call().await.remaining?;
                // A call that timed out may have been charged meanwhile.
                if next + 1 != remaining {
                    return Err(format!("{next} remain after {remaining}"));
                }
                remaining = next;
            }
            Ok(remaining)
        })
        .await;
        println!("recovered after {:?}", start.elapsed());
        let (charged, possible) = (LIMIT - remaining, self.client.possible_charges());
        assert!(possible.contains(&charged), "{charged} charged, {possible:?} possible");
        assert_no_secrets(&format!("{} {:?}", self.log.text(), self.client.store));
        remaining
    }

    pub(super) async fn assert_one_connection(&self) {
        until("dead connections close", RECOVERS_WITHIN, async || match self.proxy.open() {
            0 | 1 => Ok(()),
            open => Err(format!("{open} are open")),
        })
        .await;
    }

    pub(super) async fn script_calls(&self) -> ScriptCalls {
        let [evalsha, eval] = self.commands(["evalsha", "eval"]).await;
        ScriptCalls { evalsha, eval }
    }

    /// Returns how many decisions the server has executed. A script call may execute several.
    pub(super) async fn executed(&self) -> u64 {
        let [executed] = self.commands([OF_EACH_DECISION]).await;
        executed
    }

    async fn commands<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        let stats: String = self.server.command(&["INFO", "commandstats"]).await;
        names.map(|name| {
            let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
            line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or(0)
        })
    }
}

fn url(proxy: &Proxy) -> String {
    format!("redis://{USER}:{PASSWORD}@{}", proxy.address())
}

impl CountingClient {
    pub(super) fn new(url: &str, deadline: Duration) -> Arc<CountingClient> {
        let store = RedisStore::lazy(url).expect("the URL is valid").with_deadline(deadline);
        Arc::new(CountingClient {
            store,
            deadline,
            succeeded: AtomicU64::default(),
            timed_out: AtomicU64::default(),
            failed_early: AtomicU64::default(),
            data_lost: AtomicBool::default(),
        })
    }

    /// Charges three policies with the same limit, all or nothing.
    pub(super) async fn call(&self) -> Call {
        let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(86_400));
        let policies: [Policy; 3] = [
            TokenBucket::new(Rate::new(1, hour)).burst(LIMIT).into(),
            FixedWindow::new(LIMIT, day).into(),
            SlidingWindow::new(LIMIT, day).into(),
        ];
        let charges = policies.iter().enumerate().map(|(i, policy)| {
            let spec = policy.spec().expect("the policy is valid");
            Charge { key: Key::raw(format!("{{{KEY}}}:{i}")), spec, cost: 1, wait: 0, shadow: false }
        });
        let charges: Vec<_> = charges.collect();
        let start = Instant::now();
        let outcome = self.store.decide(&charges).await;
        let took = start.elapsed();
        let reached_deadline = took + Duration::from_millis(2) >= self.deadline;
        let remaining = match outcome {
            Ok(outcome) => {
                assert!(outcome.admitted);
                let remaining: Vec<u64> = outcome.verdicts.iter().map(|verdict| verdict.remaining).collect();
                let equal = remaining.iter().all(|each| *each == remaining[0]);
                assert!(equal, "one policy was charged without the others: {remaining:?}");
                Ok(remaining[0])
            }
            Err(error) => Err(describe(&error)),
        };
        let count = match &remaining {
            Ok(_) => &self.succeeded,
            Err(_) if reached_deadline => &self.timed_out,
            Err(_) => &self.failed_early,
        };
        count.fetch_add(1, Ordering::Relaxed);
        Call { remaining, start, took, reached_deadline }
    }

    /// A call that failed may have been charged, once.
    fn possible_charges(&self) -> RangeInclusive<u64> {
        let Counts { succeeded, timed_out, failed_early } = self.counts();
        let least = if self.data_lost.load(Ordering::Relaxed) { 0 } else { succeeded };
        least..=succeeded + timed_out + failed_early
    }

    pub(super) fn counts(&self) -> Counts {
        let [succeeded, timed_out, failed_early] =
            [&self.succeeded, &self.timed_out, &self.failed_early].map(|count| count.load(Ordering::Relaxed));
        Counts { succeeded, timed_out, failed_early }
    }

    /// Allows for charges that the server loses from now on.
    pub(super) fn expect_data_loss(&self) {
        self.data_lost.store(true, Ordering::Relaxed);
    }
}

impl Counts {
    /// The calls that ended after `before` was taken.
    pub(super) fn since(self, before: Counts) -> Counts {
        Counts {
            succeeded: self.succeeded - before.succeeded,
            timed_out: self.timed_out - before.timed_out,
            failed_early: self.failed_early - before.failed_early,
        }
    }

    pub(super) fn total(self) -> u64 {
        self.succeeded + self.timed_out + self.failed_early
    }
}

/// `Display` and `Debug` of an error and its causes, which reveal no secret.
fn describe(error: &StoreError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause} {cause:?}");
        source = cause.source();
    }
    assert_no_secrets(&text);
    text
}

fn assert_no_secrets(text: &str) {
    for secret in [PASSWORD, OPERATOR_PASSWORD, KEY, "redis://"] {
        assert!(!text.contains(secret), "{text}");
    }
}
