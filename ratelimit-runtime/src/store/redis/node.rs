//! One server: a call is answered by its deadline or fails, and a lost connection is replaced.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, RedisResult, Value, cmd};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use super::breaker::{Breaker, Probe, Severity};
use super::connect::Target;
use super::connection::{Connections, SharedConnection};
use super::error::{CallError, ServerState, cannot_connect};
use crate::base::log::log;
use crate::base::timer::until;
use crate::store::error::StoreError;

/// A server, its connections and its health.
#[derive(Debug)]
pub(super) struct Node {
    target: Arc<Target>,
    breaker: Breaker,
    connections: Arc<Connections>,
    /// Whether its eviction policy has been checked.
    checked: AtomicBool,
}

/// A command, and how to send it.
#[derive(Clone, Copy)]
pub(super) enum NodeRequest<'a> {
    Plain(&'a Cmd),
    /// After `ASKING`: for a Cluster slot that is being moved to this node.
    Asking(&'a Cmd),
}

impl Node {
    pub(super) fn new(target: Target) -> Arc<Self> {
        Arc::new(Node {
            target: Arc::new(target),
            breaker: Breaker::default(),
            connections: Arc::default(),
            checked: AtomicBool::new(false),
        })
    }

    /// Sends a command and waits for its reply, until the deadline.
    pub(super) async fn send(
        self: &Arc<Self>,
        request: NodeRequest<'_>,
        deadline: Instant,
        is_batch: bool,
    ) -> Result<Value, CallError> {
        let probe = self.breaker.admit(Instant::now).map_err(CallError::NotSent)?;
        self.send_admitted(request, probe, deadline, is_batch).await
    }

    /// Waits for a response, until the deadline. Sent even while the breaker is open, which may be because of calls of other
    /// registries, some time ago.
    pub(super) async fn ping(self: &Arc<Self>, deadline: Instant) -> Result<(), CallError> {
        let probe = self.breaker.admit(Instant::now).unwrap_or(None);
        self.send_admitted(NodeRequest::Plain(&cmd("PING")), probe, deadline, false).await.map(drop)
    }

    async fn send_admitted(
        self: &Arc<Self>,
        request: NodeRequest<'_>,
        probe: Option<Probe<'_>>,
        deadline: Instant,
        is_batch: bool,
    ) -> Result<Value, CallError> {
        let runtime = runtime()?;
        let connection = self.connection(&runtime).ok_or_else(|| {
            let reason = format!("{} keeps closing connections; reconnecting is throttled", self.target);
            CallError::NotSent(StoreError::transient(reason))
        })?;
        let is_sent = AtomicBool::new(false);
        let reply = async {
            let mut opened = connection.opened().await.map_err(CallError::NotSent)?;
            let mut permit = connection.try_permit();
            if permit.is_none() {
                permit = connection.permit().await;
                // Calls that time out hand their permits to later calls, which need not be sent if the breaker has opened.
                self.breaker.still_admits(probe.as_ref()).map_err(CallError::NotSent)?;
            }
            let _permit = permit;
            is_sent.store(true, Ordering::Relaxed);
            let reply = request.send(&mut opened).await;
            reply.map_err(|error| CallError::sent(error, &self.target))
        };
        let reply = until(&runtime, deadline, pin!(reply)).await?;
        let error = match reply {
            Some(Ok(reply)) => {
                self.record(ServerState::of_reply(&reply), &connection, probe);
                return Ok(reply);
            }
            Some(Err(error)) => error,
            None if is_sent.load(Ordering::Relaxed) => {
                CallError::TimedOut(StoreError::deadline_exceeded(&self.target, deadline))
            }
            None if connection.is_open() => {
                let reason =
                    format!("{} is too slow: too many commands are in flight to send another", self.target);
                CallError::TimedOut(StoreError::transient(reason))
            }
            None => {
                let reason = format!("could not connect to {} before the deadline", self.target);
                let reason = StoreError::transient(reason);
                self.record_failure(Severity::Minor, probe, &reason);
                return Err(CallError::NotSent(reason));
            }
        };
        match &error {
            CallError::Replied(error) => self.record(ServerState::of_error(error), &connection, probe),
            CallError::Lost(reason) => {
                self.record(ServerState::Disconnected(reason.clone()), &connection, probe);
            }
            // The attempt to connect has recorded this once for all calls. A permanent error is the fault of this call or
            // runtime, not of the server.
            CallError::NotSent(reason) if probe.is_some() && !reason.is_permanent() => {
                self.record_failure(Severity::Minor, probe, reason);
            }
            CallError::NotSent(_) => {}
            CallError::TimedOut(reason) => {
                // A connection that leaves the only call unanswered may be half-open. So may one that has long been silent
                // although the server answers other runtimes.
                if connection.record_timeout() || probe.is_some() {
                    self.connections.remove(&connection);
                }
                // Several calls wait for a batch.
                let severity = if is_batch { Severity::Major } else { Severity::Minor };
                self.record_failure(severity, probe, reason);
            }
        }
        Err(error)
    }

    /// Updates the connection and the breaker after a reply.
    fn record(&self, state: ServerState, connection: &SharedConnection, probe: Option<Probe<'_>>) {
        if let ServerState::Healthy | ServerState::Unavailable(_) = state {
            connection.record_reply();
        }
        match state {
            ServerState::Healthy => self.breaker.succeeded(),
            ServerState::Disconnected(reason) => {
                self.connections.remove(connection);
                // Every call in flight reports the same loss.
                if connection.record_loss() || probe.is_some() {
                    self.record_failure(Severity::Minor, probe, &reason);
                }
            }
            ServerState::Unavailable(reason) => self.record_failure(Severity::Critical, probe, &reason),
            ServerState::NeedsReconnect(reason) => {
                self.connections.remove(connection);
                self.record_failure(Severity::Critical, probe, &reason);
            }
        }
    }

    fn record_failure(&self, severity: Severity, probe: Option<Probe<'_>>, reason: &StoreError) {
        self.breaker.failed(Instant::now(), severity, probe, reason);
    }

    /// Returns what it connects to.
    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Closes its connections.
    pub(super) fn close(&self) {
        self.connections.clear();
    }

    fn connection(self: &Arc<Self>, runtime: &Handle) -> Option<Arc<SharedConnection>> {
        self.connections.get(runtime, |connection| {
            let (node, target) = (Arc::downgrade(self), Arc::clone(&self.target));
            // A server may close an idle connection. That is no failure unless a call notices.
            let on_lost = move || {
                if let (Some(node), Some(connection)) = (node.upgrade(), connection.upgrade()) {
                    node.connections.remove(&connection);
                }
            };
            let node = Arc::downgrade(self);
            async move {
                let reason = match timeout(target.connect_timeout(), target.open(on_lost)).await {
                    Ok(Ok(opened)) => {
                        if node.upgrade().is_some_and(|node| !node.checked.swap(true, Ordering::Relaxed)) {
                            let check = warn_about_eviction(opened.connection.clone());
                            tokio::spawn(timeout(target.connect_timeout(), check));
                        }
                        return Ok(opened);
                    }
                    Ok(Err(error)) => cannot_connect(error),
                    Err(_) => StoreError::transient(format!("could not connect to {target}: timed out")),
                };
                if let Some(node) = node.upgrade() {
                    node.record_failure(Severity::Major, None, &reason);
                }
                Err(reason)
            }
        })
    }
}

impl NodeRequest<'_> {
    async fn send(self, connection: &mut MultiplexedConnection) -> RedisResult<Value> {
        // The connection returns an error reply as a value.
        match self {
            NodeRequest::Plain(command) => connection.send_packed_command(command).await?.extract_error(),
            NodeRequest::Asking(command) => {
                // In one pipeline, as `ASKING` applies only to the next command of the connection.
                let mut pipeline = Pipeline::new();
                pipeline.cmd("ASKING").add_command(command.clone());
                let mut reply = Err((redis::ErrorKind::UnexpectedReturnType, "no reply").into());
                for each in connection.req_packed_commands(&pipeline, 0, 2).await? {
                    reply = each.extract_error();
                    // Without the permission for `ASKING`, the command's own reply would redirect us back and forth.
                    if reply.is_err() {
                        break;
                    }
                }
                reply
            }
        }
    }
}

/// Returns the runtime of the current call.
pub(super) fn runtime() -> Result<Handle, CallError> {
    Handle::try_current().map_err(|error| {
        CallError::NotSent(StoreError::permanent("Redis was called outside a tokio runtime").caused_by(error))
    })
}

/// Warns if Redis may evict state, which gives away capacity. If we may not ask, the operator wants it that way.
async fn warn_about_eviction(mut connection: MultiplexedConnection) {
    let memory: RedisResult<String> = cmd("INFO").arg("memory").query_async(&mut connection).await;
    let Ok(memory) = memory else { return };
    let setting = |name: &str| {
        let value = memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(str::trim).unwrap_or_default()
    };
    let policy = setting("maxmemory_policy");
    if setting("maxmemory") != "0" && !matches!(policy, "noeviction" | "") {
        log!(
            WARN,
            maxmemory_policy = policy,
            "this Redis evicts keys when its memory is full, which resets their limits; set maxmemory-policy to noeviction"
        );
    }
}
