//! Where limiters keep their state, and how a list of charges is decided there.

#[cfg(feature = "redis")]
use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Arc;
#[cfg(feature = "redis")]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::algorithm::AlgorithmSpec;
use crate::error::Error;
use crate::error::missing_key::MissingKey;
use crate::health::{HealthMonitor, StoreHealth};
use crate::key::{Head, Key, KeyForm, KeyWriter};
use crate::name::Name;
use crate::on_store_error::OnStoreError;
use crate::question::{Question, patience};
use crate::source::Source;
use crate::store::{Charge, Store};
#[cfg(feature = "redis")]
use crate::store::{Clock, MemoryStore};
use crate::turns::Turns;
use crate::waiters::Waiters;

/// A store, and the namespace of its keys.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) namespace: String,
    /// None where limits are turned off.
    pub(crate) store: Option<Store>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) turns: Turns,
    /// What becomes of a call that the store does not decide, where its policy does not say.
    pub(crate) on_store_error: OnStoreError,
    pub(crate) health_monitor: HealthMonitor,
    /// What stands in for a store that may be in health_monitor.
    #[cfg(feature = "redis")]
    pub(crate) local: Option<Local>,
    /// The policies of which is told that a Cluster does not spread them.
    #[cfg(feature = "redis")]
    pub(crate) one_slot: Mutex<HashSet<Box<str>>>,
}

/// Where names are made at run time, there may be any number.
#[cfg(feature = "redis")]
const MOST_TOLD: usize = 1000;

/// A store in this process that stands in for one that does not answer. What it counts outlives a recovery, so that a store
/// that comes and goes gives nobody a fresh capacity.
#[cfg(feature = "redis")]
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) memory: Arc<MemoryStore>,
    /// With lines of its own: a key here is not that of the other store.
    pub(crate) backend: Arc<Backend>,
    /// How many share the policies.
    pub(crate) instances: u32,
}

/// Who has decided.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    Store,
    #[cfg(feature = "redis")]
    Local,
    #[cfg(feature = "redis")]
    Nobody,
}

/// A charge with the name of its policy, or the reason why there is none.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) name: Name,
    pub(crate) key: Result<Key, MissingKey>,
    pub(crate) spec: AlgorithmSpec,
    pub(crate) cost: u64,
    /// How long it waits for its permits.
    pub(crate) timeout: Duration,
    pub(crate) on_store_error: Option<OnStoreError>,
}

impl Backend {
    pub(crate) fn new(namespace: String, store: Option<Store>, waiters: Arc<Waiters>) -> Self {
        Backend {
            namespace,
            store,
            waiters,
            turns: Turns::default(),
            on_store_error: OnStoreError::default(),
            health_monitor: HealthMonitor::default(),
            #[cfg(feature = "redis")]
            local: None,
            #[cfg(feature = "redis")]
            one_slot: Mutex::default(),
        }
    }

    /// Who that is, and where what was charged can be given back.
    pub(crate) fn decided(&self, by: By) -> (Source, Option<&Store>) {
        match by {
            By::Store => (self.store.as_ref().map_or(Source::Skipped, Store::source), self.store.as_ref()),
            #[cfg(feature = "redis")]
            By::Local => (Source::Local, self.local.as_ref().and_then(|local| local.backend.store.as_ref())),
            #[cfg(feature = "redis")]
            By::Nobody => (Source::Allowed, None),
        }
    }

    pub(crate) fn health(&self) -> StoreHealth {
        self.health_monitor.health()
    }

    /// A key to be written in the form of this store.
    pub(crate) fn key(&self) -> KeyWriter {
        KeyWriter::new(self.store.as_ref().map_or(KeyForm::Text, Store::key_form))
    }

    /// The key of a policy on this store, once its parts are written.
    pub(crate) fn finish(
        &self,
        key: KeyWriter,
        (prefix, name, function): (&str, &Name, Option<&str>),
        spec: &AlgorithmSpec,
    ) -> Result<Key, MissingKey> {
        let function = function.as_ref().map(|function| function as &dyn Display);
        let head = Head { namespace: &self.namespace, prefix, name, shape: spec, function };
        #[cfg(feature = "redis")]
        if self.store.as_ref().is_some_and(Store::is_cluster) && key.is_tied(&head) {
            self.tell_of_one_slot(name.as_str());
        }
        key.finish(&head)
    }

    /// A Cluster does not spread such a policy, which is told once.
    #[cfg(feature = "redis")]
    fn tell_of_one_slot(&self, policy: &str) {
        let is_new = {
            let mut told = self.one_slot.lock().unwrap_or_else(PoisonError::into_inner);
            told.len() < MOST_TOLD && !told.contains(policy) && told.insert(policy.into())
        };
        if is_new {
            tracing::info!(
                policy,
                "all keys of this policy lie in one slot of the Redis Cluster, as its decisions have keys of different \
                 parts, or of none"
            );
        }
    }

    /// Gives permits back to what the key of the charge holds.
    pub(crate) async fn refund(&self, charge: Pending) -> Result<(), Error> {
        let Pending { key, spec, cost, .. } = charge;
        match &self.store {
            Some(store) => Ok(store.refund(&key?, &spec, cost, None).await?),
            None => Ok(()),
        }
    }

    /// Forgets what the key of the charge holds.
    pub(crate) async fn reset(&self, charge: Pending) -> Result<(), Error> {
        let Some(store) = &self.store else { return Ok(()) };
        let key = charge.key?;
        #[cfg(feature = "redis")]
        if let Some(local) = &self.local {
            local.memory.reset(&key);
        }
        Ok(store.reset(&key).await?)
    }

    pub(crate) fn question(&self, charges: impl IntoIterator<Item = Pending>) -> Result<Question, Error> {
        let mut question = Question::default();
        for Pending { name, key, spec, cost, timeout, on_store_error } in charges {
            let charge = Charge { key: key?, spec, cost, wait: patience(timeout), shadow: false };
            question.push(name, charge, on_store_error.unwrap_or(self.on_store_error))?;
        }
        Ok(question)
    }
}

#[cfg(feature = "redis")]
impl Local {
    /// A store for so many keys, whose calls count among those that wait there.
    pub(crate) fn new(max_keys: usize, instances: u32, waiters: &Arc<Waiters>) -> Self {
        let memory = Arc::new(MemoryStore::new(max_keys, Clock::process()));
        let store = Store::Memory(Arc::clone(&memory));
        let backend = Arc::new(Backend::new(String::new(), Some(store), Arc::clone(waiters)));
        Local { memory, backend, instances }
    }
}
