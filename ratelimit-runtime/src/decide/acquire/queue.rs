//! Waiting for windows, which have nothing to reserve, and for the slower of several buckets: of all calls in this process that wait
//! for a key, only the first one tries, and not before there may be capacity.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::detach::DetachOnDrop;
use super::log;
use super::reservation::{Reservation, Slot};
use crate::algorithm::holds::HoldsSpec;
use crate::base::timer::Timers;
use crate::decide::acquired::{AcquireResult, DecidedRequest, FailedRequest};
use crate::decide::endpoint::Endpoint;
use crate::decide::request::{AcquireRequest, NextTry, OTHERS_LOOK};
use crate::decide::wait_queues::WaitQueue;
use crate::decide::waiter_limit::WaiterPermit;
use crate::key::Key;
use crate::store::error::StoreError;
use crate::store::{Charge, Store, Waiter};

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

/// A request to try next, or one whose last try has been decided.
enum Attempt {
    Next(Arc<AcquireRequest>),
    Decided(DecidedRequest, Option<Arc<Waiter>>),
}

impl QueuedRequest {
    pub(super) fn new(endpoint: &Arc<Endpoint>, timers: Timers, since: Instant) -> Self {
        let ticket = endpoint.queues.issue_ticket();
        QueuedRequest { endpoint: Arc::clone(endpoint), timers, ticket, since }
    }

    /// Joins the queue of one of its keys, or tries at once if there is none.
    pub(super) async fn acquire(self, mut request: Arc<AcquireRequest>) -> AcquireResult {
        let Some(permit) = self.endpoint.waiters.enter() else {
            Arc::make_mut(&mut request).forbid_reservations();
            return self.try_once(request, false, false).await.map(|(decided, _)| decided);
        };
        let end = self.since + request.max_wait();
        let guard = self.join_existing(&request, end);
        self.take_turns(Attempt::Next(request), guard, end, permit).await
    }

    /// Goes on after a first try in Redis.
    pub(super) async fn go_on(self, decided: DecidedRequest, permit: WaiterPermit) -> AcquireResult {
        let end = self.since + decided.request.max_wait();
        self.take_turns(Attempt::Decided(decided, None), None, end, permit).await
    }

    async fn take_turns<'a>(
        &'a self,
        mut attempt: Attempt,
        mut guard: Option<QueueGuard<'a>>,
        end: Instant,
        permit: WaiterPermit,
    ) -> AcquireResult {
        loop {
            let (decided, waiter) = match attempt {
                Attempt::Decided(decided, waiter) => (decided, waiter),
                Attempt::Next(request) => {
                    if let Some(guard) = &guard
                        && let Err(error) = guard.turn(end).await
                    {
                        return Err(FailedRequest::new(error, request));
                    }
                    match self.try_once(request, guard.is_some(), true).await {
                        Ok(tried) => tried,
                        Err(failed) => {
                            guard.iter().for_each(QueueGuard::wake_all);
                            return Err(failed);
                        }
                    }
                }
            };
            let next_try = decided.request.next_try(&decided.outcome, self.since.elapsed());
            let Some(NextTry { charge, wait }) = next_try else {
                return self.start(decided, waiter, guard, permit).await;
            };
            match &guard {
                Some(guard) if guard.key == decided.request.charges()[charge].key => guard.try_in(wait),
                _ => {
                    let Some(new) = QueueGuard::join(self, &decided.request.charges()[charge], charge) else {
                        return Ok(decided);
                    };
                    new.try_in(wait);
                    if guard.replace(new).is_none() {
                        log::waiting(decided.request.policy_of(charge), wait.ok());
                    }
                }
            }
            attempt = Attempt::Next(decided.request);
        }
    }

    /// Lets an admitted call start, at its slot if it has one. The next call of the queue need not wait for that.
    async fn start(
        &self,
        decided: DecidedRequest,
        waiter: Option<Arc<Waiter>>,
        guard: Option<QueueGuard<'_>>,
        permit: WaiterPermit,
    ) -> AcquireResult {
        let waited_for = guard.as_ref().map(|guard| guard.charge);
        if let Some(guard) = guard {
            let is_others_turn = HoldsSpec::is_others_turn(&decided.outcome.verdicts[guard.charge]);
            let is_semaphore = decided.request.charges()[guard.charge].spec.is_semaphore();
            guard.leave(is_semaphore && is_others_turn);
        }
        if decided.outcome.wait() == 0 {
            return Ok(match waited_for {
                Some(charge) => self.waited(decided, charge),
                None => decided,
            });
        }
        let (endpoint, timers) = (Arc::clone(&self.endpoint), self.timers.clone());
        let reservation = match (&self.endpoint.store, waiter) {
            (Store::Memory(memory), Some(waiter)) => {
                let slot = Slot::Memory(Arc::clone(memory), waiter);
                Reservation::new(decided, endpoint, slot, timers)
            }
            _ => Reservation::in_redis(decided, endpoint, timers),
        };
        let started = reservation.wait(permit).await;
        let mut started = started.map_err(|failed| failed.of_waiting_call(self.since, true))?;
        started.waited = self.since.elapsed();
        Ok(started)
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

    /// Decides the call as of now. Returns with it who waits in process, if it is to start later.
    async fn try_once(
        &self,
        mut request: Arc<AcquireRequest>,
        queued: bool,
        may_wait: bool,
    ) -> Result<(DecidedRequest, Option<Arc<Waiter>>), Box<FailedRequest>> {
        // Beside a semaphore, which has a wait for its turn only, nothing is reserved.
        if request.charges().iter().any(|charge| charge.wait > 0 && !charge.spec.is_semaphore()) {
            Arc::make_mut(&mut request).allow_reservations_after(self.since.elapsed());
        }
        match &self.endpoint.store {
            Store::Memory(memory) => {
                let (outcome, waiter) = memory.reserve(request.charges());
                Ok((DecidedRequest::new(request, Box::new(outcome), self.endpoint.store.source()), waiter))
            }
            Store::Redis(_) => match DetachOnDrop::ask(self.waiting(request, may_wait), &self.endpoint).await
            {
                Ok(decided) => Ok((decided, None)),
                Err(failed) => Err(failed.of_waiting_call(self.since, queued)),
            },
        }
    }

    /// Returns a request that says of semaphores how long it still waits, if it may.
    fn waiting(&self, mut request: Arc<AcquireRequest>, may_wait: bool) -> Arc<AcquireRequest> {
        if may_wait && request.charges().iter().any(|charge| charge.spec.is_semaphore()) {
            Arc::make_mut(&mut request).wait_for_holds(self.since.elapsed());
        }
        request
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

    /// Sets when the next try may succeed, or to look when others have ended, if this call is the first in the queue.
    fn try_in(&self, wait: Result<Duration, Duration>) {
        match wait {
            Ok(wait) => self.ready_in(wait),
            Err(least) => {
                self.with_queue(|queue| {
                    if queue.is_first(self.call.ticket) {
                        queue.look_in(least)
                    }
                });
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

    /// Leaves the queue. If it is the turn of other processes then, the next call does not try at once.
    fn leave(self, is_others_turn: bool) {
        let (call, key) = (self.call, self.key.clone());
        drop(self);
        if is_others_turn && let Some(queue) = call.endpoint.queues.lock().get_mut(&key) {
            queue.look_in(OTHERS_LOOK);
        }
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
