//! `charge_when`: the output decides what is charged.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use ratelimits::{
    Error, FixedWindow, LeakyBucket, Policy, Registry, SlidingWindow, count_limit, funnel_limit,
};
use ratelimits::{rate_limit, window_limit};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::isolated;
use crate::support::registries::on_each_registry;

const DAY: Duration = Duration::from_secs(86_400);

/// Counts failed logins.
#[count_limit(2, "1d", key = name, charge_when = |out| !matches!(out, Ok(true)))]
async fn log_in(name: &str, succeeds: bool) -> Result<bool, Error> {
    tokio::task::yield_now().await;
    if name.is_empty() {
        return Ok(true);
    }
    Ok(succeeds)
}

#[tokio::test]
async fn uncharged_calls_are_refunded() {
    on_each_registry(async |registry, _| {
        let calls = async {
            for _ in 0..5 {
                assert!(log_in("ann", true).await.unwrap());
                assert!(log_in("", false).await.unwrap());
            }
            assert!(!log_in("ann", false).await.unwrap());
            assert!(log_in("ann", true).await.unwrap());
            assert!(!log_in("ann", false).await.unwrap());
            assert!(log_in("ann", true).await.unwrap_err().is_limited());
        };
        registry.scope(calls).await;
    })
    .await;
}

#[count_limit(5, "15m", charge_when = |out| !matches!(out, Ok(true)))]
async fn log_in_slowly(gate: &Barrier) -> Result<bool, Error> {
    gate.wait().await;
    Ok(true)
}

#[tokio::test]
async fn permits_are_held_while_calls_run() {
    on_each_registry(async |registry, _| {
        // Ten correct logins at once: five wait for each other, until the gate opens after the other five are refused.
        let gate = Arc::new(Barrier::new(6));
        let mut logins = JoinSet::new();
        for _ in 0..10 {
            let (registry, gate) = (registry.clone(), Arc::clone(&gate));
            logins.spawn(async move { registry.scope(log_in_slowly(&gate)).await });
        }
        for _ in 0..5 {
            let refused = logins.join_next().await.unwrap().unwrap().unwrap_err();
            assert!(refused.is_limited());
            assert!(refused.retry_after().unwrap() > Duration::from_secs(14 * 60));
        }
        gate.wait().await;
        let admitted = logins.join_all().await;
        assert!(
            admitted.len() == 5 && admitted.iter().all(|login| matches!(login, Ok(true))),
            "{admitted:?}"
        );
    })
    .await;
}

#[funnel_limit(5, drain = "1d", name = "charging.funnel", skip_when = out == Some(0), fallback = |_| Some(9))]
#[window_limit(5, "1d", name = "charging.window", fallback = |_| Some(9), charge_when = Option::is_some)]
#[rate_limit("9/day", 9, name = "charging.bucket", cost = 2, charge_when = charges, fallback = |_| Some(9))]
#[count_limit(1, "1d", name = "charging.shadow", shadow, charge_when = Option::is_none)]
async fn each(out: Option<u8>) -> Option<u8> {
    out
}

fn charges(out: &Option<u8>) -> bool {
    *out != Some(1)
}

#[tokio::test]
async fn each_policy_of_a_stack_decides() {
    on_each_registry(async |registry, _| {
        for (out, left) in [
            (Some(1), [4, 9, 4, 1]),
            (None, [4, 7, 3, 0]),
            // The shadow policy is full, so it was not charged.
            (Some(2), [3, 5, 2, 0]),
            (Some(0), [2, 3, 2, 0]),
        ] {
            assert_eq!(registry.scope(each(out)).await, out);
            assert_eq!(remaining(&registry).await, left, "after {out:?}");
        }
    })
    .await;
}

async fn remaining(registry: &Registry) -> [u64; 4] {
    let left = async |name: &str, policy: Policy| {
        let limiter = registry.limiter(name, policy).unwrap().function("it::macros::charging::each");
        limiter.peek(()).await.unwrap().remaining
    };
    let bucket = ratelimits::TokenBucket::new("9/day".parse().unwrap()).burst(9);
    [
        left("charging.window", SlidingWindow::new(5, DAY).into()).await,
        left("charging.bucket", bucket.into()).await,
        left("charging.funnel", LeakyBucket::draining(5, DAY).into()).await,
        left("charging.shadow", FixedWindow::new(1, DAY).into()).await,
    ]
}

/// Refunds every call that completes.
#[count_limit(1, "1d", charge_when = |()| false, fallback = |_| panic!("limited"))]
async fn ends(end: End) {
    match end {
        End::Returns => {}
        End::Hangs => std::future::pending().await,
        End::Panics => panic!("body"),
    }
}

#[derive(Clone, Copy)]
enum End {
    Returns,
    Hangs,
    Panics,
}

#[test]
fn dropped_and_panicking_calls_are_charged() {
    let poll = |end| {
        let mut call = pin!(ends(end));
        let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    };
    for end in [End::Hangs, End::Panics] {
        isolated(async {
            poll(End::Returns);
            poll(End::Returns);
            let _ = catch_unwind(|| poll(end));
            let limited = catch_unwind(AssertUnwindSafe(|| poll(End::Returns))).unwrap_err();
            assert_eq!(limited.downcast_ref(), Some(&"limited"));
        });
    }
}

#[count_limit(1, "1d", name = "charging.trial", shadow, charge_when = |out| *out)]
async fn on_trial(out: bool) -> bool {
    out
}

#[tokio::test]
async fn shadows_give_nothing_back_for_calls_they_did_not_charge() {
    on_each_registry(async |registry, _| {
        let limiter = registry.limiter("charging.trial", FixedWindow::new(1, DAY)).unwrap();
        registry.scope(on_trial(true)).await;
        registry.scope(on_trial(false)).await;
        assert_eq!(limiter.peek(()).await.unwrap().remaining, 0);
    })
    .await;
}

#[count_limit(limit = limit, period = "1d", name = "charging.computed", charge_when = |out| matches!(out, Ok(true)))]
async fn computed(limit: u64, out: bool) -> Result<bool, Error> {
    Ok(out)
}

#[tokio::test]
async fn calls_with_computed_numbers_are_refunded() {
    on_each_registry(async |registry, _| {
        for _ in 0..3 {
            assert!(!registry.scope(computed(1, false)).await.unwrap());
        }
        assert!(registry.scope(computed(1, true)).await.unwrap());
        assert!(registry.scope(computed(1, true)).await.unwrap_err().is_limited());
    })
    .await;
}
