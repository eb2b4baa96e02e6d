//! The limiters of a registry, by name.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::invalid_policy::InvalidPolicy;
use crate::decide::definition::Definition;

use crate::policy::{Algorithm, Policy};

/// How many limiters are examined to make room for a new one. Two keep the cache below twice the number of limiters in use,
/// because a pass over all of them then adds half as many.
const EXAMINED: usize = 2;

/// Limiters by name. All limiters with one name have the same algorithm, and may have different numbers.
#[derive(Debug)]
pub(super) struct LimiterCache {
    max_limiters: usize,
    limiters: Mutex<Limiters>,
}

#[derive(Debug, Default)]
struct Limiters {
    names: HashMap<Arc<str>, SameName>,
    /// All of them, in the order in which they are examined.
    queue: VecDeque<Arc<Definition>>,
    created: u64,
}

#[derive(Debug)]
struct SameName {
    algorithm: Algorithm,
    by_policy: HashMap<Policy, Arc<Definition>>,
}

impl LimiterCache {
    /// Creates a cache that keeps this many limiters, and further ones while they are in use.
    pub(super) fn new(max_limiters: usize) -> Self {
        LimiterCache { max_limiters, limiters: Mutex::default() }
    }

    /// Returns the limiter with this name and policy, and creates it if there is none.
    pub(super) fn get(&self, name: &str, policy: Policy) -> Result<Arc<Definition>, InvalidPolicy> {
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same_name) = limiters.names.get(name) {
            if let Some(definition) = same_name.by_policy.get(&policy) {
                return Ok(Arc::clone(definition));
            }
            if same_name.algorithm != policy.algorithm() {
                return Err(InvalidPolicy::new(
                    "name",
                    "is that of a limiter with another algorithm; rename one",
                ));
            }
        }
        let spec = policy.spec()?;
        limiters.make_room(self.max_limiters);
        let known = limiters.names.get_key_value(name).map(|(name, _)| Arc::clone(name));
        let name = known.unwrap_or_else(|| name.into());
        let definition = Arc::new(Definition::of_limiter(name, policy, spec));
        limiters.insert(&definition);
        Ok(definition)
    }

    /// Returns how many limiters were created so far.
    #[cfg(feature = "overrides")]
    pub(super) fn created(&self) -> u64 {
        self.limiters.lock().unwrap_or_else(PoisonError::into_inner).created
    }

    /// Returns the names and policies of all limiters.
    #[cfg(feature = "overrides")]
    pub(super) fn list(&self) -> Vec<(Arc<str>, Policy)> {
        let limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        limiters
            .queue
            .iter()
            .map(|limiter| (Arc::clone(&limiter.name.text), limiter.limiter_numbers().policy))
            .collect()
    }
}

impl Limiters {
    fn insert(&mut self, definition: &Arc<Definition>) {
        let empty = || SameName { algorithm: definition.algorithm, by_policy: HashMap::new() };
        let same_name = self.names.entry(Arc::clone(&definition.name.text)).or_insert_with(empty);
        same_name.by_policy.insert(definition.limiter_numbers().policy, Arc::clone(definition));
        self.queue.push_back(Arc::clone(definition));
        self.created += 1;
    }

    /// Removes idle limiters if there are too many, in a bounded number of steps.
    fn make_room(&mut self, max_limiters: usize) {
        for _ in 0..EXAMINED {
            if self.queue.len() < max_limiters {
                return;
            }
            let Some(definition) = self.queue.pop_front() else { return };
            if self.is_in_use(&definition) {
                self.queue.push_back(definition);
            } else {
                self.remove(&definition);
            }
        }
    }

    /// Whether it is used outside the cache, or is the only one with a name that is: limiters that are derived from it, and
    /// their charges, share its name.
    fn is_in_use(&self, definition: &Arc<Definition>) -> bool {
        let last =
            self.names.get(&definition.name.text).is_some_and(|same_name| same_name.by_policy.len() == 1);
        // Here by policy and in the queue; the name here and in the definition.
        Arc::strong_count(definition) > 2 || (last && Arc::strong_count(&definition.name.text) > 2)
    }

