//! A Redis Cluster: each command goes to the master of its keys, and follows them when they move.
//!
//! We route commands ourselves. The Cluster client of redis-rs (1.8.1) retries after I/O errors and timeouts, by default 16
//! times, which may charge twice; with `retries(0)` it follows neither `MOVED` nor `ASK`, which share the counter. It holds
//! up all requests while it reloads the slot map, and sends `ASKING` as a separate command.

mod by_slot;
mod redirect;
mod slots;
mod topology;

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Cmd, ConnectionAddr, ConnectionInfo, Value, cmd};
use tokio::sync::Notify;
use tokio::time::Instant;

pub(super) use self::by_slot::{by_slot, slot_of};
use self::redirect::Redirect;
pub(super) use self::slots::common_slot;
use self::slots::{NodeAddress, SlotRange};
use self::topology::{ClusterNode, Roles, Topology};
use super::address::addresses_of;
use super::connect::Target;
use super::error::CallError;
use super::jitter::{jittered, shuffled};
use super::node::{Node, NodeRequest, runtime};
use crate::base::timer::until;
use crate::store::error::StoreError;

/// The maximum number of redirections of one command.
const MAX_REDIRECTS: u32 = 5;

/// The timeout for one node to reply with the slot map.
const SLOTS_TIMEOUT: Duration = Duration::from_millis(250);

/// The minimum time between the end of a refresh and the next.
const REFRESH_INTERVAL: Duration = Duration::from_millis(200);

/// The delay before a command is repeated whose keys are being moved, doubled each time up to the maximum.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(5);
const MAX_RETRY_DELAY: Duration = Duration::from_millis(20);

/// The nodes of a Cluster.
pub(super) struct Cluster {
    seeds: Vec<SeedNode>,
    state: Mutex<ClusterState>,
    /// Notified at the end of each refresh.
    refreshed: Notify,
}

/// A node in the URL. Its address may differ from the one that the Cluster knows.
struct SeedNode {
    server: ConnectionInfo,
    node: Arc<Node>,
}

struct ClusterState {
    topology: Topology,
    refreshing: bool,
    /// When the next refresh may start.
    fresh_until: Option<Instant>,
    /// Why the last refresh failed, if it did.
    refresh_error: Option<StoreError>,
}

/// A node that can reply with the slot map.
struct Candidate {
    host: String,
    node: Arc<Node>,
}

impl Cluster {
    /// Creates a Cluster from at least one node. Connects on first use.
    pub(super) fn new(seeds: Vec<ConnectionInfo>) -> Arc<Self> {
        let topology = Topology::new(seeds[0].clone());
        let state = ClusterState { topology, refreshing: false, fresh_until: None, refresh_error: None };
        let seed =
            |server: ConnectionInfo| SeedNode { node: Node::new(Target::Server(server.clone())), server };
        let seeds = seeds.into_iter().map(seed).collect();
        Arc::new(Cluster { seeds, state: Mutex::new(state), refreshed: Notify::new() })
    }

    /// Returns the addresses of the nodes in the URL.
    pub(super) fn address(&self) -> String {
        addresses_of(self.seeds.iter().map(|seed| &seed.server))
    }

    /// Waits for a response of any master.
    pub(super) async fn ping(self: &Arc<Self>, deadline: Instant) -> Result<(), CallError> {
        self.master(0, deadline).await?.node.ping(deadline).await
    }

    /// Returns the masters.
    pub(super) async fn masters(self: &Arc<Self>, deadline: Instant) -> Result<Vec<Arc<Node>>, CallError> {
        self.master(0, deadline).await?;
        let Roles { masters, .. } = self.state().topology.roles();
        Ok(masters.into_iter().map(|master| Arc::clone(&master.node)).collect())
    }

