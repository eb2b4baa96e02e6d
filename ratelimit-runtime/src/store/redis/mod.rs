//! State in Redis, shared by all processes that use it.

mod address;
mod batches;
mod breaker;
mod client;
mod cluster;
mod connect;
mod connection;
mod corrections;
mod deployment;
mod error;
mod error_code;
mod holds;
#[cfg(feature = "overrides")]
mod inventory;
mod jitter;
mod keyspace;
mod node;
#[cfg(feature = "overrides")]
mod overrides;
mod scripts;
mod server_time;
#[cfg(any(test, feature = "test-util"))]
mod testing;
mod url;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::batches::{BatchQueueId, Batches};
use self::client::Client;
use self::cluster::slot_of;
#[cfg(feature = "test-util")]
use self::connect::Target;
use self::corrections::Corrections;
use self::deployment::Deployment;
use self::holds::{HOLD_TTL, Holds};
pub use self::keyspace::Master;
#[cfg(feature = "test-util")]
use self::node::Node;
#[cfg(feature = "overrides")]
pub(crate) use self::overrides::StoredOverrides;
use self::scripts::{Form, Scripts, Sequence};
#[cfg(feature = "test-util")]
use self::testing::test_stream::Dialer;
#[cfg(feature = "test-util")]
pub use self::testing::test_stream::{Dial, Stream};
use crate::algorithm::{AlgorithmSpec, ChargeId};
use crate::key::Key;
use crate::store::charge::{Charge, Outcome, SharedCharges};
use crate::store::correction::{Corrected, Correction, OnCorrected, Urgency};
use crate::store::denials::Denials;
use crate::store::error::StoreError;
use crate::store::hold::Hold;
use crate::store::leases::Leases;
use crate::store::tls::Tls;

/// State in Redis.
///
/// Uses one multiplexed connection per runtime and server, and one script call for any number of decisions. Each call
/// ends by its deadline.
#[derive(Debug)]
pub struct RedisStore {
    client: Arc<Client>,
    /// `None` if no calls share a batch.
    batches: Option<Batches>,
    corrections: Corrections,
    denials: Option<Arc<Denials>>,
    leases: Arc<Leases>,
}

/// The scripts of all stores.
static SCRIPTS: LazyLock<Arc<Scripts>> = LazyLock::new(|| Arc::new(Scripts::new(|script| script)));
const MAX_DEADLINE: Duration = Duration::from_secs(3600);
const MIN_HOLD_TTL: Duration = Duration::from_secs(1);

impl RedisStore {
    /// For how long Redis believes what calls hold, without hearing of them.
    pub const HOLD_TTL: Duration = HOLD_TTL;

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

    /// Like [`lazy`](Self::lazy), with this deadline, at most an hour, this time for which holds are believed, these certificates, and a place for denials, if any. Stores
    /// of the same URL, deadline and certificates share their connections.
    ///
    /// # Errors
    ///
    /// Like `lazy`, or if a certificate or the key is invalid.
    pub(crate) fn shared(
        url: &str,
        (deadline, hold_ttl): (Duration, Duration),
        tls: &Tls,
        denials: Option<Denials>,
    ) -> Result<Self, StoreError> {
        let deadline = deadline.min(MAX_DEADLINE);
        let store = RedisStore::new(Deployment::shared(url, deadline, tls)?, deadline);
        Ok(RedisStore { denials: denials.map(Arc::new), ..store }.with_hold_ttl(hold_ttl))
    }

    /// Returns a store over a test's streams to a simulated server.
    #[cfg(feature = "test-util")]
    pub fn over(dial: impl Dial) -> Self {
        let node = Node::new(Target::Stream(Dialer::new(dial)));
        // The clock of a test's runtime may be paused.
        let speaker = || Handle::try_current().map_err(std::io::Error::other);
        let store = RedisStore::new(Arc::new(Deployment::Node(node)), Self::DEADLINE);
        store.with_client(|client| Client { holds: Holds::new(HOLD_TTL, speaker), ..client })
    }

    fn new(deployment: Arc<Deployment>, timeout: Duration) -> Self {
        let client = Client::new(deployment, timeout, Arc::clone(&SCRIPTS));
        let (client, batches) = (Arc::new(client), Some(Batches::default()));
        let corrections = Corrections::default();
        send_holds_by(&client, &corrections);
        RedisStore { client, batches, corrections, denials: None, leases: Arc::default() }
    }

