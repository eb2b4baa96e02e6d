//! What is logged of a policy, a few times a minute at most.

use std::time::Duration;

use super::Definition;
use crate::base::log::{MINUTE, SECOND, log};
use crate::decide::error::Error;
use crate::key::missing_key::MissingKey;
use crate::store::error::StoreError;

impl Definition {
    /// Logs that the policy would have refused a call if it were no shadow. Must not be called under a lock, because a subscriber
    /// may itself be rate limited.
    #[cold]
    pub(crate) fn log_shadow_refusal(&self) {
        if let Some(calls) = self.refusal_log.count(SECOND) {
            let (policy, algorithm) = (self.name.as_str(), self.algorithm.name());
            log!(INFO, policy, algorithm, calls, "shadow policy would have limited calls");
        }
    }

    /// Logs that the policy, a shadow, could not decide a call. Must not be called under a lock.
    #[cold]
    pub(crate) fn log_shadow_failure(&self, error: &Error) {
        if let Some(calls) = self.failure_log.count(SECOND) {
            let policy = self.name.as_str();
            log!(INFO, policy, %error, calls, "shadow policy could not be evaluated");
        }
    }

    /// Logs that a call failed although there is no outage: a key holds another program's value, say. Must not be called under a
    /// lock.
    #[cold]
    pub(crate) fn log_permanent_error(&self, error: &Error) {
        if let Some(calls) = self.error_log.count(MINUTE) {
            let policy = self.name.as_str();
            log!(WARN, policy, %error, calls, "calls fail with a permanent store error");
        }
    }

    /// Logs that a charge was not given back. Must not be called under a lock.
    #[cold]
    pub(crate) fn log_failed_refund(&self, error: &StoreError) {
        if let Some(refunds) = self.refund_log.count(MINUTE) {
            let policy = self.name.as_str();
            log!(WARN, policy, %error, refunds, "failed to refund charges");
        }
    }

    /// Logs that a key was paused. Must not be called under a lock.
    #[cold]
    pub(crate) fn log_pause(&self, duration: Duration) {
        if let Some(pauses) = self.pause_log.count(SECOND) {
            let policy = self.name.as_str();
            log!(INFO, policy, ?duration, pauses, "paused a key");
        }
    }

    /// Logs that a key was paused for a refusal, as this step of its penalties. Must not be called under a lock.
    #[cold]
    pub(crate) fn log_penalty(&self, duration: Duration, step: u64) {
        if let Some(pauses) = self.pause_log.count(SECOND) {
            let policy = self.name.as_str();
            log!(INFO, policy, ?duration, step, pauses, "paused a key as a penalty");
        }
    }

    /// Logs that a key was not paused. Must not be called under a lock.
    #[cold]
    pub(crate) fn log_failed_pause(&self, error: &StoreError) {
        if let Some(pauses) = self.error_log.count(MINUTE) {
            let policy = self.name.as_str();
            log!(WARN, policy, %error, pauses, "failed to pause keys");
        }
    }

    /// Logs that it is not known whether observers were notified of a key. Must not be called under a lock.
    #[cold]
    pub(crate) fn log_failed_notice(&self, error: &StoreError) {
        if let Some(keys) = self.error_log.count(MINUTE) {
            let policy = self.name.as_str();
            log!(WARN, policy, %error, keys, "failed to tell observers of keys that near their limit");
        }
    }

    /// Logs that a call is refused that the policy could not decide: as a warning, if the fault is the program's. Must not be called
    /// under a lock.
    #[cold]
    pub(crate) fn log_refusal(&self, error: &Error) {
        let policy = self.name.as_str();
        if matches!(error, Error::MissingKey(MissingKey::Ip) | Error::Invalid(_))
            && let Some(calls) = self.failure_log.count(SECOND)
        {
            log!(WARN, policy, %error, calls, "calls are refused, as their policy cannot decide them");
        }
        error.log_refusal(policy);
    }
}
