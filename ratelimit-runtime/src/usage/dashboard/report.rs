//! What the page shows, as JSON.

use serde_json::{Value, json};

use crate::observe::dashboard::counts::Counts;
use crate::store::Store;
use crate::usage::check::check_policies;
use crate::usage::policies::policies;
use crate::usage::registry::Registry;
#[cfg(feature = "overrides")]
use crate::usage::registry::overrides::Override;

/// Returns the state of a registry, and what an observer has counted.
pub(super) fn report(counts: &Counts, registry: &Registry, may_reset: bool) -> Value {
    let second = counts.second();
    let problems = check_policies().err();
    let problems: Vec<_> = problems.iter().flat_map(|problems| problems.problems()).collect();
    json!({
        "store": store(registry),
        "waiting": registry.backend().waiting(),
        "policies": policies(),
        "traffic": counts.traffic(second),
        "most_limited": counts.most_limited(second),
        "overrides": overrides(registry),
        "problems": problems,
        "may_reset": may_reset,
    })
}

fn store(registry: &Registry) -> Value {
    let health = registry.store_health();
    let (kind, redis) = match registry.backend().store() {
        Some(Store::Redis(redis)) => ("redis", Some(redis)),
        Some(Store::Memory(_)) => ("memory", None),
        None => ("off", None),
    };
    json!({
        "kind": kind,
        "server": redis.map(|redis| redis.server()),
        "deployment": redis.map(|redis| redis.deployment()),
        "healthy": health.healthy,
        "outages": health.outages,
        "failed_decisions": health.failed_decisions,
    })
}

/// Returns the overrides in force; null without the feature `overrides`.
#[cfg(feature = "overrides")]
fn overrides(registry: &Registry) -> Value {
    let of_policy = |it: &Override| json!({ "policy": it.policy(), "settings": it.settings() });
    registry.overrides().iter().map(of_policy).collect()
}

#[cfg(not(feature = "overrides"))]
fn overrides(_registry: &Registry) -> Value {
    Value::Null
}
