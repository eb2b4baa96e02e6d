//! Decisions that no call made, for tests of what is done with them.

use std::time::Duration;

use super::{Algorithm, DecidedBy, Decision, PolicyDecision};

#[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
impl Decision {
    /// Creates a decision of these policies, in process and without a receipt, for unit tests. The fields can be set afterwards.
    ///
    /// # Panics
    ///
    /// If there are no policies.
    ///
    /// ```
    /// use ratelimits::{Algorithm, Decision, Error, PolicyDecision};
    ///
    /// let mut daily = PolicyDecision::for_tests("daily", Algorithm::FixedWindow, false);
    /// daily.retry_after = Some(std::time::Duration::from_secs(60));
    /// let error = Error::limited_for_tests(Decision::for_tests([daily]));
    /// assert_eq!(error.retry_after().unwrap().as_secs(), 60);
    /// ```
    #[must_use]
    pub fn for_tests(policies: impl IntoIterator<Item = PolicyDecision>) -> Self {
        let mut policies: Vec<_> = policies.into_iter().collect();
        for policy in &mut policies {
            let knows_when = policy.algorithm != Algorithm::Semaphore;
            policy.is_unsatisfiable = !policy.admitted && policy.retry_after.is_none() && knows_when;
        }
        assert!(!policies.is_empty(), "a decision is that of at least one policy");
        Decision::new(policies, DecidedBy::Memory, Duration::ZERO)
    }
}

#[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
impl PolicyDecision {
    /// Creates what a policy said, for unit tests. The numbers are zero, or `None`, and can be set afterwards: without a
    /// `retry_after`, a refusal is one that no amount of waiting can fix, unless it is that of a semaphore.
    #[must_use]
    pub fn for_tests(policy: &str, algorithm: Algorithm, admitted: bool) -> Self {
        PolicyDecision {
            policy: policy.into(),
            algorithm,
            admitted,
            shadow: false,
            limit: 0,
            remaining: 0,
            retry_after: None,
            reset_after: Duration::ZERO,
            is_unsatisfiable: false,
        }
    }
}
