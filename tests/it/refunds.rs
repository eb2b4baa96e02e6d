//! Refunds in Redis, which end whether or not anybody waits for them.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join_all;
use ratelimits::error::StoreError;
use ratelimits::{Decision, Error, FixedWindow, Limiter, Registry, count_limit, rate_limit};

use crate::support::registries::LONG_DEADLINE;
use crate::support::server::Server;
use crate::support::until::until;

const DAY: Duration = Duration::from_secs(86_400);
const CALLS: u64 = 1000;
/// How many calls are under way at once.
const AT_ONCE: u64 = 50;
/// Of refunds that are sent at once, and not together.
const SINGLES: u64 = 8;

pub(crate) fn registry(server: &Server) -> Registry {
    Registry::builder().deadline(LONG_DEADLINE).connect_lazy(&server.url()).unwrap()
}

/// Waits until a window of `CALLS` permits has at least this many.
async fn until_remaining(limiter: &Limiter, least: u64) {
    until("all is refunded", Duration::from_secs(20), async || {
        let remaining = limiter.peek(()).await.unwrap().remaining;
        if remaining >= least { Ok(()) } else { Err(format!("{remaining} remain")) }
    })
    .await;
}

/// Makes calls whose callers go away as soon as their body, which counts that, has ended. None may be refused.
pub(crate) async fn drop_calls_after_their_body<F: Future<Output = Result<(), Error>>>(
    calls: u64,
    call: impl Fn(Arc<AtomicU64>) -> F,
) {
    for _ in 0..calls / AT_ONCE {
        join_all((0..AT_ONCE).map(async |_| {
            let ended = Arc::<AtomicU64>::default();
            let mut call = pin!(call(Arc::clone(&ended)));
            poll_fn(|context| {
                let polled = call.as_mut().poll(context);
                assert!(!matches!(polled, Poll::Ready(Err(_))), "{polled:?}");
                if ended.load(Ordering::Relaxed) > 0 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }))
        .await;
    }
}

#[count_limit(1000, "1d", name = "refunds.dropped", charge_when = |_| false)]
async fn uncharged(ended: Arc<AtomicU64>) -> Result<(), Error> {
    ended.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_dropped_after_their_body_are_refunded() {
    let server = Server::start();
    let registry = registry(&server);
    let limiter = registry.limiter("refunds.dropped", FixedWindow::new(CALLS, DAY)).unwrap();
    drop_calls_after_their_body(CALLS, |ended| registry.scope(uncharged(ended))).await;
    until_remaining(&limiter, CALLS).await;
}

/// Starts a refund, and drops it.
async fn drop_refund(decision: Decision) {
    let mut refund = pin!(decision.refund());
    poll_fn(|context| Poll::Ready(refund.as_mut().poll(context).is_ready())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receipts_dropped_after_a_poll_are_refunded() {
    let server = Server::start();
    let limiter = registry(&server).limiter("dropped", FixedWindow::new(CALLS, DAY)).unwrap();
    for _ in 0..CALLS / AT_ONCE {
        join_all((0..AT_ONCE).map(async |_| drop_refund(limiter.try_acquire(()).await.unwrap()).await)).await;
    }
    until_remaining(&limiter, CALLS).await;
}

#[test]
fn refunds_that_wait_survive_their_runtime() {
    let server = Server::start();
    let registry = registry(&server);
    let limiter = registry.limiter("dropped", FixedWindow::new(CALLS, DAY)).unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime().block_on(async {
        let acquired = join_all((0..SINGLES + 5).map(|_| limiter.try_acquire(()))).await;
        for decision in acquired {
            drop_refund(decision.unwrap()).await;
        }
    });
    runtime().block_on(until_remaining(&limiter, CALLS - SINGLES));
}

#[count_limit(1000, "1d", name = "refunds.stack", charge_when = |_| false)]
#[rate_limit(rate = "1/1d", burst = 3, name = "refunds.bucket", charge_when = |_| false)]
#[count_limit(1000, "1d", name = "refunds.kept", charge_when = |_| true)]
async fn stacked() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn policies_of_a_call_are_refunded_together() {
    let server = Server::start();
    let registry = registry(&server);
    // The server learns the scripts.
    registry.scope(stacked()).await.unwrap();
    for _ in 0..3 {
        let before = server.script_calls().await;
        registry.scope(stacked()).await.unwrap();
        until("both calls are there", Duration::from_secs(20), async || {
            let calls = server.script_calls().await - before;
            if calls >= 2 { Ok(()) } else { Err(format!("{calls}")) }
        })
        .await;
        assert_eq!(server.script_calls().await, before + 2);
    }
    let remaining = async |name| registry.policy(name).unwrap().peek(()).await.unwrap().remaining;
    assert_eq!(remaining("refunds.stack").await, CALLS);
    assert_eq!(remaining("refunds.bucket").await, 3);
    assert_eq!(remaining("refunds.kept").await, CALLS - 4);
}

#[count_limit(1000, "1d", name = "refunds.first", charge_when = |_| false)]
#[count_limit(1000, "1h", name = "refunds.second", charge_when = |_| false)]
#[rate_limit(rate = "1/1d", burst = 1000, name = "refunds.third", charge_when = |_| true)]
async fn in_process() -> Result<(), Error> {
    Ok(())
}

/// Once the keys are there, a call may be decided without a lock.
#[tokio::test]
async fn policies_of_a_call_are_refunded_in_process() {
    let registry = Registry::in_memory();
    let remaining = async |name| registry.policy(name).unwrap().peek(()).await.unwrap().remaining;
    for call in 1..5 {
        registry.scope(in_process()).await.unwrap();
        assert_eq!(remaining("refunds.first").await, CALLS, "call {call}");
        assert_eq!(remaining("refunds.second").await, CALLS, "call {call}");
        assert_eq!(remaining("refunds.third").await, CALLS - call);
    }
}

#[tokio::test]
async fn refunds_of_corrupt_keys_fail_alone() {
    let server = Server::start();
    let limiter = registry(&server).limiter("corrupt", FixedWindow::new(CALLS, DAY)).unwrap();
    let acquired = join_all((0..CALLS).map(|key| limiter.try_acquire(key))).await;
    let keys = async || server.command::<Vec<String>>(&["KEYS", "*"]).await;
    let key = keys().await.pop().unwrap();
    server.command::<()>(&["SET", &key, "foreign"]).await;
    let refunds = acquired.into_iter().map(|decision| decision.unwrap().refund());
    let failed: Vec<StoreError> = join_all(refunds).await.into_iter().filter_map(Result::err).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(keys().await, [key]);
}

/// Some of three keys are charged less in the end, and others more.
#[tokio::test]
async fn settlements_of_many_calls_share_script_calls() {
    const CALLS_OF_EACH: u64 = 40;
    let server = Server::start();
    let limiter = registry(&server).limiter("shared", FixedWindow::new(CALLS, DAY)).unwrap();
    let keys = || (0..3 * CALLS_OF_EACH).map(|call| call % 3);
    let decisions = join_all(keys().map(|key| limiter.try_acquire_n(key, 5))).await;
    let before = server.script_calls().await;
    let mut peeks = 0;
    for (key, decision) in keys().zip(decisions) {
        decision.unwrap().settle([2, 5, 9][key as usize]);
    }
    until("all is settled", Duration::from_secs(20), async || {
        let mut used = Vec::new();
        for key in 0..3 {
            used.push(CALLS - limiter.peek(key).await.unwrap().remaining);
            peeks += 1;
        }
        if used == [2, 5, 9].map(|used| used * CALLS_OF_EACH) { Ok(()) } else { Err(format!("{used:?}")) }
    })
    .await;
    let calls = server.script_calls().await - before - peeks;
    assert!(calls <= 10, "{calls} calls for {} settlements", 2 * CALLS_OF_EACH);
}
