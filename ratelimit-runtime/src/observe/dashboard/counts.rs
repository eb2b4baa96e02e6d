//! What the observer of a dashboard counts.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::recently_limited::RecentlyLimited;
use super::traffic::Traffic;
use crate::decide::decision::Decision;
use crate::decide::observation::{CallOutcome, Observation};
use crate::observe::by_policy::ByPolicy;
use crate::observe::most_limited::LimitedKey;

/// The traffic of each policy, and the keys that are limited.
#[derive(Debug)]
pub(crate) struct Counts {
    since: Instant,
    traffic: ByPolicy<Arc<Traffic>>,
    limited: RecentlyLimited,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Counts { since: Instant::now(), traffic: ByPolicy::default(), limited: RecentlyLimited::new() }
    }

    /// Counts that show the parts of keys as text.
    pub(crate) fn keep_keys() -> Self {
        Counts { limited: RecentlyLimited::new().keep_keys(), ..Counts::new() }
    }

    pub(crate) fn count(&self, seen: &Observation<'_>) {
        let second = self.second();
        self.traffic.get(seen.policy, |_| Arc::default()).count(seen, second);
        if seen.outcome == CallOutcome::Limited {
            self.limited.at(second).count(seen);
        }
    }

    /// Returns the current second since the start.
    pub(crate) fn second(&self) -> u32 {
        u32::try_from(self.since.elapsed().as_secs()).unwrap_or(u32::MAX)
    }

    pub(crate) fn traffic(&self, second: u32) -> Vec<Value> {
        self.traffic.map(|policy, traffic| traffic.to_json(policy, second))
    }

    /// Returns the parts of a limited key by its hash, if it is not too long to be kept.
    pub(crate) fn limited_key(&self, policy: &str, key_hash: &str) -> Option<Vec<String>> {
        self.limited.find(self.second(), policy, key_hash)
    }

    pub(crate) fn most_limited(&self, second: u32) -> Vec<LimitedKey> {
        self.limited.shown(second)
    }

    /// Returns these keys as they are shown, with their pauses and penalties.
    pub(crate) fn shown(&self, second: u32, most_limited: &[(LimitedKey, Option<Decision>)]) -> Value {
        self.limited.to_json(second, most_limited)
    }
}
