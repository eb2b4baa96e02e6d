//! Policies that an operator has put in shadow or turned off: calls that may wait, leases, refunds and store errors.

use std::future::Future;
use std::time::Duration;

use ratelimits::{Error, FixedWindow, OnStoreError, Registry, TokenBucket, count_limit, rate_limit};

use super::{DAY, Overrides, WITHIN, in_force, on_each_registry};
use crate::support::until::until;

const ABSENT: &str = "redis://127.0.0.1:1";
const LONG: Duration = Duration::from_secs(100 * 86_400);

#[rate_limit(rate = "1/d", burst = 1, name = "switches.waits", timeout = "100d")]
async fn waits() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1d", name = "switches.leased", lease = 5)]
async fn leased() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1d", name = "switches.refunds", charge_when = |_| false)]
async fn refunds() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1d", name = "switches.denies", on_store_error = deny)]
async fn denies() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1d", name = "switches.raised_too")]
async fn raised() -> Result<(), Error> {
    Ok(())
}

/// Returns the output of a call that must not wait.
async fn at_once<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(WITHIN, call).await.expect("it does not wait")
}

#[tokio::test]
async fn calls_that_may_wait_do_not_wait_for_a_shadow() {
    let text = "[\"switches.waits\"]\nshadow = true\n[\"switches.limiter\"]\nshadow = true\n";
    on_each_registry(text, async |registry, _| {
        let limiter = registry.limiter("switches.limiter", TokenBucket::new("1/d".parse().unwrap())).unwrap();
        in_force(registry, &["switches.limiter", "switches.waits"]).await;
        for _ in 0..3 {
            at_once(registry.scope(waits())).await.unwrap();
            at_once(limiter.acquire_timeout((), LONG)).await.unwrap();
        }
        // Shadows take no permits of the future.
        for limiter in [limiter, registry.policy("switches.waits").unwrap().limiter().unwrap()] {
            let decision = limiter.peek(()).await.unwrap();
            assert!(decision.remaining == 0 && decision.reset_after <= DAY, "{decision:?}");
        }
        assert_eq!(registry.policy("switches.waits").unwrap().usage(()).await.unwrap().used, 1);
    })
    .await;
}

#[tokio::test]
async fn calls_of_a_policy_that_is_off_charge_nothing() {
    let names = ["switches.leased", "switches.refunds", "switches.waits"];
    on_each_registry("# none\n", async |registry, file| {
        let used = async || {
            let mut used = Vec::new();
            for name in names {
                used.push(registry.policy(name).unwrap().usage(()).await.unwrap().used);
            }
            used
        };
        let limiter = registry.policy("switches.waits").unwrap().limiter().unwrap();
        registry.scope(waits()).await.unwrap();
        let before = used().await;
        file.replace(&names.map(|name| format!("[\"{name}\"]\noff = true\n")).concat());
        in_force(registry, &names).await;
        for _ in 0..6 {
            at_once(registry.scope(waits())).await.unwrap();
            at_once(limiter.acquire(())).await.unwrap();
            registry.scope(leased()).await.unwrap();
            registry.scope(refunds()).await.unwrap();
        }
        assert_eq!(used().await, before);
    })
    .await;
}

#[tokio::test]
async fn charges_of_a_policy_that_is_off_are_refunded() {
    on_each_registry("# none\n", async |registry, file| {
        let limiter = registry.limiter("switches.charged", FixedWindow::new(5, DAY)).unwrap();
        let decision = limiter.try_acquire_n((), 2).await.unwrap();
        limiter.try_acquire_n((), 3).await.unwrap();
        file.replace("[\"switches.charged\"]\noff = true\n");
        in_force(registry, &["switches.charged"]).await;
        limiter.refund((), 1).await.unwrap();
        assert_eq!(limiter.peek(()).await.unwrap().remaining, 1);
        decision.refund().await.unwrap();
        assert_eq!(limiter.peek(()).await.unwrap().remaining, 3);
    })
    .await;
}

#[tokio::test]
async fn neither_shadow_nor_off_refuses_on_a_store_error() {
    for switch in ["shadow", "off"] {
        let text =
            ["switches.denied", "switches.denies"].map(|name| format!("[\"{name}\"]\n{switch} = true\n"));
        let file = Overrides::new(&text.concat());
        let builder = Registry::builder().on_store_error(OnStoreError::Deny);
        let registry = builder.overrides(&file.0).connect_lazy(ABSENT).unwrap();
        let limiter = registry.limiter("switches.denied", FixedWindow::new(5, DAY)).unwrap();
        in_force(&registry, &["switches.denied", "switches.denies"]).await;
        registry.scope(denies()).await.unwrap();
        let decision = limiter.try_acquire(()).await.unwrap();
        assert_eq!(decision.retry_after, None);
        // What an operator asks for fails.
        assert!(matches!(limiter.peek(()).await, Err(Error::Store(_))));
    }
}

#[tokio::test]
async fn refusals_that_are_remembered_end_with_the_numbers() {
    on_each_registry("# none\n", async |registry, file| {
        let limiter = registry.limiter("switches.raised", FixedWindow::new(1, DAY)).unwrap();
        let calls = async || (limiter.try_acquire(()).await, registry.scope(raised()).await);
        file.replace(
            &["switches.raised", "switches.raised_too"]
                .map(|name| format!("[\"{name}\"]\nlimit = 5\n"))
                .concat(),
        );
        until("the limits are raised", WITHIN, async || {
            let is_raised = !registry.overrides().is_empty();
            let calls = calls().await;
            if !is_raised {
                return Err(format!("{calls:?}"));
            }
            assert!(calls.0.is_ok() && calls.1.is_ok(), "{calls:?}");
            Ok(())
        })
        .await;
    })
    .await;
}
