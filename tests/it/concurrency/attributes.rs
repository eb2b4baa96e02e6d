//! Arguments of the attribute, on each store.

use std::time::Duration;

use ratelimits::{
    ConcurrencyLimit, Error, FixedWindow, Limiter, OnStoreError, Registry, concurrency_limit, count_limit,
    rate_limit,
};
use tokio::sync::Semaphore;

use super::until_remain;
use crate::support::registries::on_each_registry;

const ABSENT: &str = "redis://127.0.0.1:1";
const DAY: Duration = Duration::from_secs(86_400);

/// Keeps a body running until the test lets it end.
type Gate = Semaphore;

#[concurrency_limit(1, key = id, name = "attributes.skips", skip_when = id == "admin")]
async fn skips(id: &str, gate: &Gate) -> Result<(), Error> {
    gate.acquire().await.expect("it is open").forget();
    Ok(())
}

#[concurrency_limit(2, key = id, name = "attributes.costs", cost = cost)]
async fn costs(id: &str, cost: u64, gate: &Gate) -> Result<u64, Error> {
    gate.acquire().await.expect("it is open").forget();
    Ok(cost)
}

#[concurrency_limit(1, key = &text, name = "attributes.falls-back", fallback = instead, pass_args)]
async fn falls_back(text: String, gate: &Gate) -> Result<String, Error> {
    gate.acquire().await.expect("it is open").forget();
    Ok(text)
}

/// Runs while another call holds the permit.
async fn instead(text: String, gate: &Gate) -> Result<String, Error> {
    gate.acquire().await.expect("it is open").forget();
    Ok(format!("instead of {text}"))
}

fn limiter(registry: &Registry, name: &str) -> Limiter {
    registry.policy(name).unwrap().limiter().unwrap()
}

#[tokio::test]
async fn skipped_calls_take_no_permits() {
    on_each_registry(async |registry, _| {
        let (gate, policy) = (Gate::new(0), limiter(&registry, "attributes.skips"));
        let (first, refused, skipped, ..) = registry
            .scope(async {
                tokio::join!(
                    biased;
                    skips("a", &gate),
                    async {
                        until_remain(&policy, "a", 0).await;
                        skips("a", &gate).await
                    },
                    skips("admin", &gate),
                    async {
                        until_remain(&policy, "a", 0).await;
                        assert_eq!(policy.peek("admin").await.unwrap().remaining, 1);
                        gate.add_permits(2);
                    },
                )
            })
            .await;
        first.unwrap();
        assert!(refused.unwrap_err().is_limited());
        skipped.unwrap();
        until_remain(&policy, "a", 1).await;
    })
    .await;
}

#[tokio::test]
async fn calls_hold_what_they_cost() {
    on_each_registry(async |registry, _| {
        let (gate, policy) = (Gate::new(0), limiter(&registry, "attributes.costs"));
        let calls = async {
            let both = costs("a", 2, &gate);
            let others = async {
                until_remain(&policy, "a", 0).await;
                assert!(costs("a", 1, &gate).await.unwrap_err().is_limited());
                assert!(costs("a", 3, &gate).await.unwrap_err().is_unsatisfiable());
                gate.add_permits(2);
                // Passes without asking.
                assert_eq!(costs("a", 0, &gate).await.unwrap(), 0);
            };
            let (both, ()) = tokio::join!(biased; both, others);
            assert_eq!(both.unwrap(), 2);
            until_remain(&policy, "a", 2).await;
            // What costs nothing holds nothing and releases nothing.
            gate.add_permits(1);
            costs("a", 0, &gate).await.unwrap();
            assert_eq!(policy.peek("a").await.unwrap().remaining, 2);
        };
        registry.scope(calls).await;
    })
    .await;
}

#[tokio::test]
async fn fallbacks_hold_nothing() {
    on_each_registry(async |registry, _| {
        let (gate, policy) = (Gate::new(0), limiter(&registry, "attributes.falls-back"));
        let call = || falls_back("a".into(), &gate);
        let calls = async {
            let second = async {
                until_remain(&policy, "a", 0).await;
                let open = async {
                    tokio::task::yield_now().await;
                    gate.add_permits(2);
                };
                tokio::join!(biased; call(), open).0
            };
            tokio::join!(biased; call(), second)
        };
        let (first, second) = registry.scope(calls).await;
        assert_eq!((first.unwrap(), second.unwrap()), ("a".into(), "instead of a".into()));
        until_remain(&policy, "a", 1).await;
        gate.add_permits(1);
        assert_eq!(registry.scope(call()).await.unwrap(), "a");
    })
    .await;
}

