//! Requests to an endpoint: one decision of its store, and waiting where a policy refuses for now.
//!
//! Buckets reserve: a call takes future permits and learns how long until they are its own. Windows have nothing to reserve, so
//! with a window among the policies the call queues and tries again when there may be capacity.

mod ask;
mod detach;
mod log;
mod queue;
mod reservation;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use self::detach::DetachOnDrop;
use self::queue::QueuedRequest;
use self::reservation::Reservation;
use crate::acquired::{AcquireResult, Acquired, FailedRequest, Step};
use crate::endpoint::Endpoint;
use crate::error::store::StoreError;
use crate::request::AcquireRequest;
use crate::store::{MemoryStore, Store};
use crate::waiter_limit::WaiterPermit;

/// A request that is under way. Dropped, it gives back what it was charged.
pub(crate) struct EndpointFuture(State);

enum State {
    /// The store decides. A call that may wait goes on afterwards.
    Asking(DetachOnDrop, Option<Box<Continuation>>),
    Waiting(Pin<Box<dyn Future<Output = AcquireResult> + Send>>),
}

/// How a call that may wait goes on once Redis has decided.
struct Continuation {
    since: Instant,
    /// `None` where too many calls wait already, so that this one does not.
    permit: Option<WaiterPermit>,
    wait: Wait,
}

enum Wait {
    Reservation { endpoint: Arc<Endpoint>, runtime: Handle },
    Queue(QueuedRequest),
}

/// Sends a request to an endpoint. In process the result is ready at once unless the call has to wait.
pub(crate) fn acquire(request: AcquireRequest, endpoint: &Arc<Endpoint>) -> Step<EndpointFuture> {
    if !request.may_wait() {
        return ask_once(request, endpoint);
    }
    let Ok(runtime) = Handle::try_current() else { return ask_without_runtime(request, endpoint) };
    let can_reserve = request.can_reserve();
    match &endpoint.store {
        Store::Memory(memory) if can_reserve => reserve(request, endpoint, memory, runtime),
        Store::Memory(memory) => try_then_queue(request, endpoint, memory, runtime),
        Store::Redis(_) => ask_then_wait(request, endpoint, runtime, can_reserve),
    }
}

/// Decides without waiting.
fn ask_once(request: AcquireRequest, endpoint: &Arc<Endpoint>) -> Step<EndpointFuture> {
    match ask::once(request, endpoint) {
        Step::Ready(result) => Step::Ready(result),
        Step::Pending(asking) => Step::Pending(EndpointFuture(State::Asking(asking, None))),
    }
}

/// A call that would have to wait is an error here, not a refusal by the policy.
fn ask_without_runtime(mut request: AcquireRequest, endpoint: &Arc<Endpoint>) -> Step<EndpointFuture> {
    request.forbid_reservations();
    match ask_once(request, endpoint) {
        Step::Ready(Ok(acquired))
            if acquired.request.next_try(&acquired.outcome, Duration::ZERO).is_some() =>
        {
            let error = StoreError::permanent("the call has to wait, but there is no tokio runtime");
            Step::Ready(Err(FailedRequest::new(error, acquired.request)))
        }
        step => step,
    }
}

/// Takes future permits in process. Most calls need not wait, and those count as no waiters.
fn reserve(
    mut request: AcquireRequest,
    endpoint: &Arc<Endpoint>,
    memory: &Arc<MemoryStore>,
    runtime: Handle,
) -> Step<EndpointFuture> {
    let source = endpoint.store.source();
    request.forbid_reservations();
    let outcome = memory.decide(request.charges());
    let permit = if outcome.admitted { None } else { endpoint.waiters.enter() };
    let Some(permit) = permit else { return Step::Ready(Ok(Acquired::new(request, outcome, source))) };
    request.allow_reservations();
    let (outcome, waiter) = memory.reserve(request.charges());
    let acquired = Acquired::new(request, outcome, source);
    let Some(waiter) = waiter else { return Step::Ready(Ok(acquired)) };
    let reservation = Reservation::in_memory(acquired, &endpoint.store, memory, waiter, runtime);
    Step::Pending(EndpointFuture::waiting(reservation.wait(permit)))
}

/// Tries at once in process where no call waits for one of the keys, and queues after a refusal.
fn try_then_queue(
    mut request: AcquireRequest,
    endpoint: &Arc<Endpoint>,
    memory: &MemoryStore,
    runtime: Handle,
) -> Step<EndpointFuture> {
    let since = Instant::now();
    request.forbid_reservations();
    if endpoint.queues.find(&request).is_none() {
        let outcome = memory.decide(request.charges());
        if request.next_try(&outcome, since.elapsed()).is_none() {
            return Step::Ready(Ok(Acquired::new(request, outcome, endpoint.store.source())));
        }
    }
    let queued = QueuedRequest::new(endpoint, runtime, since);
    Step::Pending(EndpointFuture::waiting(queued.acquire(request)))
}

/// Sends the request to Redis, and waits afterwards if it has to.
fn ask_then_wait(
    mut request: AcquireRequest,
    endpoint: &Arc<Endpoint>,
    runtime: Handle,
    can_reserve: bool,
) -> Step<EndpointFuture> {
    let since = Instant::now();
    if !can_reserve {
        request.forbid_reservations();
        if endpoint.queues.find(&request).is_some() {
            let queued = QueuedRequest::new(endpoint, runtime, since);
            return Step::Pending(EndpointFuture::waiting(queued.acquire(request)));
        }
    }
    let permit = endpoint.waiters.enter();
    if permit.is_none() {
        request.forbid_reservations();
    }
    let wait = if can_reserve {
        Wait::Reservation { endpoint: Arc::clone(endpoint), runtime }
    } else {
        Wait::Queue(QueuedRequest::new(endpoint, runtime, since))
    };
    let continuation = Some(Box::new(Continuation { since, permit, wait }));
    Step::Pending(EndpointFuture(State::Asking(DetachOnDrop::ask(request, endpoint), continuation)))
}

impl EndpointFuture {
    fn waiting(future: impl Future<Output = AcquireResult> + Send + 'static) -> Self {
        EndpointFuture(State::Waiting(Box::pin(future)))
    }
}

impl Continuation {
    fn resume(self, result: AcquireResult) -> Step<EndpointFuture> {
        let Continuation { since, permit, wait } = self;
        let acquired = match result {
            Ok(acquired) => acquired,
            Err(failed) => return Step::Ready(Err(failed.of_waiting_call(since, false))),
        };
        match (permit, wait) {
            (Some(permit), Wait::Reservation { endpoint, runtime }) if acquired.outcome.wait() > 0 => {
                let reservation = Reservation::in_redis(acquired, &endpoint.store, runtime);
                Step::Pending(EndpointFuture::waiting(reservation.wait(permit)))
            }
            (Some(permit), Wait::Queue(queued)) if queued.next_try(&acquired).is_some() => {
                Step::Pending(EndpointFuture::waiting(queued.retry(acquired, permit)))
            }
            _ => Step::Ready(Ok(acquired)),
        }
    }
}

impl Future for EndpointFuture {
    type Output = AcquireResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<AcquireResult> {
        loop {
            match &mut self.0 {
                State::Waiting(future) => return future.as_mut().poll(context),
                State::Asking(asking, continuation) => {
                    let result = ready!(Pin::new(asking).poll(context));
                    let Some(continuation) = continuation.take() else { return Poll::Ready(result) };
                    match continuation.resume(result) {
                        Step::Ready(result) => return Poll::Ready(result),
                        Step::Pending(future) => *self = future,
                    }
                }
            }
        }
    }
}
