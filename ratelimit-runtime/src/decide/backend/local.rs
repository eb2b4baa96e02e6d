//! The store in process that stands in for one that fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::decide::endpoint::Endpoint;
use crate::decide::on_store_error::OnStoreError;
use crate::decide::request::AcquireRequest;
use crate::decide::waiter_limit::WaiterLimit;
use crate::key::Key;
use crate::store::{AlgorithmSpec, Charge, MemoryStore, Mirrored, Outcome, Store};

/// How soon after an outage another one is its continuation.
const FLAPPING: Duration = Duration::from_secs(60);

/// A store in process that stands in for one that fails.
///
/// Its state outlives the outage, and counts what the failed store admits once it is back: a store that comes and goes grants no
/// fresh capacity each time.
#[derive(Debug)]
pub(super) struct Local {
    /// It has queues of its own, because its keys hold other state than those of the primary store.
    endpoint: Arc<Endpoint>,
    memory: Arc<MemoryStore>,
    /// The number of processes that share the policies.
    instances: u32,
    /// When it last had to decide, plus one; 0 if never.
    last_outage: AtomicU64,
}

impl Local {
    pub(super) fn new(memory: Arc<MemoryStore>, waiters: Arc<WaiterLimit>, instances: u32) -> Self {
        let endpoint = Endpoint::new(Store::Memory(Arc::clone(&memory)), waiters);
        Local { endpoint, memory, instances, last_outage: AtomicU64::new(0) }
    }

    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    pub(super) fn instances(&self) -> u32 {
        self.instances
    }

    /// Notes that the other store does not decide.
    pub(super) fn note_outage(&self) {
        self.last_outage.fetch_max(self.memory.now() + 1, Ordering::Relaxed);
    }

    /// Whether the other store has ever failed to decide.
    pub(super) fn had_outage(&self) -> bool {
        self.last_outage.load(Ordering::Relaxed) != 0
    }

    /// Admits no call of a key until this many microseconds have passed.
    pub(super) fn pause(&self, key: &Key, spec: &AlgorithmSpec, micros: u64) {
        self.memory.pause(key, &spec.per_instance(self.instances), micros);
    }

    /// Charges what the other store has admitted. Costs one load while there has been no outage.
    ///
    /// Soon after an outage every key is charged. Later only keys that still have state from then are, and they owe nothing.
    pub(super) fn mirror(&self, request: &AcquireRequest, outcome: &Outcome) -> Option<Box<Mirrored>> {
        let last_outage = self.last_outage.load(Ordering::Relaxed);
        if last_outage == 0 || !outcome.admitted {
            return None;
        }
        let is_flapping = self.memory.now() <= last_outage + FLAPPING.as_micros() as u64;
        let owes = is_flapping && request.on_store_error() == OnStoreError::Local;
        let pairs = request.charges().iter().zip(&outcome.verdicts).enumerate();
        let mirrored = pairs.filter_map(|(index, (charge, verdict))| {
            if !charge.is_made(verdict) || charge.spec.is_semaphore() {
                return None;
            }
            let share = Charge { spec: charge.spec.per_instance(self.instances), ..charge.clone() };
            let (charge, charge_id) = self.memory.mirror(&share, owes)?;
            Some((index, charge, charge_id))
        });
        let mirrored: Vec<_> = mirrored.collect();
        (!mirrored.is_empty()).then(|| Box::new(Mirrored::new(Arc::clone(&self.memory), mirrored)))
    }

    /// Counts what calls hold that the other store has admitted: they run during an outage, too.
    pub(super) fn count_holds(&self, request: &AcquireRequest, outcome: &mut Outcome) {
        if request.on_store_error() != OnStoreError::Local {
            return;
        }
        for (index, charge) in held(request, outcome) {
            let share = Charge { spec: charge.spec.per_instance(self.instances), ..charge };
            let mirrored = self.memory.mirror(&share, true);
            outcome
                .holds
                .extend(mirrored.map(|(charge, charge_id)| self.memory.hold(index, charge, charge_id)));
        }
    }
}

/// Returns the charges by which an admitted call holds permits, with their index.
pub(super) fn held(request: &AcquireRequest, outcome: &Outcome) -> Vec<(usize, Charge)> {
    let pairs = request.charges().iter().zip(&outcome.verdicts).enumerate();
    let held = pairs.filter(|(_, (charge, verdict))| {
        outcome.admitted && charge.spec.is_semaphore() && charge.is_made(verdict)
    });
    held.map(|(index, (charge, _))| (index, charge.clone())).collect()
}
