//! Gives back what is left of leases when they end.

use std::future;
use std::pin::pin;
use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::base::runtime::BACKGROUND;
use crate::base::timer::until;
use crate::decide::endpoint::Endpoint;
use crate::key::Fingerprint;
use crate::store::Kept;

/// Ends the leases of a key at their time, for as long as there are any and the registry lives.
pub(super) struct Keeper {
    kept: Kept,
    /// A registry that ends gives back its leases itself.
    endpoint: Weak<Endpoint>,
    runtime: Handle,
}

impl Keeper {
    /// Returns `None` if this runtime has one for the key.
    pub(super) fn new(key: Fingerprint, endpoint: &Arc<Endpoint>, runtime: Handle) -> Option<Self> {
        let kept = endpoint.store.leases()?.keep(key, runtime.id())?;
        Some(Keeper { kept, endpoint: Arc::downgrade(endpoint), runtime })
    }

    pub(super) async fn run(mut self) {
        let runtime = self.runtime.clone();
        while let Some(next) = self.give_back() {
            if until(&runtime, next, pin!(future::pending::<()>())).await.is_err() {
                return;
            }
        }
    }

    /// Gives back what has ended. Returns when the next lease ends.
    fn give_back(&mut self) -> Option<Instant> {
        let endpoint = self.endpoint.upgrade()?;
        let (ended, next) = self.kept.end();
        endpoint.give_back_leased(Some(&self.runtime), ended);
        next
    }
}

/// A runtime that ends, or has no timers, leaves its leases to another.
impl Drop for Keeper {
    fn drop(&mut self) {
        if self.give_back().is_some()
            && let Ok(background) = BACKGROUND.handle()
            && background.id() != self.runtime.id()
            && let Some(endpoint) = self.endpoint.upgrade()
            && let Some(keeper) = Keeper::new(self.kept.key(), &endpoint, background.clone())
        {
            background.spawn(keeper.run());
        }
    }
}
