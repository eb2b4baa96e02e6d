//! A name and a policy on a store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::AlgorithmSpec;
use crate::backend::{Backend, Pending};
use crate::decision::Decision;
use crate::error::Error;
use crate::key::IntoKey;
use crate::name::Name;
use crate::on_store_error::OnStoreError;
use crate::policy::Policy;

/// A name and a policy on the store of a [`Registry`](crate::Registry): limits by hand, where no attribute fits.
///
/// Cheap to clone. The state is the store's: limiters of one name and policy count together, and together with the
/// function whose policy has that name.
///
/// ```
/// # use ratelimits::{Registry, TokenBucket};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let registry = Registry::in_memory();
/// let reports = registry.limiter("reports", TokenBucket::per_second(2).burst(10))?;
/// reports.try_acquire("tenant-7", 10).await?;
/// let refused = reports.try_acquire("tenant-7", 1).await.unwrap_err();
/// assert!(refused.is_limited() && refused.retry_after().is_some());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Limiter {
    backend: Arc<Backend>,
    definition: Arc<Definition>,
}

/// What makes a limiter this one.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) name: Arc<str>,
    pub(crate) prefix: Box<str>,
    pub(crate) function: Option<Box<str>>,
    pub(crate) on_store_error: Option<OnStoreError>,
    pub(crate) policy: Policy,
    pub(crate) spec: AlgorithmSpec,
}

impl Limiter {
    pub(crate) fn new(backend: Arc<Backend>, definition: Arc<Definition>) -> Self {
        Limiter { backend, definition }
    }

    /// The limiter whose keys begin with this prefix, as those of an attribute with `prefix = "…"`.
    #[must_use]
    pub fn prefix(&self, prefix: &str) -> Self {
        let definition = Definition { prefix: prefix.into(), ..(*self.definition).clone() };
        Limiter::new(Arc::clone(&self.backend), Arc::new(definition))
    }

    /// The limiter that meets a policy of this function, where the function has several policies with different keys, or
    /// with none: in a Redis Cluster such keys lie together, by the name of the function.
    #[must_use]
    pub fn function(&self, function: &str) -> Self {
        let function = (!function.is_empty()).then(|| function.into());
        let definition = Definition { function, ..(*self.definition).clone() };
        Limiter::new(Arc::clone(&self.backend), Arc::new(definition))
    }

