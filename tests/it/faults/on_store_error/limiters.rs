//! `on_store_error` of limiters.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use ratelimits::OnStoreError::{Allow, Deny, Local};
use ratelimits::{
    DecidedBy, Error, FixedWindow, LeakyBucket, Policy, Rate, Registry, SlidingWindow, TokenBucket,
};

use super::{DAY, absent, absent_and, assert_local, assert_store_error};
use crate::support::log_capture::LogCapture;
use crate::support::registries::on;
use crate::support::server::Server;

/// One policy for each kind of state, each with six permits.
fn policies() -> [Policy; 8] {
    let rate = Rate::new(1, DAY);
    [
        TokenBucket::new(rate).burst(6).into(),
        TokenBucket::new(rate).interval_refill().burst(6).into(),
        TokenBucket::new(rate).borrow().burst(6).into(),
        LeakyBucket::new(6, rate).into(),
        FixedWindow::new(6, DAY).into(),
        FixedWindow::new(6, 3650 * DAY).aligned().into(),
        SlidingWindow::new(6, DAY).into(),
        SlidingWindow::new(6, DAY).precision(DAY / 4).into(),
    ]
}

#[tokio::test]
async fn default_is_to_decide_locally() {
    for policy in policies() {
        let registry = absent(Registry::builder());
        let limiter = registry.limiter("a", policy).unwrap();
        for remaining in (0..6).rev() {
            assert_local(limiter.try_acquire("a").await, 6, remaining);
        }
        // A bucket that lends admits one more.
        let _ = limiter.try_acquire("a").await;
        let Err(Error::Limited(limited)) = limiter.try_acquire("a").await else { panic!("{policy:?}") };
        assert_eq!(limited.decision().source, DecidedBy::Local);
        assert!(limited.decision().retry_after.is_some());
        assert_local(limiter.peek("a").await, 6, 0);
        assert_local(limiter.peek("b").await, 6, 6);
    }
}

#[tokio::test]
async fn each_instance_admits_its_share() {
    for policy in policies() {
        let registry = absent(Registry::builder().instances(3));
        let limiter = registry.limiter("a", policy).unwrap();
        let lends = matches!(policy, Policy::TokenBucket(bucket) if bucket == bucket.borrow());
        // The share of a bucket that lends is smaller by what it lends.
        let share = if lends { 1 } else { 2 };
        assert_local(limiter.try_acquire_n("a", share).await, share, 0);
        if lends {
            limiter.try_acquire("a").await.unwrap();
        }
        assert!(limiter.try_acquire("a").await.unwrap_err().is_limited(), "{policy:?}");
    }
}

#[tokio::test]
async fn cost_above_the_share_is_a_store_error() {
    for policy in policies() {
        let registry = absent(Registry::builder().instances(3));
        let limiter = registry.limiter("a", policy).unwrap();
        if limiter.policy() == policies()[2] {
            continue;
        }
        assert_store_error(limiter.try_acquire_n("a", 3).await);
        assert_store_error(limiter.try_acquire_n("a", 6).await);
        assert_store_error(limiter.acquire_n("a", 6).await);
        // More than the policy ever admits, even in Redis.
        let error = limiter.try_acquire_n("a", 7).await.unwrap_err();
        assert!(error.is_limited() && error.retry_after().is_none(), "{policy:?}: {error}");
        assert_local(limiter.try_acquire_n("a", 2).await, 2, 0);
    }
}

#[tokio::test]
async fn allowed_calls_are_not_charged() {
    for policy in policies() {
        let registry = absent_and(Allow);
        let limiter = registry.limiter("a", policy).unwrap();
        for _ in 0..20 {
            let decision = limiter.try_acquire_n("a", 6).await.unwrap();
            assert_eq!((decision.source, decision.limit, decision.remaining), (DecidedBy::Allowed, 6, 6));
            decision.refund().await.unwrap();
        }
        assert_eq!(limiter.peek("a").await.unwrap().source, DecidedBy::Allowed);
        assert_eq!(limiter.acquire_n("a", 7).await.unwrap().source, DecidedBy::Allowed);
        assert_local(limiter.on_store_error(Local).try_acquire_n("a", 6).await, 6, 0);
    }
}

