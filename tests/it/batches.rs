//! Decisions that share a call to Redis.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use ratelimits::{
    Error, FixedWindow, Limiter, OnStoreError, Policy, Rate, Registry, SlidingWindow, TokenBucket,
};
use tokio::runtime;
use tokio::task::JoinSet;

use crate::support::registries::LONG_DEADLINE;
use crate::support::server::Server;
use crate::support::until::until;

const DAY: Duration = Duration::from_secs(86_400);
const CALLS: u64 = 1000;
const WITHIN: Duration = Duration::from_secs(30);

fn registry(server: &Server) -> Registry {
    let builder = Registry::builder().deadline(LONG_DEADLINE).local_denials(false);
    builder.connect_lazy(&server.url()).unwrap()
}

/// One policy of each form of script, with three permits a day.
fn policies() -> [Policy; 5] {
    let rate = Rate::new(3, DAY);
    [
        TokenBucket::new(rate).burst(3).into(),
        TokenBucket::new(rate).burst(3).adjustable().into(),
        TokenBucket::new(rate).interval_refill().burst(3).into(),
        FixedWindow::new(3, DAY).into(),
        SlidingWindow::new(3, DAY).into(),
    ]
}

/// Makes many calls at once, of which `key` returns the keys, and returns their results in that order.
async fn call_all(limiter: &Limiter, key: impl Fn(u64) -> u64) -> Vec<Result<(), Error>> {
    let mut calls = JoinSet::new();
    for i in 0..CALLS {
        let (limiter, key) = (limiter.clone(), key(i));
        calls.spawn(async move { (i, limiter.try_acquire(key).await.map(drop)) });
    }
    let mut results = calls.join_all().await;
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, result)| result).collect()
}

/// One thread, on which all calls wait before the first batch is sent.
#[tokio::test]
async fn concurrent_calls_share_script_calls() {
    let server = Server::start();
    for (i, policy) in policies().into_iter().enumerate() {
        let limiter = registry(&server).limiter(&i.to_string(), policy).unwrap();
        limiter.try_acquire("warm").await.unwrap();
        let before = server.script_calls().await;
        let results = call_all(&limiter, |i| i / 4).await;
        let sent = server.script_calls().await - before;
        assert!(sent <= CALLS / 8, "{policy:?}: {sent} script calls");
        // Of the four calls of each key, one is refused.
        for of_key in results.chunks(4) {
            let refused = of_key.iter().filter(|result| result.is_err());
            assert_eq!(refused.count(), 1, "{policy:?}: {of_key:?}");
            assert!(of_key.iter().flat_map(|result| result.as_ref().err()).all(Error::is_limited));
        }
    }
}

