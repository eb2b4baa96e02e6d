//! Limiters, for limits where no attribute fits.

mod blocking;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::AlgorithmSpec;
use crate::backend::{Backend, KeyOwner};
use crate::decision::Decision;
use crate::error::Error;
use crate::error::missing_key::MissingKey;
use crate::key::IntoKey;
use crate::name::Name;
use crate::on_store_error::OnStoreError;
use crate::policy::Policy;
use crate::policy_id::PolicyId;
use crate::request::{AcquireRequest, PolicyCharge, max_wait};
use crate::store::Charge;

/// A named policy on the store of a [`Registry`](crate::Registry), for limits where no attribute fits.
///
/// Cheap to clone. The state is in the store: limiters with the same name and policy share it, also with the function whose
/// policy has that name. In code that is not async, use [`blocking_try_acquire`](Self::blocking_try_acquire),
/// [`blocking_acquire`](Self::blocking_acquire) and [`blocking_acquire_timeout`](Self::blocking_acquire_timeout).
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

/// The properties that distinguish one limiter from another.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) name: Arc<str>,
    pub(crate) prefix: Box<str>,
    pub(crate) policy_id: PolicyId,
    pub(crate) function: Option<Box<str>>,
    pub(crate) on_store_error: Option<OnStoreError>,
    pub(crate) policy: Policy,
    pub(crate) spec: AlgorithmSpec,
}

impl Limiter {
    pub(crate) fn new(backend: Arc<Backend>, definition: Arc<Definition>) -> Self {
        Limiter { backend, definition }
    }

    /// Returns this limiter with a key prefix, as an attribute sets with `prefix = "…"`.
    #[must_use]
    pub fn prefix(&self, prefix: &str) -> Self {
        let policy_id = PolicyId::new(prefix, &self.definition.name);
        let definition = Definition { prefix: prefix.into(), policy_id, ..(*self.definition).clone() };
        Limiter::new(Arc::clone(&self.backend), Arc::new(definition))
    }

    /// Returns this limiter with the keys of a policy of this function.
    ///
    /// Needed to share state with a function that has several policies whose keys differ, or that have no key: their keys
    /// contain the function's name, so that a Redis Cluster keeps them in one slot.
    #[must_use]
    pub fn function(&self, function: &str) -> Self {
        let function = (!function.is_empty()).then(|| function.into());
        let definition = Definition { function, ..(*self.definition).clone() };
        Limiter::new(Arc::clone(&self.backend), Arc::new(definition))
    }

