//! One multiplexed connection per tokio runtime.
//!
//! A connection is driven by a task of the runtime that opened it and dies with that runtime, so runtimes cannot share
//! one.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::fmt;
use std::future::Future;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use redis::aio::MultiplexedConnection;
use redis::cmd;
use tokio::runtime::{Handle, Id};
use tokio::sync::{Semaphore, SemaphorePermit, SetOnce, oneshot};
use tokio::time::{Instant, sleep};

use crate::base::number_map::NumberMap;
use crate::store::error::StoreError;

/// The maximum number of commands in flight on a connection. Others wait here until their deadline, where they cost
/// Redis nothing.
const MAX_IN_FLIGHT: usize = 4096;

/// The maximum number of connections opened per window, however soon each of them is lost.
const MAX_OPENED: usize = 8;
const OPENED_WINDOW: Duration = Duration::from_secs(1);

/// How long a connection may leave all calls unanswered before it is given up.
const DEAD_AFTER: Duration = Duration::from_secs(1);

/// An open connection.
#[derive(Clone)]
pub(super) struct OpenConnection {
    pub(super) connection: MultiplexedConnection,
    /// Whether its loss is reported when it happens, which redis-rs only does with RESP3.
    pub(super) reports_loss: bool,
}

/// The connections to one server, by runtime.
#[derive(Default)]
pub(super) struct Connections(Mutex<NumberMap<Id, RuntimeEntry>>);

/// A runtime's connection, and when its recent ones were opened.
#[derive(Default)]
struct RuntimeEntry {
    connection: Option<Arc<SharedConnection>>,
    opened: VecDeque<Instant>,
}

/// A connection, or the attempt to open it, shared by all calls of a runtime.
pub(super) struct SharedConnection {
    opened: SetOnce<Result<OpenConnection, StoreError>>,
    in_flight: Semaphore,
    created: Instant,
    /// When calls began to time out, in microseconds after `created`; 0 while calls are answered.
    silent_since: AtomicU64,
    lost: AtomicBool,
    /// Ends the task that watches for the end of the runtime.
    _watcher: oneshot::Sender<()>,
}

impl Connections {
    /// Returns the runtime's connection. If there is none, a task of the runtime opens one, which goes on even if all
    /// calls that wait for it give up. Returns `None` if too many were opened lately.
    pub(super) fn get<F>(
        self: &Arc<Self>,
        runtime: &Handle,
        open: impl FnOnce(Weak<SharedConnection>) -> F,
    ) -> Option<Arc<SharedConnection>>
    where
        F: Future<Output = Result<OpenConnection, StoreError>> + Send + 'static,
    {
        let (connection, dropped) = {
            let mut entries = self.lock();
            let RuntimeEntry { connection, opened } = entries.entry(runtime.id()).or_default();
            connection.take_if(|connection| connection.is_closed());
            if let Some(connection) = connection {
                return Some(Arc::clone(connection));
            }
            let now = Instant::now();
            opened.retain(|opened| now < *opened + OPENED_WINDOW);
            if opened.len() >= MAX_OPENED {
                return None;
            }
            opened.push_back(now);
            let (watcher, dropped) = oneshot::channel();
            (Arc::clone(connection.insert(Arc::new(SharedConnection::new(now, watcher)))), dropped)
        };
        let opening = OpenGuard { connection: Arc::clone(&connection), connections: Arc::clone(self) };
        let mut runtime_guard = RuntimeGuard { id: runtime.id(), connections: Arc::downgrade(self) };
        let open = open(Arc::downgrade(&connection));
        // Not under the lock: a runtime that has shut down drops the task at once.
        runtime.spawn(async move {
            opening.finish(open.await);
            let _ = dropped.await;
            // Until then the entry counts this connection among the recent ones.
            sleep(OPENED_WINDOW).await;
            runtime_guard.disarm();
        });
        Some(connection)
    }

    /// Removes this connection, unless it has been replaced.
    pub(super) fn remove(&self, connection: &SharedConnection) {
        self.lock().values_mut().for_each(|entry| {
            entry.connection.take_if(|present| std::ptr::eq(&**present, connection));
        });
    }

    /// Removes all connections.
    pub(super) fn clear(&self) {
        self.lock().values_mut().for_each(|entry| entry.connection = None);
    }

