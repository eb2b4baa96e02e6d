//! The log events of a call that waits.

use std::time::Duration;

/// Logs that a call starts to wait, and how long if that is known.
pub(super) fn waiting(policy: &str, wait: Option<Duration>) {
    tracing::debug!(policy, wait = wait.map(tracing::field::debug), "call is waiting");
}

pub(super) fn waited(policy: &str, waited: Duration) {
    tracing::debug!(policy, ?waited, "call has waited");
}
