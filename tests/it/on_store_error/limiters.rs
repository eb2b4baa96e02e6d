//! Limiters by hand.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use ratelimits::OnStoreError::{Allow, Deny, Local};
use ratelimits::{
    Error, FixedWindow, LeakyBucket, Policy, Rate, Registry, SlidingWindow, Source, TokenBucket,
};

use super::{DAY, absent, absent_and, assert_store, local};
use crate::support::registries::on;
use crate::support::server::Server;

/// One policy of each algorithm and way to keep its state, each for six permits.
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
async fn by_default_the_policy_holds_in_this_process() {
    for policy in policies() {
        let registry = absent(Registry::builder());
        let limiter = registry.limiter("a", policy).unwrap();
        for remaining in (0..6).rev() {
            assert_eq!(local(limiter.try_acquire("a", 1).await), (6, remaining), "{policy:?}");
        }
        // A bucket that lends goes ahead once more.
        let _ = limiter.try_acquire("a", 1).await;
        let Err(Error::Limited(limited)) = limiter.try_acquire("a", 1).await else { panic!("{policy:?}") };
        assert_eq!(limited.decision().source, Source::Local);
        assert!(limited.decision().retry_after.is_some());
        assert_eq!(local(limiter.peek("a").await), (6, 0));
        assert_eq!(local(limiter.peek("b").await), (6, 6));
    }
}

#[tokio::test]
async fn each_instance_has_its_share() {
    for policy in policies() {
        let registry = absent(Registry::builder().instances(3));
        let limiter = registry.limiter("a", policy).unwrap();
        let lends = matches!(policy, Policy::TokenBucket(bucket) if bucket == bucket.borrow());
        // Of a bucket that lends, a share holds less by what it lends.
        let share = if lends { 1 } else { 2 };
        assert_eq!(local(limiter.try_acquire("a", share).await), (share, 0), "{policy:?}");
        if lends {
            limiter.try_acquire("a", 1).await.unwrap();
        }
        assert!(limiter.try_acquire("a", 1).await.unwrap_err().is_limited(), "{policy:?}");
    }
}

#[tokio::test]
async fn what_no_share_holds_is_not_called_limited() {
    for policy in policies() {
        let registry = absent(Registry::builder().instances(3));
        let limiter = registry.limiter("a", policy).unwrap();
        if limiter.policy() == policies()[2] {
            continue;
        }
        assert_store(limiter.try_acquire("a", 3).await);
        assert_store(limiter.try_acquire("a", 6).await);
        assert_store(limiter.acquire("a", 6).await);
        // That is more than the policy ever admits, wherever it is decided.
        let error = limiter.try_acquire("a", 7).await.unwrap_err();
        assert!(error.is_limited() && error.retry_after().is_none(), "{policy:?}: {error}");
        assert_eq!(local(limiter.try_acquire("a", 2).await), (2, 0), "nothing was charged");
    }
}

#[tokio::test]
async fn allowed_calls_are_not_charged() {
    for policy in policies() {
        let registry = absent_and(Allow);
        let limiter = registry.limiter("a", policy).unwrap();
        for _ in 0..20 {
            let decision = limiter.try_acquire("a", 6).await.unwrap();
            assert_eq!((decision.source, decision.limit, decision.remaining), (Source::Allowed, 6, 6));
            decision.refund().await.unwrap();
        }
        assert_eq!(limiter.peek("a").await.unwrap().source, Source::Allowed);
        assert_eq!(limiter.acquire("a", 7).await.unwrap().source, Source::Allowed);
        assert_eq!(local(limiter.on_store_error(Local).try_acquire("a", 6).await), (6, 0));
    }
}

#[tokio::test]
async fn denied_calls_are_errors_of_the_store() {
    let registry = absent_and(Deny);
    for (i, policy) in policies().into_iter().enumerate() {
        let limiter = registry.limiter(&format!("a{i}"), policy).unwrap();
        assert_store(limiter.try_acquire("a", 1).await);
        assert_store(limiter.acquire("a", 1).await);
        assert_store(limiter.peek("a").await);
        assert!(limiter.try_acquire("a", 0).await.is_ok(), "nobody is asked for nothing");
        assert_eq!(local(limiter.on_store_error(Local).peek("a").await), (6, 6));
    }
}

#[tokio::test]
async fn a_limiter_says_it_for_itself() {
    let registry = absent(Registry::builder());
    let limiter = registry.limiter("a", FixedWindow::new(5, DAY)).unwrap();
    let deny = limiter.on_store_error(Deny).prefix("sms").function("send");
    assert_store(deny.try_acquire("a", 1).await);
    assert_eq!(local(limiter.prefix("sms").function("send").try_acquire("a", 1).await), (5, 4));
    assert_eq!(limiter.on_store_error(Allow).peek("a").await.unwrap().source, Source::Allowed);
}

