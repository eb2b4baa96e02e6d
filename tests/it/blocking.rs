//! Limiters in code that is not async.

mod functions;
mod holds;

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use ratelimits::{
    DecidedBy, Error, FixedWindow, LeakyBucket, Limiter, OnStoreError, Policy, Rate, Registry, SlidingWindow,
    TokenBucket,
};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{LocalSet, block_in_place, coop, spawn_blocking};

use crate::support::registries::{LONG_DEADLINE, on};
use crate::support::server::Server;

const MINUTE: Duration = Duration::from_secs(60);

/// The time between two permits, in which at least two of `CALLS` threads call.
const SLOT: Duration = Duration::from_millis(50);
const CALLS: usize = 6;

/// Runs a test on a registry in process, and on one on the shared Redis.
fn on_each_registry(test: impl Fn(Registry, DecidedBy)) {
    test(Registry::in_memory(), DecidedBy::Memory);
    test(on(&Server::shared()), DecidedBy::Redis);
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn is_refused_as_async(result: Result<impl Sized, Error>) -> bool {
    match result {
        Err(Error::Store(error)) => error.to_string().contains("async code"),
        _ => false,
    }
}

/// One permit every `SLOT`.
fn policies() -> [Policy; 7] {
    let rate = Rate::new(1, SLOT);
    let bucket = TokenBucket::new(rate).burst(1);
    [
        bucket.into(),
        bucket.interval_refill().into(),
        bucket.borrow().into(),
        TokenBucket::new(rate).warmup(2 * SLOT).into(),
        LeakyBucket::new(20, rate).queue().into(),
        FixedWindow::new(1, SLOT).into(),
        SlidingWindow::new(1, SLOT).into(),
    ]
}

#[test]
fn blocking_calls_decide_like_awaited_ones() {
    on_each_registry(|registry, source| {
        let limiter = registry.limiter("reports", TokenBucket::new(Rate::new(1, MINUTE)).burst(3)).unwrap();
        let decision = limiter.blocking_try_acquire_n("a", 2).unwrap();
        assert_eq!((decision.remaining, decision.source), (1, source));
        let error = limiter.blocking_try_acquire_n("a", 2).unwrap_err();
        assert!(error.is_limited() && error.retry_after().is_some());
        let error = limiter.blocking_acquire_n_timeout("a", 2, MINUTE / 2).unwrap_err();
        assert!(error.is_limited() && error.retry_after().is_some());
        assert_eq!(limiter.blocking_acquire("a").unwrap().waited, Duration::ZERO);
        assert_eq!(limiter.blocking_acquire_n("a", 0).unwrap().source, DecidedBy::Skipped);
        assert!(limiter.blocking_acquire_n("a", 4).unwrap_err().retry_after().is_none());
    });
    let unlimited = Registry::unlimited().limiter("a", FixedWindow::new(1, MINUTE)).unwrap();
    for _ in 0..3 {
        assert_eq!(unlimited.blocking_acquire("a").unwrap().source, DecidedBy::Skipped);
    }
}

#[test]
fn blocking_calls_wait_without_a_runtime() {
    on_each_registry(|registry, source| {
        for (i, policy) in policies().into_iter().enumerate() {
            let limiter = registry.limiter(&format!("waits {i}"), policy).unwrap();
            let start = Barrier::new(CALLS);
            let call = || {
                start.wait();
                let decision = limiter.blocking_acquire_timeout((), MINUTE).unwrap();
                assert_eq!(decision.source, source);
                decision.waited
            };
            let waited = thread::scope(|scope| {
                let calls: Vec<_> = (0..CALLS).map(|_| scope.spawn(call)).collect();
                calls.into_iter().map(|call| call.join().unwrap()).max()
            });
            assert!(waited > Some(Duration::ZERO), "{policy:?}: {waited:?}");
        }
    });
}

#[test]
fn blocking_calls_in_async_code_are_errors() {
    on_each_registry(|registry, source| {
        let limiter = registry.limiter("a", FixedWindow::new(1000, MINUTE)).unwrap();
        if source == DecidedBy::Memory {
            // What is decided at once blocks nothing.
            assert_eq!(
                runtime().block_on(async { limiter.blocking_try_acquire_n("a", 1000) }).unwrap().remaining,
                0
            );
        }
        let refused = || is_refused_as_async(limiter.blocking_acquire("a"));
        let current_thread = Builder::new_current_thread().enable_all().build().unwrap();
        for runtime in [current_thread, runtime()] {
            assert!(runtime.block_on(async { refused() }));
            assert!(runtime.handle().block_on(async { refused() }));
            assert!(LocalSet::new().block_on(&runtime, async { refused() }));
            let call = limiter.clone();
            let spawned = runtime.spawn(async move { call.blocking_acquire("a").map(drop) });
            assert!(is_refused_as_async(runtime.block_on(spawned).unwrap()));
            runtime.block_on(async {
                while coop::has_budget_remaining() {
                    coop::consume_budget().await;
                    assert!(refused());
                }
                assert!(refused());
            });
        }
        assert_eq!(runtime().block_on(limiter.reset("a")).unwrap(), source == DecidedBy::Memory);
        assert_eq!(limiter.blocking_try_acquire("a").unwrap().remaining, 999);
    });
}

#[test]
fn refused_blocking_calls_leave_the_budget_alone() {
    let limiter = Registry::in_memory().limiter("a", FixedWindow::new(1, MINUTE)).unwrap();
    limiter.blocking_acquire(()).unwrap();
    runtime().block_on(async {
        let mut operations = [0, 0];
        for (i, operations) in operations.iter_mut().enumerate() {
            tokio::task::yield_now().await;
            while coop::has_budget_remaining() {
                if i == 1 {
                    assert!(is_refused_as_async(limiter.blocking_acquire(())));
                }
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                if let std::task::Poll::Ready(operation) = coop::poll_proceed(&mut context) {
                    operation.made_progress();
                    *operations += 1;
                }
            }
        }
        assert_eq!(operations[0], operations[1]);
    });
}

#[test]
fn threads_that_may_block_may_call() {
    on_each_registry(|registry, source| {
        let limiter = registry.limiter("a", FixedWindow::new(1000, MINUTE)).unwrap();
        let call = |limiter: &Limiter| assert_eq!(limiter.blocking_acquire("a").unwrap().source, source);
        // Never run, so nothing on it would ever complete.
        let idle = Builder::new_current_thread().enable_all().build().unwrap();
        {
            let _entered = idle.enter();
            call(&limiter);
        }
        let runtime = runtime();
        let calls = limiter.clone();
        runtime
            .block_on(runtime.spawn_blocking(move || calls.blocking_acquire("a").map(drop)))
            .unwrap()
            .unwrap();
        runtime.block_on(async {
            block_in_place(|| call(&limiter));
            limiter.acquire("a").await.unwrap();
        });
        assert_eq!(limiter.blocking_try_acquire("a").unwrap().remaining, 995);
    });
}

#[test]
fn blocking_calls_share_a_connection_that_outlives_runtimes() {
    let server = Server::start();
    let registry = Registry::builder().deadline(LONG_DEADLINE).connect_lazy(&server.url()).unwrap();
    let limiter = registry.limiter("a", FixedWindow::new(1000, MINUTE)).unwrap();
    let call = |limiter: &Limiter| {
        assert_eq!(limiter.blocking_try_acquire("a").unwrap().source, DecidedBy::Redis);
    };
    for _ in 0..3 {
        let runtime = runtime();
        runtime.block_on(limiter.try_acquire("a")).unwrap();
        let calls = limiter.clone();
        let on_runtime = move || calls.blocking_try_acquire("a").map(drop);
        runtime.block_on(async { spawn_blocking(on_runtime).await.unwrap() }).unwrap();
        drop(runtime);
        thread::scope(|scope| {
            (0..8).for_each(|_| drop(scope.spawn(|| (0..5).for_each(|_| call(&limiter)))));
        });
    }
    assert_eq!(limiter.blocking_try_acquire("a").unwrap().remaining, 1000 - 3 * 42 - 1);
    let connections: String = runtime().block_on(server.command(&["INFO", "stats"]));
    let opened = connections.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    // The fixture's own at the start and now, one of each runtime, and one of all blocking calls.
    let opened: u32 = opened.unwrap().trim().parse().unwrap();
    assert!(opened <= 3 + 1 + 3, "{opened} connections");
}

#[test]
fn blocking_calls_fail_over() {
    let registry = |on_store_error| {
        let builder = Registry::builder().on_store_error(on_store_error);
        builder.connect_lazy("redis://127.0.0.1:1").unwrap()
    };
    let policy = TokenBucket::new(Rate::new(1, SLOT)).burst(1);
    let limiter = registry(OnStoreError::Local).limiter("a", policy).unwrap();
    assert_eq!(limiter.blocking_acquire("a").unwrap().source, DecidedBy::Local);
    let next = limiter.blocking_acquire("a").unwrap();
    assert_eq!(next.source, DecidedBy::Local);
    let limiter = registry(OnStoreError::Deny).limiter("a", policy).unwrap();
    assert!(matches!(limiter.blocking_acquire("a"), Err(Error::Store(_))));
    let limiter = registry(OnStoreError::Allow).limiter("a", policy).unwrap();
    assert_eq!(limiter.blocking_acquire("a").unwrap().source, DecidedBy::Allowed);
}
