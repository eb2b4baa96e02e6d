//! Waiting for windows, which have nothing to reserve: of all calls in this process that wait for a key, only the first one
//! tries, and not before there may be capacity.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::detach::DetachOnDrop;
use super::log;
use crate::base::timer::Timers;
use crate::decide::acquired::{AcquireResult, DecidedRequest, FailedRequest};
use crate::decide::endpoint::Endpoint;
use crate::decide::request::{AcquireRequest, NextTry};
use crate::decide::wait_queues::WaitQueue;
use crate::decide::waiter_limit::WaiterPermit;
use crate::key::Key;
use crate::store::error::StoreError;
use crate::store::{Charge, Store};

/// A call that waits in a queue if it has to.
pub(super) struct QueuedRequest {
    endpoint: Arc<Endpoint>,
    timers: Timers,
    ticket: u64,
    since: Instant,
}

/// The place of a call in a queue, which it leaves when this is dropped.
struct QueueGuard<'a> {
    call: &'a QueuedRequest,
    key: Key,
    /// The index of the charge that it waits for.
    charge: usize,
    turn: Arc<Notify>,
}

/// A request to try next, or one whose last try was refused.
enum Attempt {
    Next(Arc<AcquireRequest>),
    Refused(DecidedRequest),
}

impl QueuedRequest {
    pub(super) fn new(endpoint: &Arc<Endpoint>, timers: Timers, since: Instant) -> Self {
        let ticket = endpoint.queues.issue_ticket();
        QueuedRequest { endpoint: Arc::clone(endpoint), timers, ticket, since }
    }

    /// Joins the queue of one of its keys, or tries at once if there is none.
    pub(super) async fn acquire(self, request: Arc<AcquireRequest>) -> AcquireResult {
        let Some(_permit) = self.endpoint.waiters.enter() else {
            return self.try_once(request, false).await;
        };
        let end = self.since + request.max_wait();
        let guard = self.join_existing(&request, end);
        self.take_turns(Attempt::Next(request), guard, end).await
    }

    /// Queues after a first try that was refused.
    pub(super) async fn retry(self, refused: DecidedRequest, permit: WaiterPermit) -> AcquireResult {
        let _permit = permit;
        let end = self.since + refused.request.max_wait();
        self.take_turns(Attempt::Refused(refused), None, end).await
    }

    /// Returns what a refused call waits for, if it can wait so long.
    pub(super) fn next_try(&self, decided: &DecidedRequest) -> Option<NextTry> {
        decided.request.next_try(&decided.outcome, self.since.elapsed())
    }

