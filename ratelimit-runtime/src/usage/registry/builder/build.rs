//! The registry of a builder's settings.

use std::sync::Arc;

use super::super::Registry;
use super::super::off::{check, is_off, warn_if_off};
use super::{MEMORY, RegistryBuilder};
use crate::base::clock::Clock;
use crate::decide::backend::Backend;
use crate::store::error::StoreError;
use crate::store::{Denials, MemoryStore, RedisStore, Store};

impl RegistryBuilder {
    /// Creates the registry like [`in_memory`](Self::in_memory), for callers that log themselves.
    pub(in crate::usage::registry) fn in_memory_unlogged(self) -> Registry {
        let store = MemoryStore::new(self.backend.max_keys, Clock::process());
        self.build(Some(Store::Memory(Arc::new(store))))
    }

    /// Creates a registry on a Redis behind streams that a test provides.
    #[cfg(all(feature = "redis", feature = "test-util"))]
    #[doc(hidden)]
    #[must_use]
    pub fn over(self, dial: impl crate::store::Dial) -> Registry {
        let denials = self.local_denials.then(Denials::new);
        let store = RedisStore::over(dial).with_deadline(self.deadline).with_denials(denials);
        let store = store.with_hold_ttl(self.hold_ttl);
        self.build(Some(Store::Redis(Arc::new(store))))
    }

    /// Creates the registry on the store at this URL, without connecting, and without the event that says where it decides.
    pub(in crate::usage::registry) fn at_url(self, url: &str) -> Result<Registry, StoreError> {
        check()?;
        warn_if_off();
        if url.get(..MEMORY.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(MEMORY)) {
            return Ok(self.in_memory_unlogged());
        }
        let denials = self.local_denials.then(Denials::new);
        let times = (self.deadline, self.hold_ttl);
        let store = RedisStore::shared(url, times, &self.tls, denials)?;
        let store = Arc::new(if self.shares_calls { store } else { store.without_batches() });
        Ok(self.build(Some(Store::Redis(store))))
    }

    pub(in crate::usage::registry) fn build(self, store: Option<Store>) -> Registry {
        let RegistryBuilder { backend, max_limiters, .. } = self;
        let registry = Registry::new(Backend::new(store.filter(|_| !is_off()), backend), max_limiters);
        #[cfg(feature = "overrides")]
        if let Some(source) = self.overrides {
            registry.watch(source);
        }
        registry
    }
}