/// A bucket that remembers a refund is left to the functions of its script, which take long.
#[tokio::test]
async fn few_decisions_of_a_batch_are_left_to_functions() {
    const KEYS: u64 = CALLS / 5;
    let server = Server::start();
    let limiter = registry(&server).limiter("a", policies()[0]).unwrap();
    for key in 0..KEYS {
        let first = limiter.try_acquire(key).await.unwrap();
        limiter.try_acquire(key).await.unwrap();
        first.refund().await.unwrap();
    }
    let before = server.script_calls().await;
    let results = call_all(&limiter, |i| i % KEYS).await;
    let sent = server.script_calls().await - before;
    assert!(sent >= CALLS / 9, "{sent} script calls");
    for key in 0..KEYS as usize {
        let of_key = results.iter().skip(key).step_by(KEYS as usize);
        assert_eq!(of_key.filter(|result| result.is_ok()).count(), 2, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_one_key_are_admitted_up_to_its_limit() {
    let server = Server::start();
    for (i, policy) in policies().into_iter().enumerate() {
        let limiter = registry(&server).limiter(&i.to_string(), policy).unwrap();
        let results = call_all(&limiter, |_| 0).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 3, "{policy:?}");
    }
}

#[tokio::test]
async fn key_of_the_wrong_type_fails_alone() {
    let server = Server::start();
    for (i, policy) in policies().into_iter().enumerate() {
        let limiter = registry(&server).limiter(&i.to_string(), policy).unwrap();
        limiter.try_acquire(7).await.unwrap();
        let keys: Vec<String> = server.command(&["KEYS", &format!("*:{i}:*:7")]).await;
        let () = server.command(&["DEL", &keys[0]]).await;
        let _: i64 = server.command(&["SADD", &keys[0], "x"]).await;
        for (key, result) in (0..).zip(call_all(&limiter, |i| i).await) {
            assert_eq!(result.is_ok(), key != 7, "{policy:?}: {key} {result:?}");
        }
    }
}

/// Redis looks at all keys of a script call before it runs.
#[tokio::test]
async fn key_that_is_not_permitted_fails_alone() {
    let server = Server::start();
    let user = ["ACL", "SETUSER", "least", "on", ">secret", "+@all", "~*:permitted:*"];
    let () = server.command(&user).await;
    let builder = Registry::builder().deadline(LONG_DEADLINE).on_store_error(OnStoreError::Deny);
    let registry = builder.connect_lazy(&server.url_as("least", "secret")).unwrap();
    let limiter = |name: &str| registry.limiter(name, policies()[0]).unwrap();
    let (permitted, denied) = (limiter("permitted"), limiter("denied"));
    let (permitted, denied) = tokio::join!(call_all(&permitted, |i| i), call_all(&denied, |i| i));
    assert!(permitted.iter().all(Result::is_ok), "{permitted:?}");
    assert!(denied.iter().all(Result::is_err), "{denied:?}");
}

/// A URL of one server may lead to a Cluster of one master, which wants the keys of a call in one slot.
#[tokio::test]
async fn keys_of_several_slots_are_decided_alone() {
    let server = Server::start_with(&["--cluster-enabled", "yes"]);
    let slots: Vec<_> = (0..16_384).map(|slot| slot.to_string()).collect();
    let add = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str));
    let () = server.command(&add.collect::<Vec<_>>()).await;
    until("the cluster works", WITHIN, async || {
        let info: String = server.command(&["CLUSTER", "INFO"]).await;
        if info.contains("cluster_state:ok") { Ok(()) } else { Err(info) }
    })
    .await;
    let builder = Registry::builder().deadline(LONG_DEADLINE).on_store_error(OnStoreError::Deny);
    let registry = builder.connect_lazy(&server.url()).unwrap();
    let limiter = registry.limiter("a", policies()[0]).unwrap();
    for _ in 0..2 {
        for result in call_all(&limiter, |i| i).await {
            result.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stacks_share_script_calls() {
    let server = Server::start();
    let registry = registry(&server);
    let limiter = |name: &str, policy: Policy| registry.limiter(name, policy).unwrap();
    let stacks = [
        [limiter("a", policies()[0]), limiter("b", TokenBucket::new(Rate::new(500, DAY)).burst(500).into())],
        [limiter("c", policies()[0]), limiter("d", FixedWindow::new(500, DAY).into())],
    ];
    for [of_key, of_all] in stacks {
        let mut calls = JoinSet::new();
        for i in 0..CALLS {
            let (of_key, of_all, registry) = (of_key.clone(), of_all.clone(), registry.clone());
            calls.spawn(async move {
                registry.try_acquire_all([of_key.charge(i / 4), of_all.charge("all")]).await.is_ok()
            });
        }
        let admitted = calls.join_all().await.into_iter().filter(|admitted| *admitted).count();
        assert_eq!(admitted, 500);
    }
}

/// A caller may poll a call once, and then others until they are done.
#[tokio::test]
async fn call_that_is_not_polled_delays_no_others() {
    let server = Server::start();
    let limiter = registry(&server).limiter("a", policies()[0]).unwrap();
    limiter.try_acquire("warm").await.unwrap();
    let mut first: Vec<_> = (0..3).map(|i| Box::pin(limiter.try_acquire(i))).collect();
    for call in &mut first {
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    for result in call_all(&limiter, |i| 100 + i).await {
        result.unwrap();
    }
    for call in first {
        call.await.unwrap();
    }
}

#[test]
fn runtime_that_shuts_down_fails_no_calls_of_others() {
    let server = Server::start();
    let limiter = Arc::new(registry(&server).limiter("a", FixedWindow::new(1_000_000, DAY)).unwrap());
    let other = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..20 {
        let short = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        for i in 0..200 {
            let limiter = Arc::clone(&limiter);
            short.spawn(async move { limiter.try_acquire(i).await.map(drop) });
        }
        short.block_on(limiter.try_acquire("b")).unwrap();
        short.shutdown_background();
        for result in other.block_on(call_all(&limiter, |i| i)) {
            result.unwrap();
        }
    }
}

#[tokio::test]
async fn dropped_calls_give_back_what_they_were_charged() {
    let server = Server::start();
    let limiter = registry(&server).limiter("a", TokenBucket::new(Rate::new(100, DAY)).burst(100)).unwrap();
    limiter.try_acquire("warm").await.unwrap();
    {
        let calls: Vec<_> = (0..50).map(|_| Box::pin(limiter.try_acquire("a"))).collect();
        let mut calls = pin!(calls);
        for call in calls.iter_mut() {
            assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
    }
    while limiter.peek("a").await.unwrap().remaining < 100 {
        tokio::task::yield_now().await;
    }
}
