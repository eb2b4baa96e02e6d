//! A call that has taken future permits, and waits until they are its own.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::log;
use crate::base::timer::Timers;
use crate::decide::acquired::{AcquireResult, DecidedRequest, FailedRequest};
use crate::decide::endpoint::Endpoint;
use crate::decide::waiter_limit::WaiterPermit;
use crate::store::error::StoreError;
use crate::store::{MemoryStore, Receipt, Store, Waiter};

/// A call between its reservation and its start. Dropped, it gives back what it took.
pub(super) struct Reservation {
    decided: DecidedRequest,
    held: HeldPermits,
}

/// The permits of a reservation, given back when dropped.
struct HeldPermits {
    /// `None` once the call has started.
    receipt: Option<Receipt>,
    slot: Slot,
    timers: Timers,
}

pub(super) enum Slot {
    /// In process, where the call may move up.
    Memory(Arc<MemoryStore>, Arc<Waiter>),
    /// In Redis, which does not know who waits.
    Redis { endpoint: Arc<Endpoint>, start: Instant },
}

impl Reservation {
    /// A reservation in Redis. Its wait begins when the reply is here, so the call starts late by the reply's latency, and never
    /// early.
    pub(super) fn in_redis(decided: DecidedRequest, endpoint: Arc<Endpoint>, timers: Timers) -> Self {
        let start = Instant::now() + Duration::from_micros(decided.outcome.wait());
        let store = endpoint.store.clone();
        Reservation::new(decided, &store, Slot::Redis { endpoint, start }, timers)
    }

    pub(super) fn new(decided: DecidedRequest, store: &Store, slot: Slot, timers: Timers) -> Self {
        let receipt = Some(decided.acquired().receipt(store));
        Reservation { decided, held: HeldPermits { receipt, slot, timers } }
    }

    /// Waits until the last slot of the call has come.
    pub(super) async fn wait(self, permit: WaiterPermit) -> AcquireResult {
        let _permit = permit;
        let Reservation { mut decided, mut held } = self;
        let wait = Duration::from_micros(decided.outcome.wait());
        log::waiting(decided.request.slowest_policy(&decided.outcome), Some(wait));
        if let Err(error) = held.sleep(&decided).await {
            return Err(FailedRequest::new(error, decided.request));
        }
        decided.waited = match &held.slot {
            Slot::Memory(memory, waiter) => {
                memory.move_up(decided.request.charges());
                decided.adopt_charge_ids(waiter);
                Duration::from_micros(waiter.start().saturating_sub(decided.outcome.now))
            }
            Slot::Redis { .. } => wait,
        };
        held.receipt = None;
        log::waited(decided.request.slowest_policy(&decided.outcome), decided.waited);
        Ok(decided)
    }
}

impl HeldPermits {
    async fn sleep(&self, decided: &DecidedRequest) -> Result<(), StoreError> {
        match &self.slot {
            Slot::Memory(memory, waiter) => {
                loop {
                    // Before the store's clock: a thread that is held up between the two wakes early and looks again, not late.
                    let now = Instant::now();
                    let wait = waiter.start().saturating_sub(memory.now());
                    if wait == 0 {
                        break;
                    }
                    let start = now + Duration::from_micros(wait);
                    if self.timers.until(start, waiter.moved()).await?.is_some() {
                        memory.move_up(decided.request.charges());
                    }
                }
            }
            Slot::Redis { start, .. } => {
                while *start > Instant::now() {
                    self.timers.until(*start, pending::<()>()).await?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for HeldPermits {
    fn drop(&mut self) {
        let Some(receipt) = self.receipt.take() else { return };
        match &self.slot {
            Slot::Memory(memory, waiter) => memory.leave(receipt.charged(), waiter),
            Slot::Redis { endpoint, .. } => endpoint.give_back(self.timers.runtime(), [receipt]),
        }
    }
}
