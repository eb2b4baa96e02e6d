//! Functions with concurrency limits, on each registry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratelimits::{ConcurrencyLimit, Decision, Error, Registry, concurrency_limit, count_limit, rate_limit};
use tokio::time::{sleep, timeout};

use super::{SOON, until_remain};
use crate::support::registries::on_each_registry;
use crate::support::until::until;

/// How many calls run, and at most.
#[derive(Default)]
struct Running {
    now: AtomicU64,
    most: AtomicU64,
}

struct Runs<'a>(&'a Running);

impl Running {
    fn enter(&self) -> Runs<'_> {
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        Runs(self)
    }
}

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[concurrency_limit(3, key = provider, registry = registry, timeout = "forever", name = "concurrency.waits")]
async fn waits(registry: &Registry, provider: &str, running: &Running) -> Result<(), Error> {
    let _runs = running.enter();
    sleep(Duration::from_millis(2)).await;
    Ok(())
}

#[rate_limit(rate = "1000/s", burst = 1000, key = user, registry = registry, name = "concurrency.rate")]
#[count_limit(4, "1d", key = user, registry = registry, name = "concurrency.count")]
#[concurrency_limit(max = max, key = user, registry = registry, name = "concurrency.stack")]
async fn stack(registry: &Registry, user: &str, max: u64, started: &AtomicU64) -> Result<(), Error> {
    // Only the first call takes long.
    if started.fetch_add(1, Ordering::SeqCst) == 0 {
        sleep(SOON).await;
    }
    Ok(())
}

#[concurrency_limit(1, key = user, registry = registry, bind = decision, name = "concurrency.bound")]
async fn bound(registry: &Registry, user: &str) -> Result<Decision, Error> {
    Ok(decision)
}

/// Waits until the call succeeds, because permits that were released are free soon.
async fn until_admitted<T>(call: impl AsyncFn() -> Result<T, Error>) -> T {
    until("the call is admitted", SOON, async || call().await.map_err(|error| error.to_string())).await
}

#[tokio::test]
async fn functions_run_at_most_so_often_at_once() {
    on_each_registry(async |registry, _| {
        let running = Arc::<Running>::default();
        let calls = (0..60).map(|call| {
            let (registry, running) = (registry.clone(), Arc::clone(&running));
            tokio::spawn(async move {
                let call_it = waits(&registry, "provider", &running);
                // Some go away while they wait or run.
                if call % 4 == 0 {
                    drop(timeout(Duration::from_millis(call), call_it).await);
                } else {
                    call_it.await.unwrap();
                }
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
        assert_eq!((running.now.load(Ordering::SeqCst), running.most.load(Ordering::SeqCst)), (0, 3));
        waits(&registry, "provider", &running).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn stacks_with_a_concurrency_limit_are_one_decision() {
    on_each_registry(async |registry, _| {
        let started = Arc::<AtomicU64>::default();
        let long = tokio::spawn({
            let (registry, started) = (registry.clone(), Arc::clone(&started));
            async move { stack(&registry, "ann", 1, &started).await }
        });
        until("the first call runs", SOON, async || match started.load(Ordering::SeqCst) {
            0 => Err("not yet".to_owned()),
            _ => Ok(()),
        })
        .await;
        for _ in 0..5 {
            let refused = stack(&registry, "ann", 1, &started).await.unwrap_err();
            assert!(refused.is_limited() && refused.retry_after().is_none(), "{refused}");
        }
        // Another call has another limit, and sees the holds of all.
        for _ in 0..2 {
            until_admitted(async || stack(&registry, "ann", 2, &started).await).await;
        }
        long.abort();
        let _ = long.await;
        // What was refused has cost nothing, and the count limit admits four.
        until_admitted(async || stack(&registry, "ann", 1, &started).await).await;
        until("the count limit refuses", SOON, async || match stack(&registry, "ann", 1, &started).await {
            Err(error) if error.retry_after().is_some() => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        assert_eq!(started.load(Ordering::SeqCst), 4);
    })
    .await;
}

#[tokio::test]
async fn bound_decision_holds_as_long_as_it_lives() {
    on_each_registry(async |registry, source| {
        let decision = bound(&registry, "ann").await.unwrap();
        assert_eq!((decision.source, decision.remaining), (source, 0));
        assert!(bound(&registry, "ann").await.unwrap_err().is_limited());
        assert!(bound(&registry, "bob").await.is_ok());
        drop(decision);
        until_admitted(async || bound(&registry, "ann").await).await;
    })
    .await;
}

#[rate_limit("1/s", 1, key = user, timeout = "5s", registry = registry, name = "concurrency.paced.rate")]
#[concurrency_limit(2, key = user, timeout = "5s", registry = registry, name = "concurrency.paced")]
async fn paced(registry: &Registry, user: &str) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn calls_that_wait_for_a_rate_hold_nothing() {
    on_each_registry(async |registry, _| {
        let permits = registry.limiter("concurrency.paced", ConcurrencyLimit::new(2)).unwrap();
        paced(&registry, "ann").await.unwrap();
        until_remain(&permits, "ann", 2).await;
        let waits = tokio::spawn({
            let registry = registry.clone();
            async move { paced(&registry, "ann").await }
        });
        for _ in 0..12 {
            sleep(Duration::from_millis(50)).await;
            assert_eq!(permits.peek("ann").await.unwrap().remaining, 2);
        }
        waits.await.unwrap().unwrap();
        until_remain(&permits, "ann", 2).await;
    })
    .await;
}
