//! The queues of calls that wait for a batch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Id;
use tokio::sync::{self, oneshot};
use tokio::time::Instant;

use crate::base::number_map::NumberMap;
use crate::store::charge::{Outcome, SharedCharges};
use crate::store::error::StoreError;
use crate::store::redis::scripts::Form;

/// The calls that are sent at once. A batch saves Redis and this process most of their work, but hands each call to another task
/// and back, which takes longer than it saves if few calls share it. If Redis is busy, more calls are in flight.
pub(super) const MAX_SINGLES: usize = 8;

/// The tasks that send batches of a queue. While Redis decides one batch, the replies of the other are read.
const USUAL_SENDERS: usize = 2;

/// With as many batches in flight, a sender waits for a full one. With fewer, Redis and this process would wait for each other. With
/// more, the batches would get ever smaller, as each sender takes only the calls that its last batch has replied to.
const MAX_SMALL_BATCHES: usize = 4;

/// How long a call waits for a batch in flight to end.
pub(super) const MAX_WAIT: Duration = Duration::from_millis(1);

/// The calls to Redis of a store that are in flight, and those that wait.
#[derive(Debug, Default)]
pub(super) struct BatchQueues(Mutex<NumberMap<BatchQueueId, BatchQueue>>);

/// What calls have in common that can share a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::store::redis) struct BatchQueueId {
    /// Their runtime, as that has a connection of its own.
    pub(in crate::store::redis) runtime: Id,
    pub(in crate::store::redis) form: Form,
    /// Their slot in a Cluster.
    pub(in crate::store::redis) slot: Option<u16>,
}

#[derive(Debug, Default)]
pub(super) struct BatchQueue {
    /// How many calls were sent at once and have not ended.
    pub(super) singles: usize,
    pub(super) senders: usize,
    /// How many batches are.
    pub(super) in_flight: usize,
    /// What one of them is about to do.
    next: Next,
    pub(super) waiting: VecDeque<Waiting>,
    /// Held by the sender that replies to the calls of a batch and sends the next. If all did so at once, Redis would reply to all
    /// at once, and they would take turns with it. Nobody waits for it longer than [`MAX_WAIT`].
    pub(super) turn: Arc<sync::Mutex<()>>,
}

/// What the last sender to start is about to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Next {
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
pub(super) struct Waiting {
    pub(super) charges: SharedCharges,
    pub(super) caller: Caller,
}

#[derive(Debug)]
pub(super) struct Caller {
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Result<Box<Outcome>, StoreError>>,
}

impl BatchQueues {
    pub(super) fn lock(&self) -> MutexGuard<'_, NumberMap<BatchQueueId, BatchQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BatchQueue {
    /// Whether the next call is sent at once. None overtakes those that wait.
    pub(super) fn sends_at_once(&self) -> bool {
        self.singles < MAX_SINGLES && self.senders == 0 && self.waiting.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.singles == 0 && self.senders == 0 && self.waiting.is_empty()
    }

    /// Returns what another sender is to do for the calls that wait, and counts it.
    pub(super) fn next_sender(&mut self, form: Form) -> Next {
        let next = match self.next {
            _ if self.waiting.is_empty() => Next::None,
            Next::Now => Next::None,
            _ if self.senders < USUAL_SENDERS || self.waiting.len() >= form.max_decisions() => Next::Now,
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
    pub(super) fn started(&mut self, first: Next) {
        if self.next == first {
            self.next = Next::None;
        }
    }

    /// Takes the calls whose deadlines have passed, because the thread of a sender was blocked. They are the oldest.
    pub(super) fn take_late(&mut self) -> Vec<Waiting> {
        let now = Instant::now();
        let late = self.waiting.iter().take_while(|call| call.caller.deadline <= now).count();
        self.waiting.drain(..late).collect()
    }

    /// Whether a sender whose batch has ended is to send another one. Otherwise, what waits joins the batch of another sender.
    pub(super) fn goes_on(&self, form: Form) -> bool {
        self.in_flight < MAX_SMALL_BATCHES || self.waiting.len() >= form.max_decisions()
    }

    /// Takes the calls of the next batch. Those that have given up are left out.
    pub(super) fn take(&mut self, form: Form) -> Vec<Waiting> {
        let mut most = form.max_decisions();
        // Two batches let Redis and this process work at the same time, which is worth it if they are not small.
        if self.senders == 1 && 3 * self.waiting.len() >= 2 * most {
            most = most.min(self.waiting.len().div_ceil(2));
        }
        let mut batch = Vec::with_capacity(most.min(self.waiting.len()));
        while batch.len() < most
            && let Some(call) = self.waiting.pop_front()
        {
            batch.extend(Some(call).filter(|call| call.caller.is_open()));
        }
        batch
    }
}

impl Caller {
    /// Whether the call has not been given up.
    pub(super) fn is_open(&self) -> bool {
        !self.reply.is_closed()
    }

    pub(super) fn reply(self, outcome: Result<Box<Outcome>, StoreError>) {
        let _ = self.reply.send(outcome);
    }
}