    async fn take_turns<'a>(
        &'a self,
        mut attempt: Attempt,
        mut guard: Option<QueueGuard<'a>>,
        end: Instant,
    ) -> AcquireResult {
        loop {
            let decided = match attempt {
                Attempt::Refused(decided) => decided,
                Attempt::Next(request) => {
                    if let Some(guard) = &guard
                        && let Err(error) = guard.turn(end).await
                    {
                        return Err(FailedRequest::new(error, request));
                    }
                    match self.try_once(request, guard.is_some()).await {
                        Ok(decided) => decided,
                        Err(failed) => {
                            guard.iter().for_each(QueueGuard::wake_all);
                            return Err(failed);
                        }
                    }
                }
            };
            let Some(NextTry { charge, wait }) = self.next_try(&decided) else {
                return Ok(match &guard {
                    Some(guard) => self.waited(decided, guard.charge),
                    None => decided,
                });
            };
            match &guard {
                Some(guard) if guard.key == decided.request.charges()[charge].key => guard.ready_in(wait),
                _ => {
                    let Some(new) = QueueGuard::join(self, &decided.request.charges()[charge], charge) else {
                        return Ok(decided);
                    };
                    new.ready_in(wait);
                    if guard.replace(new).is_none() {
                        log::waiting(decided.request.policy_of(charge), Some(wait));
                    }
                }
            }
            attempt = Attempt::Next(decided.request);
        }
    }

    /// Joins the queue of one of its keys, unless the call could not wait long enough as far as is known.
    fn join_existing(&self, request: &AcquireRequest, end: Instant) -> Option<QueueGuard<'_>> {
        let existing = self.endpoint.queues.find(request)?;
        if request.is_unsatisfiable() || existing.ready_at > end {
            return None;
        }
        let guard = QueueGuard::join(self, &request.charges()[existing.charge], existing.charge)?;
        log::waiting(request.policy_of(existing.charge), None);
        if matches!(self.endpoint.store, Store::Memory(_)) {
            // A try costs nothing in process, and permits may have been refunded.
            guard.ready_in(Duration::ZERO);
        }
        Some(guard)
    }

    async fn try_once(&self, request: Arc<AcquireRequest>, queued: bool) -> AcquireResult {
        let result = match &self.endpoint.store {
            Store::Memory(memory) => Ok(DecidedRequest::in_memory(request, memory)),
            Store::Redis(_) => DetachOnDrop::ask(request, &self.endpoint).await,
        };
        result.map_err(|failed| failed.of_waiting_call(self.since, queued))
    }

    fn waited(&self, mut decided: DecidedRequest, charge: usize) -> DecidedRequest {
        decided.waited = self.since.elapsed();
        log::waited(decided.request.policy_of(charge), decided.waited);
        decided
    }
}

impl<'a> QueueGuard<'a> {
    /// Joins the queue of this key, unless a leaky bucket's own queue is full.
    fn join(call: &'a QueuedRequest, charge: &Charge, index: usize) -> Option<Self> {
        let mut queues = call.endpoint.queues.lock();
        let queue = queues.entry(charge.key.clone()).or_insert_with(WaitQueue::new);
        let waiting = queue.cost() + u128::from(charge.cost);
        let is_full = charge.spec.waiting_room().is_some_and(|room| waiting > u128::from(room));
        if is_full && !queue.is_empty() {
            return None;
        }
        let turn = queue.join(call.ticket, charge.cost);
        Some(QueueGuard { call, key: charge.key.clone(), charge: index, turn })
    }

    /// Waits until its turn has come, or the call may wait no longer.
    async fn turn(&self, end: Instant) -> Result<(), StoreError> {
        loop {
            let (now, ticket) = (Instant::now(), self.call.ticket);
            let turn_at = self.with_queue(|queue| queue.turn_at(ticket, now)).flatten();
            match turn_at.map(|at| at.min(end)).filter(|at| *at > now) {
                // Either the time has come or the queue has changed; the loop looks again.
                Some(at) => drop(self.call.timers.until(at, self.turn.notified()).await?),
                None => return Ok(()),
            }
        }
    }

    /// Sets when the next try may succeed, if this call is the first in the queue.
    fn ready_in(&self, wait: Duration) {
        let first = self.with_queue(|queue| {
            if wait.is_zero() {
                return queue.retry_now();
            }
            if queue.is_first(self.call.ticket) {
                queue.retry_in(wait);
            }
            None
        });
        first.flatten().iter().for_each(|first| first.notify_one());
    }

    /// Lets all calls of the queue try at once, because the store fails.
    fn wake_all(&self) {
        let turns = self.with_queue(WaitQueue::release);
        turns.into_iter().flatten().for_each(|turn| turn.notify_one());
    }

    fn with_queue<T>(&self, look: impl FnOnce(&mut WaitQueue) -> T) -> Option<T> {
        self.call.endpoint.queues.lock().get_mut(&self.key).map(look)
    }
}

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        let mut queues = self.call.endpoint.queues.lock();
        let Some(queue) = queues.get_mut(&self.key) else { return };
        let next = queue.leave(self.call.ticket);
        if queue.is_empty() {
            queues.remove(&self.key);
        }
        drop(queues);
        next.iter().for_each(|next| next.notify_one());
    }
}
