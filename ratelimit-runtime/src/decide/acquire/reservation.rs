//! A call that has taken future permits, and waits until they are its own.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;

use super::detach::DetachOnDrop;
use super::log;
use crate::algorithm::ChargeId;
use crate::base::timer::Timers;
use crate::decide::acquired::{AcquireResult, DecidedRequest, FailedRequest};
use crate::decide::endpoint::Endpoint;
use crate::decide::request::AcquireRequest;
use crate::decide::waiter_limit::WaiterPermit;
use crate::store::error::StoreError;
use crate::store::{Charge, MemoryStore, Receipt, Store, Waiter};

/// A call between its reservation and its start. Dropped, it gives back what it took.
pub(super) struct Reservation {
    decided: DecidedRequest,
    held: HeldPermits,
}

/// The permits of a reservation, given back when dropped.
struct HeldPermits {
    /// `None` once the call has started.
    taken: Option<Taken>,
    endpoint: Arc<Endpoint>,
    slot: Slot,
    timers: Timers,
}

pub(super) enum Slot {
    /// In process, where the call may move up.
    Memory(Arc<MemoryStore>, Arc<Waiter>),
    /// In Redis, which does not know who waits. When it comes.
    Redis(Instant),
}

/// What is given back.
enum Taken {
    /// In process. A receipt would end holds a second time.
    Memory(SmallVec<[(Charge, ChargeId); 1]>),
    Redis(Receipt),
}

/// A slot that a call has been given for a key that its calls pause, as the store's clock has it.
struct PausableSlot {
    /// What looks whether the key is paused.
    peek: Charge,
    at: u64,
    /// By how much slots had moved when it was given.
    moved: u64,
    /// When the call may start at the latest.
    until: u64,
}

impl Reservation {
    /// A reservation in Redis. Its wait begins when the reply is here, so the call starts late by the reply's latency, and never
    /// early.
    pub(super) fn in_redis(decided: DecidedRequest, endpoint: Arc<Endpoint>, timers: Timers) -> Self {
        let start = Instant::now() + Duration::from_micros(decided.outcome.wait());
        Reservation::new(decided, endpoint, Slot::Redis(start), timers)
    }

    pub(super) fn new(decided: DecidedRequest, endpoint: Arc<Endpoint>, slot: Slot, timers: Timers) -> Self {
        let taken = match &slot {
            Slot::Memory(..) => {
                let charges = decided.request.charges().iter().zip(&decided.outcome.verdicts);
                let made = charges.filter(|(charge, verdict)| charge.is_made(verdict));
                Taken::Memory(made.map(|(charge, verdict)| (charge.clone(), verdict.charge_id)).collect())
            }
            Slot::Redis(_) => Taken::Redis(decided.acquired().receipt(&endpoint.store)),
        };
        Reservation { decided, held: HeldPermits { taken: Some(taken), endpoint, slot, timers } }
    }

    /// Waits until the last slot of the call has come. If a pause has moved that too far, the call is decided anew, without waiting.
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
            Slot::Redis(_) => wait,
        };
        match held.sleep_through_pauses(&decided).await {
            Ok(Some(start)) => {
                let waited = Duration::from_micros(start.saturating_sub(decided.outcome.now));
                decided.waited = decided.waited.max(waited);
            }
            Ok(None) => {
                let endpoint = Arc::clone(&held.endpoint);
                drop(held);
                return decide_anew(decided.request, &endpoint).await;
            }
            Err(error) => return Err(FailedRequest::new(error, decided.request)),
        }
        held.taken = None;
        log::waited(decided.request.slowest_policy(&decided.outcome), decided.waited);
        Ok(decided)
    }
}

/// Decides a call that can wait no longer.
pub(crate) async fn decide_anew(mut request: Arc<AcquireRequest>, endpoint: &Arc<Endpoint>) -> AcquireResult {
    Arc::make_mut(&mut request).forbid_reservations();
    match &endpoint.store {
        Store::Memory(memory) => Ok(DecidedRequest::in_memory(request, memory)),
        Store::Redis(_) => DetachOnDrop::ask(request, endpoint).await,
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
            Slot::Redis(start) => {
                self.sleep_until(*start).await?;
            }
        }
        Ok(())
    }

    async fn sleep_until(&self, start: Instant) -> Result<(), StoreError> {
        while start > Instant::now() {
            self.timers.until(start, pending::<()>()).await?;
        }
        Ok(())
    }

    /// Waits until no key is paused that calls of its policy pause, and the slot has come that the pauses leave the call. Returns when
    /// the store has last said so, which is the decision if there is no such key, or `None` if the call may not wait so long.
    async fn sleep_through_pauses(&self, decided: &DecidedRequest) -> Result<Option<u64>, StoreError> {
        let mut slots = self.pausable_slots(decided);
        let peeks: Vec<Charge> = slots.iter().map(|slot| slot.peek.clone()).collect();
        if slots.is_empty() {
            return Ok(Some(decided.outcome.now));
        }
        loop {
            let decided = self.endpoint.store.decide(&peeks).await;
            match &decided {
                Ok(_) => self.endpoint.health.record_success(),
                Err(error) => self.endpoint.health.record_failure(error),
            }
            let outcome = decided?;
            let mut start = outcome.now;
            for (index, slot) in slots.iter_mut().enumerate() {
                let Some(pause) = outcome.pause(index) else { continue };
                (slot.at, slot.moved) = (pause.slot(slot.at, slot.moved, outcome.now), pause.moved);
                if slot.at > slot.until {
                    return Ok(None);
                }
                start = start.max(slot.at);
            }
            if start == outcome.now {
                return Ok(Some(start));
            }
            self.sleep_until(Instant::now() + Duration::from_micros(start - outcome.now)).await?;
        }
    }

    fn pausable_slots(&self, decided: &DecidedRequest) -> Vec<PausableSlot> {
        let DecidedRequest { request, outcome, .. } = decided;
        let mut made = 0;
        let mut slots = Vec::new();
        for (index, (charge, verdict)) in request.charges().iter().zip(&outcome.verdicts).enumerate() {
            let nth = made;
            made += usize::from(charge.is_made(verdict));
            if verdict.wait == 0 || !request.is_pausable(index) {
                continue;
            }
            let at = match &self.slot {
                Slot::Memory(_, waiter) => waiter.slot(nth).at,
                Slot::Redis(_) => outcome.now + verdict.wait,
            };
            slots.push(PausableSlot {
                peek: Charge { cost: 0, wait: 0, ..charge.clone() },
                at,
                moved: outcome.pause(index).map_or(0, |pause| pause.moved),
                until: outcome.now.saturating_add(charge.wait),
            });
        }
        slots
    }
}

impl Drop for HeldPermits {
    fn drop(&mut self) {
        match (self.taken.take(), &self.slot) {
            (Some(Taken::Memory(charged)), Slot::Memory(memory, waiter)) => memory.leave(&charged, waiter),
            (Some(Taken::Redis(receipt)), _) => self.endpoint.give_back(self.timers.runtime(), [receipt]),
            _ => {}
        }
    }
}
