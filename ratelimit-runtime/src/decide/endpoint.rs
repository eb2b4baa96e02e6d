//! A store with the calls that wait for it.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::decide::health::HealthMonitor;
use crate::decide::taken_marks::TakenMarks;
use crate::decide::wait_queues::WaitQueues;
use crate::decide::waiter_limit::WaiterLimit;
use crate::store::{Correction, Receipt, Store, Urgency};

/// A store, the queues of calls that wait for its windows, and its health.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) store: Store,
    pub(crate) queues: Arc<WaitQueues>,
    pub(crate) waiters: Arc<WaiterLimit>,
    pub(crate) health: HealthMonitor,
    /// The marks in Redis that are known to be taken.
    pub(crate) taken_marks: TakenMarks,
}

impl Endpoint {
    pub(crate) fn new(store: Store, waiters: Arc<WaiterLimit>) -> Arc<Self> {
        let (queues, health) = (Arc::<WaitQueues>::default(), HealthMonitor::new(&store));
        let wakes = Arc::clone(&queues);
        match &store {
            Store::Memory(memory) => memory.on_refund(move |key| wakes.wake(key)),
            Store::Redis(redis) => redis.on_release(move |key| wakes.wake(key)),
        }
        Arc::new(Endpoint { store, queues, waiters, health, taken_marks: TakenMarks::default() })
    }

    /// Refunds charges of this store, by a task of this runtime or else the current one. Nobody needs to wait for it.
    pub(crate) fn give_back(
        self: &Arc<Self>,
        runtime: Option<&Handle>,
        receipts: impl IntoIterator<Item = Receipt>,
    ) {
        let endpoint = Arc::clone(self);
        Receipt::give_back(runtime, receipts, move |result| {
            if let Err(error) = result {
                endpoint.health.record_failed_refund(&error);
            }
        });
    }

    /// Gives back what is left of leases, as far as the store responds. Each on its own, as their keys may be in different slots.
    pub(crate) fn give_back_leased(
        &self,
        runtime: Option<&Handle>,
        refunds: impl IntoIterator<Item = Correction>,
    ) {
        refunds
            .into_iter()
            .for_each(|refund| self.store.correct(runtime, vec![refund], Urgency::AtOnce, drop));
    }
}

/// A registry that ends holds no permits back.
impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(leases) = self.store.leases() {
            self.give_back_leased(None, leases.end_all());
        }
    }
}
