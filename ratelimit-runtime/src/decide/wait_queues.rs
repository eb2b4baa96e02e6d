//! The queues of calls that wait for a window, by key.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::decide::request::AcquireRequest;
use crate::key::Key;

/// How long a call may leave its turn unused before the next call gets one. A future that is not polled would otherwise block
/// its queue.
const TURN_TIMEOUT: Duration = Duration::from_millis(100);

/// After how long the first call looks at most whether others have ended that it waits for.
const LONGEST_LOOK: Duration = Duration::from_millis(250);

/// How many calls have their turn at a time of their own. Those behind them look again after so many turns.
const COUNTED: usize = 64;

/// The queues of one store. Only keys that calls wait for have one, in a map that never moves all its entries.
#[derive(Debug, Default)]
pub(crate) struct WaitQueues {
    by_key: Mutex<QueuesByKey>,
    /// How many keys there were when the lock was given back: each refund asks, and there are mostly none.
    keys: AtomicUsize,
    next_ticket: AtomicU64,
}

type QueuesByKey = BTreeMap<Key, WaitQueue>;

/// All queues, which this thread holds.
pub(crate) struct LockedQueues<'a> {
    queues: MutexGuard<'a, QueuesByKey>,
    keys: &'a AtomicUsize,
}

/// The calls that wait for one key.
#[derive(Debug)]
pub(crate) struct WaitQueue {
    /// By ticket: in the order in which the calls were made, not in which they were refused.
    calls: BTreeMap<u64, QueuedCall>,
    /// The tickets of the calls that have left no turn unused.
    polled: BTreeSet<u64>,
    /// The sum of the calls' costs.
    cost: u128,
    /// When the next try may succeed, as far as is known.
    ready_at: Instant,
    /// When the last call left, or the first one came, and the usual time between two that leave.
    left_at: Instant,
    pace: Duration,
    /// Whether all calls try at once, because the store fails.
    released: bool,
}

#[derive(Debug)]
struct QueuedCall {
    /// Notified when its turn may have come.
    turn: Arc<Notify>,
    cost: u64,
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

    /// Lets the first call that waits for this key try now, because permits were given back.
    pub(crate) fn wake(&self, key: &Key) {
        // A call that joins at the same moment has not been found under the lock either, and tries again when it expects to succeed.
        if self.keys.load(Ordering::Acquire) == 0 {
            return;
        }
        let first = self.lock().get_mut(key).and_then(WaitQueue::retry_now);
        first.iter().for_each(|first| first.notify_one());
    }

    pub(crate) fn lock(&self) -> LockedQueues<'_> {
        let queues = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        LockedQueues { queues, keys: &self.keys }
    }
}

impl Deref for LockedQueues<'_> {
    type Target = QueuesByKey;

    fn deref(&self) -> &QueuesByKey {
        &self.queues
    }
}

impl DerefMut for LockedQueues<'_> {
    fn deref_mut(&mut self) -> &mut QueuesByKey {
        &mut self.queues
    }
}

impl Drop for LockedQueues<'_> {
    fn drop(&mut self) {
        self.keys.store(self.queues.len(), Ordering::Release);
    }
}

impl WaitQueue {
    pub(crate) fn new() -> Self {
        WaitQueue {
            calls: BTreeMap::new(),
            polled: BTreeSet::new(),
            cost: 0,
            ready_at: Instant::now(),
            left_at: Instant::now(),
            pace: Duration::ZERO,
            released: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the permits that all its calls wait for.
    pub(crate) fn cost(&self) -> u128 {
        self.cost
    }

    /// Adds a call. Returns what is notified when its turn may have come.
    pub(crate) fn join(&mut self, ticket: u64, cost: u64) -> Arc<Notify> {
        let call = QueuedCall { turn: Arc::default(), cost };
        let turn = Arc::clone(&call.turn);
        self.cost += u128::from(cost);
        self.polled.insert(ticket);
        self.calls.insert(ticket, call);
        turn
    }

    /// Removes a call. Returns what to notify.
    pub(crate) fn leave(&mut self, ticket: u64) -> Option<Arc<Notify>> {
        if self.is_first(ticket) {
            // The next call may ask for less than this one.
            self.ready_at = Instant::now();
            self.pace = (3 * self.pace + self.ready_at.duration_since(self.left_at)) / 4;
            self.left_at = self.ready_at;
        }
        if let Some(call) = self.calls.remove(&ticket) {
            self.cost -= u128::from(call.cost);
            self.polled.remove(&ticket);
        }
        self.first()
    }

    /// Returns when the turn of this call comes, or when it looks again; `None` if it has come.
    pub(crate) fn turn_at(&mut self, ticket: u64, now: Instant) -> Option<Instant> {
        if self.calls.contains_key(&ticket) {
            self.polled.insert(ticket);
        }
        let ahead = self.polled.range(..ticket).take(COUNTED).count();
        let at = self.ready_at + TURN_TIMEOUT * ahead as u32;
        if self.released || (at <= now && ahead < COUNTED) {
            // The others have left their turns unused.
            self.polled = self.polled.split_off(&ticket);
            return None;
        }
        Some(if ahead < COUNTED { at } else { at.max(now + TURN_TIMEOUT * COUNTED as u32) })
    }

    /// Whether no other call's turn comes before this one's.
    pub(crate) fn is_first(&self, ticket: u64) -> bool {
        self.polled.range(..ticket).next().is_none()
    }

    /// Returns the call whose turn comes first.
    fn first(&self) -> Option<Arc<Notify>> {
        let first = self.polled.first().and_then(|ticket| self.calls.get(ticket));
        first.or_else(|| self.calls.values().next()).map(|call| Arc::clone(&call.turn))
    }

    /// Sets when the next try may succeed.
    pub(crate) fn retry_in(&mut self, wait: Duration) {
        (self.ready_at, self.released) = (Instant::now() + wait, false);
    }

    /// Sets when to look again whether other calls have ended, given after how long at least: a few times for each call that leaves, and
    /// the longer none does, the more seldom.
    pub(crate) fn look_in(&mut self, least: Duration) {
        let usual = (self.pace / 4).max(self.left_at.elapsed() / 8);
        self.retry_in(usual.clamp(least, LONGEST_LOOK));
    }

    /// Lets the first call try now. Returns what to notify.
    pub(crate) fn retry_now(&mut self) -> Option<Arc<Notify>> {
        self.retry_in(Duration::ZERO);
        self.first()
    }

    /// Lets all calls try now, because the store fails. Returns what to notify.
    pub(crate) fn release(&mut self) -> Vec<Arc<Notify>> {
        self.released = true;
        self.calls.values().map(|call| Arc::clone(&call.turn)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn costs_of_waiting_calls_do_not_overflow() {
        let mut queue = WaitQueue::new();
        for ticket in 0..3 {
            queue.join(ticket, u64::MAX);
        }
        assert_eq!(queue.cost(), 3 * u128::from(u64::MAX));
        for ticket in 0..3 {
            queue.leave(ticket);
        }
        assert_eq!(queue.cost(), 0);
    }

    #[test]
    fn refund_wakes_the_first_call_while_there_is_one() {
        let (queues, key) = (WaitQueues::default(), Key::raw("key"));
        queues.wake(&key);
        let turn = queues.lock().entry(key.clone()).or_insert_with(WaitQueue::new).join(0, 1);
        let is_woken = || pin!(turn.notified()).poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(!is_woken());
        queues.wake(&key);
        assert!(is_woken());
        queues.lock().remove(&key);
        queues.wake(&key);
        assert!(!is_woken());
    }
}