#[concurrency_limit(1, name = "attributes.allows", on_store_error = allow)]
async fn allows(gate: &Gate) -> Result<(), Error> {
    gate.acquire().await.expect("it is open").forget();
    Ok(())
}

#[concurrency_limit(1, name = "attributes.denies", on_store_error = deny)]
async fn denies() -> Result<(), Error> {
    Ok(())
}

#[concurrency_limit(1, name = "attributes.local")]
async fn local(gate: &Gate) -> Result<(), Error> {
    gate.acquire().await.expect("it is open").forget();
    Ok(())
}

#[tokio::test]
async fn calls_without_a_store_do_as_they_say() {
    let registry = Registry::connect_lazy(ABSENT).unwrap();
    let gate = Gate::new(0);
    let open = async {
        tokio::task::yield_now().await;
        gate.add_permits(3);
    };
    let calls = async { tokio::join!(biased; allows(&gate), allows(&gate), allows(&gate), open) };
    let (a, b, c, ()) = registry.scope(calls).await;
    a.and(b).and(c).unwrap();
    assert!(matches!(registry.scope(denies()).await, Err(Error::Store(_))));
    for _ in 0..3 {
        let both = async {
            let second = async {
                let refused = local(&gate).await;
                gate.add_permits(1);
                refused
            };
            tokio::join!(biased; local(&gate), second)
        };
        let (first, second) = registry.scope(both).await;
        first.unwrap();
        assert!(second.unwrap_err().is_limited());
    }
}

#[tokio::test]
async fn limiters_without_a_store_do_as_they_say() {
    let registry = Registry::connect_lazy(ABSENT).unwrap();
    let exports = registry.limiter("attributes.limiter", ConcurrencyLimit::new(1)).unwrap();
    let allowed = exports.clone().on_store_error(OnStoreError::Allow);
    let _both = (allowed.try_acquire("a").await.unwrap(), allowed.try_acquire("a").await.unwrap());
    for _ in 0..3 {
        let held = exports.try_acquire("a").await.unwrap();
        assert!(exports.try_acquire("a").await.unwrap_err().is_limited());
        // In a list too.
        let other = registry.limiter("attributes.window", FixedWindow::new(9, DAY)).unwrap();
        let both = || registry.try_acquire_all([exports.charge("a"), other.charge("a")]);
        assert!(both().await.unwrap_err().is_limited());
        drop(held);
        let held = both().await.unwrap();
        assert!(exports.try_acquire("a").await.is_err());
        drop(held);
    }
}

#[rate_limit("1000/d", burst = 100, key = id)]
#[concurrency_limit(1, key = id, name = "attributes.stacked")]
#[count_limit(100, "1d", key = id)]
async fn stacked(id: &str, gate: &Gate) -> Result<(), Error> {
    gate.acquire().await.expect("it is open").forget();
    Ok(())
}

#[tokio::test]
async fn stacks_hold_and_release() {
    on_each_registry(async |registry, _| {
        let (gate, policy) = (Gate::new(0), limiter(&registry, "attributes.stacked"));
        for _ in 0..3 {
            let second = async {
                until_remain(&policy, "a", 0).await;
                let refused = stacked("a", &gate).await;
                gate.add_permits(1);
                refused
            };
            let both = async { tokio::join!(biased; stacked("a", &gate), second) };
            let (first, second) = registry.scope(both).await;
            first.unwrap();
            let refused = second.unwrap_err();
            assert!(refused.is_limited() && refused.to_string().contains("attributes.stacked"), "{refused}");
            until_remain(&policy, "a", 1).await;
        }
    })
    .await;
}

#[tokio::test]
async fn one_policy_may_be_charged_several_times_in_a_call() {
    on_each_registry(async |registry, _| {
        let exports = registry.limiter("attributes.twice", ConcurrencyLimit::new(5)).unwrap();
        let charges = || [exports.charge("a"), exports.charge_n("a", 2), exports.charge("b")];
        let held = registry.try_acquire_all(charges()).await.unwrap();
        assert_eq!(exports.peek("a").await.unwrap().remaining, 2);
        assert!(registry.try_acquire_all(charges()).await.unwrap_err().is_limited());
        until_remain(&exports, "b", 4).await;
        drop(held);
        until_remain(&exports, "a", 5).await;
        until_remain(&exports, "b", 5).await;
        // A refund ends it, too.
        registry.try_acquire_all(charges()).await.unwrap().refund().await.unwrap();
        until_remain(&exports, "a", 5).await;
    })
    .await;
}
