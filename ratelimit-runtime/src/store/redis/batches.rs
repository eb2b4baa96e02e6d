//! Decisions that are asked for while others are in flight share the next call, so that a thousand concurrent decisions do not
//! cost a thousand script calls.
//!
//! The first [`MAX_SINGLES`] calls are sent at once, because a batch takes its calls longer than a connection that they share.
//! A call that finds as many in flight waits in a queue, which a task sends as one batch, and so do the calls after it meanwhile. A
//! task goes on while calls wait that are not left to other tasks. Nothing waits for a call that was sent at once: only its caller polls
//! it, who may do other things first. And nothing waits for long if Redis is slow or far away: what a full batch or [`MAX_WAIT`] brings
//! together is sent, however many batches are in flight.
//!
//! Whatever a batch shares, its calls do not notice: each is decided alone, fails alone, and ends by its own deadline.

mod queue;
mod sender;

use std::collections::hash_map::Entry;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

pub(super) use self::queue::BatchQueueId;
use self::queue::{BatchQueues, Caller, Waiting};
use self::sender::Sender;
use super::client::Client;
use crate::store::charge::{Outcome, SharedCharges};
use crate::store::error::StoreError;

/// The calls to Redis of a store that are in flight, and those that wait.
#[derive(Debug, Default)]
pub(super) struct Batches(Arc<BatchQueues>);

impl Batches {
    /// Decides a list of charges, alone or in a batch.
    pub(super) async fn decide(
        &self,
        client: &Arc<Client>,
        runtime: &Handle,
        id: BatchQueueId,
        charges: &SharedCharges,
        deadline: Instant,
    ) -> Result<Box<Outcome>, StoreError> {
        let reply = {
            let mut queues = self.0.lock();
            let queue = queues.entry(id).or_default();
            if queue.sends_at_once() {
                queue.singles += 1;
                None
            } else {
                let (reply, receiver) = oneshot::channel();
                let caller = Caller { deadline, reply };
                queue.waiting.push_back(Waiting { charges: charges.clone(), caller });
                Some((receiver, queue.next_sender(id.form)))
            }
        };
        match reply {
            None => {
                let _single = Single { queues: &self.0, id };
                client.decide(id.form, charges, deadline).await
            }
            Some((receiver, next)) => {
                // Not under the lock: a runtime that has shut down drops the task at once.
                Sender::spawn(next, &self.0, client, runtime, id);
                receiver.await.unwrap_or_else(|_| Err(shut_down()))
            }
        }
    }
}

/// A call that was sent at once, until it ends.
struct Single<'a> {
    queues: &'a BatchQueues,
    id: BatchQueueId,
}

impl Drop for Single<'_> {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        if let Entry::Occupied(mut entry) = queues.entry(self.id) {
            entry.get_mut().singles -= 1;
            if entry.get().is_idle() {
                entry.remove();
            }
        }
    }
}

fn shut_down() -> StoreError {
    StoreError::transient("the tokio runtime shut down before Redis responded")
}

#[cfg(test)]
mod tests;
