//! The decisions that were made for a request, for the headers of its response.

use std::sync::{Mutex, PoisonError};

use crate::observer::{CallOutcome, Observation, Quota};

/// The last decision of each policy that was asked for a request.
#[derive(Debug, Default)]
pub(crate) struct Record(Mutex<Vec<RecordedPolicy>>);

/// What a policy has left, and whether it refused.
#[derive(Clone, Debug)]
pub(crate) struct RecordedPolicy {
    pub(crate) name: Box<str>,
    pub(crate) limited: bool,
    pub(crate) quota: Quota,
}

impl Record {
    /// Adds a decision. Those of shadow policies do not concern the client.
    pub(crate) fn add(&self, seen: &Observation<'_>) {
        let Some(quota) = seen.quota.filter(|_| !seen.shadow) else { return };
        let decided =
            RecordedPolicy { name: seen.policy.into(), limited: seen.outcome == CallOutcome::Limited, quota };
        let mut policies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match policies.iter_mut().find(|policy| *policy.name == *seen.policy) {
            Some(policy) => *policy = decided,
            None => policies.push(decided),
        }
    }

    /// Removes a decision whose charge was given back: it is not what the policy has left.
    pub(crate) fn remove(&self, policy: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|decided| *decided.name != *policy);
    }

    pub(crate) fn policies(&self) -> Vec<RecordedPolicy> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
