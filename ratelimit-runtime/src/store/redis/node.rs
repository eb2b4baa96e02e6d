//! One server: asked in time or not at all, over a connection that is opened anew when it is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, RedisResult, Value, cmd};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use super::breaker::{Breaker, Failed, Probe};
use super::dial::Target;
use super::failure::{Failure, Sign, sign, unreachable};
use super::link::{Link, Links};
use crate::error::store::StoreError;
use crate::timer::until;

/// A server, and what is known of its health.
#[derive(Debug)]
pub(super) struct Node {
    target: Arc<Target>,
    breaker: Breaker,
    links: Arc<Links>,
    /// Whether its settings were looked at.
    examined: AtomicBool,
}

/// A command, and how it is sent.
#[derive(Clone, Copy)]
pub(super) enum Request<'a> {
    Plain(&'a Cmd),
    /// For a slot of a Cluster that is on its way to this node.
    Asking(&'a Cmd),
}

impl Node {
    pub(super) fn new(target: Target) -> Arc<Self> {
        Arc::new(Node {
            target: Arc::new(target),
            breaker: Breaker::default(),
            links: Arc::default(),
            examined: AtomicBool::new(false),
        })
    }

    /// Sends a command, and waits for its reply until then.
    pub(super) async fn send(self: &Arc<Self>, request: Request<'_>, end: Instant) -> Result<Value, Failure> {
        let runtime = runtime()?;
        let probe = self.breaker.admit(Instant::now()).map_err(Failure::Unsent)?;
        let link = self.link(&runtime).ok_or_else(|| {
            Failure::Unsent(StoreError::transient(
                "Redis closes each connection, and is not connected to for a while",
            ))
        })?;
        let asking = async {
            let mut connection = link.connection().await.map_err(Failure::Unsent)?;
            let mut place = link.free_place();
            if place.is_none() {
                place = link.place().await;
                // The places of those who were not answered go to those who came after them, who need not be sent any more.
                self.breaker.admits_still(probe.as_ref()).map_err(Failure::Unsent)?;
            }
            let _place = place;
            request.over(&mut connection).await.map_err(Failure::Replied)
        };
        let failure = match until(&runtime, end, asking).await.map_err(Failure::Unsent)? {
            Some(Ok(reply)) => {
                self.heed(sign(&reply), &link, probe);
                return Ok(reply);
            }
            Some(Err(failure)) => failure,
            None if link.is_open() => Failure::late(),
            None => {
                let why = StoreError::transient("Redis cannot be reached in time");
                self.failed(Failed::Once, probe, &why);
                return Err(Failure::Unsent(why));
            }
        };
        match &failure {
            Failure::Replied(error) => self.heed(Sign::of(error), &link, probe),
            // The attempt has told for all who waited for it. A defect is of this call or runtime, and not of the server.
            Failure::Unsent(why) if probe.is_some() && !why.is_permanent() => {
                self.failed(Failed::Once, probe, why);
            }
            Failure::Unsent(_) => {}
            Failure::Late(why) => {
                // One that is open already, and now does not answer the one call that asks, may be a dead line. Or the server
                // answers on those of other runtimes, and on this one nobody.
                if link.is_silent() || probe.is_some() {
                    self.links.forget(&link);
                }
                self.failed(Failed::Once, probe, why);
            }
        }
        Err(failure)
    }

    /// Does what an answer calls for.
    fn heed(&self, sign: Sign, link: &Link, probe: Option<Probe<'_>>) {
        if let Sign::Well | Sign::Unable(_) = sign {
            link.answered();
        }
        match sign {
            Sign::Well => self.breaker.answered(),
            Sign::Lost(why) => self.lost(link, probe, &why),
            Sign::Unable(why) => self.failed(Failed::ForNow, probe, &why),
            Sign::Elsewhere(why) => {
                self.links.forget(link);
                self.failed(Failed::ForNow, probe, &why);
            }
        }
    }

    /// A connection is gone. That is told by each call that waited for it, and counts once.
    fn lost(&self, link: &Link, probe: Option<Probe<'_>>, why: &StoreError) {
        self.links.forget(link);
        if link.is_lost_first() || probe.is_some() {
            self.failed(Failed::Once, probe, why);
        }
    }

    fn failed(&self, failed: Failed, probe: Option<Probe<'_>>, why: &StoreError) {
        self.breaker.failed(Instant::now(), failed, probe, why);
    }

    /// Closes its connections, when nobody needs them any more.
    pub(super) fn rest(&self) {
        self.links.forget_all();
    }

    fn link(self: &Arc<Self>, runtime: &Handle) -> Option<Arc<Link>> {
        self.links.get(runtime, |link| {
            let (node, target) = (Arc::downgrade(self), Arc::clone(&self.target));
            // A server may close a connection that nobody uses: no failure, if no call hears of it.
            let on_lost = move || {
                if let (Some(node), Some(link)) = (node.upgrade(), link.upgrade()) {
                    node.links.forget(&link);
                }
            };
            let node = Arc::downgrade(self);
            async move {
                let why = match timeout(target.opened_within(), target.open(on_lost)).await {
                    Ok(Ok(connection)) => {
                        if node.upgrade().is_some_and(|node| !node.examined.swap(true, Ordering::Relaxed)) {
                            tokio::spawn(timeout(
                                target.opened_within(),
                                warn_of_eviction(connection.clone()),
                            ));
                        }
                        return Ok(connection);
                    }
                    Ok(Err(error)) => unreachable(error),
                    Err(_) => StoreError::transient("Redis cannot be reached: it takes no connection"),
                };
                if let Some(node) = node.upgrade() {
                    node.failed(Failed::Badly, None, &why);
                }
                Err(why)
            }
        })
    }
}

impl Request<'_> {
    async fn over(self, connection: &mut MultiplexedConnection) -> RedisResult<Value> {
        // An error that the server answers is a value up to here.
        match self {
            Request::Plain(command) => connection.send_packed_command(command).await?.extract_error(),
            Request::Asking(command) => {
                // Both in one, as the server forgets that it was asked with the next command of the connection.
                let mut pipeline = Pipeline::new();
                pipeline.cmd("ASKING").add_command(command.clone());
                let mut reply = Err((redis::ErrorKind::UnexpectedReturnType, "no reply").into());
                for each in connection.req_packed_commands(&pipeline, 0, 2).await? {
                    reply = each.extract_error();
                    // Who may not ask is sent back and forth else.
                    if reply.is_err() {
                        break;
                    }
                }
                reply
            }
        }
    }
}

/// The runtime that a call to Redis is made on.
pub(super) fn runtime() -> Result<Handle, Failure> {
    Handle::try_current().map_err(|error| {
        Failure::Unsent(StoreError::permanent("Redis was asked outside a tokio runtime").caused_by(error))
    })
}

/// State that is evicted is capacity given away. A server that does not let us look is as its operator wants it.
async fn warn_of_eviction(mut connection: MultiplexedConnection) {
    let memory: RedisResult<String> = cmd("INFO").arg("memory").query_async(&mut connection).await;
    let Ok(memory) = memory else { return };
    let setting = |name: &str| {
        let value = memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(str::trim).unwrap_or_default()
    };
    let policy = setting("maxmemory_policy");
    if setting("maxmemory") != "0" && !matches!(policy, "noeviction" | "") {
        tracing::warn!(
            maxmemory_policy = policy,
            "this Redis evicts keys when its memory is full: a key of a limit that is evicted starts anew; \
             set maxmemory-policy to noeviction"
        );
    }
}
