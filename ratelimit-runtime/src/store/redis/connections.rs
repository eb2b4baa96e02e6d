//! One multiplexed connection for each runtime, which ends with it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::io::tcp::TcpSettings;
use redis::{Client, Cmd, IntoConnectionInfo, RedisError, Value};
use tokio::runtime::{Handle, Id};
use tokio::sync::{OnceCell, oneshot};

use crate::error::StoreError;

/// A connection is driven by a task of the runtime that opened it, and dies with it. So each runtime has its own.
pub(super) struct Connections {
    client: Client,
    by_runtime: Arc<Slots>,
}

type Slots = Mutex<HashMap<Id, Arc<Slot>>>;

struct Slot {
    /// Failures too, so that all who wait for one attempt share its end.
    connection: OnceCell<Result<MultiplexedConnection, Arc<RedisError>>>,
    /// Ends the task that waits for the end of the runtime.
    _watched: oneshot::Sender<()>,
}

impl Connections {
    /// To the server of this URL. Nothing is opened yet.
    pub(super) fn new(url: &str) -> Result<Self, StoreError> {
        let problem = |error| StoreError::defect("the Redis URL is wrong").caused_by(error);
        let info = url.into_connection_info().map_err(problem)?;
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        Ok(Connections { client: Client::open(info).map_err(problem)?, by_runtime: Arc::default() })
    }

    /// Sends one command over the connection of the current runtime, and forgets the connection if it is gone.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, Failure> {
        let runtime = Handle::try_current().map_err(|error| {
            Failure::Unsent(StoreError::defect("Redis was asked outside a tokio runtime").caused_by(error))
        })?;
        let slot = self.slot(&runtime);
        let connect = || async { self.client.get_multiplexed_async_connection().await.map_err(Arc::new) };
        let mut connection = match slot.connection.get_or_init(connect).await {
            Ok(connection) => connection.clone(),
            Err(error) => {
                forget(&self.by_runtime, runtime.id(), &slot);
                let error = StoreError::new("Redis cannot be reached").caused_by(Arc::clone(error));
                return Err(Failure::Unsent(error));
            }
        };
        // An error that the server answers is a value up to here.
        let reply = connection.req_packed_command(command).await.and_then(Value::extract_error);
        if reply.as_ref().is_err_and(RedisError::is_unrecoverable_error) {
            forget(&self.by_runtime, runtime.id(), &slot);
        }
        reply.map_err(Failure::Replied)
    }

    fn slot(&self, runtime: &Handle) -> Arc<Slot> {
        let (slot, dropped) = {
            let mut slots = lock(&self.by_runtime);
            if let Some(slot) = slots.get(&runtime.id()) {
                return Arc::clone(slot);
            }
            let (watched, dropped) = oneshot::channel();
            let slot = Arc::new(Slot { connection: OnceCell::new(), _watched: watched });
            slots.insert(runtime.id(), Arc::clone(&slot));
            (slot, dropped)
        };
        let mut end = EndOfRuntime { id: runtime.id(), slots: Arc::downgrade(&self.by_runtime) };
        // Not under the lock: a runtime that has ended drops the task at once.
        runtime.spawn(async move {
            let _ = dropped.await;
            end.was_not_it();
        });
        slot
    }
}

/// Why there is no reply to use.
pub(super) enum Failure {
    /// Nothing was sent.
    Unsent(StoreError),
    /// Redis answered with an error, or its answer was lost.
    Replied(RedisError),
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unsent(error) => error,
            Failure::Replied(error) => StoreError::new("Redis failed").caused_by(error),
        }
    }
}

/// Dropped with its runtime it takes the runtime's connection away, which would never answer again.
struct EndOfRuntime {
    id: Id,
    slots: Weak<Slots>,
}

impl EndOfRuntime {
    /// The connection was given up before its runtime ended; another may have taken its place.
    fn was_not_it(&mut self) {
        self.slots = Weak::new();
    }
}

impl Drop for EndOfRuntime {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.upgrade() {
            lock(&slots).remove(&self.id);
        }
    }
}

/// Takes this connection away, unless another has taken its place.
fn forget(slots: &Slots, id: Id, slot: &Arc<Slot>) {
    let mut slots = lock(slots);
    if slots.get(&id).is_some_and(|present| Arc::ptr_eq(present, slot)) {
        slots.remove(&id);
    }
}

fn lock(slots: &Slots) -> MutexGuard<'_, HashMap<Id, Arc<Slot>>> {
    slots.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Connections {
    /// Without the client, whose address may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}