    /// Returns this limiter with its own [`OnStoreError`] in place of the registry's. In process it has no effect.
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

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.definition.policy
    }

    /// Takes `cost` permits for `key`, or none. Never waits for permits. A cost of 0 is admitted without asking the store.
    ///
    /// # Errors
    ///
    /// [`Error::Limited`] if the policy refuses; nothing is charged then. [`Error::Store`] if the store fails and
    /// [`OnStoreError`] does not decide the call; whether it was charged is then unknown.
    pub async fn try_acquire<M>(&self, key: impl IntoKey<M>, cost: u64) -> Result<Decision, Error> {
        self.acquire_timeout(key, cost, Duration::ZERO).await
    }

    /// Takes `cost` permits for `key`, and waits for them as long as necessary, as `acquire` of Guava's `RateLimiter` does.
    /// [`Decision::waited`](crate::Decision::waited) is how long that was. A cost of 0 is admitted without asking the store.
    ///
    /// A bucket grants permits in the order in which calls reach the store, from however many processes. Calls that wait for a
    /// window queue in each process; calls that do not wait may be admitted before them. A future that is dropped while it waits
    /// returns the permits that no later reservation depends on. In process, the calls behind it move up.
    ///
    /// # Errors
    ///
    /// [`Error::Limited`] if the call costs more than the policy can ever admit, a queue is full, or
    /// [`max_waiters`](crate::RegistryBuilder::max_waiters) calls wait already; nothing is charged then. [`Error::Store`] if the
    /// store fails and [`OnStoreError`] does not decide the call, or if the call has to wait outside a tokio runtime with time
    /// enabled.
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

    /// Takes `cost` permits for `key` like [`acquire`](Self::acquire), waiting for at most `timeout`. If the permits do not come
    /// in time, the call is refused at once and takes nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`Error::Limited`] if the wait would exceed the timeout.
    pub async fn acquire_timeout<M>(
        &self,
        key: impl IntoKey<M>,
        cost: u64,
        timeout: Duration,
    ) -> Result<Decision, Error> {
        self.backend.acquire(self.request(key, cost, timeout)?).await
    }

    /// Creates a charge for [`Registry::try_acquire_all`](crate::Registry::try_acquire_all).
    pub fn charge<M>(&self, key: impl IntoKey<M>, cost: u64) -> NamedCharge {
        NamedCharge {
            backend: Arc::clone(&self.backend),
            charge: self.policy_charge(key, cost, Duration::ZERO),
        }
    }

    /// Returns what a call now would get, without charging or writing anything.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store fails and [`OnStoreError`] does not decide the call.
    pub async fn peek<M>(&self, key: impl IntoKey<M>) -> Result<Decision, Error> {
        self.backend.decide(self.request(key, 0, Duration::ZERO)?).await
    }

    /// Credits `permits` to what the key holds now, up to full; in a window, the newest charges first.
    ///
    /// Unchecked: the caller must have been charged this amount. Prefer [`Decision::refund`], which has a receipt and knows which
    /// store was charged: this credits Redis, whatever [`OnStoreError`] did with the call.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store fails; whether it has credited them is then unknown, and the refund is not repeated.
    pub async fn refund<M>(&self, key: impl IntoKey<M>, permits: u64) -> Result<(), Error> {
        let charge = self.policy_charge(key, permits, Duration::ZERO)?.charge;
        Ok(self.backend.refund(&charge).await?)
    }

    /// Removes the state of the key: the next call finds a full bucket or an empty window.
    ///
    /// In process, calls that wait for a bucket are charged to the new state first. In Redis they keep their slots, and new
    /// calls are admitted beside them. What this process counted during an outage of Redis is removed as well, but not what
    /// other processes counted.
    ///
    /// Receipts of a bucket outlive the reset: refunds of decisions from before it can still credit the new state, all together
    /// with at most one capacity. So do calls with `charge_when` that are running. Receipts of a window end with the reset.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store fails.
    pub async fn reset<M>(&self, key: impl IntoKey<M>) -> Result<(), Error> {
        let charge = self.policy_charge(key, 0, Duration::ZERO)?.charge;
        Ok(self.backend.reset(&charge.key).await?)
    }

    fn request<M>(
        &self,
        key: impl IntoKey<M>,
        cost: u64,
        timeout: Duration,
    ) -> Result<AcquireRequest, Error> {
        let mut request = AcquireRequest::default();
        request.push(self.policy_charge(key, cost, timeout)?)?;
        Ok(request)
    }

    fn policy_charge<M>(
        &self,
        key: impl IntoKey<M>,
        cost: u64,
        timeout: Duration,
    ) -> Result<PolicyCharge, MissingKey> {
        let Definition { name, prefix, policy_id, function, spec, on_store_error, .. } = &*self.definition;
        let mut parts = self.backend.key_writer();
        key.write(&mut parts);
        let name = Name::Shared(Arc::clone(name));
        let owner = KeyOwner { prefix, name: &name, function: function.as_deref(), policy: *policy_id };
        let key = self.backend.finish_key(parts, owner, spec)?;
        let charge = Charge { key, spec: *spec, cost, wait: max_wait(timeout), shadow: false };
        let on_store_error = self.backend.on_store_error(*on_store_error);
        Ok(PolicyCharge { name, site: None, charge, on_store_error })
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Definition { name, policy, .. } = &*self.definition;
        f.debug_struct("Limiter").field("name", name).field("policy", policy).finish_non_exhaustive()
    }
}

/// A charge of one limiter, to be decided together with others by
/// [`Registry::try_acquire_all`](crate::Registry::try_acquire_all).
///
/// ```
/// # use ratelimits::{Registry, TokenBucket};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let registry = Registry::in_memory();
/// let reports = registry.limiter("reports", TokenBucket::per_second(2).burst(10))?;
/// let charges = ["tenant-7", "tenant-8"].map(|tenant| reports.charge(tenant, 1));
/// registry.try_acquire_all(charges).await?;
/// # Ok(()) }
/// ```
#[must_use = "a charge does nothing until `Registry::try_acquire_all` decides it"]
pub struct NamedCharge {
    pub(crate) backend: Arc<Backend>,
    pub(crate) charge: Result<PolicyCharge, MissingKey>,
}

/// Without the key.
impl fmt::Debug for NamedCharge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut charge = f.debug_struct("NamedCharge");
        match &self.charge {
            Ok(PolicyCharge { name, charge: Charge { cost, .. }, .. }) => {
                charge.field("name", &name.as_str()).field("cost", cost);
            }
            Err(missing) => {
                charge.field("missing", missing);
            }
        }
        charge.finish_non_exhaustive()
    }
}
