//! Keys that have used a share of their limit, of which observers are notified once for each window.
//!
//! Each call that finds a key there asks for a mark: a window beside that of the key, which admits one call. Who gets it tells. So it
//! does not matter in which process that is, nor what was refunded, settled, overridden or lost before. No call waits for a mark in
//! Redis.

use std::slice;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::acquired::Acquired;
use super::backend::Backend;
use super::charges::PolicyCharge;
use super::definition::OwnedDefinition;
use super::endpoint::Endpoint;
use super::observation::{Near, Observers};
use crate::algorithm::fixed_window::FixedWindowSpec;
use crate::algorithm::{AlgorithmSpec, Verdict};
use crate::base::runtime::BACKGROUND;
use crate::key::{Fingerprint, Key, KeyParts, PartsOfKey};
use crate::store::decided_by::DecidedBy;
use crate::store::error::StoreError;
use crate::store::{Charge, Store};

/// After so many microseconds no call asks for the mark of a window that has ended.
const LATE: u64 = 10_000_000;

/// A mark in Redis that is asked for, and what its owner tells.
struct Asked {
    endpoint: Arc<Endpoint>,
    observers: Observers,
    mark: Charge,
    definition: OwnedDefinition,
    spec: AlgorithmSpec,
    verdict: Verdict,
    shadow: bool,
    source: DecidedBy,
    parts: KeyParts,
}

impl Backend {
    /// Tells observers of the key of a charge that was decided at once in process, if it has reached the share.
    #[inline(never)]
    pub(super) fn notify_one(&self, charge: &PolicyCharge<'_>, verdict: &Verdict, parts: PartsOfKey<'_>) {
        let (definition, spec, shadow) = (charge.definition.get(), charge.spec(), charge.shadow);
        let near = Near { definition, spec, verdict, shadow, source: DecidedBy::Memory, parts };
        self.notify(&near, 0, || charge.definition.to_owned());
    }

    /// Tells observers of the keys of a request that have reached their shares. What a process decides without the store says little of
    /// a key, and a paused key has nothing left, whatever it has used.
    #[inline(never)]
    pub(super) fn notify_all(&self, acquired: &Acquired<'_>) {
        let Acquired { request, outcome, source, .. } = *acquired;
        if self.store().is_none_or(|store| store.source() != source) {
            return;
        }
        for policy in request.policies().iter().filter(|policy| policy.cost > 0) {
            let charge = &request.charges()[policy.charge];
            let is_paused = outcome.pause(policy.charge).is_some_and(|pause| pause.left(outcome.now) > 0);
            if is_paused || acquired.shadow_failure(policy).is_some() {
                continue;
            }
            let near = Near {
                definition: &policy.definition,
                spec: &charge.spec,
                verdict: acquired.verdict(policy),
                shadow: charge.shadow,
                source,
                parts: request.parts_of(policy),
            };
            self.notify(&near, outcome.now, || policy.definition.clone());
        }
    }

    /// Tells observers of a key that has reached the share, unless they were told in this window. `now` is the time of the store, if
    /// that is Redis.
    fn notify(&self, near: &Near<'_>, now: u64, definition: impl FnOnce() -> OwnedDefinition) {
        let Some(observers) = self.observers().filter(|_| near.is_reached()) else { return };
        let (fingerprint, id) = (fingerprint(near, None), near.definition.id);
        let mark = |key| Charge { key, spec: mark_spec(near), cost: 1, wait: 0, shadow: false };
        let Some(endpoint) = self.primary() else { return };
        match &endpoint.store {
            Store::Memory(memory) => {
                if memory.decide(slice::from_ref(&mark(Key::hashed(fingerprint, id)))).admitted {
                    observers.near_limit(near);
                }
            }
            Store::Redis(_) if endpoint.taken_marks.begin(fingerprint, now) => {
                let Near { spec, verdict, shadow, source, parts, .. } = *near;
                let asked = Asked {
                    endpoint: Arc::clone(endpoint),
                    observers: observers.clone(),
                    mark: mark(self.mark_key(near, fingerprint)),
                    definition: definition(),
                    spec: *spec,
                    verdict: *verdict,
                    shadow,
                    source,
                    parts: parts.to_owned(),
                };
                asked.ask();
            }
            Store::Redis(_) => {}
        }
    }

    fn mark_key(&self, near: &Near<'_>, fingerprint: Fingerprint) -> Key {
        let mut parts = KeyParts::default();
        let _ = self::fingerprint(near, Some(&mut parts));
        let (heads, head) = near.definition.marks();
        let head = heads.text(head);
        Key::text(self.namespace_text(), head, parts.all(), fingerprint, near.definition.id)
    }
}

impl Asked {
    /// Asks by a task, which tells the observers if it gets the mark.
    fn ask(self) {
        match Handle::try_current().or_else(|_| BACKGROUND.handle()) {
            Ok(runtime) => drop(runtime.spawn(self.tell())),
            Err(error) => {
                let error = StoreError::permanent(format!("no thread to ask Redis by: {error}"));
                self.definition.log_failed_notice(&error);
            }
        }
    }

    async fn tell(self) {
        let Asked { endpoint, observers, mark, definition, spec, verdict, shadow, source, parts } = self;
        match endpoint.store.decide(slice::from_ref(&mark)).await {
            Ok(outcome) => {
                endpoint
                    .taken_marks
                    .add(mark.key.fingerprint(), outcome.now + outcome.verdicts[0].reset_after);
                if outcome.admitted {
                    let (definition, spec, verdict, parts) = (&*definition, &spec, &verdict, parts.all());
                    observers.near_limit(&Near { definition, spec, verdict, shadow, source, parts });
                }
            }
            Err(error) => definition.log_failed_notice(&error),
        }
    }
}

/// Returns the hash of a mark: the key, and the window that was charged, by its length and its end. Marks of what refills or slides end
/// by themselves when another is due.
fn fingerprint(near: &Near<'_>, mut kept: Option<&mut KeyParts>) -> Fingerprint {
    let (heads, _) = near.definition.marks();
    let mut open = heads.hash.open();
    open.parts(near.parts, kept.as_deref_mut());
    if let Some(end) = near.spec.window_end(near.verdict) {
        // Numbers can always be formatted.
        let _ = open.part(&near.spec.window(), kept.as_deref_mut());
        let _ = open.part(&end, kept);
    }
    open.finish().unwrap_or(heads.hash.without_parts())
}

/// Returns the numbers of a mark. That of a window outlives it, because some windows of a calendar are long, and calls ask after it has
/// ended that were decided before.
fn mark_spec(near: &Near<'_>) -> AlgorithmSpec {
    let window = near.spec.window().max(1);
    let longer = near.spec.window_end(near.verdict).map_or(0, |_| window.max(LATE));
    let period = window + longer;
    AlgorithmSpec::FixedWindow(FixedWindowSpec { limit: 1, period, aligned: false })
}