#[tokio::test]
async fn the_strictest_of_a_list_holds() {
    let registry = absent(Registry::builder());
    let limiter = |name: &str, policy| registry.limiter(name, FixedWindow::new(policy, DAY)).unwrap();
    let [allow, local_, deny] = [
        limiter("allow", 2).on_store_error(Allow),
        limiter("local", 2),
        limiter("deny", 2).on_store_error(Deny),
    ];
    let all = |limiters: &[&ratelimits::Limiter]| {
        let charges: Vec<_> = limiters.iter().map(|limiter| limiter.charge("a", 1)).collect();
        registry.try_acquire_all(charges)
    };
    assert_store(all(&[&allow, &local_, &deny]).await);
    assert_eq!(all(&[&allow]).await.unwrap().source, Source::Allowed);
    for remaining in [1, 0] {
        assert_eq!(local(all(&[&allow, &local_]).await), (2, remaining));
    }
    assert!(all(&[&local_, &allow]).await.unwrap_err().is_limited());
    // What allows is charged where it is decided.
    assert_eq!(local(allow.on_store_error(Local).peek("a").await), (2, 0));
    assert_eq!(local(deny.on_store_error(Local).peek("a").await), (2, 2));
}

#[tokio::test]
async fn what_was_charged_here_is_given_back_here() {
    for policy in policies() {
        let registry = absent(Registry::builder().instances(2));
        let limiter = registry.limiter("a", policy).unwrap();
        let decision = limiter.try_acquire("a", 1).await.unwrap();
        let before = decision.remaining;
        decision.refund().await.unwrap();
        let (limit, remaining) = local(limiter.peek("a").await);
        assert_eq!((limit, remaining), (before + 1, before + 1), "{policy:?}");

        limiter.try_acquire("a", 1).await.unwrap();
        assert_store(limiter.refund("a", 1).await);
        assert_eq!(local(limiter.peek("a").await), (limit, before), "nobody knows where that was charged");
        assert_store(limiter.reset("a").await);
        assert_eq!(local(limiter.peek("a").await), (limit, limit));
    }
}

#[tokio::test]
async fn in_this_process_it_says_nothing() {
    let registry = Registry::builder().on_store_error(Deny).instances(3).in_memory();
    let limiter = registry.limiter("a", FixedWindow::new(6, DAY)).unwrap().on_store_error(Allow);
    let decision = limiter.try_acquire("a", 6).await.unwrap();
    assert_eq!((decision.source, decision.remaining), (Source::Memory, 0));
    assert!(limiter.try_acquire("a", 1).await.unwrap_err().is_limited());
}

#[tokio::test]
async fn another_programs_value_is_never_excused() {
    let server = Server::start();
    let registry = on(&server);
    let limiter = registry.limiter("taken", FixedWindow::new(5, DAY)).unwrap();
    let other = registry.limiter("other", FixedWindow::new(5, DAY)).unwrap();
    limiter.try_acquire("a", 1).await.unwrap();
    let mut connection = server.connect().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*taken*").query_async(&mut connection).await.unwrap();
    for taken in [["SADD", &keys[0], "x"], ["SET", &keys[0], "not a state"]] {
        let _: i64 = redis::cmd("DEL").arg(&keys[0]).query_async(&mut connection).await.unwrap();
        let _: redis::Value =
            redis::cmd(taken[0]).arg(&taken[1..]).query_async(&mut connection).await.unwrap();
        for mode in [Allow, Local, Deny] {
            let limiter = limiter.on_store_error(mode);
            assert_store(limiter.try_acquire("a", 1).await);
            assert_store(limiter.acquire("a", 1).await);
            assert_store(limiter.peek("a").await);
            assert_store(registry.try_acquire_all([other.charge("a", 1), limiter.charge("a", 1)]).await);
        }
    }
    assert!(registry.store_health().healthy);
}

#[test]
fn what_does_not_mend_is_never_excused() {
    for mode in [Allow, Local, Deny] {
        let registry = absent_and(mode);
        let limiter = registry.limiter("a", FixedWindow::new(1, DAY)).unwrap();
        let call = pin!(limiter.try_acquire("a", 1));
        let polled = call.poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Err(error)) = polled else { panic!("Redis needs a runtime: {polled:?}") };
        assert!(error.to_string().contains("runtime"), "{error}");
        assert!(registry.store_health().healthy, "that is not the store's fault");
    }
}

#[tokio::test]
async fn the_state_here_is_bounded() {
    let registry = absent(Registry::builder().max_keys(10));
    let limiter = registry.limiter("a", FixedWindow::new(1, DAY)).unwrap();
    for i in 0..100 {
        limiter.try_acquire(i, 1).await.unwrap();
    }
    let mut kept = 0;
    for i in 0..100 {
        kept += u64::from(limiter.peek(i).await.unwrap().remaining == 0);
    }
    assert!(kept <= 10, "{kept}");
}
