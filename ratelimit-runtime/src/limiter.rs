//! Limiters, for limits where no attribute fits.

mod acquire;
mod blocking;
mod definition;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use self::acquire::Acquire;
pub(crate) use self::definition::Definition;
use crate::backend::Backend;
use crate::decision::Decision;
use crate::error::Error;
use crate::error::invalid_policy::InvalidPolicy;
use crate::key::{IntoKey, Key};
use crate::on_store_error::OnStoreError;
use crate::policy::Policy;
use crate::request::{AcquireRequest, PolicyCharge};
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

impl Limiter {
    pub(crate) fn new(backend: Arc<Backend>, definition: Arc<Definition>) -> Self {
        Limiter { backend, definition }
    }

    /// Returns this limiter with a key prefix, as an attribute sets with `prefix = "…"`.
    #[must_use]
    pub fn prefix(&self, prefix: &str) -> Self {
        self.with_keys(prefix, self.definition.function.as_deref())
    }

    /// Returns this limiter with the keys of a policy of this function.
    ///
    /// Needed to share state with a function that has several policies whose keys differ, or that have no key: their keys
    /// contain the function's name, so that a Redis Cluster keeps them in one slot.
    #[must_use]
    pub fn function(&self, function: &str) -> Self {
        self.with_keys(&self.definition.prefix, (!function.is_empty()).then_some(function))
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
    /// [`OnStoreError`] does not decide the call; whether it was charged is then unknown. [`Error::MissingKey`] if a part of the
    /// key cannot be formatted.
    #[inline]
    pub fn try_acquire<M>(
        &self,
        key: impl IntoKey<M>,
        cost: u64,
    ) -> impl Future<Output = Result<Decision, Error>> {
        Acquire::new(&self.backend, &self.definition, key, cost, Duration::ZERO)
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
    /// enabled. [`Error::MissingKey`] if a part of the key cannot be formatted.
    ///
    /// ```
    /// use ratelimits::{Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let mails = Registry::in_memory().limiter("mails", TokenBucket::per_second(100).burst(1))?;
    /// assert_eq!(mails.acquire((), 1).await?.waited.as_millis(), 0);
    /// assert!(mails.acquire((), 1).await?.waited.as_micros() > 0);
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn acquire<M>(
        &self,
        key: impl IntoKey<M>,
        cost: u64,
    ) -> impl Future<Output = Result<Decision, Error>> {
        Acquire::new(&self.backend, &self.definition, key, cost, Duration::MAX)
    }

    /// Takes `cost` permits for `key` like [`acquire`](Self::acquire), waiting for at most `timeout`. If the permits do not come
    /// in time, the call is refused at once and takes nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`Error::Limited`] if the wait would exceed the timeout.
    #[inline]
    pub fn acquire_timeout<M>(
        &self,
        key: impl IntoKey<M>,
        cost: u64,
        timeout: Duration,
    ) -> impl Future<Output = Result<Decision, Error>> {
        Acquire::new(&self.backend, &self.definition, key, cost, timeout)
    }

    /// Creates a charge for [`Registry::try_acquire_all`](crate::Registry::try_acquire_all).
    pub fn charge<M>(&self, key: impl IntoKey<M>, cost: u64) -> NamedCharge {
        let charge = self.definition.policy_charge(&self.backend, key, cost, Duration::ZERO);
        NamedCharge { limiter: self.clone(), cost, charge }
    }

    /// Returns what a call of cost 1 that does not wait would get now, without charging or writing anything.
    ///
    /// If it would be refused, that is no error: [`Decision::retry_after`] is the time until it would be admitted, and
    /// [`PolicyDecision::admitted`](crate::PolicyDecision::admitted) is false. [`Decision::remaining`] and
    /// [`Decision::reset_after`] describe the state as it is. The answer may be outdated at once, so it does not replace
    /// [`try_acquire`](Self::try_acquire).
    ///
    /// It is no call: observers and metrics do not see it, and no refusal is logged. It always asks the store. During an outage
    /// [`OnStoreError`] applies to it, and permits that are leased count as used.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store fails and [`OnStoreError`] does not decide the call. [`Error::MissingKey`] if a part of the
    /// key cannot be formatted.
    ///
    /// ```
    /// # use ratelimits::{FixedWindow, Registry};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let daily = FixedWindow::new(3, std::time::Duration::from_secs(86_400));
    /// let reports = Registry::in_memory().limiter("reports", daily)?;
    /// let fresh = reports.peek("tenant-7").await?;
    /// assert_eq!((fresh.remaining, fresh.retry_after), (3, None));
    /// reports.try_acquire("tenant-7", 3).await?;
    /// let spent = reports.peek("tenant-7").await?;
    /// assert_eq!(spent.remaining, 0);
    /// assert!(spent.retry_after.is_some());
    /// # Ok(()) }
    /// ```
    pub async fn peek<M>(&self, key: impl IntoKey<M>) -> Result<Decision, Error> {
        let mut request = AcquireRequest::default();
        self.definition.add_to(&mut request, &self.backend, key, 0, Duration::ZERO)?;
        self.backend.decide(request).await
    }

    /// Credits `permits` to what the key holds now, up to full; in a window, the newest charges first.
    ///
    /// Unchecked: the caller must have been charged this amount. Prefer [`Decision::refund`], which has a receipt and knows which
    /// store was charged: this credits Redis, whatever [`OnStoreError`] did with the call.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store fails; whether it has credited them is then unknown, and the refund is not repeated.
    /// [`Error::MissingKey`] if a part of the key cannot be formatted.
    pub async fn refund<M>(&self, key: impl IntoKey<M>, permits: u64) -> Result<(), Error> {
        let charge = self.definition.policy_charge(&self.backend, key, permits, Duration::ZERO)?.charge;
        // Also of a policy that is off by now.
        Ok(self.backend.refund(&Charge { cost: permits, ..charge }).await?)
    }

    /// Removes the state of the key: the next call finds a full bucket or an empty window. Returns whether there was any: state
    /// in the store, permits that this process has leased, or what it counted during an outage.
    ///
    /// State that has expired is none. In Redis it may count for up to a second after it has expired.
    ///
    /// In process, calls that wait for a bucket are charged to the new state first, unless one with a larger burst has overtaken
    /// them. Those, and calls in Redis, keep their slots, and new calls are admitted beside them. What this process counted during
    /// an outage of Redis is removed as well, but not what other processes counted. Other processes may refuse the key for up to
    /// a second longer ([`local_denials`](crate::RegistryBuilder::local_denials)).
    ///
    /// Receipts of a bucket outlive the reset: refunds of decisions from before it can still credit the new state, all together
    /// with at most one capacity. So do calls with `charge_when` that are running. Receipts of a window end with the reset.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store fails. [`Error::MissingKey`] if a part of the key cannot be formatted.
    ///
    /// ```
    /// # use ratelimits::{Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let reports = Registry::in_memory().limiter("reports", TokenBucket::per_second(2).burst(10))?;
    /// reports.try_acquire("tenant-7", 10).await?;
    /// assert!(reports.reset("tenant-7").await?);
    /// assert_eq!(reports.peek("tenant-7").await?.remaining, 10);
    /// assert!(!reports.reset("tenant-7").await?);
    /// # Ok(()) }
    /// ```
    pub async fn reset<M>(&self, key: impl IntoKey<M>) -> Result<bool, Error> {
        let charge = self.definition.policy_charge(&self.backend, key, 0, Duration::ZERO)?.charge;
        Ok(self.backend.reset(&charge.key).await?)
    }

    /// Returns the permits that the key has used, and how long until its state expires.
    pub(crate) async fn used<M>(&self, key: impl IntoKey<M>) -> Result<(u64, Duration), Error> {
        let Limiter { backend, definition } = self;
        let mut charge = definition.policy_charge(backend, key, 0, Duration::ZERO)?;
        let spec = charge.charge.spec;
        // With numbers that no key exceeds, what is missing is what it has used.
        (charge.charge.spec, charge.charge.shadow) = (spec.unbounded(), false);
        let mut request = AcquireRequest::default();
        request.push(charge)?;
        let Decision { limit, remaining, reset_after, .. } = backend.decide(request).await?;
        let in_advance = spec.used_in_advance(reset_after.as_micros() as u64);
        Ok((limit.saturating_sub(remaining) + in_advance, reset_after))
    }

    fn with_keys(&self, prefix: &str, function: Option<&str>) -> Self {
        let Definition { name, on_store_error, policy, spec, .. } = &*self.definition;
        let definition = Definition::new(Arc::clone(name), prefix, function, *policy, *spec);
        let definition = Definition { on_store_error: *on_store_error, ..definition };
        Limiter::new(Arc::clone(&self.backend), Arc::new(definition))
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
    limiter: Limiter,
    cost: u64,
    charge: Result<PolicyCharge, Error>,
}

impl NamedCharge {
    /// Whether its limiter is turned off, so that it charges nothing.
    pub(crate) fn is_off(&self) -> bool {
        self.cost > 0 && self.charge.as_ref().is_ok_and(|charge| charge.charge.cost == 0)
    }

    /// Adds it to a request to this backend, whose charges the map finds by key.
    pub(crate) fn add_to(
        self,
        request: &mut AcquireRequest,
        by_key: &mut HashMap<Key, usize>,
        backend: &Arc<Backend>,
    ) -> Result<(), Error> {
        let NamedCharge { limiter: Limiter { backend: own, definition }, cost, charge } = self;
        if !Arc::ptr_eq(&own, backend) {
            return Err(InvalidPolicy::new("charges", "belong to a limiter of another registry").into());
        }
        let added = charge.and_then(|charge| Ok(request.push_indexed(charge, by_key)?));
        added.map_err(|error| definition.refused(backend, cost, error))
    }
}

/// Without the key.
impl fmt::Debug for NamedCharge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut charge = f.debug_struct("NamedCharge");
        charge.field("name", &self.limiter.definition.name).field("cost", &self.cost);
        if let Err(error) = &self.charge {
            charge.field("error", error);
        }
        charge.finish_non_exhaustive()
    }
}

#[cfg(feature = "web")]
impl Limiter {
    /// Decides a call that has no key: it is refused, unless limits are off.
    pub(crate) fn try_acquire_without_key(&self, missing: crate::error::MissingKey) -> Result<(), Error> {
        match self.backend.primary() {
            Some(_) => Err(self.definition.refused(&self.backend, 1, missing.into())),
            None => Ok(()),
        }
    }
}
