//! Decisions that are asked for while others are in flight share the next call, so that a thousand concurrent decisions do not
//! cost a thousand script calls.
//!
//! A call that finds nothing in flight is sent at once. Any other waits in a queue, which a task sends as one batch, and again
//! until the queue is empty. Nothing waits for a call that was sent at once: only its caller polls it, who may do other things
//! first. And nothing waits for long if Redis is slow or far away: what a full batch or [`MAX_WAIT`] brings together is sent,
//! however many batches are in flight.
//!
//! Whatever a batch shares, its calls do not notice: each is decided alone, fails alone, and ends by its own deadline.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::future::pending;
use std::mem;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::{Handle, Id};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::client::Client;
use super::number_map::NumberMap;
use super::scripts::Form;
use crate::error::store::StoreError;
use crate::store::charge::{Charge, Outcome};
use crate::timer::until;

/// The tasks that send batches of a lane. While Redis decides some batches, the replies of others are read: Redis often replies to
/// several at once, so that two would take turns with it.
const USUAL_SENDERS: usize = 4;

/// How long a call waits for a batch in flight to end.
const MAX_WAIT: Duration = Duration::from_millis(1);

/// The calls to Redis of a store that are in flight, and those that wait.
#[derive(Debug, Default)]
pub(super) struct Batches(Mutex<NumberMap<LaneId, Lane>>);

/// What calls have in common that can share a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LaneId {
    /// Their runtime, as that has a connection of its own.
    pub(super) runtime: Id,
    pub(super) form: Form,
    /// Their slot in a Cluster.
    pub(super) slot: Option<u16>,
}

#[derive(Debug, Default)]
struct Lane {
    /// Whether a call was sent at once that has not ended.
    has_single: bool,
    senders: usize,
    /// What one of them is about to do.
    next: Next,
    /// The charges of the calls that wait.
    charges: usize,
    waiting: VecDeque<Waiting>,
}

/// What the last sender to start is about to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    /// Nothing more: it has taken its first batch.
    #[default]
    None,
    /// To take what waits after [`MAX_WAIT`].
    Later,
    /// To take what waits.
    Now,
}

/// A call that waits for a batch.
#[derive(Debug)]
struct Waiting {
    charges: Vec<Charge>,
    deadline: Instant,
    reply: Reply,
}

type Reply = oneshot::Sender<Result<Box<Outcome>, StoreError>>;

impl Batches {
    /// Decides a list of charges, alone or in a batch.
    pub(super) async fn decide(
        self: &Arc<Self>,
        client: &Arc<Client>,
        runtime: &Handle,
        id: LaneId,
        charges: &[Charge],
    ) -> Result<Box<Outcome>, StoreError> {
        let deadline = client.deadline();
        let reply = {
            let mut lanes = self.lanes();
            let lane = lanes.entry(id).or_default();
            if lane.is_idle() {
                lane.has_single = true;
                None
            } else {
                let (reply, receiver) = oneshot::channel();
                lane.waiting.push_back(Waiting { charges: charges.to_vec(), deadline, reply });
                lane.charges += charges.len();
                Some((receiver, lane.next_sender(id.form)))
            }
        };
        match reply {
            None => {
                let _single = Single { batches: self, id };
                client.decide(charges, deadline).await
            }
            Some((receiver, next)) => {
                // Not under the lock: a runtime that has shut down drops the task at once.
                self.spawn_sender(next, client, runtime, id);
                match until(runtime, deadline, pin!(receiver)).await {
                    Ok(Some(reply)) => reply.unwrap_or_else(|_| Err(shut_down())),
                    Ok(None) => Err(late()),
                    Err(no_timers) => Err(no_timers),
                }
            }
        }
    }

    fn spawn_sender(self: &Arc<Self>, next: Next, client: &Arc<Client>, runtime: &Handle, id: LaneId) {
        if next != Next::None {
            let (batches, client, runtime) = (Arc::clone(self), Arc::clone(client), runtime.clone());
            let sender = Sender { batches, client, runtime: runtime.clone(), id, first: next };
            runtime.spawn(sender.run());
        }
    }

