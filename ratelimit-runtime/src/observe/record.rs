//! The decisions that were made for a request, for the headers of its response.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::base::clock;
use crate::decide::observation::{CallOutcome, Observation, Quota};
use crate::key::KeyParts;
use crate::policy::Algorithm;

/// What was decided for a request, by each policy that was asked.
#[derive(Debug, Default)]
pub(crate) struct RequestDecisions(Mutex<Vec<RecordedPolicy>>);

/// What a policy has left for one of the keys that were asked about, and whether it refused.
#[derive(Clone, Debug)]
pub(crate) struct RecordedPolicy {
    pub(crate) name: Box<str>,
    algorithm: Algorithm,
    pub(crate) limited: bool,
    pub(crate) quota: Quota,
    key: KeyParts,
    /// What the only decision has charged; `None` after several.
    charged: Option<u64>,
    /// When, by the clock of the process.
    decided: u64,
}

impl RequestDecisions {
    /// Adds a decision. Of several on one key the last one counts, and of several keys the tightest. Decisions of shadow policies do
    /// not concern the client.
    pub(crate) fn add(&self, seen: &Observation<'_>) {
        let is_call = seen.outcome != CallOutcome::NearLimit;
        let Some(quota) = seen.quota().filter(|_| is_call && !seen.shadow) else { return };
        let (limited, decided) = (seen.outcome == CallOutcome::Limited, clock::PROCESS.now());
        let mut policies = self.lock();
        let Some(policy) = policies.iter_mut().find(|policy| *policy.name == *seen.policy) else {
            let (name, key) = (seen.policy.into(), seen.parts().to_owned());
            return policies.push(RecordedPolicy {
                name,
                algorithm: seen.algorithm,
                limited,
                quota,
                key,
                charged: Some(seen.cost),
                decided,
            });
        };
        policy.charged = None;
        let is_same_key = policy.key.all() == seen.parts();
        if is_same_key || policy.tightness() < tightness(limited, &quota) {
            (policy.limited, policy.quota, policy.decided) = (limited, quota, decided);
            if !is_same_key {
                policy.key = seen.parts().to_owned();
            }
        }
    }

    /// Adds a charge that was given back to what the policy has left. Of several charges it is not known which one that is, so the
    /// policy is removed.
    pub(crate) fn give_back(&self, policy: &str) {
        self.lock().retain_mut(|decided| {
            let is_it = *decided.name == *policy;
            match decided.charged.take_if(|_| is_it) {
                Some(cost) => {
                    let Quota { limit, remaining, .. } = &mut decided.quota;
                    *remaining = remaining.saturating_add(cost).min(*limit);
                    true
                }
                None => !is_it,
            }
        });
    }

    pub(crate) fn policies(&self) -> Vec<RecordedPolicy> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RecordedPolicy>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordedPolicy {
    /// Returns the share of the limit that is used, or for a policy that refuses a number above 1 that grows with how long it does.
    pub(crate) fn tightness(&self) -> f64 {
        tightness(self.limited, &self.quota)
    }

    /// Returns whether the policy is a concurrency limit, which is for no time.
    pub(crate) fn is_semaphore(&self) -> bool {
        self.algorithm == Algorithm::Semaphore
    }

    /// Returns how long from now until the state expires, or for a policy that refuses until it admits the same call. It is unknown when
    /// holds end.
    pub(crate) fn resets_after(&self) -> Option<Duration> {
        if self.is_semaphore() {
            return None;
        }
        let after = self.quota.retry_after.filter(|_| self.limited).unwrap_or(self.quota.reset_after);
        Some(after.saturating_sub(Duration::from_micros(clock::PROCESS.now().saturating_sub(self.decided))))
    }
}

fn tightness(limited: bool, quota: &Quota) -> f64 {
    match quota.retry_after {
        _ if !limited => 1.0 - quota.remaining as f64 / quota.limit.max(1) as f64,
        Some(retry_after) => 2.0 + retry_after.as_secs_f64(),
        None => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn add(record: &RequestDecisions, policy: &str, key: &str, remaining: u64, retry_after: Option<u64>) {
        let quota = Quota {
            limit: 10,
            remaining,
            retry_after: retry_after.map(Duration::from_secs),
            reset_after: 100 * SECOND,
            window: 100 * SECOND,
        };
        let outcome = if retry_after.is_some() { CallOutcome::Limited } else { CallOutcome::Admitted };
        record.add(&Observation::of_key(policy, &KeyParts::of(&key).unwrap(), outcome, Some(quota)));
    }

    fn recorded(record: &RequestDecisions) -> Vec<(String, u64, bool)> {
        let policies = record.policies().into_iter();
        policies.map(|policy| (policy.name.into(), policy.quota.remaining, policy.limited)).collect()
    }

    #[test]
    fn last_decision_on_a_key_and_tightest_key_count() {
        let record = RequestDecisions::default();
        add(&record, "a", "x", 5, None);
        add(&record, "a", "x", 6, None);
        assert_eq!(recorded(&record), [("a".to_owned(), 6, false)]);
        add(&record, "a", "y", 3, None);
        add(&record, "a", "z", 4, None);
        assert_eq!(recorded(&record), [("a".to_owned(), 3, false)]);
        add(&record, "a", "z", 2, Some(1));
        add(&record, "a", "y", 2, None);
        add(&record, "b", "y", 9, None);
        assert_eq!(recorded(&record), [("a".to_owned(), 2, true), ("b".to_owned(), 9, false)]);
        record.give_back("a");
        record.give_back("b");
        assert_eq!(recorded(&record), [("b".to_owned(), 10, false)]);
        record.give_back("b");
        assert_eq!(recorded(&record), []);
    }

    #[test]
    fn refusals_are_tighter_the_longer_they_last() {
        let record = RequestDecisions::default();
        for (policy, remaining, retry_after) in
            [("full", 10, None), ("empty", 0, None), ("soon", 2, Some(1)), ("late", 5, Some(60))]
        {
            add(&record, policy, "x", remaining, retry_after);
        }
        let mut policies = record.policies();
        policies.sort_by(|one, other| one.tightness().total_cmp(&other.tightness()));
        let names: Vec<_> = policies.iter().map(|policy| &*policy.name).collect();
        assert_eq!(names, ["full", "empty", "soon", "late"]);
        assert!(policies[2].resets_after() <= Some(SECOND) && policies[1].resets_after() > Some(SECOND));
    }
}
