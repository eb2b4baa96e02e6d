//! What the observer of a dashboard counts.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::recently_limited::RecentlyLimited;
use super::traffic::Traffic;
use crate::decide::decision::Decision;
use crate::decide::observation::{CallOutcome, Observation};
use crate::observe::by_policy::ByPolicy;
use crate::observe::most_limited::LimitedKey;
use crate::observe::suggestions::demand::{Demand, REFUSED_AT_MOST, Room};
use crate::observe::suggestions::suggestion::Suggestion;

/// The traffic and the demand of each policy, and the keys that are limited.
#[derive(Debug)]
pub(crate) struct Counts {
    since: Instant,
    policies: ByPolicy<Arc<(Traffic, Demand)>>,
    room: Room,
    limited: RecentlyLimited,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Counts {
            since: Instant::now(),
            policies: ByPolicy::default(),
            room: Room::default(),
            limited: RecentlyLimited::new(),
        }
    }

    /// Counts that show the parts of keys as text.
    pub(crate) fn keep_keys() -> Self {
        Counts { limited: RecentlyLimited::new().keep_keys(), ..Counts::new() }
    }

    pub(crate) fn count(&self, seen: &Observation<'_>) {
        let second = self.second();
        let new = |_: &Arc<str>| Arc::new((Traffic::default(), self.room.demand()));
        self.policies.with(seen, new, |of| {
            let (traffic, demand) = &**of;
            traffic.count(seen, second);
            demand.count(seen);
        });
        if seen.outcome == CallOutcome::Limited {
            self.limited.at(second).count(seen);
        }
    }

    /// Returns the current second since the start.
    pub(crate) fn second(&self) -> u32 {
        u32::try_from(self.since.elapsed().as_secs()).unwrap_or(u32::MAX)
    }

    /// Returns the traffic of each policy, with the smallest numbers that would refuse few of its calls, or why they are not known.
    pub(crate) fn traffic(&self, second: u32) -> Vec<Value> {
        self.policies.map(|policy, of| {
            let (traffic, demand) = &**of;
            let mut shown = traffic.to_json(policy, second);
            let Suggestion { smallest, calls, keys, one_in, .. } = demand.suggestion(policy);
            let (smallest, reason) = match smallest {
                Ok(smallest) => (Some(smallest.to_string()), None),
                Err(reason) => (None, Some(reason.to_string())),
            };
            shown["suggestion"] = json!({
                "refuses_at_most": REFUSED_AT_MOST, "arguments": smallest, "reason": reason,
                "calls": calls, "keys": keys, "one_in": one_in,
            });
            shown
        })
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