    fn lock(&self) -> MutexGuard<'_, NumberMap<Id, RuntimeEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RuntimeEntry {
    fn is_idle(&self, now: Instant) -> bool {
        self.connection.is_none() && self.opened.back().is_none_or(|opened| now >= *opened + OPENED_WINDOW)
    }
}

impl SharedConnection {
    fn new(created: Instant, watcher: oneshot::Sender<()>) -> Self {
        SharedConnection {
            opened: SetOnce::new(),
            in_flight: Semaphore::new(MAX_IN_FLIGHT),
            created,
            silent_since: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            _watcher: watcher,
        }
    }

    /// Waits until the connection is open.
    pub(super) async fn opened(&self) -> Result<MultiplexedConnection, StoreError> {
        self.opened.wait().await.clone().map(|opened| opened.connection)
    }

    pub(super) fn is_open(&self) -> bool {
        self.opened.get().is_some_and(Result::is_ok)
    }

    /// Whether the server has closed the connection while it was idle, which is not reported.
    fn is_closed(&self) -> bool {
        let is_idle = self.in_flight.available_permits() == MAX_IN_FLIGHT;
        match self.opened.get() {
            Some(Ok(OpenConnection { connection, reports_loss: false })) if is_idle => {
                // A closed connection takes no command. Of an open one, the command is withdrawn before it is sent, or else
                // its reply is ignored.
                let sent = connection.clone().send_packed_command(&cmd("PING")).now_or_never();
                sent.is_some_and(|reply| reply.is_err())
            }
            _ => false,
        }
    }

    /// Returns a permit for a command in flight, if one is free.
    pub(super) fn try_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.in_flight.try_acquire().ok()
    }

    /// Waits for a permit, in order of arrival. Never `None`, as the semaphore is never closed.
    pub(super) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.in_flight.acquire().await.ok()
    }

    /// Records that a call was answered.
    pub(super) fn record_reply(&self) {
        if self.silent_since.load(Ordering::Relaxed) > 0 {
            self.silent_since.store(0, Ordering::Relaxed);
        }
    }

    /// Records that a call timed out. Returns whether none has been answered for `DEAD_AFTER`.
    pub(super) fn record_timeout(&self) -> bool {
        let now = self.created.elapsed().as_micros() as u64 + 1;
        match self.silent_since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => false,
            Err(since) => now >= since + DEAD_AFTER.as_micros() as u64,
        }
    }

    /// Records that the connection is lost. Returns whether this is the first report.
    pub(super) fn record_loss(&self) -> bool {
        !self.lost.swap(true, Ordering::Relaxed)
    }
}

/// An attempt to open a connection. Fails if its task is dropped or panics: tokio reports a runtime without time or IO
/// only by a panic.
struct OpenGuard {
    connection: Arc<SharedConnection>,
    connections: Arc<Connections>,
}

impl OpenGuard {
    fn finish(self, opened: Result<OpenConnection, StoreError>) {
        if opened.is_err() {
            self.connections.remove(&self.connection);
        }
        let _ = self.connection.opened.set(opened);
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        if self.connection.opened.get().is_none() {
            self.connections.remove(&self.connection);
            let error = StoreError::permanent(
                "could not connect to Redis: the tokio runtime has shut down, or has IO or time disabled",
            );
            let _ = self.connection.opened.set(Err(error));
        }
    }
}

/// Dropped with its runtime, removes the runtime's connection, which would never answer again.
struct RuntimeGuard {
    id: Id,
    connections: Weak<Connections>,
}

impl RuntimeGuard {
    /// Leaves the runtime's entry alone: the connection was given up before its runtime ended, and a newer one has its own
    /// guard.
    fn disarm(&mut self) {
        if let Some(connections) = mem::take(&mut self.connections).upgrade()
            && let Entry::Occupied(entry) = connections.lock().entry(self.id)
            && entry.get().is_idle(Instant::now())
        {
            entry.remove();
        }
    }
}

impl Drop for RuntimeGuard {
    fn drop(&mut self) {
        if let Some(connections) = self.connections.upgrade() {
            connections.lock().remove(&self.id);
        }
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connections")
    }
}
