//! The queues of calls that wait for a window, by key.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::key::Key;
use crate::request::AcquireRequest;

/// How long a call may leave its turn unused before the next call gets one. A future that is not polled would otherwise block
/// its queue.
const TURN_TIMEOUT: Duration = Duration::from_millis(100);

/// The queues of one store. Only keys that calls wait for have one.
#[derive(Debug, Default)]
pub(crate) struct WaitQueues {
    by_key: Mutex<HashMap<Key, WaitQueue>>,
    next_ticket: AtomicU64,
}

/// The calls that wait for one key.
#[derive(Debug)]
pub(crate) struct WaitQueue {
    /// By ticket: in the order in which the calls were made, not in which they were refused.
    pub(crate) calls: BTreeMap<u64, QueuedCall>,
    /// When the next try may succeed, as far as is known.
    pub(crate) ready_at: Instant,
    /// Whether all calls try at once, because the store fails.
    pub(crate) released: bool,
}

#[derive(Debug)]
pub(crate) struct QueuedCall {
    /// Notified when its turn may have come.
    pub(crate) turn: Arc<Notify>,
    pub(crate) cost: u64,
    /// Whether it has left a turn unused.
    skipped: bool,
}

/// A queue that a request finds already waiting for one of its keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExistingQueue {
    /// The index of the charge whose key it is.
    pub(crate) charge: usize,
    pub(crate) ready_at: Instant,
}

impl WaitQueues {
    /// Returns the next ticket. Tickets order the calls of a queue.
    pub(crate) fn issue_ticket(&self) -> u64 {
        self.next_ticket.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the queue of the first key of the request that has one.
    pub(crate) fn find(&self, request: &AcquireRequest) -> Option<ExistingQueue> {
        let queues = self.lock();
        let mut charges = request.charges().iter().enumerate().filter(|(_, charge)| !charge.shadow);
        charges.find_map(|(index, charge)| {
            queues.get(&charge.key).map(|queue| ExistingQueue { charge: index, ready_at: queue.ready_at })
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<Key, WaitQueue>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueuedCall {
    pub(crate) fn new(cost: u64) -> Self {
        QueuedCall { turn: Arc::default(), cost, skipped: false }
    }
}

impl WaitQueue {
    pub(crate) fn new() -> Self {
        WaitQueue { calls: BTreeMap::new(), ready_at: Instant::now(), released: false }
    }

    /// Returns when the turn of this call comes; `None` if it has come.
    pub(crate) fn turn_at(&mut self, ticket: u64, now: Instant) -> Option<Instant> {
        if let Some(call) = self.calls.get_mut(&ticket) {
            call.skipped = false;
        }
        let at = self.ready_at + TURN_TIMEOUT * self.calls_ahead(ticket);
        if self.released || at <= now {
            self.calls.range_mut(..ticket).for_each(|(_, call)| call.skipped = true);
            return None;
        }
        Some(at)
    }

    /// Returns the number of calls whose turn comes before this one's.
    pub(crate) fn calls_ahead(&self, ticket: u64) -> u32 {
        self.calls.range(..ticket).filter(|(_, call)| !call.skipped).count() as u32
    }

    /// Returns the call whose turn comes first.
    pub(crate) fn first(&self) -> Option<Arc<Notify>> {
        let attentive = self.calls.values().find(|call| !call.skipped);
        attentive.or_else(|| self.calls.values().next()).map(|call| Arc::clone(&call.turn))
    }
}
