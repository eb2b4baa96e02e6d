//! State in Redis, shared by all processes that use it.

mod breaker;
mod cluster;
mod connect;
mod connection;
mod deployment;
mod error;
mod error_code;
mod jitter;
mod node;
mod scripts;
#[cfg(any(test, feature = "test-util"))]
mod testing;
mod url;

use std::iter;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::future::join_all;
use redis::{Cmd, Value};
use tokio::time::Instant;

use self::cluster::by_slot;
#[cfg(feature = "test-util")]
use self::connect::Target;
use self::deployment::Deployment;
use self::error::CallError;
#[cfg(feature = "test-util")]
use self::node::Node;
use self::node::NodeRequest;
use self::scripts::{Invocation, Scripts};
#[cfg(feature = "test-util")]
use self::testing::test_stream::Dialer;
#[cfg(feature = "test-util")]
pub use self::testing::test_stream::{Dial, Stream};
use crate::algorithm::{AlgorithmSpec, ChargeId};
use crate::error::store::StoreError;
use crate::key::Key;
use crate::store::charge::{Charge, Outcome};
use crate::store::denials::Denials;
use crate::store::tls::Tls;

/// State in Redis.
///
/// Uses one multiplexed connection per runtime and server, and one script call for any number of decisions. Each call
/// ends by its deadline.
#[derive(Debug)]
pub struct RedisStore {
    deployment: Arc<Deployment>,
    deadline: Duration,
    scripts: Arc<Scripts>,
    denials: Option<Denials>,
}

/// The scripts of all stores.
static SCRIPTS: LazyLock<Arc<Scripts>> = LazyLock::new(|| Arc::new(Scripts::new(|script| script)));
const MAX_DEADLINE: Duration = Duration::from_secs(3600);

impl RedisStore {
    /// The default deadline of a call to Redis.
    pub const DEADLINE: Duration = Duration::from_millis(100);

    /// Returns a store that connects on first use.
    ///
    /// # Errors
    ///
    /// If the URL is invalid or needs a feature that is disabled.
    pub fn lazy(url: &str) -> Result<Self, StoreError> {
        let deployment = Arc::new(Deployment::new(url, &Tls::default())?);
        Ok(RedisStore::new(deployment, Self::DEADLINE))
    }

    /// Like [`lazy`](Self::lazy), with this deadline, at most an hour, these certificates, and a place for denials, if any. Stores
    /// of the same URL, deadline and certificates share their connections.
    ///
    /// # Errors
    ///
    /// Like `lazy`, or if a certificate or the key is invalid.
    pub(crate) fn shared(
        url: &str,
        deadline: Duration,
        tls: &Tls,
        denials: Option<Denials>,
    ) -> Result<Self, StoreError> {
        let deadline = deadline.min(MAX_DEADLINE);
        let store = RedisStore::new(Deployment::shared(url, deadline, tls)?, deadline);
        Ok(RedisStore { denials, ..store })
    }

    /// Returns a store over a test's streams to a simulated server.
    #[cfg(feature = "test-util")]
    pub fn over(dial: impl Dial) -> Self {
        let node = Node::new(Target::Stream(Dialer::new(dial)));
        RedisStore::new(Arc::new(Deployment::Node(node)), Self::DEADLINE)
    }

    fn new(deployment: Arc<Deployment>, deadline: Duration) -> Self {
        RedisStore { deployment, deadline, scripts: Arc::clone(&SCRIPTS), denials: None }
    }

