//! A Redis Cluster: each command goes to the master that has its keys, and follows them when they move.
//!
//! Commands are routed here and not by the client library, as theirs run again after a timeout, which a charge must not, and
//! stop for all masters while one of them does not answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Cmd, ConnectionAddr, Value, cmd};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::address::elsewhere;
use super::dial::{Server, Target};
use super::failure::Failure;
use super::jitter::{jittered, shuffled};
use super::node::{Node, Request, runtime};
use super::redirect::Redirect;
use super::slots::{Address, Range, SLOTS, one_slot, ranges};
use crate::error::store::StoreError;
use crate::timer::until;

/// So often a command follows its keys.
const REDIRECTS: u32 = 5;

/// So long a node may take to tell who has which slots, and so long nobody asks again.
const TOLD_WITHIN: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_millis(200);

/// So long until a command is sent again whose keys are just being moved, doubled with each time up to the longest.
const TRY_AGAIN: Duration = Duration::from_millis(5);
const TRY_AGAIN_LONGEST: Duration = Duration::from_millis(20);

/// The masters of a Cluster, and the slots of each.
pub(super) struct Cluster {
    seeds: Vec<Seed>,
    known: Mutex<Known>,
    /// Told when somebody has asked who has which slots.
    asked: Notify,
}

/// A node that the URL names, by an address that need not be the one by which the Cluster knows it.
struct Seed {
    server: Server,
    node: Arc<Node>,
}

struct Known {
    nodes: HashMap<Address, Arc<Member>>,
    /// The master of each slot, by its number.
    masters: Vec<Option<Arc<Member>>>,
    /// Whether somebody asks, and when nobody needs to.
    asking: bool,
    fresh_until: Option<Instant>,
    /// Why nobody has told.
    problem: Option<StoreError>,
}

/// A node under the address by which the Cluster knows it.
struct Member {
    address: Address,
    node: Arc<Node>,
}

impl Cluster {
    /// Found by way of the seeds, when it is first asked.
    pub(super) fn new(seeds: Vec<Server>) -> Arc<Self> {
        let known = Known {
            nodes: HashMap::new(),
            masters: vec![None; usize::from(SLOTS)],
            asking: false,
            fresh_until: None,
            problem: None,
        };
        let seed = |server: Server| Seed { node: Node::new(Target::Server(server.clone())), server };
        let seeds = seeds.into_iter().map(seed).collect();
        Arc::new(Cluster { seeds, known: Mutex::new(known), asked: Notify::new() })
    }

    /// Waits until then for a master's sign of life.
    pub(super) async fn ping(self: &Arc<Self>, end: Instant) -> Result<(), Failure> {
        let master = self.find(0, end).await?;
        master.node.send(Request::Plain(&cmd("PING")), end).await?;
        Ok(())
    }

    /// Sends a command to the master of its keys, and waits for its reply until then.
    pub(super) async fn send(
        self: &Arc<Self>,
        keys: &[&str],
        command: &Cmd,
        end: Instant,
    ) -> Result<Value, Failure> {
        let slot = one_slot(keys).map_err(Failure::Unsent)?;
        let mut member = self.find(slot, end).await?;
        let mut request = Request::Plain(command);
        let (mut redirects, mut again) = (0, TRY_AGAIN);
        loop {
            let failure = match member.node.send(request, end).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let redirect = Redirect::of(&failure, &member.address);
            redirects += u32::from(!matches!(redirect, Some(Redirect::TryAgain)));
            match redirect {
                Some(Redirect::Moved(address)) if redirects <= REDIRECTS => {
                    member = self.moved(slot, address);
                    request = Request::Plain(command);
                    self.refresh();
                }
                Some(Redirect::Ask(address)) if redirects <= REDIRECTS => {
                    member = self.known().member(&self.seeds[0].server, address);
                    request = Request::Asking(command);
                }
                // For as long as there is time: how long a slot moves depends on what lies in it.
                Some(Redirect::TryAgain) if Instant::now() + again < end => {
                    pause(again).await?;
                    again = (again * 2).min(TRY_AGAIN_LONGEST);
                }
                _ => {
                    if failure.is_of_server() {
                        self.refresh();
                    }
                    return Err(failure);
                }
            }
        }
    }

    /// The master of a slot, which is asked for if nobody knows, unless somebody just has in vain.
    async fn find(self: &Arc<Self>, slot: u16, end: Instant) -> Result<Arc<Member>, Failure> {
        let slot = usize::from(slot);
        loop {
            let mut asked = std::pin::pin!(self.asked.notified());
            asked.as_mut().enable();
            if let Some(master) = &self.known().masters[slot] {
                return Ok(Arc::clone(master));
            }
            let asking = self.refresh();
            if asking {
                let runtime = runtime()?;
                let told = until(&runtime, end, asked).await.map_err(Failure::Unsent)?;
                if told.is_some() && self.known().problem.is_none() {
                    continue;
                }
            }
            let known = self.known();
            let nobody = || StoreError::transient("no node of the Redis Cluster tells who has the key");
            let problem = || known.problem.as_ref().map_or_else(nobody, StoreError::clone);
            // Somebody may have told since.
            return known.masters[slot].clone().ok_or_else(|| Failure::Unsent(problem()));
        }
    }

