//! What is left of leases when they end.

use std::sync::{Arc, PoisonError};

use tokio::runtime::Id;
use tokio::time::Instant;

use super::Leases;
use crate::key::Fingerprint;
use crate::store::correction::Correction;

/// The leases of a key, for one task of a runtime to end.
#[derive(Debug)]
pub(crate) struct Kept {
    leases: Arc<Leases>,
    key: Fingerprint,
    runtime: Id,
    is_over: bool,
}

impl Leases {
    /// Has the leases of a key ended by a task of this runtime, unless one does so already.
    pub(crate) fn keep(self: &Arc<Self>, key: Fingerprint, runtime: Id) -> Option<Kept> {
        let is_new = self.with(key, |leased| {
            let is_new = !leased.keepers.contains(&runtime);
            leased.keepers.extend(is_new.then_some(runtime));
            is_new
        })?;
        is_new.then(|| Kept { leases: Arc::clone(self), key, runtime, is_over: false })
    }

    /// Ends all leases. Returns what is given back of them.
    pub(crate) fn end_all(&self) -> Vec<Correction> {
        let (now, mut refunds) = (Instant::now(), Vec::new());
        for shard in self.0.get().into_iter().flat_map(|shards| &**shards) {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            refunds.extend(shard.keys.values_mut().flat_map(|leased| leased.permits.end_all(now)));
        }
        refunds
    }
}

impl Kept {
    pub(crate) fn key(&self) -> Fingerprint {
        self.key
    }

    /// Ends the leases whose time has come. Returns what is given back of them, and when the next one ends, unless this is over.
    pub(crate) fn end(&mut self) -> (Vec<Correction>, Option<Instant>) {
        if self.is_over {
            return (Vec::new(), None);
        }
        let (now, runtime) = (Instant::now(), self.runtime);
        let ended = self.leases.with(self.key, |leased| {
            let (refunds, next) = leased.permits.end(now);
            if next.is_none() {
                // With the lock that the next lease takes, which then has to be kept again.
                leased.keepers.retain(|keeper| *keeper != runtime);
            }
            (refunds, next)
        });
        let (refunds, next) = ended.unwrap_or_default();
        self.is_over = next.is_none();
        (refunds, next)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if !self.is_over {
            self.leases.with(self.key, |leased| leased.keepers.retain(|keeper| *keeper != self.runtime));
        }
    }
}