#[tokio::test]
async fn denied_calls_are_store_errors() {
    let registry = absent_and(Deny);
    for (i, policy) in policies().into_iter().enumerate() {
        let limiter = registry.limiter(&format!("a{i}"), policy).unwrap();
        assert_store_error(limiter.try_acquire("a").await);
        assert_store_error(limiter.acquire("a").await);
        assert_store_error(limiter.peek("a").await);
        assert!(limiter.try_acquire_n("a", 0).await.is_ok(), "a cost of 0 needs no store");
        assert_local(limiter.on_store_error(Local).peek("a").await, 6, 6);
    }
}

#[tokio::test]
async fn limiter_overrides_the_registry() {
    let registry = absent(Registry::builder());
    let limiter = registry.limiter("a", FixedWindow::new(5, DAY)).unwrap();
    let deny = limiter.on_store_error(Deny).prefix("sms").function("send");
    assert_store_error(deny.try_acquire("a").await);
    assert_local(limiter.prefix("sms").function("send").try_acquire("a").await, 5, 4);
    assert_eq!(limiter.on_store_error(Allow).peek("a").await.unwrap().source, DecidedBy::Allowed);
}

#[tokio::test]
async fn strictest_of_a_list_applies() {
    let registry = absent(Registry::builder());
    let limiter = |name: &str, policy| registry.limiter(name, FixedWindow::new(policy, DAY)).unwrap();
    let [allow, local_, deny] = [
        limiter("allow", 2).on_store_error(Allow),
        limiter("local", 2),
        limiter("deny", 2).on_store_error(Deny),
    ];
    let all = |limiters: &[&ratelimits::Limiter]| {
        let charges: Vec<_> = limiters.iter().map(|limiter| limiter.charge("a")).collect();
        registry.try_acquire_all(charges)
    };
    assert_store_error(all(&[&allow, &local_, &deny]).await);
    assert_eq!(all(&[&allow]).await.unwrap().source, DecidedBy::Allowed);
    for remaining in [1, 0] {
        assert_local(all(&[&allow, &local_]).await, 2, remaining);
    }
    assert!(all(&[&local_, &allow]).await.unwrap_err().is_limited());
    // In a local decision, the policy that allows is charged too.
    assert_local(allow.on_store_error(Local).peek("a").await, 2, 0);
    assert_local(deny.on_store_error(Local).peek("a").await, 2, 2);
}

#[tokio::test]
async fn local_charges_are_refunded_locally() {
    for policy in policies() {
        let registry = absent(Registry::builder().instances(2));
        let limiter = registry.limiter("a", policy).unwrap();
        let decision = limiter.try_acquire("a").await.unwrap();
        let before = decision.remaining;
        decision.refund().await.unwrap();
        let limit = before + 1;
        assert_local(limiter.peek("a").await, limit, limit);

        limiter.try_acquire("a").await.unwrap();
        // Without a receipt, the store that was charged is unknown.
        assert_store_error(limiter.refund("a", 1).await);
        assert_local(limiter.peek("a").await, limit, before);
        assert_store_error(limiter.reset("a").await);
        assert_local(limiter.peek("a").await, limit, limit);
    }
}

#[tokio::test]
async fn on_store_error_has_no_effect_in_process() {
    let registry = Registry::builder().on_store_error(Deny).instances(3).in_memory();
    let limiter = registry.limiter("a", FixedWindow::new(6, DAY)).unwrap().on_store_error(Allow);
    let decision = limiter.try_acquire_n("a", 6).await.unwrap();
    assert_eq!((decision.source, decision.remaining), (DecidedBy::Memory, 0));
    assert!(limiter.try_acquire("a").await.unwrap_err().is_limited());
}

