//! Where a registry decides: its store, the keys there, and what stands in when the store fails.

pub(crate) mod failover;
mod local;
mod one_slot;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use self::local::Local;
use self::one_slot::OneSlotLog;
use crate::algorithm::AlgorithmSpec;
use crate::base::log::log;
use crate::decide::charges::PolicyCharge;
use crate::decide::endpoint::Endpoint;
use crate::decide::health::StoreHealth;
use crate::decide::observation::Observers;
use crate::decide::on_store_error::OnStoreError;
use crate::decide::overrides::Overrides;
use crate::decide::waiter_limit::WaiterLimit;
use crate::key::{Key, NamespaceText, PartsOfKey};
use crate::store::decided_by::DecidedBy;
use crate::store::error::StoreError;
use crate::store::{Charge, Clock, MemoryStore, Store};

/// The store of a registry, and the namespace of its keys.
pub(crate) struct Backend {
    namespace: String,
    /// The same, as keys in Redis begin with it.
    namespace_text: NamespaceText,
    /// `None` where limits are off.
    primary: Option<Arc<Endpoint>>,
    /// The primary store, if it is in process.
    memory: Option<Arc<MemoryStore>>,
    keeps_parts: bool,
    /// `None` if the primary store is in process itself.
    local: Option<Local>,
    /// Applies to policies that do not set their own.
    on_store_error: OnStoreError,
    /// Longer pauses are cut.
    max_pause: Duration,
    one_slot_log: OneSlotLog,
    /// `None` if there are none, so that nothing is made for them.
    observers: Option<Observers>,
    overrides: Arc<Overrides>,
    /// No two have the same.
    id: u64,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// The settings of a backend.
#[derive(Clone, Debug)]
pub(crate) struct BackendOptions {
    pub(crate) namespace: String,
    pub(crate) hash_keys: bool,
    pub(crate) on_store_error: OnStoreError,
    pub(crate) max_waiters: usize,
    pub(crate) max_keys: usize,
    pub(crate) instances: u32,
    pub(crate) max_pause: Duration,
    pub(crate) observers: Observers,
}

impl Backend {
    /// A backend on this store, or one that limits nothing.
    pub(crate) fn new(store: Option<Store>, options: BackendOptions) -> Arc<Self> {
        let BackendOptions {
            namespace,
            hash_keys,
            on_store_error,
            max_waiters,
            max_keys,
            instances,
            max_pause,
            observers,
        } = options;
        let observers = (store.is_some() && !observers.is_empty()).then_some(observers);
        let waiters = WaiterLimit::new(max_waiters);
        let local = matches!(store, Some(Store::Redis(_))).then(|| {
            let memory = Arc::new(MemoryStore::new(max_keys, Clock::process()));
            Local::new(memory, Arc::clone(&waiters), instances)
        });
        let memory = match &store {
            Some(Store::Memory(memory)) => Some(Arc::clone(memory)),
            _ => None,
        };
        let keeps_parts = observers.is_some() || matches!(store, Some(Store::Redis(_)));
        let primary = store.map(|store| Endpoint::new(store, waiters));
        let one_slot_log = OneSlotLog::default();
        let namespace_text = NamespaceText::new(&namespace).hashing_parts(hash_keys);
        Arc::new(Backend {
            namespace,
            namespace_text,
            primary,
            memory,
            keeps_parts,
            local,
            on_store_error,
            max_pause,
            one_slot_log,
            observers,
            overrides: Arc::default(),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Has requests decide all calls, also those that could be decided at once in process, to compare both.
    #[cfg(all(test, feature = "overrides"))]
    pub(crate) fn decide_by_requests(&mut self) {
        (self.memory, self.keeps_parts) = (None, true);
    }

    /// Returns the number that no other one has.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Returns the endpoint that decides; `None` if limits are off.
    pub(crate) fn primary(&self) -> Option<&Arc<Endpoint>> {
        self.primary.as_ref()
    }

    /// Returns the store, if it is in process.
    #[inline]
    pub(crate) fn memory(&self) -> Option<&Arc<MemoryStore>> {
        self.memory.as_ref()
    }

    /// Returns the store, if it is in process and nobody observes what it decides.
    #[inline]
    pub(crate) fn unobserved(&self) -> Option<&Arc<MemoryStore>> {
        if self.keeps_parts { None } else { self.memory.as_ref() }
    }

    /// Whether somebody may read the texts of keys: Redis, or observers.
    #[inline]
    pub(crate) fn keeps_parts(&self) -> bool {
        self.keeps_parts
    }

    /// Returns what operators have changed of policies.
    pub(crate) fn overrides(&self) -> &Arc<Overrides> {
        &self.overrides
    }

    /// Returns the namespace as keys in Redis begin with it.
    pub(crate) fn namespace_text(&self) -> &NamespaceText {
        &self.namespace_text
    }

    pub(crate) fn health(&self) -> StoreHealth {
        self.primary.as_ref().map_or(StoreHealth::HEALTHY, |endpoint| endpoint.health.health())
    }

    /// Returns how many calls wait.
    #[cfg(any(feature = "dashboard", feature = "metrics"))]
    pub(crate) fn waiting(&self) -> usize {
        self.primary.as_ref().map_or(0, |endpoint| endpoint.waiters.waiting())
    }

    /// Connects to the store, if it is remote. Returns the name and version of the server, if it reports them.
    pub(crate) async fn ping(&self) -> Result<Option<String>, StoreError> {
        match self.store() {
            Some(Store::Redis(store)) => store.ping().await,
            Some(Store::Memory(_)) | None => Ok(None),
        }
    }

    /// Logs where this backend decides, unless limits are off. Must not be called under a lock, because a subscriber may itself be
    /// rate limited.
    pub(crate) fn log_store(&self, version: Option<&str>) {
        match self.store() {
            Some(Store::Redis(redis)) => {
                let (server, deployment, namespace) = (redis.server(), redis.deployment(), &*self.namespace);
                log!(INFO, %server, deployment, namespace, version, "limits are decided in Redis");
            }
            Some(Store::Memory(_)) => log!(INFO, "limits are decided in this process"),
            None => {}
        }
    }

    /// Completes the key of a charge, of which a text is made only for Redis. Returns it with what happens on a store error.
    pub(crate) fn complete(&self, charge: &PolicyCharge<'_>, parts: PartsOfKey<'_>) -> (Key, OnStoreError) {
        let (definition, spec) = (charge.definition, charge.spec());
        let key = match self.store() {
            Some(Store::Redis(redis)) => definition.with_heads(spec, |heads| {
                let head = heads.text(definition.head(spec));
                if redis.is_cluster() && (parts.is_empty() || head.is_pinned_to_slot()) {
                    self.one_slot_log.log_once(definition.name.as_str());
                }
                Key::text(&self.namespace_text, head, parts, charge.key, definition.id)
            }),
            _ => Key::hashed(charge.key, definition.id),
        };
        (key, definition.on_store_error.unwrap_or(self.on_store_error))
    }

    /// Returns the observers, if there are any.
    pub(crate) fn observers(&self) -> Option<&Observers> {
        self.observers.as_ref()
    }

    /// Returns the store that a decision from this source charged.
    pub(crate) fn charged_store(&self, source: DecidedBy) -> Option<&Store> {
        match source {
            DecidedBy::Memory | DecidedBy::Redis => self.store(),
            DecidedBy::Local => self.local.as_ref().map(|local| &local.endpoint().store),
            DecidedBy::Allowed | DecidedBy::Skipped => None,
        }
    }

    pub(crate) fn max_pause(&self) -> Duration {
        self.max_pause
    }

    /// Pauses a key in the store that stands in for one that fails.
    pub(crate) fn pause_locally(&self, key: &Key, spec: &AlgorithmSpec, micros: u64) {
        if let Some(local) = &self.local {
            local.pause(key, spec, micros);
        }
    }

    /// Gives permits back to a key, without a receipt.
    pub(crate) async fn refund(&self, charge: &Charge) -> Result<(), StoreError> {
        match self.store() {
            Some(store) => store.refund(&charge.key, &charge.spec, charge.cost, None).await,
            None => Ok(()),
        }
    }

    /// Removes the state of a key. Returns whether there was any.
    pub(crate) async fn reset(&self, key: &Key) -> Result<bool, StoreError> {
        let Some(store) = self.store() else { return Ok(false) };
        let was_local = match &self.local {
            Some(local) => local.endpoint().store.reset(key).await?,
            None => false,
        };
        Ok(store.reset(key).await? || was_local)
    }

    pub(crate) fn store(&self) -> Option<&Store> {
        self.primary.as_ref().map(|endpoint| &endpoint.store)
    }
}

/// Without keys, and without what the store holds.
impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.store().map_or(DecidedBy::Skipped, Store::source);
        f.debug_struct("Backend").field("namespace", &self.namespace).field("store", &source).finish()
    }
}