    /// The limiter with another answer to trouble than its registry's: what becomes of its calls if Redis does not decide them. It
    /// has no effect in process.
    ///
    /// ```
    /// # use ratelimits::{FixedWindow, OnStoreError, Registry};
    /// # fn main() -> Result<(), ratelimits::Error> {
    /// # let registry = Registry::in_memory();
    /// let codes = registry.limiter("codes", FixedWindow::new(5, std::time::Duration::from_secs(900)))?;
    /// let codes = codes.on_store_error(OnStoreError::Deny);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn on_store_error(&self, on_store_error: OnStoreError) -> Self {
        let on_store_error = Some(on_store_error);
        let definition = Definition { on_store_error, ..(*self.definition).clone() };
        Limiter::new(Arc::clone(&self.backend), Arc::new(definition))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.definition.policy
    }

    /// Takes `cost` permits for `key`, or none. Never waits for permits. A cost of 0 passes without asking.
    ///
    /// # Errors
    ///
    /// [`Error::Limited`] if the policy refuses; nothing is charged then. [`Error::Store`] if the store fails and
    /// [`OnStoreError`] does not say otherwise; whether it has charged the call is then unknown.
    pub async fn try_acquire<M>(&self, key: impl IntoKey<M>, cost: u64) -> Result<Decision, Error> {
        self.backend.decide([self.pending(key, cost)]).await
    }

    /// Takes `cost` permits for `key`, and waits for them as long as it takes, which
    /// [`Decision::waited`](crate::Decision::waited) tells: `acquire` of Guava's `RateLimiter`. A cost of 0 passes without
    /// asking.
    ///
    /// A bucket gives its permits to those who wait in the order in which they came, be it from several processes. Those who
    /// wait for a window stand in line in this process; calls that do not wait may get room before them. A future that is dropped while it waits gives back what no later call
    /// stands on, and lets those behind it move up where they wait in this process.
    ///
    /// # Errors
    ///
    /// [`Error::Limited`] if the call costs more than the policy ever admits, a queue is full, or so many wait already as the
    /// registry lets wait; nothing is charged then. [`Error::Store`] if the store fails and [`OnStoreError`] does not say
    /// otherwise, or the call has to wait and there is no tokio runtime with its time enabled.
    ///
    /// ```
    /// use ratelimits::{Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let mails = Registry::in_memory().limiter("mails", TokenBucket::per_second(100).burst(1))?;
    /// assert_eq!(mails.acquire((), 1).await?.waited.as_millis(), 0);
    /// assert!(mails.acquire((), 1).await?.waited.as_micros() > 0);
    /// # Ok(()) }
    /// ```
    pub async fn acquire<M>(&self, key: impl IntoKey<M>, cost: u64) -> Result<Decision, Error> {
        self.acquire_timeout(key, cost, Duration::MAX).await
    }

    /// As [`acquire`](Self::acquire), and waits for `timeout` at the most. A wait that would not fit takes nothing and is
    /// refused at once: nobody waits in vain.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::Limited`] if the wait does not fit the timeout.
    pub async fn acquire_timeout<M>(
        &self,
        key: impl IntoKey<M>,
        cost: u64,
        timeout: Duration,
    ) -> Result<Decision, Error> {
        self.backend.decide([Pending { timeout, ..self.pending(key, cost) }]).await
    }

    /// A charge for [`Registry::try_acquire_all`](crate::Registry::try_acquire_all).
    pub fn charge<M>(&self, key: impl IntoKey<M>, cost: u64) -> NamedCharge {
        NamedCharge { backend: Arc::clone(&self.backend), pending: self.pending(key, cost) }
    }

    /// What a call now would find. Charges nothing, writes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store fails and [`OnStoreError`] does not say otherwise.
    pub async fn peek<M>(&self, key: impl IntoKey<M>) -> Result<Decision, Error> {
        self.backend.peek(self.pending(key, 0)).await
    }

    /// Gives `permits` back to what the key holds now, up to full; the newest charges of a window first. There is no
    /// receipt: the caller answers for having been charged so much. Better is [`Decision::refund`], which also knows where the
    /// charge was made: this gives back in Redis, whatever [`OnStoreError`] says.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store fails; whether it has given them back is then unknown, and it is not asked again.
    pub async fn refund<M>(&self, key: impl IntoKey<M>, permits: u64) -> Result<(), Error> {
        self.backend.refund(self.pending(key, permits)).await
    }

    /// Forgets what the key holds: the next call finds a full bucket or an empty window. Those who wait for a bucket in this
    /// process are charged anew first; in Redis they keep their slots, beside which new calls go at once. What this process has
    /// counted while Redis did not answer is evicted too, here and not in other processes.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store fails.
    pub async fn reset<M>(&self, key: impl IntoKey<M>) -> Result<(), Error> {
        self.backend.reset(self.pending(key, 0)).await
    }

    fn pending<M>(&self, key: impl IntoKey<M>, cost: u64) -> Pending {
        let Definition { name, prefix, function, spec, on_store_error, .. } = &*self.definition;
        let mut parts = self.backend.key();
        key.write(&mut parts);
        let name = Name::Shared(Arc::clone(name));
        let key = self.backend.finish(parts, (prefix, &name, function.as_deref()), spec);
        let on_store_error = *on_store_error;
        Pending { name, key, spec: *spec, cost, timeout: Duration::ZERO, on_store_error }
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.definition.fmt(f)
    }
}

/// A charge of a limiter, to be decided together with others by
/// [`Registry::try_acquire_all`](crate::Registry::try_acquire_all).
#[derive(Debug)]
#[must_use = "a charge is decided by `Registry::try_acquire_all`"]
pub struct NamedCharge {
    pub(crate) backend: Arc<Backend>,
    pub(crate) pending: Pending,
}
