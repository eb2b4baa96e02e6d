//! What calls have used replaces what they were charged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratelimits::{
    Decision, Error, FixedWindow, LeakyBucket, Limiter, Policy, Registry, SlidingWindow, TokenBucket,
    count_limit, rate_limit, window_limit,
};
use tokio::runtime::Builder;

use crate::refunds::{drop_calls_after_their_body, registry};
use crate::support::log_capture::LogCapture;
use crate::support::registries::on_each_registry;
use crate::support::server::Server;
use crate::support::until::until;

const HOUR: Duration = Duration::from_secs(3600);

/// Policies of as many permits, of which hardly any come back while a test runs.
fn policies(limit: u64) -> [Policy; 9] {
    [
        TokenBucket::new("1/h".parse().unwrap()).burst(limit).into(),
        TokenBucket::new("1/h".parse().unwrap()).burst(limit).adjustable().into(),
        TokenBucket::new("1/h".parse().unwrap()).burst(limit).borrow().into(),
        TokenBucket::new("10/h".parse().unwrap()).burst(limit).interval_refill().into(),
        LeakyBucket::draining(limit, 10 * HOUR).into(),
        FixedWindow::new(limit, HOUR).into(),
        FixedWindow::new(limit, 1000 * HOUR).aligned().into(),
        SlidingWindow::new(limit, HOUR).into(),
        SlidingWindow::new(limit, HOUR).precision(HOUR / 60).into(),
    ]
}

/// Settlements on Redis are made soon after.
async fn until_remaining(limiter: &Limiter, expected: u64) {
    until("it is settled", Duration::from_secs(20), async || {
        let remaining = limiter.peek(()).await.unwrap().remaining;
        if remaining == expected { Ok(()) } else { Err(format!("{remaining} remain")) }
    })
    .await;
}

#[tokio::test]
async fn calls_that_used_less_get_the_rest_back() {
    on_each_registry(async |registry, _| {
        for (i, policy) in policies(10).into_iter().enumerate() {
            let limiter = registry.limiter(&i.to_string(), policy).unwrap();
            let mut decision = limiter.try_acquire_n((), 8).await.unwrap();
            decision.settle(3);
            until_remaining(&limiter, 7).await;
            // It is settled, and so not refunded.
            decision.refund().await.unwrap();
            until_remaining(&limiter, 7).await;
            limiter.try_acquire_n((), 7).await.unwrap().settle(0);
            until_remaining(&limiter, 7).await;
        }
    })
    .await;
}

