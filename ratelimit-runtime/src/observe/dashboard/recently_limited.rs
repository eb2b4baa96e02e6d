//! The keys that were limited most in the last minutes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::decide::decision::Decision;
use crate::observe::most_limited::{LimitedKey, MostLimited};

/// How many keys are counted: a multiple of those that are shown, as the last of a full list may be chance.
const COUNTED: usize = 500;

/// How many keys are shown.
const SHOWN: usize = 20;

/// How many seconds one list counts. Shown are the keys of the current list and of the one before.
const PERIOD: u32 = 300;

/// Lists of limited keys, each for some minutes.
#[derive(Debug)]
pub(super) struct RecentlyLimited {
    current: MostLimited,
    /// The number of the current list.
    period: AtomicU32,
    previous: Mutex<Vec<LimitedKey>>,
    shows_keys: bool,
}

impl RecentlyLimited {
    pub(super) fn new() -> Self {
        RecentlyLimited {
            // So that a key can be reset whose hash is shown.
            current: MostLimited::new(COUNTED).keep_keys(),
            period: AtomicU32::new(0),
            previous: Mutex::default(),
            shows_keys: false,
        }
    }

    /// Shows the parts of keys as text.
    pub(super) fn keep_keys(self) -> Self {
        RecentlyLimited { shows_keys: true, ..self }
    }

    /// Returns the parts of a key in the list by its hash, if all of it is kept.
    pub(super) fn find(&self, second: u32, policy: &str, key_hash: &str) -> Option<Vec<String>> {
        let current = self.at(second).list();
        let previous = self.previous.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_it = |key: &LimitedKey| *key.policy == *policy && key.key_hash == key_hash && !key.is_cut;
        current.into_iter().chain(previous).find(is_it)?.key
    }

    /// Returns the list that counts now.
    pub(super) fn at(&self, second: u32) -> &MostLimited {
        let period = second / PERIOD;
        if self.period.load(Ordering::Relaxed) < period {
            let mut previous = self.previous.lock().unwrap_or_else(PoisonError::into_inner);
            let last = self.period.fetch_max(period, Ordering::Relaxed);
            if last < period {
                *previous = if last + 1 == period { self.current.list() } else { Vec::new() };
                self.current.clear();
            }
        }
        &self.current
    }

    /// Returns the keys that are shown, in descending order of their refusals.
    pub(super) fn shown(&self, second: u32) -> Vec<LimitedKey> {
        let current = self.at(second).list();
        let previous = self.previous.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut keys = HashMap::<_, LimitedKey>::new();
        for key in current.into_iter().chain(previous) {
            let (refusals, overcount) = (key.refusals, key.overcount);
            let sum = keys.entry((key.policy.clone(), key.key_hash.clone())).or_insert(LimitedKey {
                refusals: 0,
                overcount: 0,
                ..key
            });
            (sum.refusals, sum.overcount) = (sum.refusals + refusals, sum.overcount + overcount);
        }
        let mut keys: Vec<_> = keys.into_values().collect();
        keys.sort_by(|a, b| (b.refusals, &a.policy, &a.key_hash).cmp(&(a.refusals, &b.policy, &b.key_hash)));
        keys.truncate(SHOWN);
        keys
    }

    /// Returns the keys that are shown with their pauses and penalties, if these are known, and since when they are counted.
    pub(super) fn to_json(&self, second: u32, shown: &[(LimitedKey, Option<Decision>)]) -> Value {
        let keys = shown.iter().map(|(key, decision)| {
            let paused = decision.as_ref().and_then(Decision::paused);
            let penalty_step = decision.as_ref().map_or(0, Decision::penalty_step);
            let LimitedKey { policy, key_hash, key, refusals, overcount, is_cut } = key;
            let key = key.as_ref().filter(|_| self.shows_keys);
            json!({ "policy": &**policy, "key_hash": key_hash, "key": key, "is_cut": is_cut, "refusals": refusals, "overcount": overcount,
                "paused_seconds": paused.map(|left| left.as_secs_f64()), "penalty_step": penalty_step })
        });
        json!({ "seconds": second.min(second % PERIOD + PERIOD), "keys": keys.collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::observation::{CallOutcome, Observation};
    use crate::key::KeyParts;

    fn refuse(keys: &RecentlyLimited, key: &str, second: u32) {
        let key = KeyParts::of(&key).unwrap();
        let seen = Observation::of_key("send", &key, CallOutcome::Limited, None);
        keys.at(second).count(&seen);
    }

    fn to_json(keys: &RecentlyLimited, second: u32) -> Value {
        let shown: Vec<_> = keys.shown(second).into_iter().map(|key| (key, None)).collect();
        keys.to_json(second, &shown)
    }

    /// The keys and how often they were refused.
    fn listed(keys: &RecentlyLimited, second: u32) -> Vec<(String, u64)> {
        let json = to_json(keys, second);
        let of =
            |key: &Value| (key["key"][0].as_str().unwrap().to_owned(), key["refusals"].as_u64().unwrap());
        json["keys"].as_array().unwrap().iter().map(of).collect()
    }

    #[test]
    fn keys_of_this_period_and_the_one_before_are_listed() {
        let keys = RecentlyLimited::new().keep_keys();
        let expect = |second, expected: &[(&str, u64)]| {
            let expected: Vec<_> = expected.iter().map(|(key, count)| (String::from(*key), *count)).collect();
            assert_eq!(listed(&keys, second), expected, "{second}");
        };
        [("ann", 0), ("ann", 10), ("bob", 20)].iter().for_each(|(key, second)| refuse(&keys, key, *second));
        expect(299, &[("ann", 2), ("bob", 1)]);
        [("bob", 300), ("bob", 301)].iter().for_each(|(key, second)| refuse(&keys, key, *second));
        expect(599, &[("bob", 3), ("ann", 2)]);
        expect(600, &[("bob", 2)]);
        refuse(&keys, "eve", 700);
        expect(1000, &[("eve", 1)]);
        expect(1200, &[]);
        refuse(&keys, "eve", 1201);
        // Nothing was refused for more than a period.
        expect(1800, &[]);
    }

    #[test]
    fn the_first_keys_are_shown_and_hashed_by_default() {
        let keys = RecentlyLimited::new();
        for key in 0..2 * SHOWN {
            (0..=key).for_each(|_| refuse(&keys, &format!("secret {key}"), 1));
        }
        let json = to_json(&keys, 40);
        assert_eq!((json["seconds"].as_u64(), json["keys"].as_array().unwrap().len()), (Some(40), SHOWN));
        assert_eq!(json["keys"][0]["refusals"], 2 * SHOWN);
        assert!(!json.to_string().contains("secret"), "{json}");
        assert_eq!(to_json(&keys, 310)["seconds"], 310);
        assert_eq!(to_json(&keys, 910)["seconds"], 310);
    }
}