    fn remove(&mut self, definition: &Definition) {
        if let Some(same_name) = self.names.get_mut(&definition.name.text) {
            same_name.by_policy.remove(&definition.limiter_numbers().policy);
            if same_name.by_policy.is_empty() {
                self.names.remove(&definition.name.text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{FixedWindow, TokenBucket};

    const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

    fn bucket(burst: u64) -> Policy {
        TokenBucket::per_second(1).burst(burst).into()
    }

    fn len(cache: &LimiterCache) -> usize {
        let limiters = cache.limiters.lock().unwrap();
        let by_name: usize = limiters.names.values().map(|same_name| same_name.by_policy.len()).sum();
        assert_eq!(by_name, limiters.queue.len());
        by_name
    }

    #[test]
    fn limiters_are_cached_by_name_and_policy() {
        let cache = LimiterCache::new(10);
        let get = |name, burst| cache.get(name, bucket(burst)).unwrap();
        let first = get("a", 5);
        assert!(Arc::ptr_eq(&first, &get("a", 5)));
        assert!(!Arc::ptr_eq(&first, &get("a", 6)));
        assert!(!Arc::ptr_eq(&first, &get("b", 5)));
    }

    #[test]
    fn one_name_has_one_algorithm() {
        let cache = LimiterCache::new(10);
        cache.get("a", bucket(5)).unwrap();
        let window = FixedWindow::new(1, DAY);
        assert_eq!(cache.get("a", window.into()).unwrap_err().argument(), "name");
    }

    #[test]
    fn names_in_use_have_one_algorithm_in_a_full_cache() {
        let cache = LimiterCache::new(10);
        let window = Policy::from(FixedWindow::new(1, DAY));
        let held: Vec<_> = (0..100).map(|i| cache.get(&i.to_string(), bucket(5)).unwrap()).collect();
        // Limiters derived from one have definitions of their own.
        let derived: Vec<_> =
            held[..50].iter().map(|held| Arc::new(held.with_keys("derived", None))).collect();
        let held = &held[50..];
        for i in 0..1000 {
            cache.get(&format!("idle {i}"), window).unwrap();
        }
        for definition in derived.iter().chain(held) {
            assert_eq!(cache.get(definition.name.as_str(), window).unwrap_err().argument(), "name");
        }
        for definition in held {
            assert!(Arc::ptr_eq(definition, &cache.get(definition.name.as_str(), bucket(5)).unwrap()));
        }
    }

    #[test]
    fn idle_limiters_leave_and_their_names_are_free() {
        let cache = LimiterCache::new(10);
        let held = cache.get("held", bucket(5)).unwrap();
        for i in 0..1000 {
            // Many names, and many policies with one name.
            cache.get(&i.to_string(), bucket(5)).unwrap();
            cache.get("held", bucket(i + 10)).unwrap();
            assert!(len(&cache) <= 11, "{}", len(&cache));
        }
        assert!(Arc::ptr_eq(&held, &cache.get("held", bucket(5)).unwrap()));
        cache.get("0", FixedWindow::new(1, DAY).into()).unwrap();
    }

    #[test]
    fn idle_limiters_with_names_that_are_not_interned_leave() {
        let cache = LimiterCache::new(10);
        for i in 0..100 {
            cache.get(&format!("{i:0>1000}"), bucket(5)).unwrap();
            assert!(len(&cache) <= 11, "{}", len(&cache));
        }
    }

    #[test]
    fn limiters_in_use_are_kept_beyond_the_maximum() {
        for max_limiters in [0, 1, 10] {
            let cache = LimiterCache::new(max_limiters);
            let held: Vec<_> = (0..100).map(|i| cache.get("held", bucket(i + 1)).unwrap()).collect();
            for i in 0..1000 {
                cache.get(&i.to_string(), bucket(5)).unwrap();
                assert!(len(&cache) <= 2 * held.len(), "{}", len(&cache));
            }
            drop(held);
            for i in 0..200 {
                cache.get(&i.to_string(), bucket(5)).unwrap();
            }
            assert!(len(&cache) <= max_limiters + 2, "{}", len(&cache));
        }
    }

    #[test]
    fn new_limiters_examine_few_others() {
        let cache = LimiterCache::new(10);
        let _held: Vec<_> = (0..1000).map(|i| cache.get(&i.to_string(), bucket(5)).unwrap()).collect();
        let queued = |index: usize| Arc::clone(&cache.limiters.lock().unwrap().queue[index]);
        let next = queued(EXAMINED);
        cache.get("new", bucket(5)).unwrap();
        // A known limiter examines none.
        cache.get("5", bucket(5)).unwrap();
        assert!(Arc::ptr_eq(&next, &queued(0)));
    }
}