#[tokio::test]
async fn calls_that_used_more_leave_a_debt() {
    on_each_registry(async |registry, _| {
        for (i, policy) in policies(10).into_iter().enumerate() {
            let limiter = registry.limiter(&i.to_string(), policy).unwrap();
            limiter.try_acquire_n((), 2).await.unwrap().settle(5);
            until_remaining(&limiter, 5).await;
            limiter.try_acquire_n((), 2).await.unwrap().settle(25);
            until_remaining(&limiter, 0).await;
            let refused = limiter.try_acquire(()).await.unwrap_err();
            let owed = match policy {
                // Twenty permits at one an hour.
                Policy::TokenBucket(_) if i < 3 => 20 * HOUR,
                Policy::LeakyBucket(_) => 20 * HOUR,
                // Refills of ten, or windows, that pay ten each: the third has a permit.
                Policy::TokenBucket(_) => 3 * HOUR,
                Policy::FixedWindow(_) if i == 5 => 3 * HOUR,
                Policy::FixedWindow(_) => 3000 * HOUR,
                // What was exceeded counts for one period from when it is known.
                _ => HOUR,
            };
            let until = refused.retry_after().unwrap();
            let slack = if i == 6 { 1000 * HOUR } else { HOUR + HOUR / 60 };
            assert!(until <= owed + slack && until + slack > owed, "{policy:?} {until:?} {owed:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn calls_that_overlap_are_settled_in_any_order() {
    let bucket = TokenBucket::new("1/h".parse().unwrap()).burst(20);
    on_each_registry(async |registry, _| {
        for (i, policy) in [bucket.settled(), bucket.borrow().settled()].into_iter().enumerate() {
            let limiter = registry.limiter(&i.to_string(), policy).unwrap();
            let mut calls = Vec::new();
            for cost in [4, 6, 2, 5, 3] {
                calls.push(limiter.try_acquire_n((), cost).await.unwrap());
            }
            for (call, used, remaining) in [(1, 2, 4), (3, 7, 2), (4, 0, 5), (2, 1, 6)] {
                calls[call].settle(used);
                until_remaining(&limiter, remaining).await;
            }
        }
    })
    .await;
}

#[test]
fn buckets_of_attributes_remember_what_they_lack() {
    let all = ratelimits::policies();
    let tokens = all.iter().find(|policy| &*policy.name == "settling.tokens").unwrap();
    let bucket = TokenBucket::new("1/h".parse().unwrap()).burst(100);
    assert_eq!(tokens.policy, Some(bucket.settled().into()));
}

#[rate_limit(rate = "1/h", burst = 100, name = "settling.tokens", cost = estimate, settle = |used| *used.as_ref().unwrap_or(&0))]
#[count_limit(1000, "1d", name = "settling.requests")]
#[window_limit(50, "1d", name = "settling.failures", cost = 5, settle = |used: &Result<_, _>| if used.is_ok() { 0_u8 } else { 5 })]
async fn complete(estimate: u32, used: u64) -> Result<u64, Error> {
    tokio::task::yield_now().await;
    if used == 0 {
        return Err(Error::MissingKey(ratelimits::error::MissingKey::User));
    }
    Ok(used)
}

#[tokio::test]
async fn each_attribute_settles_its_own() {
    on_each_registry(async |registry, _| {
        let limiter = |name: &str| registry.policy(name).unwrap();
        let remain = async |tokens: u64, requests: u64, failures: u64| {
            until("it is settled", Duration::from_secs(20), async || {
                let remaining = async |name| limiter(name).peek(()).await.unwrap().remaining;
                let found = [
                    remaining("settling.tokens").await,
                    remaining("settling.requests").await,
                    remaining("settling.failures").await,
                ];
                if found == [tokens, requests, failures] { Ok(()) } else { Err(format!("{found:?}")) }
            })
            .await;
        };
        registry.scope(complete(20, 30)).await.unwrap();
        remain(70, 999, 50).await;
        registry.scope(complete(20, 10)).await.unwrap();
        remain(60, 998, 50).await;
        registry.scope(complete(0, 0)).await.unwrap_err();
        remain(60, 997, 45).await;
        registry.scope(complete(0, 160)).await.unwrap();
        remain(0, 996, 45).await;
        // One of no cost needs a free permit all the same.
        let refused = registry.scope(complete(0, 1)).await.unwrap_err();
        assert!(refused.is_limited());
        assert!(refused.retry_after() > Some(99 * HOUR));
    })
    .await;
}

#[tokio::test]
async fn policies_of_one_key_are_settled_together() {
    on_each_registry(async |registry, _| {
        let [a, b] = ["a", "b"].map(|name| registry.limiter(name, FixedWindow::new(100, HOUR)).unwrap());
        let list = [a.charge_n((), 10), b.charge_n((), 10), a.charge_n((), 20)];
        let mut decision = registry.try_acquire_all(list).await.unwrap();
        decision.settle_each([12, 4, 5]);
        until_remaining(&a, 83).await;
        until_remaining(&b, 96).await;
        // All on one key.
        let list = [b.charge_n((), 10), b.charge_n((), 20)];
        registry.try_acquire_all(list).await.unwrap().settle_each([12, 5]);
        until_remaining(&b, 79).await;
    })
    .await;
}

/// A stream that counts what it sends, and settles when it is dropped.
struct Stream {
    decision: Decision,
    sent: u64,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.decision.settle(self.sent);
    }
}

#[tokio::test]
async fn streams_settle_when_they_are_dropped() {
    on_each_registry(async |registry, _| {
        let limiter =
            registry.limiter("bytes", TokenBucket::new("1/h".parse().unwrap()).burst(1000)).unwrap();
        let decision = limiter.try_acquire_n((), 500).await.unwrap();
        let mut stream = Stream { decision, sent: 0 };
        stream.sent += 77;
        drop(stream);
        until_remaining(&limiter, 923).await;
    })
    .await;
}

const CALLS: u64 = 1000;

#[count_limit(10_000, "1d", name = "settling.dropped", cost = 5, settle = |_| 2)]
async fn ends(ended: Arc<AtomicU64>) -> Result<(), Error> {
    ended.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_go_away_lose_no_settlement() {
    let server = Server::start();
    let registry = registry(&server);
    let limiter = registry.limiter("settling.dropped", FixedWindow::new(10_000, 24 * HOUR)).unwrap();
    drop_calls_after_their_body(CALLS, |ended| registry.scope(ends(ended))).await;
    until_remaining(&limiter, 10_000 - 2 * CALLS).await;
}

#[tokio::test]
async fn settlements_of_each_policy_share_script_calls() {
    let server = Server::start();
    let registry = registry(&server);
    for (i, policy) in policies(10_000).into_iter().enumerate() {
        let limiter = registry.limiter(&format!("many{i}"), policy).unwrap();
        let mut decisions = Vec::new();
        for _ in 0..300 {
            decisions.push(limiter.try_acquire_n((), 5).await.unwrap());
        }
        let before = server.script_calls().await;
        // By turns less and more.
        (0..).zip(&mut decisions).for_each(|(i, decision)| decision.settle(if i % 2 == 0 { 2 } else { 6 }));
        until_remaining(&limiter, 10_000 - 150 * 2 - 150 * 6).await;
        let calls = server.script_calls().await - before;
        assert!(calls < 150, "policy {i}: {calls}");
    }
}

#[test]
fn settlements_outlive_their_runtime() {
    const EACH: u64 = 50;
    let server = Server::start();
    let registry = registry(&server);
    let limiter = registry.limiter("ended", FixedWindow::new(1000, HOUR)).unwrap();
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    for round in 0..3 {
        let left = 1000 - 2 * EACH * round;
        runtime().block_on(async {
            let mut decisions = Vec::new();
            for _ in 0..EACH {
                decisions.push(limiter.try_acquire_n((), 5).await.unwrap());
            }
            decisions[0].settle(2);
            until_remaining(&limiter, left - 5 * (EACH - 1) - 2).await;
            // These are gathered, as one was sent just before.
            decisions.iter_mut().skip(1).for_each(|decision| decision.settle(2));
        });
        runtime().block_on(until_remaining(&limiter, left - 2 * EACH));
    }
}

#[tokio::test]
async fn failed_settlements_are_logged() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let server = Server::start();
    let registry = Registry::connect_lazy(&server.url()).unwrap();
    let limiter = registry.limiter("failed", FixedWindow::new(10, HOUR)).unwrap();
    let mut decision = limiter.try_acquire(()).await.unwrap();
    drop(server);
    decision.settle(5);
    until("it is logged", Duration::from_secs(20), async || {
        let text = log.text();
        if text.contains("failed to settle calls") { Ok(()) } else { Err(text) }
    })
    .await;
}

#[count_limit(10, "1d", name = "settling.negative", cost = 5, settle = |_| -3)]
async fn negative() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_settled_is_logged() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let registry = Registry::in_memory();
    registry.scope(negative()).await.unwrap();
    let limiter = registry.limiter("twice", FixedWindow::new(10, HOUR)).unwrap();
    let mut decision = limiter.try_acquire_n((), 2).await.unwrap();
    decision.settle(3);
    decision.settle(4);
    decision.settle_each([1, 2]);
    assert_eq!(limiter.peek(()).await.unwrap().remaining, 7);
    // One figure for two policies.
    let other = registry.limiter("other", FixedWindow::new(10, HOUR)).unwrap();
    registry.try_acquire_all([limiter.charge(()), other.charge(())]).await.unwrap().settle(5);
    assert_eq!(limiter.peek(()).await.unwrap().remaining, 6);
    let remaining = registry.policy("settling.negative").unwrap().peek(()).await.unwrap().remaining;
    assert_eq!(remaining, 5);
    // At most one a minute for each problem: a negative figure, a second one, and a wrong number of them.
    let text = log.text();
    assert_eq!(text.matches("calls are not settled").count(), 3, "{text}");
    assert!(text.contains("policy=settling.negative") && text.contains("problem="), "{text}");

    // A figure out of all proportion.
    limiter.try_acquire(()).await.unwrap().settle(u64::MAX);
    let refused = limiter.try_acquire(()).await.unwrap_err();
    assert!(refused.retry_after() <= Some(26 * HOUR), "{refused:?}");
    assert!(log.text().contains("debts were cut"), "{}", log.text());

    // Slots are not given back in part.
    let queue = registry.limiter("queue", LeakyBucket::draining(10, HOUR).queue()).unwrap();
    queue.try_acquire_n((), 5).await.unwrap().settle(1);
    assert_eq!(queue.peek(()).await.unwrap().remaining, 6);
}