    /// Sends a command to the master of its keys and waits for the reply. It is repeated while some of its keys are being moved,
    /// unless it is a batch, whose decisions can be sent alone.
    pub(super) async fn send(
        self: &Arc<Self>,
        keys: &[&str],
        command: &Cmd,
        deadline: Instant,
        is_batch: bool,
    ) -> Result<Value, CallError> {
        let slot = common_slot(keys).map_err(CallError::NotSent)?;
        let mut node = self.master(slot, deadline).await?;
        let mut request = NodeRequest::Plain(command);
        let (mut redirects, mut delay) = (0, MIN_RETRY_DELAY);
        loop {
            let error = match node.node.send(request, deadline, is_batch).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let redirect = Redirect::of(&error, &node.address);
            redirects += u32::from(!matches!(redirect, Some(Redirect::TryAgain)));
            match redirect {
                Some(Redirect::Moved(address)) if redirects <= MAX_REDIRECTS => {
                    node = self.state().topology.set_master(slot, address);
                    request = NodeRequest::Plain(command);
                    self.refresh();
                }
                Some(Redirect::Ask(address)) if redirects <= MAX_REDIRECTS => {
                    node = self.state().topology.node(address);
                    request = NodeRequest::Asking(command);
                }
                // As long as there is time: moving a slot takes as long as it has keys.
                Some(Redirect::TryAgain) if !is_batch && Instant::now() + delay < deadline => {
                    sleep(delay).await?;
                    delay = (delay * 2).min(MAX_RETRY_DELAY);
                }
                _ => {
                    if error.is_server_fault() {
                        self.refresh();
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Returns the master of a slot. If it is unknown, waits for a refresh, unless one has only just ended.
    async fn master(self: &Arc<Self>, slot: u16, deadline: Instant) -> Result<Arc<ClusterNode>, CallError> {
        loop {
            let mut refreshed = pin!(self.refreshed.notified());
            refreshed.as_mut().enable();
            if let Some(master) = self.state().topology.master(slot) {
                return Ok(master);
            }
            if self.refresh() {
                let runtime = runtime()?;
                let refreshed = until(&runtime, deadline, refreshed).await?;
                if refreshed.is_some() && self.state().refresh_error.is_none() {
                    continue;
                }
            }
            let state = self.state();
            // A `MOVED` may have named the master in the meantime.
            return state.topology.master(slot).ok_or_else(|| {
                let unknown = || StoreError::transient("the Redis Cluster reports no master for the slot");
                CallError::NotSent(state.refresh_error.clone().unwrap_or_else(unknown))
            });
        }
    }

    /// Starts a refresh of the slot map, unless one is running or has only just ended. Returns whether one is running. It
    /// goes on if the call that started it gives up.
    fn refresh(self: &Arc<Self>) -> bool {
        let Ok(runtime) = runtime() else { return false };
        {
            let mut state = self.state();
            if state.refreshing || state.fresh_until.is_some_and(|until| Instant::now() < until) {
                return state.refreshing;
            }
            state.refreshing = true;
        }
        let guard = RefreshGuard(Arc::clone(self));
        runtime.spawn(async move {
            let cluster = &guard.0;
            let slots = cluster.load_slots().await;
            // The guard locks the state, too.
            {
                let mut state = cluster.state();
                state.refresh_error = match slots {
                    Ok(ranges) => {
                        state.topology.update(&ranges);
                        None
                    }
                    Err(error) => Some(error),
                };
                state.fresh_until = Some(Instant::now() + jittered(REFRESH_INTERVAL));
            }
            cluster.seeds.iter().for_each(|seed| seed.node.close());
        });
        true
    }

    /// Returns the slot map of the first node that replies with one.
    async fn load_slots(&self) -> Result<Vec<SlotRange>, StoreError> {
        let mut last_error = StoreError::transient("no node of the Redis Cluster responded");
        for Candidate { host, node } in self.candidates() {
            let deadline = Instant::now() + SLOTS_TIMEOUT;
            let reply = node.send(NodeRequest::Plain(cmd("CLUSTER").arg("SLOTS")), deadline, false).await;
            match reply.map_err(StoreError::from).and_then(|reply| slots::parse(&reply, &host)) {
                Ok(ranges) => return Ok(ranges),
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    /// Returns the nodes to ask for the slot map, each group in random order: the masters, most of which are connected
    /// already, then the other nodes, then the seeds.
    fn candidates(&self) -> Vec<Candidate> {
        let state = self.state();
        let seeds = self.seeds.iter().filter_map(|seed| {
            let (ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }) =
                seed.server.addr()
            else {
                return None;
            };
            let address = NodeAddress { host: host.clone(), port: *port };
            let is_known = state.topology.contains(&address);
            (!is_known).then(|| Candidate { host: address.host, node: Arc::clone(&seed.node) })
        });
        let Roles { masters, others } = state.topology.roles();
        let nodes = shuffled(masters).into_iter().chain(shuffled(others));
        let candidate = |node: Arc<ClusterNode>| {
            let host = node.address.host.clone();
            Candidate { host, node: Arc::clone(&node.node) }
        };
        nodes.map(candidate).chain(shuffled(seeds.collect())).collect()
    }

    fn state(&self) -> MutexGuard<'_, ClusterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running refresh. Wakes the calls that wait for it, even if its task is dropped.
struct RefreshGuard(Arc<Cluster>);

impl Drop for RefreshGuard {
    fn drop(&mut self) {
        self.0.state().refreshing = false;
        self.0.refreshed.notify_waiters();
    }
}

async fn sleep(duration: Duration) -> Result<(), CallError> {
    let runtime = runtime()?;
    let end = Instant::now() + duration;
    until(&runtime, end, pin!(pending::<()>())).await?;
    Ok(())
}