    /// Sets the deadline of each call, at most an hour.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        self.with_client(|client| Client { timeout: deadline.min(MAX_DEADLINE), ..client })
    }

    /// Sets for how long Redis believes what calls hold, at least a second and four deadlines, at most an hour.
    #[must_use]
    pub(crate) fn with_hold_ttl(self, hold_ttl: Duration) -> Self {
        let least = (4 * self.client.timeout).max(MIN_HOLD_TTL);
        let holds = Holds::new(hold_ttl.max(least).min(MAX_DEADLINE), self.client.holds.speaker());
        self.with_client(|client| Client { holds, ..client })
    }

    /// Replaces the clock, for tests. The arguments are those of [`ratelimit_lua::with_time`].
    #[must_use]
    pub fn with_time(self, now: &str, expire: &str) -> Self {
        let scripts = Arc::new(Scripts::new(|script| ratelimit_lua::with_time(&script, now, expire)));
        self.with_client(|client| Client { scripts, ..client })
    }

    /// Lets the full scripts make all decisions and corrections, for tests, as if none were about plain states.
    #[must_use]
    pub fn without_first_pass(self) -> Self {
        self.with_client(|client| Client { scripts: Arc::new(client.scripts.without_first_pass()), ..client })
    }

    /// Sends each decision alone, for tests.
    #[must_use]
    pub fn without_batches(self) -> Self {
        RedisStore { batches: None, ..self }
    }

    fn with_client(self, change: impl FnOnce(Client) -> Client) -> Self {
        let Client { deployment, timeout, scripts, holds, .. } = &*self.client;
        let client = Client::new(Arc::clone(deployment), *timeout, Arc::clone(scripts));
        let holds = Holds::new(holds.ttl(), holds.speaker());
        let client = Arc::new(change(Client { holds, ..client }));
        send_holds_by(&client, &self.corrections);
        RedisStore { client, ..self }
    }

    /// Counts what a call holds that was admitted without asking Redis, given the index of the charge. Redis hears of it later.
    pub(crate) fn admit(&self, index: usize, charge: &Charge) -> Option<Arc<Hold>> {
        self.client.holds.admit(index, charge)
    }

    /// Sets what learns that calls of this process have released permits.
    pub(crate) fn on_release(&self, listener: impl Fn(&Key) + Send + Sync + 'static) {
        self.client.holds.on_release(listener);
    }

    /// Sets where what it refuses is remembered.
    #[cfg(feature = "test-util")]
    pub(crate) fn with_denials(self, denials: Option<Denials>) -> Self {
        RedisStore { denials: denials.map(Arc::new), ..self }
    }

    pub(crate) fn denials(&self) -> Option<&Denials> {
        self.denials.as_deref()
    }

    pub(crate) fn leases(&self) -> &Arc<Leases> {
        &self.leases
    }

    /// Returns the deadline of a call that begins now.
    pub(crate) fn deadline(&self) -> Instant {
        self.client.deadline()
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.client.is_cluster()
    }

    /// Returns the deadline of every call, as a duration.
    pub(crate) fn timeout(&self) -> Duration {
        self.client.timeout
    }

    /// Returns whether it is a single server, a Cluster, or watched by Sentinels, in a word for log events.
    pub(crate) fn deployment(&self) -> &'static str {
        self.client.deployment.kind()
    }

    /// Returns where its servers are, for log events.
    pub(crate) fn server(&self) -> String {
        self.client.deployment.address()
    }

    /// Connects and waits for a response, for at least two seconds. Returns the name and version of the server, if it reports them.
    ///
    /// # Errors
    ///
    /// If no server responds or authentication fails.
    pub async fn ping(&self) -> Result<Option<String>, StoreError> {
        let deadline = Instant::now() + self.client.timeout.max(Duration::from_secs(2));
        match self.client.ping(deadline).await {
            Err(error) if !error.is_no_permission() => Err(error.into()),
            _ => Ok(self.client.version(deadline).await),
        }
    }

    /// Makes one decision about a list of charges, all or nothing except for shadows. Shares a call with others that are asked
    /// for at the same time.
    ///
    /// # Errors
    ///
    /// If Redis fails. The charges may have been made all the same.
    pub async fn decide(&self, charges: &[Charge]) -> Result<Box<Outcome>, StoreError> {
        let charges = SharedCharges::new(Arc::new(charges.to_vec()));
        self.decide_shared(&charges, Instant::now()).await
    }

    /// Makes one decision like [`decide`](Self::decide), in a call that begins at this time, and without a copy of its charges.
    pub(crate) async fn decide_shared(
        &self,
        charges: &SharedCharges,
        begun: Instant,
    ) -> Result<Box<Outcome>, StoreError> {
        let deadline = begun + self.client.timeout;
        let outcome = self.decide_once(charges, deadline).await?;
        if !outcome.asks_again {
            return Ok(outcome);
        }
        self.client.holds.until_reported(charges, deadline).await?;
        let outcome = self.decide_once(charges, deadline).await?;
        match outcome.asks_again {
            true => Err(StoreError::transient("Redis has lost what this process holds")),
            false => Ok(outcome),
        }
    }

    async fn decide_once(
        &self,
        charges: &SharedCharges,
        deadline: Instant,
    ) -> Result<Box<Outcome>, StoreError> {
        let form = self.client.scripts.form(charges);
        if let Some(batches) = &self.batches
            && let Ok(runtime) = Handle::try_current()
            && let Some(queue) = self.batch_queue(&runtime, form, charges)
        {
            return batches.decide(&self.client, &runtime, queue, charges, deadline).await;
        }
        self.client.decide(form, charges, deadline).await
    }

    /// Makes several decisions, in order and at the same time of the store, with one call per Cluster slot.
    pub async fn decide_many(&self, decisions: &[&[Charge]]) -> Vec<Result<Box<Outcome>, StoreError>> {
        self.client.decide_many(decisions, self.client.deadline()).await
    }

    /// Refunds `cost` permits of the identified charge, or of whatever the key holds. Sent at most once, and once this is polled.
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
        self.correct_all(vec![Correction::refund(key.clone(), *spec, cost, charge_id)]).await.map(drop)
    }

    /// Admits no call of a key until this many microseconds have passed, or until its pause is over if that takes longer. Sent at most
    /// once, and once this is polled.
    ///
    /// # Errors
    ///
    /// If Redis fails. The key may be paused all the same.
    pub async fn pause(&self, key: &Key, spec: &AlgorithmSpec, micros: u64) -> Result<(), StoreError> {
        self.correct_all(vec![Correction::pause(key.clone(), *spec, micros)]).await.map(drop)
    }

    /// Makes corrections with one call, for tests.
    pub async fn correct_many(&self, corrections: &[Correction]) -> Vec<Result<Corrected, StoreError>> {
        let all: Vec<&Correction> = corrections.iter().collect();
        let results = self.client.correct(&all).await;
        results.unwrap_or_else(|error| vec![Err(error.into()); all.len()])
    }

    /// Corrects what one call was charged. Once polled, it ends even if it is dropped.
    pub(crate) async fn correct_all(&self, corrections: Vec<Correction>) -> Result<Corrected, StoreError> {
        let (sender, receiver) = oneshot::channel();
        let done = Box::new(|result| drop(sender.send(result)));
        self.correct(None, corrections, Urgency::AtOnce, done);
        receiver.await.unwrap_or_else(|_| Err(StoreError::transient("the correction was given up")))
    }

    /// Corrects what one call was charged, by a task of this runtime or else the current one, with one call to Redis. It is sent
    /// whether or not anybody waits for it, and at most once.
    pub(crate) fn correct(
        &self,
        runtime: Option<&Handle>,
        corrections: Vec<Correction>,
        urgency: Urgency,
        done: OnCorrected,
    ) {
        if corrections.is_empty() {
            return done(Ok(Corrected::Whole));
        }
        self.corrections.send(&self.client, runtime, (corrections, urgency), self.denials.clone(), done);
    }

    /// Deletes the state of the key. Returns whether there was any.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn reset(&self, key: &Key) -> Result<bool, StoreError> {
        let key = scripts::key_text(key)?;
        let command = &redis::cmd("DEL").arg(key).take();
        let deleted = self.client.send(&[key], command, self.client.deadline(), false).await?;
        Ok(matches!(deleted, redis::Value::Int(1..)))
    }

    /// Returns the queue in which a decision can share a batch. One that cannot be sent has none.
    fn batch_queue(&self, runtime: &Handle, form: Form, charges: &[Charge]) -> Option<BatchQueueId> {
        if form == Form::Any(Sequence::Other) {
            return None;
        }
        charges.iter().try_for_each(|charge| scripts::key_text(&charge.key).map(drop)).ok()?;
        let slot = if self.client.has_slots() { Some(slot_of(charges).ok()?) } else { None };
        Some(BatchQueueId { runtime: runtime.id(), form, slot })
    }
}

/// Sends what a client has to say about holds as corrections, while there is one.
fn send_holds_by(client: &Arc<Client>, corrections: &Corrections) {
    let (weak, corrections) = (Arc::downgrade(client), corrections.clone());
    let kept = weak.clone();
    let send = move |runtime: Option<&Handle>, correction, done: OnCorrected| match weak.upgrade() {
        Some(client) => corrections.send(&client, runtime, (vec![correction], Urgency::Soon), None, done),
        None => done(Err(StoreError::transient("the registry is gone"))),
    };
    client.holds.send_by(send, move || Some(kept.upgrade()?));
}
