//! Calls that end in unusual places, and calls that never do.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use ratelimits::{ConcurrencyLimit, DecidedBy, Limiter, Registry};
use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;

use super::until_remain;
use crate::support::registries::{LONG_DEADLINE, on_each_registry};
use crate::support::server::Server;

fn exports(registry: &Registry, max: u64) -> Limiter {
    registry.limiter("endings", ConcurrencyLimit::new(max)).unwrap()
}

fn runtimes() -> [Runtime; 2] {
    [Builder::new_current_thread(), Builder::new_multi_thread()]
        .map(|mut builder| builder.enable_all().build().unwrap())
}

/// Runs a closure on a thread that has no runtime.
async fn on_a_thread<T: Send + 'static>(then: impl FnOnce() -> T + Send + 'static) -> T {
    spawn_blocking(|| thread::spawn(then).join().unwrap()).await.unwrap()
}

#[tokio::test]
async fn calls_end_on_other_runtimes_and_threads() {
    on_each_registry(async |registry, _| {
        let exports = exports(&registry, 3);
        let [on_a_runtime, on_no_runtime, on_this] =
            [(); 3].map(async |()| exports.try_acquire("key").await.unwrap());
        let (on_a_runtime, on_no_runtime) = (on_a_runtime.await, on_no_runtime.await);
        let on_this = on_this.await;
        on_a_thread(|| runtimes()[0].block_on(async { drop(on_a_runtime) })).await;
        until_remain(&exports, "key", 1).await;
        on_a_thread(|| drop(on_no_runtime)).await;
        until_remain(&exports, "key", 2).await;
        drop(on_this);
        until_remain(&exports, "key", 3).await;
    })
    .await;
}

/// Their tasks are dropped by the runtime, which sends nothing any more, and decisions may outlive it.
#[tokio::test]
async fn calls_of_a_runtime_that_ends_are_released() {
    on_each_registry(async |registry, _| {
        let exports = exports(&registry, 4);
        for kind in 0..2 {
            let in_thread = exports.clone();
            let outlives = on_a_thread(move || {
                let runtime = runtimes().into_iter().nth(kind).unwrap();
                let held = runtime.block_on(in_thread.try_acquire("key")).unwrap();
                for _ in 0..3 {
                    let taken = runtime.block_on(in_thread.try_acquire("key")).unwrap();
                    runtime.spawn(async move {
                        std::future::pending::<()>().await;
                        drop(taken);
                    });
                }
                runtime.shutdown_timeout(Duration::from_secs(5));
                held
            })
            .await;
            until_remain(&exports, "key", 3).await;
            on_a_thread(|| drop(outlives)).await;
            until_remain(&exports, "key", 4).await;
        }
    })
    .await;
}

#[tokio::test]
async fn blocking_calls_hold_like_awaited_ones() {
    on_each_registry(async |registry, source| {
        let exports = exports(&registry, 2);
        let in_thread = exports.clone();
        let (held, more) = on_a_thread(move || {
            let held = in_thread.blocking_try_acquire_n("key", 2).unwrap();
            assert_eq!((held.source, held.remaining), (source, 0));
            assert!(in_thread.blocking_try_acquire("key").unwrap_err().is_limited());
            let waits = Duration::from_millis(20);
            assert!(in_thread.blocking_acquire_timeout("key", waits).unwrap_err().is_limited());
            drop(held);
            // It waits until the release is known.
            let held = in_thread.blocking_acquire_timeout("key", Duration::from_secs(10)).unwrap();
            (held, in_thread.blocking_acquire("key").unwrap())
        })
        .await;
        until_remain(&exports, "key", 0).await;
        let waiting = {
            let exports = exports.clone();
            thread::spawn(move || exports.blocking_acquire_n("key", 2).map(drop))
        };
        drop((held, more));
        on_a_thread(move || waiting.join().unwrap()).await.unwrap();
        until_remain(&exports, "key", 2).await;
    })
    .await;
}

#[tokio::test]
async fn panics_release() {
    on_each_registry(async |registry, _| {
        let exports = exports(&registry, 2);
        let held = exports.try_acquire("key").await.unwrap();
        assert!(
            catch_unwind(AssertUnwindSafe(move || {
                let _held = held;
                panic!("the case")
            }))
            .is_err()
        );
        let in_task = exports.clone();
        let task = tokio::spawn(async move {
            let _held = in_task.try_acquire("key").await.unwrap();
            tokio::task::yield_now().await;
            panic!("the case");
        });
        assert!(task.await.unwrap_err().is_panic());
        until_remain(&exports, "key", 2).await;
    })
    .await;
}

/// As long as the process lives.
#[tokio::test]
async fn forgotten_decisions_hold_for_ever() {
    let server = Server::shared();
    let ttl = Duration::from_secs(1);
    let redis = Registry::builder().namespace("forgotten").deadline(ttl / 4).hold_ttl(ttl);
    for registry in [Registry::in_memory(), redis.connect_lazy(&server.url()).unwrap()] {
        let exports = exports(&registry, 2);
        mem::forget(exports.try_acquire("key").await.unwrap());
        drop(exports.try_acquire("key").await.unwrap());
        tokio::time::sleep(2 * ttl).await;
        until_remain(&exports, "key", 1).await;
        assert!(exports.reset("key").await.unwrap());
    }
}

#[tokio::test]
async fn holds_outlive_their_registry() {
    let server = Server::shared();
    let url = server.url();
    let open = |namespace: &str| {
        let builder = Registry::builder().namespace(namespace).deadline(LONG_DEADLINE);
        builder.connect_lazy(&url).unwrap()
    };
    let (first, watching) = (open("outlived"), open("outlived"));
    let held = exports(&first, 2).try_acquire("key").await.unwrap();
    assert_eq!(held.source, DecidedBy::Redis);
    drop(first);
    let exports = exports(&watching, 2);
    assert_eq!(exports.peek("key").await.unwrap().remaining, 1);
    drop(held);
    until_remain(&exports, "key", 2).await;
    // In process, the store goes with its registry.
    let registry = Registry::in_memory();
    let held = registry.limiter("endings", ConcurrencyLimit::new(1)).unwrap().try_acquire("key").await;
    drop(registry);
    drop(held);
}
