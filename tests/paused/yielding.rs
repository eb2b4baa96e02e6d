//! Tasks that make one call after the other, of which none has to wait, let other tasks run.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use ratelimits::OnStoreError::{self, Allow, Deny, Local};
use ratelimits::{DecidedBy, Error, FixedWindow, Limiter, Registry, SlidingWindow, TokenBucket};
use ratelimits::{count_limit, rate_limit};
use tokio::task::yield_now;

use crate::faulty_server::{Fault, FaultyServer};

const CALLS: usize = 50_000;

/// How often another task runs at least during these calls. At 128 operations of 64 refusals a turn it is six times.
const TURNS: usize = 5;

const DAY: Duration = Duration::from_secs(86_400);

/// Makes calls beside another task, and counts how often that one runs.
async fn turns(mut call: impl AsyncFnMut()) -> usize {
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            yield_now().await;
        }
    });
    for _ in 0..CALLS {
        call().await;
    }
    other.abort();
    turns.load(Ordering::Relaxed)
}

/// A limiter of which all calls are refused.
async fn used_up(registry: &Registry, name: &str) -> Limiter {
    let limiter = registry.limiter(name, TokenBucket::per_second(1).burst(1)).unwrap();
    limiter.try_acquire(()).await.unwrap();
    limiter
}

#[rate_limit(rate = "1/d", burst = 1)]
async fn once() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "1/d", burst = 1, fallback = |_| false)]
async fn or_false() -> bool {
    true
}

#[rate_limit(rate = "1/d", burst = 1, name = "one")]
async fn named() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1d", name = "first", key = user)]
#[rate_limit(rate = "1/d", burst = 5, name = "second", key = user)]
async fn named_stack(user: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "1/d", burst = 1, name = "other")]
async fn otherwise_named() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1d")]
#[rate_limit(rate = "1/d", burst = 1, key = user)]
async fn stacked(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = limit, period = "1d")]
async fn computed(limit: u64) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn refusals_that_let_other_tasks_run_stay_what_they_are() {
    let policy = |refused: Result<(), Error>| match refused {
        Err(Error::Limited(limited)) => limited.policy().to_owned(),
        other => panic!("{other:?}"),
    };
    named().await.unwrap();
    otherwise_named().await.unwrap();
    let other = tokio::spawn(async move {
        loop {
            assert_eq!(policy(otherwise_named().await), "other");
            yield_now().await;
        }
    });
    named_stack(1).await.unwrap();
    for _ in 0..CALLS {
        assert_eq!(policy(named().await), "one");
        assert_eq!(policy(named_stack(1).await), "first");
    }
    other.abort();
    assert!(other.await.unwrap_err().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn refused_functions_let_other_tasks_run() {
    once().await.unwrap();
    assert!(turns(async || drop(once().await.unwrap_err())).await >= TURNS);
    assert!(or_false().await);
    assert!(turns(async || assert!(!or_false().await)).await >= TURNS);
    stacked(1).await.unwrap();
    assert!(turns(async || drop(stacked(1).await.unwrap_err())).await >= TURNS);
    computed(1).await.unwrap();
    assert!(turns(async || drop(computed(1).await.unwrap_err())).await >= TURNS);
}

#[tokio::test(start_paused = true)]
async fn refused_calls_of_limiters_let_other_tasks_run() {
    let observed = Registry::builder().observer(|_| {}).in_memory();
    for registry in [Registry::in_memory(), observed] {
        let [plain, other] = [used_up(&registry, "a").await, used_up(&registry, "b").await];
        assert!(turns(async || drop(plain.try_acquire(()).await.unwrap_err())).await >= TURNS);
        assert!(
            turns(async || drop(plain.acquire_timeout((), Duration::ZERO).await.unwrap_err())).await >= TURNS
        );
        let log = registry.limiter("log", SlidingWindow::new(1, DAY)).unwrap();
        log.try_acquire(()).await.unwrap();
        assert!(turns(async || drop(log.try_acquire(()).await.unwrap_err())).await >= TURNS);
        let all =
            async || drop(registry.try_acquire_all([plain.charge(()), other.charge(())]).await.unwrap_err());
        assert!(turns(all).await >= TURNS);
        let none =
            async || assert!(registry.try_acquire_all([]).await.is_err_and(|error| !error.is_limited()));
        assert!(turns(none).await >= TURNS);
        // Calls that cost nothing are refused if their key is not valid.
        assert!(turns(async || drop(plain.try_acquire_n(NoText, 0).await.unwrap_err())).await >= TURNS);
        let free = async || drop(registry.try_acquire_all([plain.charge_n(NoText, 0)]).await.unwrap_err());
        assert!(turns(free).await >= TURNS);
    }
}

/// A part of a key that cannot be formatted.
struct NoText;

impl fmt::Display for NoText {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Err(fmt::Error)
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_redis_does_not_decide_let_other_tasks_run() {
    for on_store_error in [Local, Allow, Deny] {
        let registry = Registry::builder().over(FaultyServer::new(Fault::Refused));
        let limiter = registry.limiter("a", FixedWindow::new(CALLS as u64 / 2, DAY)).unwrap();
        let limiter = limiter.on_store_error(on_store_error);
        // The first failure opens the circuit: later calls fail at once.
        let _ = limiter.try_acquire(()).await;
        let call = async || match limiter.try_acquire(()).await {
            Ok(decision) => assert_eq!(decision.source, source(on_store_error)),
            Err(error) => assert_eq!(error.is_limited(), on_store_error == Local),
        };
        assert!(turns(call).await >= TURNS, "{on_store_error:?}");
    }
}

fn source(on_store_error: OnStoreError) -> DecidedBy {
    if on_store_error == Local { DecidedBy::Local } else { DecidedBy::Allowed }
}

#[tokio::test(start_paused = true)]
async fn refusals_that_are_remembered_let_other_tasks_run() {
    let server = FaultyServer::new(Fault::None);
    let limiter = Registry::builder().over(server.clone()).limiter("a", FixedWindow::new(1, DAY)).unwrap();
    server.set_full(true);
    assert!(turns(async || drop(limiter.try_acquire(()).await.unwrap_err())).await >= TURNS);
    assert!(server.commands() < 20, "they are remembered: {}", server.commands());
}

/// On executors without a budget nothing waits.
#[test]
fn refused_calls_are_ready_without_tokio() {
    let registry = Registry::in_memory();
    let calls = pin!(async {
        let limiter = used_up(&registry, "a").await;
        for _ in 0..CALLS {
            limiter.try_acquire(()).await.unwrap_err();
        }
    });
    assert!(calls.poll(&mut Context::from_waker(Waker::noop())).is_ready());
}
