//! The tasks that send batches.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::future::{Future, pending, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::queue::{BatchQueueId, BatchQueues, Caller, MAX_WAIT, Next, Waiting};
use crate::base::timer::until;
use crate::store::charge::{Charge, Outcome};
use crate::store::error::StoreError;
use crate::store::redis::client::Client;

/// Sends batches while calls wait that are not left to other senders.
pub(super) struct Sender {
    queues: Arc<BatchQueues>,
    client: Arc<Client>,
    runtime: Handle,
    id: BatchQueueId,
    /// What it was spawned for. [`Next::None`] once that is done.
    first: Next,
    /// Whether its batch is in flight.
    is_in_flight: bool,
}

type Decided = (Caller, Result<Box<Outcome>, StoreError>);

impl Sender {
    /// Starts another sender, if there is something to do.
    pub(super) fn spawn(
        first: Next,
        queues: &Arc<BatchQueues>,
        client: &Arc<Client>,
        runtime: &Handle,
        id: BatchQueueId,
    ) {
        if first != Next::None {
            let (queues, client) = (Arc::clone(queues), Arc::clone(client));
            let sender = Sender { queues, client, runtime: runtime.clone(), id, first, is_in_flight: false };
            runtime.spawn(sender.run());
        }
    }

    async fn run(mut self) {
        if self.first == Next::Later {
            // Without timers, no call waits.
            let _ = until(&self.runtime, Instant::now() + MAX_WAIT, pin!(pending::<()>())).await;
        }
        let turns = self.turns();
        let mut decided: Vec<Decided> = Vec::new();
        loop {
            let turn = self.turn(&turns).await;
            if !decided.is_empty() {
                decided.drain(..).for_each(|(caller, outcome)| caller.reply(outcome));
                // Most of the calls that now have their replies are followed by others, which can share the next batch.
                requeue().await;
            }
            let (late, batch, next) = self.take();
            Sender::spawn(next, &self.queues, &self.client, &self.runtime, self.id);
            late.into_iter().for_each(|call| call.caller.reply(Err(StoreError::not_sent())));
            if batch.is_empty() {
                return;
            }
            decided = self.decide(batch, turn).await;
            if let Some(queue) = self.queues.lock().get_mut(&self.id) {
                queue.in_flight -= usize::from(mem::take(&mut self.is_in_flight));
            }
        }
    }

    fn turns(&self) -> Arc<Mutex<()>> {
        self.queues.lock().get(&self.id).map(|queue| Arc::clone(&queue.turn)).unwrap_or_default()
    }

    /// Waits for its turn, but no longer than [`MAX_WAIT`]: user code may block the thread of the sender that has it. Fails without
    /// timers, and then no call waits.
    async fn turn<'a>(&self, turns: &'a Mutex<()>) -> Option<MutexGuard<'a, ()>> {
        until(&self.runtime, Instant::now() + MAX_WAIT, pin!(turns.lock())).await.ok().flatten()
    }

    /// Takes the calls that are too late and those of the next batch. Returns with them what another sender is to do for the rest.
    fn take(&mut self) -> (Vec<Waiting>, Vec<Waiting>, Next) {
        let mut queues = self.queues.lock();
        let Some(queue) = queues.get_mut(&self.id) else { return Default::default() };
        let (first, form) = (mem::take(&mut self.first), self.id.form);
        queue.started(first);
        let late = queue.take_late();
        let takes = first != Next::None || queue.goes_on(form);
        let batch = if takes { queue.take(form) } else { Vec::new() };
        self.is_in_flight = !batch.is_empty();
        queue.in_flight += usize::from(self.is_in_flight);
        (late, batch, queue.next_sender(form))
    }

    /// Decides a batch, which is sent in this turn. Returns the outcomes of the calls that still wait. What Redis does not decide
    /// together is decided alone.
    async fn decide(&self, batch: Vec<Waiting>, turn: Option<MutexGuard<'_, ()>>) -> Vec<Decided> {
        let (lists, mut callers): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|call| (call.charges, Some(call.caller))).unzip();
        let lists: Vec<&[Charge]> = lists.iter().map(|charges| &**charges).collect();
        let last = callers.iter().flatten().map(|caller| caller.deadline).max();
        let last = last.unwrap_or_else(Instant::now);
        let mut outcomes = pin!(self.client.decide_together(self.id.form, &lists, last));
        // The first poll sends the batch.
        let at_once = outcomes.as_mut().now_or_never();
        drop(turn);
        let outcomes = match at_once {
            Some(outcomes) => outcomes,
            None => self.until_decided(outcomes, &mut callers).await,
        };
        let rest = callers.split_off(outcomes.len()).into_iter().zip(&lists[outcomes.len()..]);
        let mut decided = Vec::with_capacity(outcomes.len());
        decided.extend(callers.into_iter().zip(outcomes).filter_map(|(caller, it)| Some((caller?, it))));
        let open = rest.filter_map(|(caller, charges)| Some((caller.filter(Caller::is_open)?, charges)));
        let alone: Vec<_> = open
            .map(async |(caller, charges)| {
                let outcome = self.client.decide(self.id.form, charges, caller.deadline).await;
                caller.reply(outcome);
            })
            .collect();
        if alone.is_empty() {
            return decided;
        }
        decided.into_iter().for_each(|(caller, outcome)| caller.reply(outcome));
        join_all(alone).await;
        Vec::new()
    }

    /// Awaits the outcomes of a batch, with one timer for all its calls. Those whose deadlines pass meanwhile fail and are removed.
    async fn until_decided<T>(
        &self,
        mut outcomes: Pin<&mut impl Future<Output = T>>,
        callers: &mut [Option<Caller>],
    ) -> T {
        while let Some(first) = callers.iter().flatten().map(|caller| caller.deadline).min() {
            match until(&self.runtime, first, outcomes.as_mut()).await {
                Ok(Some(outcomes)) => return outcomes,
                Ok(None) if first <= Instant::now() => {
                    let now = Instant::now();
                    let late = callers.iter_mut().filter_map(|caller| caller.take_if(|c| c.deadline <= now));
                    late.for_each(|caller| {
                        let late = StoreError::deadline_exceeded(&"Redis", caller.deadline);
                        caller.reply(Err(late));
                    });
                }
                // The runtime has no timers, or shuts down.
                Ok(None) | Err(_) => break,
            }
        }
        outcomes.await
    }
}

/// The last sender fails the calls that wait. There are none, unless the runtime has shut down.
impl Drop for Sender {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        let Entry::Occupied(mut entry) = queues.entry(self.id) else { return };
        let queue = entry.get_mut();
        queue.started(self.first);
        queue.in_flight -= usize::from(self.is_in_flight);
        queue.senders -= 1;
        let mut failed = VecDeque::new();
        if queue.senders == 0 {
            failed = mem::take(&mut queue.waiting);
        }
        if queue.is_idle() {
            entry.remove();
        }
        drop(queues);
        drop(failed);
    }
}

/// Lets the other tasks of this thread run first. Unlike `yield_now`, this leaves the task where another thread can take it over, as
/// one of those may block.
async fn requeue() {
    let mut is_queued = false;
    poll_fn(|context| {
        if mem::replace(&mut is_queued, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
