//! What operators and tests do beside calls that hold permits: overrides, limits that are off, registries of a scope.

use std::process::Command;
use std::time::Duration;

use ratelimits::{ConcurrencyLimit, Decision, Error, Limiter, Registry, concurrency_limit};

use super::until_remain;
use crate::overrides::{in_force, on_each_registry};
use crate::support::until::until;

const OFF: &str = "concurrency::operating::calls_hold_nothing_while_limits_are_off";

/// Holds its permit in what it returns.
#[concurrency_limit(3, key = id, name = "operating.jobs", bind = decision)]
async fn job(id: &str) -> Result<Decision, Error> {
    let _ = id;
    Ok(decision)
}

fn jobs(registry: &Registry) -> Limiter {
    registry.policy("operating.jobs").unwrap().limiter().unwrap()
}

async fn until_max(limiter: &Limiter, max: u64) {
    until("the number is in force", Duration::from_secs(60), async || {
        let limit = limiter.peek("a").await.map_err(|error| error.to_string())?.limit;
        if limit == max { Ok(()) } else { Err(format!("{limit}")) }
    })
    .await;
}

#[tokio::test]
async fn overrides_of_max_end_no_call() {
    on_each_registry("# none\n", async |registry, file| {
        let jobs = jobs(registry);
        let call = async || registry.scope(job("a")).await;
        let mut held = vec![call().await.unwrap(), call().await.unwrap(), call().await.unwrap()];
        file.replace("[\"operating.jobs\"]\nmax = 2\n");
        until_max(&jobs, 2).await;
        // Three run still, and a new one starts once only one does.
        for running in [3, 2] {
            let refused = call().await.unwrap_err();
            assert!(refused.is_limited() && !refused.is_unsatisfiable(), "{running} run");
            assert_eq!(jobs.peek("a").await.unwrap().remaining, 0);
            drop(held.pop());
        }
        until_remain(&jobs, "a", 1).await;
        let under_override = call().await.unwrap();
        assert_eq!((under_override.limit, under_override.remaining), (2, 0));
        file.replace("[\"operating.jobs\"]\nmax = 5\n");
        until_max(&jobs, 5).await;
        assert_eq!(call().await.unwrap().remaining, 2);
        until_remain(&jobs, "a", 3).await;
        // What ends under other numbers than it has begun with is free all the same.
        drop(held);
        until_remain(&jobs, "a", 4).await;
        file.replace("# none\n");
        until_max(&jobs, 3).await;
        until_remain(&jobs, "a", 2).await;
        drop(under_override);
        until_remain(&jobs, "a", 3).await;
    })
    .await;
}

#[tokio::test]
async fn policies_may_be_turned_off_while_calls_hold() {
    on_each_registry("# none\n", async |registry, file| {
        let jobs = jobs(registry);
        let call = async || registry.scope(job("a")).await.unwrap();
        let (first, before) = (call().await, [call().await, call().await]);
        file.replace("[\"operating.jobs\"]\noff = true\n");
        in_force(registry, &["operating.jobs"]).await;
        let during: Vec<_> = [call().await, call().await, jobs.try_acquire("a").await.unwrap()].into();
        assert_eq!(jobs.peek("a").await.unwrap().remaining, 0);
        drop(first);
        until_remain(&jobs, "a", 1).await;
        file.replace("# none\n");
        in_force(registry, &[]).await;
        // What began while it was off holds nothing, and frees nothing.
        drop(during);
        until_remain(&jobs, "a", 1).await;
        let _third = call().await;
        assert!(registry.scope(job("a")).await.unwrap_err().is_limited());
        drop(before);
        until_remain(&jobs, "a", 2).await;
    })
    .await;
}

#[tokio::test]
async fn policies_may_be_put_in_shadow_while_calls_hold() {
    on_each_registry("# none\n", async |registry, file| {
        let jobs = jobs(registry);
        let call = async || registry.scope(job("a")).await.unwrap();
        let before = [call().await, call().await];
        file.replace("[\"operating.jobs\"]\nshadow = true\n");
        in_force(registry, &["operating.jobs"]).await;
        let fits = call().await;
        let exceeds = [call().await, call().await];
        until_remain(&jobs, "a", 0).await;
        // Only what has fitted was taken.
        drop(exceeds);
        assert_eq!(jobs.peek("a").await.unwrap().remaining, 0);
        drop(fits);
        until_remain(&jobs, "a", 1).await;
        drop(before);
        until_remain(&jobs, "a", 3).await;
    })
    .await;
}

#[tokio::test]
async fn unlimited_registries_hold_nothing() {
    let registry = Registry::unlimited();
    let limiter = registry.limiter("operating.jobs", ConcurrencyLimit::new(1)).unwrap();
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(limiter.try_acquire("a").await.unwrap());
        held.push(limiter.acquire_n("a", 7).await.unwrap());
        held.push(registry.scope(job("a")).await.unwrap());
        held.push(registry.try_acquire_all([limiter.charge("a"), limiter.charge("b")]).await.unwrap());
    }
}

#[tokio::test]
async fn calls_hold_nothing_while_limits_are_off() {
    if std::env::var_os("RATELIMITS_OFF").is_none() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args([OFF, "--exact"]).env("RATELIMITS_OFF", "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(job("a").await.unwrap());
    }
    let limiter = Registry::in_memory().limiter("operating.jobs", ConcurrencyLimit::new(1)).unwrap();
    let _both = (limiter.try_acquire("a").await.unwrap(), limiter.try_acquire("a").await.unwrap());
}

#[tokio::test]
async fn each_scope_has_its_own_holds() {
    let [outer, inner] = [Registry::in_memory(), Registry::in_memory()];
    let nested = async {
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(job("a").await.unwrap());
            held.push(inner.scope(job("a")).await.unwrap());
        }
        assert!(job("a").await.is_err() && inner.scope(job("a")).await.is_err());
        held
    };
    let held = outer.scope(nested).await;
    // Released where they were taken, wherever that happens.
    inner.scope(async { drop(held) }).await;
    for registry in [outer, inner] {
        until_remain(&jobs(&registry), "a", 3).await;
    }
}
