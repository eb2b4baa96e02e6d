//! `charge_when`: what is charged depends on what the call comes to.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use ratelimits::{
    Error, FixedWindow, LeakyBucket, Policy, Registry, SlidingWindow, count_limit, funnel_limit,
};
use ratelimits::{rate_limit, window_limit};

use super::isolated;
use crate::support::registries::on_each_registry;

const DAY: Duration = Duration::from_secs(86_400);

/// Counts the logins that fail.
#[count_limit(2, "1d", key = name, charge_when = |out| !matches!(out, Ok(true)))]
async fn log_in(name: &str, right: bool) -> Result<bool, Error> {
    tokio::task::yield_now().await;
    if name.is_empty() {
        return Ok(true);
    }
    Ok(right)
}

#[tokio::test]
async fn gives_back_what_a_call_took_that_is_not_to_be_charged() {
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
async fn is_asked_for_each_policy_of_a_stack() {
    on_each_registry(async |registry, _| {
        for (out, left) in [
            (Some(1), [4, 9, 4, 1]),
            (None, [4, 7, 3, 0]),
            // The policy in shadow has no room, and so nothing to give back.
            (Some(2), [3, 5, 2, 0]),
            (Some(0), [2, 3, 2, 0]),
        ] {
            assert_eq!(registry.scope(each(out)).await, out);
            assert_eq!(left_of_each(&registry).await, left, "after {out:?}");
        }
    })
    .await;
}

async fn left_of_each(registry: &Registry) -> [u64; 4] {
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

/// Charges nothing that comes to an end.
#[count_limit(1, "1d", charge_when = |()| false, fallback = |_| panic!("limited"))]
async fn ends(how: How) {
    match how {
        How::Well => {}
        How::Never => std::future::pending().await,
        How::Badly => panic!("badly"),
    }
}

#[derive(Clone, Copy)]
enum How {
    Well,
    Never,
    Badly,
}

#[test]
fn charges_a_call_that_is_dropped_or_panics() {
    let poll = |how| {
        let mut call = pin!(ends(how));
        let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    };
    for how in [How::Never, How::Badly] {
        isolated(async {
            poll(How::Well);
            poll(How::Well);
            let _ = catch_unwind(|| poll(how));
            let limited = catch_unwind(AssertUnwindSafe(|| poll(How::Well))).unwrap_err();
            assert_eq!(limited.downcast_ref(), Some(&"limited"));
        });
    }
}
