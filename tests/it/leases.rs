//! Leases of attributes in Redis.

mod cluster;
mod ending;
mod replay;
mod runtimes;
mod slack;
mod slack_replay;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use ratelimits::{Error, FixedWindow, Limiter, OnStoreError, Policy, Rate, Registry, TokenBucket};
use ratelimits::{count_limit, rate_limit};
use tokio::task::JoinSet;

use crate::support::registries::{LONG_DEADLINE, namespace};
use crate::support::server::Server;
use crate::support::until::until;

const DAY: Duration = Duration::from_secs(86_400);
const WITHIN: Duration = Duration::from_secs(30);

#[count_limit(100, "1d", key = key, name = "window", lease = 10, registry = registry)]
async fn window(registry: &Registry, key: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(100, "1d", key = key, name = "window", cost = cost, lease = 10, registry = registry)]
async fn costly(registry: &Registry, key: &str, cost: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(100, "1d", aligned, name = "aligned", lease = 10, registry = registry)]
async fn aligned(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("100/day", 100, name = "bucket", lease = 10, registry = registry)]
async fn bucket(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("100/day", refill = interval, name = "interval", lease = 10, registry = registry)]
async fn interval(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = limit, period = "1d", name = "computed", lease = 10, registry = registry)]
async fn computed(registry: &Registry, limit: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(100_000, "1d", name = "small", lease = 2, registry = registry)]
async fn small(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

struct Fixture {
    server: Server,
    namespace: String,
}

impl Fixture {
    fn start() -> Self {
        Fixture { server: Server::start(), namespace: namespace() }
    }

    fn registry(&self) -> Registry {
        registry(&self.server.url(), &self.namespace)
    }

    fn limiter(&self, name: &str, policy: impl Into<Policy>) -> Limiter {
        self.registry().limiter(name, policy).unwrap()
    }

    fn window(&self) -> Limiter {
        self.limiter("window", FixedWindow::new(100, DAY))
    }
}

/// A registry as another process has it.
fn registry(url: &str, namespace: &str) -> Registry {
    let builder = Registry::builder().namespace(namespace).deadline(LONG_DEADLINE);
    builder.on_store_error(OnStoreError::Deny).connect_lazy(url).unwrap()
}

/// The first call of a key asks for itself, the second takes ten permits, of which it leaves nine.
async fn lease(registry: &Registry, key: &str) {
    window(registry, key).await.unwrap();
    window(registry, key).await.unwrap();
}

async fn remaining(limiter: &Limiter, key: &str) -> u64 {
    limiter.peek(key).await.unwrap().remaining
}

/// Waits until the lease that was asked for ahead of time has been charged.
async fn until_remaining(limiter: &Limiter, key: &str, expected: u64) {
    until("the next lease is taken", WITHIN, async || match remaining(limiter, key).await {
        remaining if remaining == expected => Ok(()),
        remaining => Err(format!("{remaining} permits remain")),
    })
    .await;
}

#[tokio::test]
async fn peek_counts_leased_permits_as_used() {
    let (fixture, rate) = (Fixture::start(), Rate::new(100, DAY));
    let registry = fixture.registry();
    lease(&registry, "a").await;
    assert_eq!(remaining(&fixture.window(), "a").await, 89);
    for (name, policy) in [
        ("aligned", Policy::from(FixedWindow::new(100, DAY).aligned())),
        ("bucket", TokenBucket::new(rate).burst(100).into()),
        ("interval", TokenBucket::new(rate).interval_refill().into()),
    ] {
        for _ in 0..2 {
            match name {
                "aligned" => aligned(&registry).await.unwrap(),
                "bucket" => bucket(&registry).await.unwrap(),
                _ => interval(&registry).await.unwrap(),
            }
        }
        assert_eq!(fixture.limiter(name, policy).peek(()).await.unwrap().remaining, 89, "{name}");
    }
}

#[tokio::test]
async fn a_lease_is_one_request() {
    let fixture = Fixture::start();
    let (registry, limiter) = (fixture.registry(), fixture.window());
    window(&registry, "a").await.unwrap();
    assert_eq!(remaining(&limiter, "a").await, 99, "the first call asks for itself");
    let before = fixture.server.script_calls().await;
    for _ in 0..7 {
        window(&registry, "a").await.unwrap();
    }
    assert_eq!(fixture.server.script_calls().await - before, 1);
    window(&registry, "a").await.unwrap();
    // Two are left, and eight more make ten.
    until_remaining(&limiter, "a", 81).await;
}

#[tokio::test]
async fn leases_belong_to_a_key_and_a_registry() {
    let fixture = Fixture::start();
    let (limiter, registry) = (fixture.window(), fixture.registry());
    lease(&registry, "a").await;
    lease(&registry, "b").await;
    assert_eq!((remaining(&limiter, "a").await, remaining(&limiter, "b").await), (89, 89));
    let other = fixture.registry();
    lease(&other, "a").await;
    assert_eq!(remaining(&limiter, "a").await, 78);
}

#[tokio::test]
async fn calls_with_other_numbers_ask_for_themselves() {
    let fixture = Fixture::start();
    let (registry, limiter) = (fixture.registry(), fixture.limiter("computed", FixedWindow::new(100, DAY)));
    let remaining = async || limiter.peek(()).await.unwrap().remaining;
    computed(&registry, 100).await.unwrap();
    computed(&registry, 100).await.unwrap();
    assert_eq!(remaining().await, 89);
    computed(&registry, 50).await.unwrap();
    assert_eq!(remaining().await, 88);
    // More than the policy admits is never leased.
    let small = fixture.registry();
    computed(&small, 15).await.unwrap();
    computed(&small, 15).await.unwrap();
    assert_eq!(remaining().await, 85);
    let error = computed(&fixture.registry(), 15).await.unwrap_err();
    assert!(error.is_limited(), "{error}");
}

#[tokio::test]
async fn the_last_permits_are_admitted() {
    let fixture = Fixture::start();
    for (key, first) in [("all", 0), ("some", 95), ("one", 99), ("none", 100)] {
        let (registry, limiter) = (fixture.registry(), fixture.window());
        if first > 0 {
            limiter.try_acquire_n(key, first).await.unwrap();
        }
        for call in first..100 {
            window(&registry, key).await.unwrap_or_else(|error| panic!("{key}, {call}: {error}"));
        }
        assert_eq!(remaining(&limiter, key).await, 0);
        for _ in 0..3 {
            let error = window(&registry, key).await.unwrap_err();
            assert!(error.is_limited() && error.retry_after().is_some(), "{error}");
        }
    }
    let (registry, limiter) = (fixture.registry(), fixture.window());
    for _ in 0..33 {
        costly(&registry, "costly", 3).await.unwrap();
    }
    assert!(costly(&registry, "costly", 3).await.unwrap_err().is_limited());
    costly(&registry, "costly", 1).await.unwrap();
    assert_eq!(remaining(&limiter, "costly").await, 0);
}

#[tokio::test]
async fn calls_that_cost_a_lease_ask_for_themselves() {
    let fixture = Fixture::start();
    let (registry, limiter) = (fixture.registry(), fixture.window());
    for (cost, left) in [(1, 99), (10, 89), (12, 77), (9, 67)] {
        costly(&registry, "a", cost).await.unwrap();
        assert_eq!(remaining(&limiter, "a").await, left);
    }
    costly(&registry, "a", 0).await.unwrap();
    assert_eq!(remaining(&limiter, "a").await, 67);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_calls_get_exactly_the_limit() {
    let fixture = Fixture::start();
    let (registry, other) = (fixture.registry(), fixture.registry());
    let mut calls = JoinSet::new();
    for i in 0..300 {
        let registry = if i % 2 == 0 { registry.clone() } else { other.clone() };
        calls.spawn(async move { window(&registry, "a").await.is_ok() });
    }
    let admitted = calls.join_all().await.into_iter().filter(|admitted| *admitted).count();
    assert_eq!(admitted, 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_calls_share_requests() {
    const CALLS: u64 = 1000;
    let fixture = Fixture::start();
    let registry = fixture.registry();
    small(&registry).await.unwrap();
    let before = fixture.server.script_calls().await;
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let registry = registry.clone();
        calls.spawn(async move { small(&registry).await.unwrap() });
    }
    calls.join_all().await;
    let sent = fixture.server.script_calls().await - before;
    assert!(sent <= CALLS / 5, "{sent} script calls");
}

#[tokio::test]
async fn a_limited_key_hardly_costs_more_requests() {
    const CALLS: u64 = 100;
    let fixture = Fixture::start();
    let builder = Registry::builder().namespace(&*fixture.namespace).deadline(LONG_DEADLINE);
    let registry = builder.local_denials(false).connect_lazy(&fixture.server.url()).unwrap();
    fixture.window().try_acquire_n("a", 100).await.unwrap();
    let (before, start) = (fixture.server.script_calls().await, Instant::now());
    for _ in 0..CALLS {
        assert!(window(&registry, "a").await.unwrap_err().is_limited());
    }
    let (leases, seconds) = (fixture.server.script_calls().await - before - CALLS, start.elapsed().as_secs());
    assert!(leases <= 1 + seconds, "{leases} leases tried within {seconds} s");
}

#[tokio::test]
async fn denials_are_repeated() {
    let fixture = Fixture::start();
    fixture.window().try_acquire_n("a", 100).await.unwrap();
    until("calls are refused without a request", WITHIN, async || {
        let registry = fixture.registry();
        assert!(window(&registry, "a").await.unwrap_err().is_limited());
        let before = fixture.server.script_calls().await;
        assert!(window(&registry, "a").await.unwrap_err().is_limited());
        let sent = fixture.server.script_calls().await - before;
        if sent == 0 { Ok(()) } else { Err(format!("{sent} script calls")) }
    })
    .await;
}

/// What is leased is refused to others, also of this process.
#[tokio::test]
async fn denials_leave_leased_permits_to_their_calls() {
    let fixture = Fixture::start();
    let registry = fixture.registry();
    let limiter = registry.limiter("window", FixedWindow::new(100, DAY)).unwrap();
    lease(&registry, "a").await;
    limiter.try_acquire_n("a", 89).await.unwrap();
    for call in 1..10 {
        assert!(limiter.try_acquire("a").await.unwrap_err().is_limited());
        window(&registry, "a").await.unwrap_or_else(|error| panic!("{call}: {error}"));
    }
    assert!(window(&registry, "a").await.unwrap_err().is_limited());
}

#[tokio::test]
async fn dropped_calls_leave_their_permits_to_others() {
    let fixture = Fixture::start();
    let (registry, limiter) = (fixture.registry(), fixture.window());
    window(&registry, "a").await.unwrap();
    {
        let mut call = pin!(window(&registry, "a"));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    until_remaining(&limiter, "a", 89).await;
    let before = fixture.server.script_calls().await;
    for _ in 0..7 {
        window(&registry, "a").await.unwrap();
    }
    assert_eq!(fixture.server.script_calls().await, before);
}

#[tokio::test]
async fn resets_end_leases() {
    let fixture = Fixture::start();
    let registry = fixture.registry();
    let limiter = registry.limiter("window", FixedWindow::new(100, DAY)).unwrap();
    lease(&registry, "a").await;
    assert!(limiter.reset("a").await.unwrap());
    window(&registry, "a").await.unwrap();
    assert_eq!(remaining(&limiter, "a").await, 90);
}

/// Even where another process has removed what Redis has.
#[tokio::test]
async fn leases_are_state_to_reset() {
    let fixture = Fixture::start();
    let registry = fixture.registry();
    let limiter = registry.limiter("window", FixedWindow::new(100, DAY)).unwrap();
    lease(&registry, "a").await;
    for (limiter, was_state) in
        [(&fixture.window(), true), (&fixture.window(), false), (&limiter, true), (&limiter, false)]
    {
        assert_eq!(limiter.reset("a").await.unwrap(), was_state);
    }
}

#[tokio::test]
async fn leased_permits_outlast_an_outage() {
    let fixture = Fixture::start();
    let registry = fixture.registry();
    lease(&registry, "a").await;
    fixture.server.kill();
    for _ in 0..9 {
        window(&registry, "a").await.unwrap();
    }
    let error = window(&registry, "a").await.unwrap_err();
    assert!(matches!(error, Error::Store(_)), "{error}");
}