    /// Takes the word of a node for who has a slot now.
    fn moved(&self, slot: u16, address: Address) -> Arc<Member> {
        let mut known = self.known();
        let member = known.member(&self.seeds[0].server, address);
        known.masters[usize::from(slot)] = Some(Arc::clone(&member));
        member
    }

    /// Asks who has which slots, unless somebody does or just has, and tells whether somebody does now. It outlives the call
    /// that needs it.
    fn refresh(self: &Arc<Self>) -> bool {
        let Ok(runtime) = runtime() else { return false };
        {
            let mut known = self.known();
            if known.asking || known.fresh_until.is_some_and(|until| Instant::now() < until) {
                return known.asking;
            }
            known.asking = true;
        }
        let asking = Asking(Arc::clone(self));
        runtime.spawn(async move {
            let told = asking.0.ask().await;
            // What is left of the attempt locks again.
            {
                let mut known = asking.0.known();
                match told {
                    Ok(ranges) => known.learn(&asking.0.seeds[0].server, &ranges),
                    Err(problem) => known.problem = Some(problem),
                }
                known.fresh_until = Some(Instant::now() + jittered(PAUSE));
            }
            asking.0.seeds.iter().for_each(|seed| seed.node.rest());
        });
        true
    }

    /// Who has which slots, by the first that tells.
    async fn ask(&self) -> Result<Vec<Range>, StoreError> {
        let mut problem = StoreError::transient("no node of the Redis Cluster answers");
        for (host, node) in self.candidates() {
            let end = Instant::now() + TOLD_WITHIN;
            let told = match node.send(Request::Plain(cmd("CLUSTER").arg("SLOTS")), end).await {
                Ok(reply) => ranges(&reply, &host),
                Err(failure) => Err(failure.into()),
            };
            match told {
                Ok(ranges) => return Ok(ranges),
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }

    /// Whom to ask: the masters in any order, which mostly are connected already, then all others.
    fn candidates(&self) -> Vec<(String, Arc<Node>)> {
        let known = self.known();
        // One for each stretch of slots.
        let mut masters: Vec<_> = known.masters.iter().flatten().collect();
        masters.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let is_master = |member: &&Arc<Member>| masters.iter().any(|master| Arc::ptr_eq(master, member));
        let (masters, others): (Vec<_>, Vec<_>) = known.nodes.values().partition(is_master);
        let seeds = self.seeds.iter().filter_map(|seed| {
            let (ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }) =
                seed.server.info.addr()
            else {
                return None;
            };
            let is_known = known.nodes.contains_key(&(host.clone(), *port));
            (!is_known).then(|| (host.clone(), Arc::clone(&seed.node)))
        });
        let named = |member: &Arc<Member>| (member.address.0.clone(), Arc::clone(&member.node));
        let mut candidates: Vec<_> = shuffled(masters).into_iter().map(named).collect();
        candidates.extend(shuffled(others).into_iter().map(named));
        candidates.extend(shuffled(seeds.collect()));
        candidates
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The node at this address, which lets us in as the others do.
    fn member(&mut self, login: &Server, address: Address) -> Arc<Member> {
        let new = |address: &Address| {
            let info = elsewhere(&login.info, &address.0, address.1);
            let node = Node::new(Target::Server(Server { info, trust: login.trust.clone() }));
            Arc::new(Member { address: address.clone(), node })
        };
        Arc::clone(self.nodes.entry(address).or_insert_with_key(new))
    }

    /// Takes over what a node has told, and lets go of those that are not in it.
    fn learn(&mut self, login: &Server, ranges: &[Range]) {
        self.problem = None;
        self.masters.fill(None);
        for range in ranges {
            let master = self.member(login, range.master.clone());
            let (first, last) = (usize::from(range.first), usize::from(range.last));
            self.masters[first..=last].fill(Some(master));
            for replica in &range.replicas {
                self.member(login, replica.clone());
            }
        }
        let named = |address: &Address| {
            ranges.iter().any(|range| range.master == *address || range.replicas.contains(address))
        };
        self.nodes.retain(|address, _| named(address));
    }
}

/// An attempt to learn who has which slots, which those who wait for it hear of whatever becomes of it.
struct Asking(Arc<Cluster>);

impl Drop for Asking {
    fn drop(&mut self) {
        let mut known = self.0.known();
        known.asking = false;
        drop(known);
        self.0.asked.notify_waiters();
    }
}

async fn pause(time: Duration) -> Result<(), Failure> {
    let runtime = runtime()?;
    let over = Instant::now() + time;
    until(&runtime, over, std::future::pending::<()>()).await.map_err(Failure::Unsent)?;
    Ok(())
}
