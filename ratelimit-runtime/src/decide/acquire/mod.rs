//! Requests to an endpoint: one decision of its store, and waiting where a policy refuses for now.
//!
//! A bucket reserves: a call takes future permits and learns how long until they are its own. Windows have nothing to reserve, so
//! with a window among the policies the call queues and tries again when there may be capacity. A call that waits for several buckets
//! queues for the slower ones, until they will be ready by the slot that its line gives, and then reserves this slot in all.

mod denied;
mod detach;
mod leased;
mod log;
mod queue;
mod reservation;
#[cfg(test)]
mod tests;

use std::future::{self, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use self::detach::DetachOnDrop;
use self::queue::QueuedRequest;
pub(super) use self::reservation::decide_anew;
use self::reservation::{Reservation, Slot};
use crate::base::timer::Timers;
use crate::decide::acquired::{AcquireResult, DecidedRequest, FailedRequest};
use crate::decide::endpoint::Endpoint;
use crate::decide::request::AcquireRequest;
use crate::store::error::StoreError;
use crate::store::{MemoryStore, Outcome, Store};

/// A request that is under way. Dropped while it waits, it gives back what it was charged.
pub(crate) enum EndpointFuture {
    /// Redis decides, and the call does not wait.
    Asking(DetachOnDrop),
    Waiting(Pin<Box<dyn Future<Output = AcquireResult> + Send>>),
}

/// How a call that may wait goes on once Redis has decided.
enum Wait {
    Reservation { endpoint: Arc<Endpoint>, timers: Timers },
    Queue(QueuedRequest),
}

/// Decides a request in process. Returns `None` if the request has to be awaited, and has then charged nothing.
///
/// A request to Redis is admitted if it has a lease. It is refused if a charge of it is denied, and then consists of such charges.
pub(crate) fn decide_at_once(request: &mut AcquireRequest, endpoint: &Arc<Endpoint>) -> Option<Outcome> {
    let memory = match &endpoint.store {
        Store::Memory(memory) => memory,
        Store::Redis(redis) => {
            let leased = leased::spend(request, redis.leases(), endpoint);
            return leased.or_else(|| denied::refuse(request, redis.denials()?));
        }
    };
    if !request.may_wait() {
        return Some(memory.decide(request.charges()));
    }
    let can_reserve = request.can_reserve();
    if !can_reserve && endpoint.queues.find(request).is_some() {
        return None;
    }
    request.forbid_reservations();
    let outcome = memory.decide(request.charges());
    let is_final = if can_reserve || request.starts_together() {
        outcome.admitted
    } else {
        request.next_try(&outcome, Duration::ZERO).is_none()
    };
    is_final.then_some(outcome)
}

/// Sends a request to an endpoint, and waits as long as its charges may.
pub(crate) fn acquire(request: Arc<AcquireRequest>, endpoint: &Arc<Endpoint>) -> EndpointFuture {
    if !request.may_wait() {
        return ask(request, endpoint);
    }
    match Timers::current() {
        Some(timers) => acquire_by(request, endpoint, timers),
        None => ask_without_runtime(request, endpoint),
    }
}

/// Like [`acquire`], for a request that may wait, by these timers.
pub(crate) fn acquire_by(
    mut request: Arc<AcquireRequest>,
    endpoint: &Arc<Endpoint>,
    timers: Timers,
) -> EndpointFuture {
    let since = Instant::now();
    if request.can_reserve() {
        Arc::make_mut(&mut request).allow_reservations();
        return match &endpoint.store {
            Store::Memory(memory) => reserve(request, endpoint, memory, timers),
            Store::Redis(_) => {
                let wait = Wait::Reservation { endpoint: Arc::clone(endpoint), timers };
                ask_then_wait(request, endpoint, since, wait)
            }
        };
    }
    if request.starts_together() {
        Arc::make_mut(&mut request).allow_reservations();
    } else {
        Arc::make_mut(&mut request).forbid_reservations();
    }
    let queued = QueuedRequest::new(endpoint, timers, since);
    match &endpoint.store {
        // Redis decides the first try of a call that finds no queue.
        Store::Redis(_) if endpoint.queues.find(&request).is_none() => {
            Arc::make_mut(&mut request).wait_for_holds(Duration::ZERO);
            ask_then_wait(request, endpoint, since, Wait::Queue(queued))
        }
        _ => EndpointFuture::waiting(queued.acquire(request)),
    }
}

/// Decides without waiting.
fn ask(request: Arc<AcquireRequest>, endpoint: &Arc<Endpoint>) -> EndpointFuture {
    match &endpoint.store {
        Store::Memory(memory) => EndpointFuture::decided(DecidedRequest::in_memory(request, memory)),
        Store::Redis(redis) => match leased::join(&request, redis, endpoint) {
            Some(waiter) => EndpointFuture::waiting(waiter.wait(request, Arc::clone(endpoint))),
            None => EndpointFuture::Asking(DetachOnDrop::ask(request, endpoint)),
        },
    }
}

/// Decides a call that cannot wait. If it would have to, that is an error, not a refusal by the policy.
fn ask_without_runtime(mut request: Arc<AcquireRequest>, endpoint: &Arc<Endpoint>) -> EndpointFuture {
    Arc::make_mut(&mut request).forbid_reservations();
    let Store::Memory(memory) = &endpoint.store else { return ask(request, endpoint) };
    let decided = DecidedRequest::in_memory(request, memory);
    if decided.request.next_try(&decided.outcome, Duration::ZERO).is_some() {
        let error = StoreError::permanent("the call has to wait, but there is no tokio runtime");
        return EndpointFuture::waiting(future::ready(Err(FailedRequest::new(error, decided.request))));
    }
    EndpointFuture::decided(decided)
}

/// Takes future permits in process.
fn reserve(
    mut request: Arc<AcquireRequest>,
    endpoint: &Arc<Endpoint>,
    memory: &Arc<MemoryStore>,
    timers: Timers,
) -> EndpointFuture {
    let Some(permit) = endpoint.waiters.enter() else {
        Arc::make_mut(&mut request).forbid_reservations();
        return ask(request, endpoint);
    };
    let (outcome, waiter) = memory.reserve(request.charges());
    let decided = DecidedRequest::new(request, Box::new(outcome), endpoint.store.source());
    let Some(waiter) = waiter else { return EndpointFuture::decided(decided) };
    let slot = Slot::Memory(Arc::clone(memory), waiter);
    let reservation = Reservation::new(decided, Arc::clone(endpoint), slot, timers);
    EndpointFuture::waiting(reservation.wait(permit))
}

/// Has Redis decide, and goes on as this says, unless so many calls wait already that this one does not.
fn ask_then_wait(
    mut request: Arc<AcquireRequest>,
    endpoint: &Arc<Endpoint>,
    since: Instant,
    wait: Wait,
) -> EndpointFuture {
    let permit = endpoint.waiters.enter();
    if permit.is_none() {
        Arc::make_mut(&mut request).forbid_reservations();
    }
    let asking = DetachOnDrop::ask(request, endpoint);
    EndpointFuture::waiting(async move {
        let decided = asking.await.map_err(|failed| failed.of_waiting_call(since, false))?;
        match (permit, wait) {
            (Some(permit), Wait::Reservation { endpoint, timers }) if decided.outcome.wait() > 0 => {
                let started = Reservation::in_redis(decided, endpoint, timers).wait(permit).await;
                started.map_err(|failed| failed.of_waiting_call(since, true))
            }
            (Some(permit), Wait::Queue(queued)) => queued.go_on(decided, permit).await,
            _ => Ok(decided),
        }
    })
}

impl EndpointFuture {
    pub(super) fn waiting(future: impl Future<Output = AcquireResult> + Send + 'static) -> Self {
        EndpointFuture::Waiting(Box::pin(future))
    }

    fn decided(decided: DecidedRequest) -> Self {
        EndpointFuture::waiting(future::ready(Ok(decided)))
    }
}

impl Future for EndpointFuture {
    type Output = AcquireResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<AcquireResult> {
        match &mut *self {
            EndpointFuture::Asking(asking) => Pin::new(asking).poll(context),
            EndpointFuture::Waiting(future) => future.as_mut().poll(context),
        }
    }
}
