//! The log events of a call that waits.

use std::time::Duration;

use crate::base::log::log;

/// Logs that a call starts to wait, and how long if that is known.
pub(super) fn waiting(policy: &str, wait: Option<Duration>) {
    log!(DEBUG, policy, wait = wait.map(tracing::field::debug), "call is waiting");
}

pub(super) fn waited(policy: &str, waited: Duration) {
    log!(DEBUG, policy, ?waited, "call has waited");
}
