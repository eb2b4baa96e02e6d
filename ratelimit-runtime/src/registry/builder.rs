//! Registries that differ from the default.

use std::sync::Arc;

use super::Registry;
use crate::clock::Clock;
use crate::error::{Error, StoreError};
#[cfg(feature = "redis")]
use crate::store::RedisStore;
use crate::store::{MemoryStore, Store};

/// Sets what the constructors of a [`Registry`] leave at its default.
#[derive(Clone, Debug)]
#[must_use]
pub struct RegistryBuilder {
    namespace: String,
    max_keys: usize,
}

impl RegistryBuilder {
    pub(super) fn new() -> Self {
        RegistryBuilder { namespace: String::from("rl"), max_keys: 1_000_000 }
    }

    /// What all keys begin with, `rl` by default. Registries of different namespaces on one Redis share nothing.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// How many keys are held in this process at the most, 1,000,000 by default. A full store forgets first what says
    /// nothing more, and then what is nearest to it.
    pub fn max_keys(mut self, max_keys: usize) -> Self {
        self.max_keys = max_keys;
        self
    }

    /// As [`Registry::in_memory`].
    #[must_use]
    pub fn in_memory(self) -> Registry {
        let store = MemoryStore::new(self.max_keys, Clock::process());
        Registry::new(self.namespace, Some(Store::Memory(Arc::new(store))))
    }

    /// As [`Registry::connect`].
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn connect(self, url: &str) -> Result<Registry, Error> {
        let registry = self.connect_lazy(url)?;
        #[cfg(feature = "redis")]
        if let Some(Store::Redis(store)) = &registry.0.backend.store {
            store.ping().await?;
        }
        Ok(registry)
    }

    /// As [`Registry::connect_lazy`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn connect_lazy(self, url: &str) -> Result<Registry, Error> {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        match scheme {
            "memory" => Ok(self.in_memory()),
            #[cfg(feature = "redis")]
            "redis" | "rediss" | "redis+unix" | "unix" => {
                let store = RedisStore::lazy(url)?;
                Ok(Registry::new(self.namespace, Some(Store::Redis(Arc::new(store)))))
            }
            #[cfg(not(feature = "redis"))]
            "redis" | "rediss" | "redis+unix" | "unix" => {
                Err(StoreError::new("Redis needs the feature `redis` of `ratelimits`").into())
            }
            _ => {
                Err(StoreError::new("the URL of a store begins with redis://, redis+unix:// or memory://")
                    .into())
            }
        }
    }
}
