//! Pauses: keys that admit no call for a time, because an upstream has said so, or an operator.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::backend::Backend;
use super::charges::PolicyCharge;
use super::definition::OwnedDefinition;
use crate::algorithm::AlgorithmSpec;
use crate::base::log::{LogBound, MINUTE, log};
use crate::key::{Key, KeyParts, PartsOfKey};
use crate::store::error::StoreError;
use crate::store::{Correction, Urgency};

/// The longest pause, unless a registry says otherwise.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(86_400);

/// The key of a policy that may be paused once the call has ended.
#[derive(Debug)]
pub(crate) struct Pausable {
    backend: Arc<Backend>,
    definition: OwnedDefinition,
    key: Key,
    spec: AlgorithmSpec,
    shadow: bool,
    /// The parts of the key, for observers.
    parts: KeyParts,
}

impl Pausable {
    /// The key of this charge. `None` where limits are off.
    pub(crate) fn new(
        backend: &Arc<Backend>,
        charge: &PolicyCharge<'_>,
        parts: PartsOfKey<'_>,
    ) -> Option<Self> {
        backend.primary()?;
        let mut kept = KeyParts::default();
        if backend.observers().is_some() {
            kept.append(parts);
        }
        Some(Pausable {
            backend: Arc::clone(backend),
            definition: charge.definition.to_owned(),
            key: backend.complete(charge, parts).0,
            spec: *charge.spec(),
            shadow: charge.shadow,
            parts: kept,
        })
    }

    /// Pauses the key, and waits for the store. Once polled, it ends even if it is dropped.
    pub(crate) async fn pause(self, duration: Duration) -> Result<(), StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.start(duration, move |result| drop(sender.send(result)));
        receiver.await.unwrap_or_else(|_| Err(StoreError::transient("the tokio runtime has shut down")))
    }

    /// Pauses the key without waiting for Redis, before what this process asks next of it.
    pub(crate) fn pause_at_once(self, duration: Duration) {
        let definition = self.definition.clone();
        self.start(duration, move |result| {
            if let Err(error) = result {
                definition.log_failed_pause(&error);
            }
        });
    }

    fn start(self, duration: Duration, done: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
        let (duration, Some(store)) = (self.at_most(duration), self.backend.store().cloned()) else {
            return done(Ok(()));
        };
        if self.spec.is_semaphore() {
            return done(Err(StoreError::permanent("the keys of a concurrency limit cannot be paused")));
        }
        let micros = duration.as_micros() as u64;
        if micros == 0 {
            return done(Ok(()));
        }
        let pause = Correction::pause(self.key.clone(), self.spec, micros);
        store.clone().correct(None, vec![pause], Urgency::AtOnce, move |result| {
            match &result {
                Ok(_) => {
                    if let Some(leases) = store.leases() {
                        drop(leases.end_after(&self.key));
                    }
                    self.tell(duration);
                }
                // What this process decides by itself it can pause.
                Err(_) => self.backend.pause_locally(&self.key, &self.spec, micros),
            }
            done(result.map(drop));
        });
    }

    /// Cuts a pause to the longest that the registry allows.
    fn at_most(&self, duration: Duration) -> Duration {
        static CUT: LogBound = LogBound::new();
        let most = self.backend.max_pause();
        if duration > most
            && let Some(calls) = CUT.count(MINUTE)
        {
            let policy = self.definition.name.as_str();
            log!(
                WARN,
                policy,
                ?duration,
                ?most,
                calls,
                "pauses were cut to the longest that the registry allows"
            );
        }
        duration.min(most)
    }

    fn tell(&self, duration: Duration) {
        self.definition.log_pause(duration);
        if let Some(observers) = self.backend.observers() {
            let source = self.backend.store().map(crate::store::Store::source);
            observers.paused(&self.definition, self.shadow, source, self.parts.all(), duration);
        }
    }
}
