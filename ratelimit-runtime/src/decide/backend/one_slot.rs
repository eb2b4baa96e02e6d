//! Policies that a Redis Cluster cannot spread.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::base::log::log;

/// The policies that were logged. Names made at run time are unbounded, so not all of them are remembered.
const MAX_LOGGED: usize = 1000;

/// Logs each policy whose keys all lie in one slot, once.
#[derive(Debug, Default)]
pub(super) struct OneSlotLog(Mutex<HashSet<Box<str>>>);

impl OneSlotLog {
    pub(super) fn log_once(&self, policy: &str) {
        let is_new = {
            let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            logged.len() < MAX_LOGGED && !logged.contains(policy) && logged.insert(policy.into())
        };
        if is_new {
            log!(
                INFO,
                policy,
                "all keys of this policy are in one slot of the Redis Cluster, because its decisions have keys with \
                 different parts or none"
            );
        }
    }
}
