//! What the page shows, as JSON.

use serde_json::{Value, json};

use super::change::KeyTexts;
use crate::decide::decision::Decision;
use crate::observe::dashboard::counts::Counts;
use crate::observe::most_limited::LimitedKey;
use crate::store::Store;
use crate::usage::check::check_policies;
use crate::usage::policies::policies;
use crate::usage::registry::Registry;
#[cfg(feature = "overrides")]
use crate::usage::registry::overrides::Override;

/// Returns the state of a registry, and what an observer has counted.
pub(super) async fn report(counts: &Counts, registry: &Registry, may_reset: bool) -> Value {
    let second = counts.second();
    let most_limited = with_pauses(registry, counts.most_limited(second)).await;
    let problems = check_policies().err();
    let problems: Vec<_> = problems.iter().flat_map(|problems| problems.problems()).collect();
    let (overrides, more_overrides) = overrides(registry);
    json!({
        "store": store(registry),
        "waiting": registry.backend().waiting(),
        "policies": policies(),
        "traffic": counts.traffic(second),
        "most_limited": counts.shown(second, &most_limited),
        "overrides": overrides,
        "more_overrides": more_overrides,
        "problems": problems,
        "may_reset": may_reset,
    })
}

/// Adds what tells the pause and the penalties of each key. They are not known for keys of limiters, and for those that are too long to
/// be kept.
async fn with_pauses(registry: &Registry, keys: Vec<LimitedKey>) -> Vec<(LimitedKey, Option<Decision>)> {
    let answers = registry.store_health().healthy;
    let mut with_pauses = Vec::with_capacity(keys.len());
    for key in keys {
        let parts = key.key.clone().filter(|_| answers && !key.is_cut);
        let decision = match (registry.policy(&key.policy), parts) {
            (Ok(policy), Some(parts)) => policy.peek_pause(KeyTexts(parts)).await.ok(),
            _ => None,
        };
        with_pauses.push((key, decision));
    }
    with_pauses
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

/// The most overrides of keys that the page shows.
#[cfg(feature = "overrides")]
const MOST_KEYS: usize = 100;

/// Returns the overrides in force, those of policies first, and how many of keys are too many to be shown. Null without the feature
/// `overrides`.
#[cfg(feature = "overrides")]
fn overrides(registry: &Registry) -> (Value, usize) {
    let shown = |it: &Override| json!({ "policy": it.policy(), "key": it.key(), "settings": it.settings() });
    let (of_policies, of_keys): (Vec<_>, Vec<_>) =
        registry.overrides().into_iter().partition(|it| it.key().is_empty());
    let list = of_policies.iter().chain(of_keys.iter().take(MOST_KEYS)).map(shown).collect();
    (list, of_keys.len().saturating_sub(MOST_KEYS))
}

#[cfg(not(feature = "overrides"))]
fn overrides(_registry: &Registry) -> (Value, usize) {
    (Value::Null, 0)
}