    fn lanes(&self) -> MutexGuard<'_, NumberMap<LaneId, Lane>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    fn is_idle(&self) -> bool {
        !self.has_single && self.senders == 0 && self.waiting.is_empty()
    }

    /// Returns what another sender is to do for the calls that wait, and counts it.
    fn next_sender(&mut self, form: Form) -> Next {
        let next = match self.next {
            _ if self.waiting.is_empty() => Next::None,
            Next::Now => Next::None,
            _ if self.senders < USUAL_SENDERS || self.charges >= form.max_charges() => Next::Now,
            Next::Later => Next::None,
            Next::None => Next::Later,
        };
        if next != Next::None {
            self.senders += 1;
            self.next = next;
        }
        next
    }

    /// Notes that what a sender was spawned for is done. Another may have been spawned meanwhile to do it at once.
    fn started(&mut self, first: Next) {
        if self.next == first {
            self.next = Next::None;
        }
    }

    /// Takes the calls of the next batch. Those that have given up are left out.
    fn take(&mut self, form: Form) -> Vec<Waiting> {
        let (mut batch, mut charges) = (Vec::new(), 0);
        while let Some(call) = self.waiting.front() {
            let size = call.charges.len();
            if !call.reply.is_closed() {
                if !batch.is_empty() && charges + size > form.max_charges() {
                    break;
                }
                charges += size;
            }
            self.charges -= size;
            batch.extend(self.waiting.pop_front().filter(|call| !call.reply.is_closed()));
        }
        batch
    }
}

/// A call that was sent at once, until it ends.
struct Single<'a> {
    batches: &'a Batches,
    id: LaneId,
}

impl Drop for Single<'_> {
    fn drop(&mut self) {
        let mut lanes = self.batches.lanes();
        if let Entry::Occupied(mut entry) = lanes.entry(self.id) {
            entry.get_mut().has_single = false;
            if entry.get().is_idle() {
                entry.remove();
            }
        }
    }
}

/// Sends batches until no call waits.
struct Sender {
    batches: Arc<Batches>,
    client: Arc<Client>,
    runtime: Handle,
    id: LaneId,
    /// What it was spawned for. [`Next::None`] once that is done.
    first: Next,
}

impl Sender {
    async fn run(mut self) {
        if self.first == Next::Later {
            // Without timers, no call waits.
            let _ = until(&self.runtime, Instant::now() + MAX_WAIT, pin!(pending::<()>())).await;
        }
        loop {
            let (batch, next) = self.take();
            self.batches.spawn_sender(next, &self.client, &self.runtime, self.id);
            if batch.is_empty() {
                return;
            }
            decide(&self.client, batch).await;
            // Most of the calls that now have their replies are followed by others, which can share the next batch.
            yield_now().await;
        }
    }

    /// Takes the next batch. Returns with it what another sender is to do for the rest.
    fn take(&mut self) -> (Vec<Waiting>, Next) {
        let mut lanes = self.batches.lanes();
        let Some(lane) = lanes.get_mut(&self.id) else { return Default::default() };
        lane.started(mem::take(&mut self.first));
        (lane.take(self.id.form), lane.next_sender(self.id.form))
    }
}

/// The last sender fails the calls that wait. There are none, unless the runtime has shut down.
impl Drop for Sender {
    fn drop(&mut self) {
        let mut lanes = self.batches.lanes();
        let Entry::Occupied(mut entry) = lanes.entry(self.id) else { return };
        let lane = entry.get_mut();
        lane.started(self.first);
        lane.senders -= 1;
        let mut failed = VecDeque::new();
        if lane.senders == 0 {
            lane.charges = 0;
            failed = mem::take(&mut lane.waiting);
        }
        if lane.is_idle() {
            entry.remove();
        }
        drop(lanes);
        drop(failed);
    }
}

/// Decides a batch. What Redis does not decide together is decided alone, unless the call has given up.
async fn decide(client: &Client, batch: Vec<Waiting>) {
    let Some(last) = batch.iter().map(|call| call.deadline).max() else { return };
    let lists: Vec<&[Charge]> = batch.iter().map(|call| &*call.charges).collect();
    let outcomes = client.decide_together(&lists, last).await;
    let mut calls = batch.into_iter();
    for (outcome, Waiting { reply, .. }) in outcomes.into_iter().zip(calls.by_ref()) {
        let _ = reply.send(outcome);
    }
    let open = calls.filter(|call| !call.reply.is_closed());
    let alone = open.map(|Waiting { charges, deadline, reply }| async move {
        let _ = reply.send(client.decide(&charges, deadline).await);
    });
    join_all(alone).await;
}

fn late() -> StoreError {
    StoreError::transient("Redis did not respond before the deadline")
}

fn shut_down() -> StoreError {
    StoreError::transient("the tokio runtime shut down before Redis responded")
}

#[cfg(test)]
mod tests;
