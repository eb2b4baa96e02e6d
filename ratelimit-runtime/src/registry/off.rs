//! The switches that turn limits off.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::log::log;

/// Whether `RATELIMITS_OFF` is set. Read once, so that it holds for the whole process.
pub(super) static OFF: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os("RATELIMITS_OFF").is_some_and(|value| value == "1"));

/// Warns once if limits are off. Must not be called under a lock, because a subscriber may itself be rate limited.
pub(super) fn warn_if_off() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if *OFF && !WARNED.swap(true, Ordering::Relaxed) {
        warn("RATELIMITS_OFF=1 is set");
    }
}

pub(super) fn warn(reason: &str) {
    log!(WARN, "{reason}: all limits are off");
    if !tracing::dispatcher::has_been_set() {
        eprintln!("ratelimits: {reason}: all limits are off");
    }
}