#[tokio::test]
async fn corrupt_values_ignore_on_store_error() {
    let server = Server::start();
    let registry = on(&server);
    let limiter = registry.limiter("taken", FixedWindow::new(5, DAY)).unwrap();
    let other = registry.limiter("other", FixedWindow::new(5, DAY)).unwrap();
    limiter.try_acquire("a").await.unwrap();
    let keys: Vec<String> = server.command(&["KEYS", "*taken*"]).await;
    for command in [["SADD", &keys[0], "x"], ["SET", &keys[0], "not a state"]] {
        server.command::<()>(&["DEL", &keys[0]]).await;
        server.command::<()>(&command).await;
        for mode in [Allow, Local, Deny] {
            let limiter = limiter.on_store_error(mode);
            assert_store_error(limiter.try_acquire("a").await);
            assert_store_error(limiter.acquire("a").await);
            assert_store_error(limiter.peek("a").await);
            assert_store_error(registry.try_acquire_all([other.charge("a"), limiter.charge("a")]).await);
        }
    }
    assert!(registry.store_health().healthy);
}

#[test]
fn permanent_errors_ignore_on_store_error() {
    for mode in [Allow, Local, Deny] {
        let registry = absent_and(mode);
        let limiter = registry.limiter("a", FixedWindow::new(1, DAY)).unwrap();
        let call = pin!(limiter.try_acquire("a"));
        let polled = call.poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Err(error)) = polled else { panic!("without a runtime: {polled:?}") };
        assert!(error.to_string().contains("runtime"), "{error}");
        assert!(registry.store_health().healthy, "the store did not fail");
    }
}

#[tokio::test]
async fn local_state_is_bounded() {
    let registry = absent(Registry::builder().max_keys(10));
    let limiter = registry.limiter("a", FixedWindow::new(1, DAY)).unwrap();
    for i in 0..100 {
        limiter.try_acquire(i).await.unwrap();
    }
    let mut kept = 0;
    for i in 0..100 {
        kept += u64::from(limiter.peek(i).await.unwrap().remaining == 0);
    }
    assert!(kept <= 10, "{kept}");
}

#[tokio::test]
async fn other_numbers_keep_what_a_limiter_does_on_a_store_error() {
    let registry = absent(Registry::builder());
    let limiter = registry.limiter("a", FixedWindow::new(6, DAY)).unwrap().on_store_error(Deny);
    let limiter = limiter.with_numbers(FixedWindow::new(7, DAY)).unwrap();
    assert!(matches!(limiter.try_acquire(()).await, Err(Error::Store(_))));
}

/// A part of a key that cannot be formatted.
struct Unprintable;

impl fmt::Display for Unprintable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Err(fmt::Error)
    }
}

/// Neither a store that fails nor a key that is missing refuses a call that takes nothing.
#[tokio::test]
async fn free_calls_are_no_refusals() {
    let (log, seen) = (LogCapture::default(), Arc::new(AtomicU64::new(0)));
    let _subscriber = tracing::subscriber::set_default(log.clone());
    let observed = Arc::clone(&seen);
    let builder = Registry::builder().on_store_error(Deny);
    let registry = absent(builder.observer(move |_| _ = observed.fetch_add(1, Ordering::Relaxed)));
    let limiter = registry.limiter("free", FixedWindow::new(5, DAY)).unwrap();
    let list = |cost| [limiter.charge_n("a", 0), limiter.charge_n("b", cost)];
    limiter.try_acquire_n("a", 0).await.unwrap();
    limiter.acquire_n("a", 0).await.unwrap();
    registry.try_acquire_all(list(0)).await.unwrap();
    // It has no answer, as there is no key.
    assert!(matches!(limiter.try_acquire_n(Unprintable, 0).await, Err(Error::MissingKey(_))));
    let refused = || log.messages().iter().filter(|message| *message == "call was refused").count();
    assert_eq!((refused(), seen.load(Ordering::Relaxed)), (0, 0), "{:?}", log.events());

    assert!(matches!(limiter.try_acquire(Unprintable).await, Err(Error::MissingKey(_))));
    assert_store_error(registry.try_acquire_all(list(1)).await);
    assert_eq!((refused(), seen.load(Ordering::Relaxed)), (2, 2), "{:?}", log.events());
}
