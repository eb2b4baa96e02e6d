//! The limiters of a registry, by name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::invalid_policy::InvalidPolicy;
use crate::limiter::Definition;
use crate::policy::Policy;
use crate::policy_id::PolicyId;

/// The maximum number of cached names. Limiters with further names work too, because their state is in the store.
const MAX_NAMES: usize = 10_000;

/// Limiters by name. All limiters with one name have the same algorithm, and may have different numbers.
#[derive(Debug, Default)]
pub(super) struct LimiterCache(Mutex<HashMap<Arc<str>, Vec<Arc<Definition>>>>);

impl LimiterCache {
    /// Returns the limiter with this name and policy, and creates it if there is none.
    pub(super) fn get(&self, name: &str, policy: Policy) -> Result<Arc<Definition>, InvalidPolicy> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name) {
            if let Some(same) = known.iter().find(|definition| definition.policy == policy) {
                return Ok(Arc::clone(same));
            }
            if known.iter().any(|definition| definition.policy.algorithm() != policy.algorithm()) {
                return Err(InvalidPolicy::new(
                    "name",
                    "is that of a limiter with another algorithm; rename one",
                ));
            }
        }
        let spec = policy.spec()?;
        let definition = Arc::new(Definition {
            name: name.into(),
            prefix: "".into(),
            policy_id: PolicyId::new("", name),
            function: None,
            on_store_error: None,
            policy,
            spec,
        });
        if names.len() >= MAX_NAMES {
            remove_idle(&mut names);
        }
        if names.len() < MAX_NAMES {
            let known = names.entry(Arc::clone(&definition.name)).or_default();
            known.retain(in_use);
            known.push(Arc::clone(&definition));
        }
        Ok(definition)
    }
}

fn remove_idle(names: &mut HashMap<Arc<str>, Vec<Arc<Definition>>>) {
    names.retain(|_, known| {
        known.retain(in_use);
        !known.is_empty()
    });
}

/// Whether it is used outside the cache.
fn in_use(definition: &Arc<Definition>) -> bool {
    Arc::strong_count(definition) > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{FixedWindow, TokenBucket};

    #[test]
    fn limiters_are_cached_by_name_and_policy() {
        let cache = LimiterCache::default();
        let get =
            |name: &str, burst| cache.get(name, TokenBucket::per_second(1).burst(burst).into()).unwrap();
        let first = get("a", 5);
        assert!(Arc::ptr_eq(&first, &get("a", 5)));
        assert!(!Arc::ptr_eq(&first, &get("a", 6)));
        assert!(!Arc::ptr_eq(&first, &get("b", 5)));
    }

    #[test]
    fn one_name_has_one_algorithm() {
        let cache = LimiterCache::default();
        cache.get("a", TokenBucket::per_second(1).into()).unwrap();
        let window = FixedWindow::new(1, std::time::Duration::from_secs(1));
        assert_eq!(cache.get("a", window.into()).unwrap_err().argument(), "name");
    }

    #[test]
    fn idle_limiters_leave_and_used_ones_stay() {
        let cache = LimiterCache::default();
        let policy = Policy::from(TokenBucket::per_second(1));
        let held = cache.get("held", policy).unwrap();
        for i in 0..3 * MAX_NAMES {
            cache.get(&i.to_string(), policy).unwrap();
        }
        assert!(cache.0.lock().unwrap().len() <= MAX_NAMES);
        assert!(Arc::ptr_eq(&held, &cache.get("held", policy).unwrap()));
    }
}
