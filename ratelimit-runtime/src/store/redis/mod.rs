//! State in Redis, for every process that asks it.

mod address;
mod breaker;
mod cluster;
mod dial;
mod failure;
mod jitter;
mod link;
mod node;
mod redirect;
mod scripts;
mod slots;
mod split;
#[cfg(feature = "test-util")]
mod stream;
#[cfg(test)]
mod values;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::time::Instant;

use self::address::Address;
use self::cluster::Cluster;
use self::dial::{Sentinels, Server, Target, Trust};
use self::failure::Failure;
use self::node::{Node, Request};
use self::scripts::{Invocation, Scripts};
#[cfg(feature = "test-util")]
pub use self::stream::{Dial, Stream};
use super::{Charge, Outcome};
use crate::algorithm::{AlgorithmSpec, ChargeId};
use crate::error::store::StoreError;
use crate::key::Key;

/// State in Redis: one multiplexed connection a runtime and server, one script call for any number of decisions, each call
/// answered or given up at its deadline.
#[derive(Debug)]
pub struct RedisStore {
    deployment: Deployment,
    deadline: Duration,
    scripts: Scripts,
}

/// What each certificate begins with.
const PEM: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// How Redis is run.
enum Deployment {
    /// As one server, be it one after another.
    Node(Arc<Node>),
    Cluster(Arc<Cluster>),
}

impl RedisStore {
    /// A call to Redis takes no longer, unless it is said otherwise.
    pub const DEADLINE: Duration = Duration::from_millis(100);

    /// A store that connects when it is first asked.
    ///
    /// # Errors
    ///
    /// If the URL is wrong, or needs a feature that is off.
    pub fn lazy(url: &str) -> Result<Self, StoreError> {
        RedisStore::trusting(url, None)
    }

    /// As [`lazy`](Self::lazy), of servers that are verified by these certificates, in PEM, and not by those of the system.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn trusting(url: &str, certificates: Option<&[u8]>) -> Result<Self, StoreError> {
        #[cfg(feature = "tls")]
        if url.starts_with("rediss") {
            // rustls panics where it would have to choose between several, and chooses none by itself.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        if certificates.is_some_and(|pem| !pem.windows(PEM.len()).any(|window| window == PEM)) {
            return Err(StoreError::permanent(
                "the CA certificates hold none in PEM, which is the form of `-----BEGIN CERTIFICATE`",
            ));
        }
        let trust: Trust = certificates.map(Into::into);
        let server = |info| Server { info, trust: trust.clone() };
        let deployment = match Address::parse(url)? {
            Address::Server(info) => Deployment::Node(Node::new(Target::Server(server(info)))),
            Address::Sentinel { sentinels, master, login } => {
                let sentinels = sentinels.into_iter().map(server).collect();
                let sentinels = Sentinels::new(sentinels, master, server(login));
                Deployment::Node(Node::new(Target::Master(sentinels)))
            }
            Address::Cluster { seeds } => {
                Deployment::Cluster(Cluster::new(seeds.into_iter().map(server).collect()))
            }
        };
        Ok(RedisStore::of(deployment))
    }

    /// A store over streams of a test's own, which take commands as a server does.
    #[cfg(feature = "test-util")]
    pub fn over(dial: impl Dial) -> Self {
        RedisStore::of(Deployment::Node(Node::new(Target::Stream(stream::Dialer::new(dial)))))
    }

    fn of(deployment: Deployment) -> Self {
        RedisStore { deployment, deadline: Self::DEADLINE, scripts: Scripts::new(|script| script) }
    }

    /// The store with another deadline for each of its calls, an hour at the most.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        RedisStore { deadline: deadline.min(Duration::from_secs(3600)), ..self }
    }

    /// The store under a time of the caller's, for tests: both as [`ratelimit_lua::with_time`] takes them.
    #[must_use]
    pub fn with_time(self, now: &str, expire: &str) -> Self {
        let scripts = Scripts::new(|script| ratelimit_lua::with_time(&script, now, expire));
        RedisStore { scripts, ..self }
    }

    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.deployment, Deployment::Cluster(_))
    }

    /// Connects and waits for a sign of life, longer than a call may take.
    ///
    /// # Errors
    ///
    /// If no server answers, or it does not let us in.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let end = Instant::now() + self.deadline.max(Duration::from_secs(2));
        let pong = match &self.deployment {
            Deployment::Node(node) => node.send(Request::Plain(&redis::cmd("PING")), end).await.map(drop),
            Deployment::Cluster(cluster) => cluster.ping(end).await,
        };
        match pong {
            Err(failure) if !failure.is_no_permission() => Err(failure.into()),
            _ => Ok(()),
        }
    }

    /// Decides a list of charges, all or nothing except for shadows.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn decide_one(&self, charges: &[Charge]) -> Result<Outcome, StoreError> {
        let outcome = self.decide_together(&[charges]).await.pop();
        outcome.unwrap_or_else(|| Err(StoreError::permanent("unexpected reply from the rate-limit script")))
    }

    /// Decides several lists of charges, each on its own, in order and at one time.
    pub async fn decide(&self, decisions: &[&[Charge]]) -> Vec<Result<Outcome, StoreError>> {
        match (&self.deployment, decisions) {
            // Each may lie in another slot.
            (Deployment::Cluster(_), [_, _, ..]) => self.decide_by_slot(decisions).await,
            _ => self.decide_together(decisions).await,
        }
    }

    /// Gives back `cost` permits: of the charge so marked, or of whatever the key holds. It is sent once.
    ///
    /// # Errors
    ///
    /// If Redis fails. It may have given the permits back all the same.
    pub async fn refund(
        &self,
        key: &Key,
        spec: &AlgorithmSpec,
        cost: u64,
        charge_id: Option<ChargeId>,
    ) -> Result<(), StoreError> {
        self.invoke(&self.scripts.refund(key, spec, cost, charge_id)?).await?;
        Ok(())
    }

    /// Forgets what the key holds.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn reset(&self, key: &Key) -> Result<(), StoreError> {
        let key = scripts::text(key)?;
        self.send(&[key], redis::cmd("DEL").arg(key), self.end()).await?;
        Ok(())
    }

    /// In one call, which fails for all of them.
    async fn decide_together(&self, decisions: &[&[Charge]]) -> Vec<Result<Outcome, StoreError>> {
        let decided = match self.scripts.decide(decisions) {
            Ok(invocation) => self.invoke(&invocation).await,
            Err(error) => Err(error),
        };
        match decided.and_then(|reply| scripts::outcomes(decisions, reply)) {
            Ok(outcomes) => outcomes,
            Err(error) => decisions.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// By hash, and only where the server says that it has not run the script, once more with the text: an error that
    /// could come after the script has run is never followed by another try.
    async fn invoke(&self, invocation: &Invocation<'_>) -> Result<Value, StoreError> {
        let end = self.end();
        match self.send(invocation.keys(), &invocation.evalsha(), end).await {
            Err(failure) if failure.is_no_script() => {
                Ok(self.send(invocation.keys(), &invocation.eval(), end).await?)
            }
            reply => Ok(reply?),
        }
    }

    async fn send(&self, keys: &[&str], command: &Cmd, end: Instant) -> Result<Value, Failure> {
        match &self.deployment {
            Deployment::Node(node) => node.send(Request::Plain(command), end).await,
            Deployment::Cluster(cluster) => cluster.send(keys, command, end).await,
        }
    }

    fn end(&self) -> Instant {
        Instant::now() + self.deadline
    }
}

impl fmt::Debug for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Deployment::Node(_) => "Node",
            Deployment::Cluster(_) => "Cluster",
        })
    }
}
