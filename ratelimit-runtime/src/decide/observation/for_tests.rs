//! Observations that no call made, for tests of observers.

use std::time::Duration;

#[cfg(feature = "test-util")]
use super::DecidedBy;
use super::{Algorithm, CallOutcome, Observation, Quota, Said};
#[cfg(feature = "test-util")]
use crate::key::IntoKey;
use crate::key::{KeyParts, PartsOfKey};

impl<'a> Observation<'a> {
    /// What a policy said about a key.
    #[cfg(test)]
    pub(crate) fn of_key(
        policy: &'a str,
        key: &'a KeyParts,
        outcome: CallOutcome,
        quota: Option<Quota>,
    ) -> Self {
        Observation { parts: key.all(), ..Observation::made(policy, outcome, quota) }
    }

    fn made(policy: &'a str, outcome: CallOutcome, quota: Option<Quota>) -> Self {
        Observation {
            policy,
            algorithm: Algorithm::TokenBucket,
            cost: 1,
            shadow: false,
            outcome,
            source: None,
            waited: Duration::ZERO,
            definition: None,
            parts: PartsOfKey::NONE,
            said: quota.map_or(Said::Nothing, Said::Quota),
        }
    }
}

#[cfg(feature = "test-util")]
#[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
impl Observation<'static> {
    /// Creates what an observer would get of a call for one permit of a token bucket, for unit tests of observers. The fields can be
    /// set afterwards. It is kept as long as the process runs.
    ///
    /// # Panics
    ///
    /// If a part of the key cannot be formatted.
    ///
    /// ```
    /// use ratelimits::observe::{CallOutcome, Observation, Quota};
    ///
    /// let quota = Quota::for_tests(10, 0);
    /// let mut seen = Observation::for_tests("search", ("tenant", 7), CallOutcome::Limited, Some(quota));
    /// seen.shadow = true;
    /// assert_eq!((seen.policy, seen.key().join("/").as_str()), ("search", "tenant/7"));
    /// assert_eq!(seen.quota().unwrap().remaining, 0);
    /// ```
    #[must_use]
    pub fn for_tests<M>(
        policy: &str,
        key: impl IntoKey<M>,
        outcome: CallOutcome,
        quota: Option<Quota>,
    ) -> Self {
        let key = KeyParts::of(&key).unwrap_or_else(|missing| panic!("the key has no part: {missing}"));
        let (policy, key) = (&*String::from(policy).leak(), &*Box::leak(Box::new(key)));
        let source = quota.map(|_| DecidedBy::Memory);
        Observation { parts: key.all(), source, ..Observation::made(policy, outcome, quota) }
    }
}

#[cfg(feature = "test-util")]
#[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
impl Quota {
    /// Creates a quota, for unit tests of observers. The other fields are zero, or `None`, and can be set afterwards.
    #[must_use]
    pub const fn for_tests(limit: u64, remaining: u64) -> Self {
        let zero = Duration::ZERO;
        Quota { limit, remaining, retry_after: None, reset_after: zero, window: zero }
    }
}
