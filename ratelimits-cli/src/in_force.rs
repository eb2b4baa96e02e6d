//! What operators have changed, as it concerns keys in Redis.

use std::borrow::Cow;
use std::collections::HashMap;

use ratelimit_runtime::inspect::{KeyPieces, key_text};
use ratelimit_runtime::overrides::Entry;

/// Overrides by the names of their policies, and by their keys.
#[derive(Debug, Default)]
pub(crate) struct InForce {
    policies: HashMap<String, Entry>,
    /// By the parts of the key as they are in Redis, too.
    keys: HashMap<(String, String), Entry>,
}

/// What is changed for a key.
#[derive(Debug)]
pub(crate) struct Changed<'a> {
    pub(crate) entry: Cow<'a, Entry>,
    /// Whether this key has an override of its own.
    pub(crate) is_of_key: bool,
}

impl InForce {
    pub(crate) fn new(overrides: Vec<Entry>) -> Self {
        let mut in_force = InForce::default();
        for entry in overrides {
            let policy = entry.policy.clone();
            match encoded(&entry.key) {
                Some(parts) => drop(in_force.keys.insert((policy, parts), entry)),
                None => drop(in_force.policies.insert(policy, entry)),
            }
        }
        in_force
    }

    /// Returns what is changed for all keys of a policy.
    pub(crate) fn of_policy(&self, prefix: &str, name: &str) -> Option<&Entry> {
        self.policies.get(&format!("{prefix}:{name}")).or_else(|| self.policies.get(name))
    }

    /// Returns what is changed for a key, whose parts are as they are in Redis.
    pub(crate) fn of_key(&self, prefix: &str, name: &str, parts: Option<&str>) -> Option<Changed<'_>> {
        let all = self.of_policy(prefix, name);
        if let Some(own) = parts.and_then(|parts| self.own(prefix, name, parts)) {
            return Some(Changed { entry: Cow::Owned(own.over(all)), is_of_key: true });
        }
        all.map(|all| Changed { entry: Cow::Borrowed(all), is_of_key: false })
    }

    /// Whether a key has an override of its own.
    pub(crate) fn has_own(&self, prefix: &str, name: &str, parts: Option<&str>) -> bool {
        parts.is_some_and(|parts| self.own(prefix, name, parts).is_some())
    }

    pub(crate) fn have_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    fn own(&self, prefix: &str, name: &str, parts: &str) -> Option<&Entry> {
        let of = |policy: String| self.keys.get(&(policy, parts.to_owned()));
        of(format!("{prefix}:{name}")).or_else(|| of(name.to_owned()))
    }
}

/// Returns the switch that is set: `blocked`, or one by which the policy refuses no call.
pub(crate) fn switch(changed: &Entry) -> Option<&'static str> {
    let switches =
        [(changed.blocked, "blocked"), (changed.off, "off"), (changed.shadow == Some(true), "shadow")];
    switches.iter().find_map(|(is_set, switch)| is_set.then_some(*switch))
}

/// Returns the parts of a key as they are in Redis, if there are any.
pub(crate) fn encoded(parts: &[String]) -> Option<String> {
    // The other pieces do not matter.
    let key = key_text("", "", "", &"x", None, parts).ok()?;
    KeyPieces::split(&key)?.encoded_parts.map(str::to_owned)
}
