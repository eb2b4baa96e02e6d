//! Limiters, for limits where no attribute fits.

mod acquire;
mod blocking;
mod charge;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use self::acquire::{Acquire, LimiterCall};
pub(crate) use self::acquire::{LimiterCaller, Pending};
pub use self::charge::Charge;
use crate::base::invalid_policy::InvalidPolicy;
use crate::decide::backend::Backend;
use crate::decide::decision::Decision;
use crate::decide::definition::{Definition, Numbers};
use crate::decide::error::Error;
use crate::decide::on_store_error::OnStoreError;
use crate::key::IntoKey;
#[cfg(feature = "web")]
use crate::key::missing_key::MissingKey;
use crate::policy::Policy;
use crate::store::StoreError;

/// A named policy on the store of a [`Registry`](crate::Registry), for limits where no attribute fits.
///
/// Cheap to clone. The state is in the store: limiters with the same name and policy share it, also with the function whose
/// policy has that name. Where a number of permits is given, a method's name ends in `_n`; the others take one. In code that is not
/// async, use [`blocking_try_acquire`](Self::blocking_try_acquire), [`blocking_acquire`](Self::blocking_acquire) and
/// [`blocking_acquire_timeout`](Self::blocking_acquire_timeout).
///
/// ```
/// # use ratelimits::{Registry, TokenBucket};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let registry = Registry::in_memory();
/// let reports = registry.limiter("reports", TokenBucket::per_second(2).burst(10))?;
/// reports.try_acquire_n("tenant-7", 10).await?;
/// let refused = reports.try_acquire("tenant-7").await.unwrap_err();
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
        let Numbers { policy, spec, .. } = *self.numbers();
        let mut definition = self.definition.renumbered(policy, spec);
        definition.on_store_error = Some(on_store_error);
        self.with(definition)
    }

    /// Returns a limiter of the same name and keys with other numbers, for calls with numbers of their own.
    ///
    /// # Errors
    ///
    /// Fails if the policy is invalid, or of another algorithm.
    #[doc(hidden)]
    pub fn with_numbers(&self, policy: impl Into<Policy>) -> Result<Self, InvalidPolicy> {
        let policy = policy.into();
        if policy.algorithm() != self.definition.algorithm {
            return Err(InvalidPolicy::new("policy", "has another algorithm; write that of the limiter"));
        }
        Ok(self.with(self.definition.renumbered(policy, policy.spec()?)))
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.definition.name.as_str()
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.numbers().policy
    }

    /// Takes a permit for `key`, if there is one. Never waits for permits.
    ///
    /// # Errors
    ///
    /// [`Error::Limited`] if the policy refuses; nothing is charged then. [`Error::Store`] if the store fails and
    /// [`OnStoreError`] does not decide the call; whether it was charged is then unknown. [`Error::MissingKey`] if a part of the
    /// key cannot be formatted.
    #[inline]
    pub fn try_acquire<M>(&self, key: impl IntoKey<M>) -> impl Future<Output = Result<Decision, Error>> {
        self.try_acquire_n(key, 1)
    }

    /// Takes `n` permits for `key`, or none, like [`try_acquire`](Self::try_acquire). A call for 0 is admitted without asking the
    /// store.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_n<M>(
        &self,
        key: impl IntoKey<M>,
        n: u64,
    ) -> impl Future<Output = Result<Decision, Error>> {
        Acquire::new(self.call(n, Duration::ZERO), key)
    }

    /// Takes a permit for `key`, and waits for it as long as necessary, as `acquire` of Guava's `RateLimiter` does.
    /// [`Decision::waited`](crate::Decision::waited) is how long that was.
    ///
    /// A bucket grants permits in the order in which calls reach the store, from however many processes. Calls that wait for a
    /// window queue in each process; calls that do not wait may be admitted before them. A future that is dropped while it waits
    /// returns the permits that no later reservation depends on. In process, the calls behind it move up.
    ///
    /// # Errors
    ///
    /// [`Error::Limited`] if the call takes more than the policy can ever admit, a queue is full, or
    /// [`max_waiters`](crate::RegistryBuilder::max_waiters) calls wait already; nothing is charged then. [`Error::Store`] if the
    /// store fails and [`OnStoreError`] does not decide the call, or if the call has to wait outside a tokio runtime with time
    /// enabled. [`Error::MissingKey`] if a part of the key cannot be formatted.
    ///
    /// ```
    /// use ratelimits::{Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let mails = Registry::in_memory().limiter("mails", TokenBucket::per_second(4).burst(1))?;
    /// assert_eq!(mails.acquire(()).await?.waited.as_millis(), 0);
    /// assert!(mails.acquire(()).await?.waited.as_micros() > 0);
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn acquire<M>(&self, key: impl IntoKey<M>) -> impl Future<Output = Result<Decision, Error>> {
        self.acquire_n(key, 1)
    }

    /// Takes `n` permits for `key`, and waits for all of them, like [`acquire`](Self::acquire). A call for 0 is admitted without
    /// asking the store.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    #[inline]
    pub fn acquire_n<M>(
        &self,
        key: impl IntoKey<M>,
        n: u64,
    ) -> impl Future<Output = Result<Decision, Error>> {
        self.acquire_n_timeout(key, n, Duration::MAX)
    }

    /// Takes a permit for `key` like [`acquire`](Self::acquire), waiting for at most `timeout`. If it does not come in time, the
    /// call is refused at once and takes nothing.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`Error::Limited`] if the wait would exceed the timeout.
    #[inline]
    pub fn acquire_timeout<M>(
        &self,
        key: impl IntoKey<M>,
        timeout: Duration,
    ) -> impl Future<Output = Result<Decision, Error>> {
        self.acquire_n_timeout(key, 1, timeout)
    }

    /// Takes `n` permits for `key` like [`acquire_timeout`](Self::acquire_timeout): all of them within `timeout`, or none.
    ///
    /// # Errors
    ///
    /// As [`acquire_timeout`](Self::acquire_timeout).
    #[inline]
    pub fn acquire_n_timeout<M>(
        &self,
        key: impl IntoKey<M>,
        n: u64,
        timeout: Duration,
    ) -> impl Future<Output = Result<Decision, Error>> {
        Acquire::new(self.call(n, timeout), key)
    }

    /// Creates a charge of one permit for [`Registry::try_acquire_all`](crate::Registry::try_acquire_all). An override of the policy that
    /// comes between this and the call may count from the next charge on.
    pub fn charge<M>(&self, key: impl IntoKey<M>) -> Charge {
        self.charge_n(key, 1)
    }

    /// Creates a charge of `n` permits for [`Registry::try_acquire_all`](crate::Registry::try_acquire_all), as
    /// [`charge`](Self::charge) does.
    pub fn charge_n<M>(&self, key: impl IntoKey<M>, n: u64) -> Charge {
        Charge::new(&self.call(n, Duration::ZERO), &key)
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
    /// reports.try_acquire_n("tenant-7", 3).await?;
    /// let spent = reports.peek("tenant-7").await?;
    /// assert_eq!(spent.remaining, 0);
    /// assert!(spent.retry_after.is_some());
    /// # Ok(()) }
    /// ```
    pub async fn peek<M>(&self, key: impl IntoKey<M>) -> Result<Decision, Error> {
        match self.call(0, Duration::ZERO).peek(&key) {
            Ok(decision) => decision,
            Err(request) => {
                drop(key);
                request.peek().await
            }
        }
    }

    /// Credits `n` permits to what the key holds now, up to full; in a window, the newest charges first.
    ///
    /// Unchecked: the caller must have been charged this amount. Prefer [`Decision::refund`], which has a receipt and knows which
    /// store was charged: this credits Redis, whatever [`OnStoreError`] did with the call.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store fails; whether it has credited them is then unknown, and the refund is not repeated. The same error,
    /// always, for a concurrency limit, whose calls release their permits themselves. [`Error::MissingKey`] if a part of the key cannot
    /// be formatted.
    pub async fn refund<M>(&self, key: impl IntoKey<M>, n: u64) -> Result<(), Error> {
        let mut charge = self.call(0, Duration::ZERO).uncharged(&key)?;
        drop(key);
        if charge.spec.is_semaphore() {
            return Err(StoreError::permanent(
                "a call releases its permits itself, when its decision is dropped",
            )
            .into());
        }
        charge.cost = n;
        Ok(self.backend.refund(&charge).await?)
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
    /// with at most one capacity. So do calls with `charge_when` that are running. Receipts of a window end with the reset, unless a
    /// call opens the next one within the same microsecond as the last one, which only happens in process.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store fails. [`Error::MissingKey`] if a part of the key cannot be formatted.
    ///
    /// ```
    /// # use ratelimits::{Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let reports = Registry::in_memory().limiter("reports", TokenBucket::per_second(2).burst(10))?;
    /// reports.try_acquire_n("tenant-7", 10).await?;
    /// assert!(reports.reset("tenant-7").await?);
    /// assert_eq!(reports.peek("tenant-7").await?.remaining, 10);
    /// assert!(!reports.reset("tenant-7").await?);
    /// # Ok(()) }
    /// ```
    pub async fn reset<M>(&self, key: impl IntoKey<M>) -> Result<bool, Error> {
        let charge = self.call(0, Duration::ZERO).uncharged(&key)?;
        drop(key);
        Ok(self.backend.reset(&charge.key).await?)
    }

    /// Admits no call of the key for this long, in any process: what an upstream's `Retry-After` asks for, or an operator.
    ///
    /// A pause ends by itself, and [`reset`](Self::reset) ends it. Of several pauses the one counts that ends last, so none is ever
    /// shortened. A pause of zero does nothing. One longer than [`max_pause`](crate::RegistryBuilder::max_pause), a day unless the
    /// registry says otherwise, is cut to that, and a log event says so.
    ///
    /// Meanwhile the time of a bucket stands still, and one permit at most is there when it goes on, so that no burst hits the
    /// upstream again; a bucket with `warmup` is cold then. A window keeps its count and its end. Calls are refused with a
    /// [`retry_after`](Decision::retry_after) that includes the pause, or wait for it if they may wait so long. Refunds of what a
    /// bucket was charged before do nothing.
    ///
    /// Calls that have been given a slot before and wait for it start at that slot. Those of a function with `pause_when` start later
    /// instead, by as much as the pause takes, in their order. Permits that processes have leased are spent, except for those of this
    /// process, and a process that Redis does not answer knows of no pause that another one has made.
    ///
    /// Each pause is an INFO event without the key, and an [`Observation`](crate::Observation) with the outcome
    /// [`Paused`](crate::CallOutcome::Paused).
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store fails; whether the key is paused is then unknown. The same error, always, for a concurrency limit,
    /// whose keys cannot be paused. [`Error::MissingKey`] if a part of the key cannot be formatted.
    ///
    /// ```
    /// # use ratelimits::{Registry, TokenBucket};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let api = Registry::in_memory().limiter("api", TokenBucket::per_second(10))?;
    /// api.pause("api.example.com", Duration::from_secs(30)).await?;
    /// let error = api.try_acquire("api.example.com").await.unwrap_err();
    /// assert!(error.retry_after() > Some(Duration::from_secs(29)));
    /// assert!(api.try_acquire("api.example.org").await.is_ok());
    /// # Ok(()) }
    /// ```
    pub async fn pause<M>(&self, key: impl IntoKey<M>, duration: Duration) -> Result<(), Error> {
        let pausable = self.call(0, Duration::ZERO).pausable(&key)?;
        drop(key);
        match pausable {
            Some(pausable) => Ok(pausable.pause(duration).await?),
            None => Ok(()),
        }
    }

    /// Returns the permits that the key has used, and what a call would get.
    pub(crate) async fn used<M>(&self, key: impl IntoKey<M>) -> Result<(u64, Decision), Error> {
        let (spec, decision) = {
            let mut charges = self.call(0, Duration::ZERO).charges_of(&key);
            self.backend.close(&mut charges);
            let spec = charges.iter().next().map(|charge| *charge.spec());
            // With numbers that no key exceeds, what is missing is what it has used.
            charges.unbounded();
            (spec, self.backend.peek(&mut charges))
        };
        drop(key);
        let decision = match decision {
            Ok(decision) => decision?,
            Err(request) => request.peek().await?,
        };
        let full_after = decision.reset_after.saturating_sub(decision.paused().unwrap_or_default());
        let in_advance = spec.map_or(0, |spec| spec.used_in_advance(full_after.as_micros() as u64));
        Ok((decision.limit.saturating_sub(decision.remaining) + in_advance, decision))
    }

    #[inline]
    fn call(&self, cost: u64, timeout: Duration) -> LimiterCall<'_> {
        LimiterCall { backend: &self.backend, definition: &self.definition, cost, timeout }
    }

    fn with_keys(&self, prefix: &str, function: Option<&str>) -> Self {
        let Numbers { policy, spec, .. } = *self.numbers();
        let definition = self.definition.with_keys(prefix, function);
        self.with(definition.with_numbers(policy, spec))
    }

    /// Returns the limiter of this definition on the same store.
    fn with(&self, definition: Definition) -> Self {
        Limiter::new(Arc::clone(&self.backend), Arc::new(definition))
    }

    fn numbers(&self) -> &Numbers {
        self.definition.limiter_numbers()
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, policy) = (self.name(), self.policy());
        f.debug_struct("Limiter").field("name", &name).field("policy", &policy).finish_non_exhaustive()
    }
}

#[cfg(feature = "web")]
impl Limiter {
    /// Decides a call that has no key: it is refused, unless limits are off.
    pub(crate) fn try_acquire_without_key(&self, missing: MissingKey) -> Result<(), Error> {
        match self.backend.primary() {
            Some(_) => self.call(1, Duration::ZERO).refuse(missing),
            None => Ok(()),
        }
    }
}
