//! Where a registry decides: its store, the keys there, and what stands in when the store fails.

pub(crate) mod failover;
mod local;
mod one_slot;

use std::fmt;
use std::sync::Arc;

use self::local::Local;
use self::one_slot::OneSlotLog;
use crate::acquired::{Acquired, FailedRequest};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::error::missing_key::MissingKey;
use crate::error::store::StoreError;
use crate::health::StoreHealth;
use crate::key::{Head, Key, KeyHead, KeyHeads, KeyWriter, NamespaceText, TextHead};
use crate::log::{LogBound, log};
use crate::observer::Observers;
use crate::on_store_error::OnStoreError;
use crate::overrides::Overrides;
use crate::policy_id::PolicyId;
use crate::source::Source;
use crate::store::{Charge, Clock, Denials, Leases, MemoryStore, Store};
use crate::waiter_limit::WaiterLimit;

/// The store of a registry, and the namespace of its keys.
pub(crate) struct Backend {
    namespace: String,
    /// The same, as keys in Redis begin with it.
    namespace_text: NamespaceText,
    /// `None` where limits are off.
    primary: Option<Arc<Endpoint>>,
    /// The primary store, if it is in process and has no observers.
    memory: Option<Arc<MemoryStore>>,
    /// `None` if the primary store is in process itself.
    local: Option<Local>,
    /// Applies to policies that do not set their own.
    on_store_error: OnStoreError,
    one_slot_log: OneSlotLog,
    /// For calls of limiters in shadow that nothing could decide.
    shadow_failure_log: LogBound,
    /// `None` if there are none, so that nothing is made for them.
    observers: Option<Observers>,
    overrides: Arc<Overrides>,
}

/// The settings of a backend.
#[derive(Clone, Debug)]
pub(crate) struct BackendOptions {
    pub(crate) namespace: String,
    pub(crate) on_store_error: OnStoreError,
    pub(crate) max_waiters: usize,
    pub(crate) max_keys: usize,
    pub(crate) instances: u32,
    pub(crate) observers: Observers,
}

impl Backend {
    /// A backend on this store, or one that limits nothing.
    pub(crate) fn new(store: Option<Store>, options: BackendOptions) -> Arc<Self> {
        let BackendOptions { namespace, on_store_error, max_waiters, max_keys, instances, observers } =
            options;
        let observers = (store.is_some() && !observers.is_empty()).then_some(observers);
        let waiters = WaiterLimit::new(max_waiters);
        let local = matches!(store, Some(Store::Redis(_))).then(|| {
            let memory = Arc::new(MemoryStore::new(max_keys, Clock::process()));
            Local::new(memory, Arc::clone(&waiters), instances)
        });
        let memory = match &store {
            Some(Store::Memory(memory)) if observers.is_none() => Some(Arc::clone(memory)),
            _ => None,
        };
        let primary = store.map(|store| Endpoint::new(store, waiters));
        let one_slot_log = OneSlotLog::default();
        let namespace_text = NamespaceText::new(&namespace);
        Arc::new(Backend {
            namespace,
            namespace_text,
            primary,
            memory,
            local,
            on_store_error,
            one_slot_log,
            shadow_failure_log: LogBound::default(),
            observers,
            overrides: Arc::default(),
        })
    }

    /// Returns the endpoint that decides; `None` if limits are off.
    pub(crate) fn primary(&self) -> Option<&Arc<Endpoint>> {
        self.primary.as_ref()
    }

    /// Returns the store, if it is in process and has no observers.
    #[inline]
    pub(crate) fn memory(&self) -> Option<&Arc<MemoryStore>> {
        self.memory.as_ref()
    }

    /// Whether the fast lane is open: where the store is in process, without observers, and without overrides now.
    #[inline]
    pub(crate) fn has_lane(&self) -> bool {
        self.memory.is_some() && !self.overrides.is_active()
    }

    /// Returns what operators have changed of policies.
    pub(crate) fn overrides(&self) -> &Arc<Overrides> {
        &self.overrides
    }

    /// Returns the key of overrides in Redis.
    #[cfg(feature = "overrides")]
    pub(crate) fn overrides_key(&self) -> String {
        self.namespace_text.overrides_key()
    }

    /// Returns what happens on a store error, given what the policy says.
    pub(crate) fn on_store_error(&self, of_policy: Option<OnStoreError>) -> OnStoreError {
        of_policy.unwrap_or(self.on_store_error)
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
                let (server, deployment) = (redis.server(), redis.deployment());
                log!(INFO, %server, deployment, version, "limits are decided in Redis");
            }
            Some(Store::Memory(_)) => log!(INFO, "limits are decided in this process"),
            None => {}
        }
    }

    /// Returns a writer for the parts of a key with this head, in the form that the store wants. `kept` is the same head, if all
    /// calls have it.
    pub(crate) fn key_writer(&self, head: Head<'_>, kept: Option<&KeyHeads>) -> KeyWriter {
        let writer = match (self.store(), kept) {
            (Some(Store::Redis(_)), Some(kept)) => {
                KeyWriter::text(&self.namespace_text, kept.text(head), kept.hash)
            }
            (Some(Store::Redis(_)), None) => {
                KeyWriter::text(&self.namespace_text, &TextHead::new(head), KeyHead::new(head))
            }
            (_, Some(kept)) => KeyWriter::hash(kept.hash),
            (_, None) => KeyWriter::hash(KeyHead::new(head)),
        };
        if self.observers.is_some() { writer.with_texts() } else { writer }
    }

    /// Completes a key of this policy, whose parts are written.
    pub(crate) fn finish_key(
        &self,
        parts: KeyWriter,
        name: &str,
        policy: PolicyId,
    ) -> Result<Key, MissingKey> {
        if self.store().is_some_and(Store::is_cluster) && parts.is_tied() {
            self.one_slot_log.log_once(name);
        }
        Ok(parts.finish()?.of(policy))
    }

    /// Returns what the store has refused lately, if it remembers that and there are no observers.
    pub(crate) fn denials(&self) -> Option<&Denials> {
        self.store().filter(|_| self.observers.is_none())?.denials()
    }

    /// Returns what the store has charged in advance, if it does and there are no observers.
    pub(crate) fn leases(&self) -> Option<&Leases> {
        self.store().filter(|_| self.observers.is_none())?.leases().map(Arc::as_ref)
    }

    /// Returns the observers, if there are any.
    pub(crate) fn observers(&self) -> Option<&Observers> {
        self.observers.as_ref()
    }

    /// Reports a request that was decided.
    #[inline]
    pub(crate) fn observe(&self, acquired: Acquired<'_>) {
        if let Some(observers) = &self.observers {
            observers.decided(&acquired);
        }
    }

    /// Reports a request that nothing decided, and returns the error. It is logged if it refuses a call.
    pub(crate) fn report_failure(&self, failed: FailedRequest) -> Error {
        let FailedRequest { error, request, .. } = failed;
        if let Some(observers) = &self.observers {
            observers.failed(&request);
        }
        let error = Error::Store(error);
        if request.has_cost() && !request.is_shadow() {
            error.log_refusal(request.policy_of(0));
        }
        error
    }

    /// Returns the store that a decision from this source charged.
    pub(crate) fn charged_store(&self, source: Source) -> Option<&Store> {
        match source {
            Source::Memory | Source::Redis => self.store(),
            Source::Local => self.local.as_ref().map(|local| &local.endpoint().store),
            Source::Allowed | Source::Skipped => None,
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
        let source = self.store().map_or(Source::Skipped, Store::source);
        f.debug_struct("Backend").field("namespace", &self.namespace).field("store", &source).finish()
    }
}
