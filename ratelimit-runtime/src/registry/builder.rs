//! Registries that differ from the default.

use std::sync::Arc;
#[cfg(feature = "redis")]
use std::time::Duration;

use super::Registry;
use crate::clock::Clock;
use crate::error::Error;
#[cfg(not(feature = "redis"))]
use crate::error::StoreError;
use crate::on_store_error::OnStoreError;
#[cfg(feature = "redis")]
use crate::store::RedisStore;
use crate::store::{MemoryStore, Store};

/// Sets what the constructors of a [`Registry`] leave at its default.
#[derive(Clone, Debug)]
#[must_use]
pub struct RegistryBuilder {
    pub(super) namespace: String,
    pub(super) max_keys: usize,
    pub(super) max_waiters: usize,
    pub(super) on_store_error: OnStoreError,
    pub(super) instances: u32,
    #[cfg(feature = "redis")]
    pub(super) deadline: Duration,
    #[cfg(feature = "redis")]
    pub(super) certificates: Option<Arc<[u8]>>,
}

impl RegistryBuilder {
    pub(super) fn new() -> Self {
        RegistryBuilder {
            namespace: String::from("rl"),
            max_keys: 1_000_000,
            max_waiters: 10_000,
            on_store_error: OnStoreError::default(),
            instances: 1,
            #[cfg(feature = "redis")]
            deadline: RedisStore::DEADLINE,
            #[cfg(feature = "redis")]
            certificates: None,
        }
    }

    /// What all keys begin with, `rl` by default. Registries of different namespaces on one Redis share nothing.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// How many keys are held in this process at the most, 1,000,000 by default; of a registry on Redis those that it decides by
    /// itself while Redis does not answer. A full store forgets first what says nothing more, and then what is nearest to it.
    pub fn max_keys(mut self, max_keys: usize) -> Self {
        self.max_keys = max_keys;
        self
    }

    /// How many calls of the registry wait at one time at the most, 10,000 by default; calls that may have to wait count while
    /// Redis decides. Further ones do not wait: they are admitted at once or limited, with a true `retry_after`.
    pub fn max_waiters(mut self, max_waiters: usize) -> Self {
        self.max_waiters = max_waiters;
        self
    }

    /// What becomes of a call that Redis does not decide, [`OnStoreError::Local`] by default, where neither its attribute nor its
    /// limiter says it. It has no effect in process.
    pub fn on_store_error(mut self, on_store_error: OnStoreError) -> Self {
        self.on_store_error = on_store_error;
        self
    }

    /// How many processes share the Redis at the most, 1 by default, and at least 1: what each of them decides by itself while
    /// Redis does not answer ([`OnStoreError::Local`]) is this part of every policy. Every process
    /// beyond this number adds one more share on top of the policy. It has no effect in process, nor while Redis answers.
    pub fn instances(mut self, instances: u32) -> Self {
        self.instances = instances.max(1);
        self
    }

    /// How long a call to Redis may take at the most, 100 ms by default, whatever Redis and the network do: connecting counts.
    /// A call that is not answered by then is decided as `on_store_error` says; Redis may have charged it all the same. It
    /// does not bound how long a call waits for its permits. More than an hour counts as an hour.
    #[cfg(feature = "redis")]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The authorities that vouch for the servers behind `rediss://`, as certificates in PEM, in place of those of the
    /// system. Servers are always verified.
    #[cfg(feature = "tls")]
    pub fn ca_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.certificates = Some(pem.as_ref().into());
        self
    }

    /// As [`Registry::in_memory`].
    #[must_use]
    pub fn in_memory(self) -> Registry {
        super::warn_if_off();
        self.in_memory_silently()
    }

    pub(super) fn in_memory_silently(self) -> Registry {
        let store = MemoryStore::new(self.max_keys, Clock::process());
        Registry::new(self, Some(Store::Memory(Arc::new(store))))
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
        if url.starts_with("memory://") {
            return Ok(self.in_memory());
        }
        self.connect_lazy_to_redis(url)
    }

    #[cfg(feature = "redis")]
    fn connect_lazy_to_redis(self, url: &str) -> Result<Registry, Error> {
        super::warn_if_off();
        let store = RedisStore::trusting(url, self.certificates.as_deref())?;
        let store = Store::Redis(Arc::new(store.with_deadline(self.deadline)));
        Ok(Registry::new(self, Some(store)))
    }

    /// A registry on a Redis behind streams of a test's own.
    #[cfg(all(feature = "redis", feature = "test-util"))]
    #[doc(hidden)]
    #[must_use]
    pub fn over(self, dial: impl crate::store::Dial) -> Registry {
        let store = RedisStore::over(dial).with_deadline(self.deadline);
        Registry::new(self, Some(Store::Redis(Arc::new(store))))
    }

    #[cfg(not(feature = "redis"))]
    fn connect_lazy_to_redis(self, _: &str) -> Result<Registry, Error> {
        let problem =
            "the URL of a store begins with memory://; Redis needs the feature `redis` of `ratelimits`";
        Err(StoreError::permanent(problem).into())
    }
}
