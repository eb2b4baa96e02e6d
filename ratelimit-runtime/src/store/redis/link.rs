//! A multiplexed connection for each runtime, which ends with it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tokio::runtime::{Handle, Id};
use tokio::sync::{Semaphore, SemaphorePermit, SetOnce, oneshot};
use tokio::time::{Instant, sleep};

use crate::error::store::StoreError;

/// So many commands are under way on a connection at the most. Further ones wait for their deadline here, where they cost
/// Redis nothing.
const IN_FLIGHT: usize = 4096;

/// So many connections are opened in so long at the most, however soon each of them is lost.
const OPENINGS: usize = 8;
const OPENINGS_WITHIN: Duration = Duration::from_secs(1);

/// A connection on which nobody was answered for so long is given up.
const DEAD_AFTER: Duration = Duration::from_secs(1);

/// A connection is driven by a task of the runtime that opened it, and dies with it. So each runtime has its own.
#[derive(Default)]
pub(super) struct Links(Mutex<HashMap<Id, Slot>>);

/// The link of a runtime, and when its last ones were opened.
#[derive(Default)]
struct Slot {
    link: Option<Arc<Link>>,
    opened: VecDeque<Instant>,
}

/// A connection, or the attempt to open it, which all who wait for it share.
pub(super) struct Link {
    connection: SetOnce<Result<MultiplexedConnection, StoreError>>,
    places: Semaphore,
    born: Instant,
    /// Since when no call has been answered on it, in microseconds after it was born; 0 if the last one was.
    silent: AtomicU64,
    /// Whether a call has told that it is lost.
    lost: AtomicBool,
    /// Ends the task that waits for the end of the runtime.
    _watched: oneshot::Sender<()>,
}

impl Links {
    /// The link of this runtime, opened by a task of it if there is none: an attempt outlives those who wait for it. None if it
    /// was opened too often.
    pub(super) fn get<F>(
        self: &Arc<Self>,
        runtime: &Handle,
        open: impl FnOnce(Weak<Link>) -> F,
    ) -> Option<Arc<Link>>
    where
        F: Future<Output = Result<MultiplexedConnection, StoreError>> + Send + 'static,
    {
        let (link, dropped) = {
            let mut links = self.lock();
            let Slot { link, opened } = links.entry(runtime.id()).or_default();
            if let Some(link) = link {
                return Some(Arc::clone(link));
            }
            let now = Instant::now();
            opened.retain(|opened| now < *opened + OPENINGS_WITHIN);
            if opened.len() >= OPENINGS {
                return None;
            }
            opened.push_back(now);
            let (watched, dropped) = oneshot::channel();
            (Arc::clone(link.insert(Arc::new(Link::new(now, watched)))), dropped)
        };
        let opening = Opening { link: Arc::clone(&link), links: Arc::clone(self) };
        let mut end = EndOfRuntime { id: runtime.id(), links: Arc::downgrade(self) };
        let open = open(Arc::downgrade(&link));
        // Not under the lock: a runtime that has ended drops the task at once.
        runtime.spawn(async move {
            opening.end(open.await);
            let _ = dropped.await;
            // It remembers for so long that it was opened.
            sleep(OPENINGS_WITHIN).await;
            end.was_not_it();
        });
        Some(link)
    }

    /// Takes this link away, unless another has taken its place.
    pub(super) fn forget(&self, link: &Link) {
        self.lock().values_mut().for_each(|slot| {
            slot.link.take_if(|present| std::ptr::eq(&**present, link));
        });
    }

    pub(super) fn forget_all(&self) {
        self.lock().values_mut().for_each(|slot| slot.link = None);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Whether there is nothing to remember.
    fn is_idle(&self, now: Instant) -> bool {
        self.link.is_none() && self.opened.back().is_none_or(|opened| now >= *opened + OPENINGS_WITHIN)
    }
}

impl Link {
    fn new(born: Instant, watched: oneshot::Sender<()>) -> Self {
        Link {
            connection: SetOnce::new(),
            places: Semaphore::new(IN_FLIGHT),
            born,
            silent: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            _watched: watched,
        }
    }

    /// The connection, once it is open.
    pub(super) async fn connection(&self) -> Result<MultiplexedConnection, StoreError> {
        match self.connection.wait().await {
            Ok(connection) => Ok(connection.clone()),
            Err(error) => Err(error.clone()),
        }
    }

    /// A place on the connection, if one is free.
    pub(super) fn free_place(&self) -> Option<SemaphorePermit<'_>> {
        self.places.try_acquire().ok()
    }

    /// A place on the connection, in turn. None is ever closed.
    pub(super) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.places.acquire().await.ok()
    }

    /// A call was answered.
    pub(super) fn answered(&self) {
        if self.silent.load(Ordering::Relaxed) > 0 {
            self.silent.store(0, Ordering::Relaxed);
        }
    }

    /// A call was not answered in time. Tells whether that has been so for long.
    pub(super) fn is_silent(&self) -> bool {
        let now = self.born.elapsed().as_micros() as u64 + 1;
        match self.silent.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => false,
            Err(since) => now >= since + DEAD_AFTER.as_micros() as u64,
        }
    }

    /// Tells the first who asks.
    pub(super) fn is_lost_first(&self) -> bool {
        !self.lost.swap(true, Ordering::Relaxed)
    }

    pub(super) fn is_open(&self) -> bool {
        self.connection.get().is_some_and(Result::is_ok)
    }
}

/// An attempt, which fails if its task is dropped or panics: tokio tells of a runtime without time or IO by a panic alone.
struct Opening {
    link: Arc<Link>,
    links: Arc<Links>,
}

impl Opening {
    fn end(self, opened: Result<MultiplexedConnection, StoreError>) {
        if opened.is_err() {
            self.links.forget(&self.link);
        }
        let _ = self.link.connection.set(opened);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if self.link.connection.get().is_none() {
            self.links.forget(&self.link);
            let problem = "Redis cannot be reached from this tokio runtime, which has ended or has no IO or time enabled";
            let _ = self.link.connection.set(Err(StoreError::permanent(problem)));
        }
    }
}

/// Dropped with its runtime it takes the runtime's connection away, which would never answer again.
struct EndOfRuntime {
    id: Id,
    links: Weak<Links>,
}

impl EndOfRuntime {
    /// The connection was given up before its runtime ended; another may have taken its place, and has a guard of its own.
    fn was_not_it(&mut self) {
        if let Some(links) = mem::take(&mut self.links).upgrade()
            && let Entry::Occupied(slot) = links.lock().entry(self.id)
            && slot.get().is_idle(Instant::now())
        {
            slot.remove();
        }
    }
}

impl Drop for EndOfRuntime {
    fn drop(&mut self) {
        if let Some(links) = self.links.upgrade() {
            links.lock().remove(&self.id);
        }
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Links")
    }
}