    /// Sets the deadline of each call, at most an hour.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        RedisStore { deadline: deadline.min(MAX_DEADLINE), ..self }
    }

    /// Replaces the clock, for tests. The arguments are those of [`ratelimit_lua::with_time`].
    #[must_use]
    pub fn with_time(self, now: &str, expire: &str) -> Self {
        let scripts = Scripts::new(|script| ratelimit_lua::with_time(&script, now, expire));
        RedisStore { scripts: Arc::new(scripts), ..self }
    }

    /// Lets the full scripts make all decisions, for tests, as if none were about plain states.
    #[must_use]
    pub fn without_first_pass(self) -> Self {
        RedisStore { scripts: Arc::new(self.scripts.without_first_pass()), ..self }
    }

    /// Sets where what it refuses is remembered.
    #[cfg(feature = "test-util")]
    pub(crate) fn with_denials(self, denials: Option<Denials>) -> Self {
        RedisStore { denials, ..self }
    }

    pub(crate) fn denials(&self) -> Option<&Denials> {
        self.denials.as_ref()
    }

    pub(crate) fn is_cluster(&self) -> bool {
        matches!(*self.deployment, Deployment::Cluster(_))
    }

    /// Connects and waits for a response, for at least two seconds.
    ///
    /// # Errors
    ///
    /// If no server responds or authentication fails.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let deadline = Instant::now() + self.deadline.max(Duration::from_secs(2));
        let pong = match &*self.deployment {
            Deployment::Node(node) => node.ping(deadline).await,
            Deployment::Cluster(cluster) => cluster.ping(deadline).await,
        };
        match pong {
            Err(error) if !error.is_no_permission() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Makes one decision about a list of charges, all or nothing except for shadows.
    ///
    /// # Errors
    ///
    /// If Redis fails. The charges may have been made all the same.
    pub async fn decide(&self, charges: &[Charge]) -> Result<Outcome, StoreError> {
        let reply = self.invoke(&self.scripts.decide(iter::once(charges))?).await?;
        scripts::outcome(charges, reply)
    }

    /// Makes several decisions, in order and at the same time of the store, with one call per Cluster slot.
    pub async fn decide_many(&self, decisions: &[&[Charge]]) -> Vec<Result<Outcome, StoreError>> {
        if !self.is_cluster() || decisions.len() < 2 {
            return self.decide_together(decisions).await;
        }
        let groups = by_slot(decisions);
        let calls = groups.iter().map(|group| async {
            let decisions: Vec<&[Charge]> = group.iter().map(|index| decisions[*index]).collect();
            self.decide_together(&decisions).await
        });
        let outcomes = join_all(calls).await.into_iter().flatten();
        let mut outcomes: Vec<_> = groups.iter().flatten().zip(outcomes).collect();
        outcomes.sort_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Refunds `cost` permits of the identified charge, or of whatever the key holds. Sent at most once.
    ///
    /// # Errors
    ///
    /// If Redis fails. The refund may have been made all the same.
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

    /// Deletes the state of the key.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn reset(&self, key: &Key) -> Result<(), StoreError> {
        let key = scripts::key_text(key)?;
        self.send(&[key], redis::cmd("DEL").arg(key), Instant::now() + self.deadline).await?;
        Ok(())
    }

    /// Makes several decisions with one call, which fails for all of them.
    async fn decide_together(&self, decisions: &[&[Charge]]) -> Vec<Result<Outcome, StoreError>> {
        let reply = match self.scripts.decide(decisions.iter().copied()) {
            Ok(invocation) => self.invoke(&invocation).await,
            Err(error) => Err(error),
        };
        match reply.and_then(|reply| scripts::outcomes(decisions, reply)) {
            Ok(outcomes) => outcomes,
            Err(error) => vec![Err(error); decisions.len()],
        }
    }

    /// Calls a script by its hash, and again with its source only if the server does not know the hash: after any other
    /// error the script may have run.
    async fn invoke(&self, invocation: &Invocation<'_>) -> Result<Value, StoreError> {
        let deadline = Instant::now() + self.deadline;
        match self.send(invocation.keys(), &invocation.evalsha(), deadline).await {
            Err(error) if error.is_no_script() => {
                Ok(self.send(invocation.keys(), &invocation.eval(), deadline).await?)
            }
            reply => Ok(reply?),
        }
    }

    async fn send(&self, keys: &[&str], command: &Cmd, deadline: Instant) -> Result<Value, CallError> {
        match &*self.deployment {
            Deployment::Node(node) => node.send(NodeRequest::Plain(command), deadline).await,
            Deployment::Cluster(cluster) => cluster.send(keys, command, deadline).await,
        }
    }
}
