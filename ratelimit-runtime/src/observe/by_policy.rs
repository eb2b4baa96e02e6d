//! One value per policy, by name, in bounded memory.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crate::decide::observation::{Observation, Owner};

/// How many policies have a value of their own. Names of limiters may come from user input.
const MAX_POLICIES: usize = 1_000;

/// The name of all others.
const OTHER_POLICIES: &str = "(other)";

/// What an observer keeps of each policy. All policies above a maximum share one value.
#[derive(Debug)]
pub(crate) struct ByPolicy<T> {
    values: RwLock<HashMap<Arc<str>, T>>,
    owner: Owner,
}

impl<T> Default for ByPolicy<T> {
    fn default() -> Self {
        ByPolicy { values: RwLock::default(), owner: Owner::new() }
    }
}

impl<T: Clone + Send + Sync + 'static> ByPolicy<T> {
    /// Calls a function with the value of a policy, which is made of its name at its first call. The first observer to see a policy
    /// finds its value there, and the others by its name.
    #[inline]
    pub(crate) fn with<U>(
        &self,
        seen: &Observation<'_>,
        new: impl Fn(&Arc<str>) -> T,
        then: impl FnOnce(&T) -> U,
    ) -> U {
        match seen.attached(&self.owner, || self.get(seen.policy, &new)) {
            Some(value) => then(value),
            None => then(&self.get(seen.policy, new)),
        }
    }

    fn get(&self, policy: &str, new: impl Fn(&Arc<str>) -> T) -> T {
        self.known(policy).unwrap_or_else(|| self.add(policy, new))
    }

    /// Calls a function with each name and its value.
    pub(crate) fn map<U>(&self, mut each: impl FnMut(&str, &T) -> U) -> Vec<U> {
        self.read().iter().map(|(name, value)| each(name, value)).collect()
    }

    /// Returns the value of a policy, unless it may get its own.
    fn known(&self, policy: &str) -> Option<T> {
        let values = self.read();
        let other = || if values.len() > MAX_POLICIES { values.get(OTHER_POLICIES) } else { None };
        values.get(policy).or_else(other).cloned()
    }

    fn add(&self, policy: &str, new: impl Fn(&Arc<str>) -> T) -> T {
        let mut values = self.values.write().unwrap_or_else(PoisonError::into_inner);
        // Other threads may have added the policy, or taken the last place, meanwhile.
        let has_place = values.len() < MAX_POLICIES || values.contains_key(policy);
        let name: Arc<str> = if has_place { policy.into() } else { OTHER_POLICIES.into() };
        values.entry(name).or_insert_with_key(new).clone()
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<Arc<str>, T>> {
        self.values.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_above_the_maximum_share_a_value() {
        let names = ByPolicy::default();
        let name = |policy: &str| names.get(policy, Arc::clone);
        for i in 0..2 * MAX_POLICIES {
            let expected = if i < MAX_POLICIES { &*i.to_string() } else { OTHER_POLICIES };
            assert_eq!(&*name(&i.to_string()), expected);
        }
        assert_eq!((&*name("7"), &*name("1999")), ("7", OTHER_POLICIES));
        assert_eq!(names.read().len(), MAX_POLICIES + 1);
    }
}
