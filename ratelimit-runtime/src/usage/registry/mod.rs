//! Registries: where limits are decided, and the limiters that are decided there.

mod acquire_all;
mod builder;
mod cache;
pub(crate) mod current;
mod from_env;
pub(crate) mod install_error;
mod off;
#[cfg(feature = "overrides")]
pub(crate) mod overrides;
#[cfg(test)]
mod shortcuts;
#[cfg(feature = "overrides")]
mod watch;

pub use builder::RegistryBuilder;
pub use current::install;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
#[cfg(feature = "overrides")]
use std::sync::OnceLock;

use crate::decide::backend::Backend;
use crate::decide::decision::Decision;
use crate::decide::error::Error;
use crate::decide::health::StoreHealth;
use crate::policy::Policy;
use crate::usage::limiter::{Charge, Limiter};
use acquire_all::AcquireAll;
use cache::LimiterCache;
#[cfg(feature = "overrides")]
use watch::Watch;

/// A store that decides limits, and the limiters on it.
///
/// Functions use the registry that is [`install`]ed, or without one a registry in process. All processes whose registries
/// use the same Redis share their limits. Cheap to clone.
///
/// ```
/// # use ratelimits::{Registry, TokenBucket};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let registry = Registry::in_memory();
/// let reports = registry.limiter("reports", TokenBucket::per_second(2).burst(10))?;
/// assert_eq!(reports.try_acquire("tenant-7").await?.remaining, 9);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    backend: Arc<Backend>,
    limiters: Arc<LimiterCache>,
    /// Where its overrides come from.
    #[cfg(feature = "overrides")]
    watch: OnceLock<Arc<Watch>>,
}

impl Registry {
    /// Returns the limiter with this name and policy. Limiters are cached, so a repeated call costs a look-up
    /// ([`max_limiters`](RegistryBuilder::max_limiters)).
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the policy is invalid, or a limiter with this name has another algorithm. When the cache is full,
    /// limiters that are not in use leave it, and their names are free for another algorithm.
    pub fn limiter(&self, name: &str, policy: impl Into<Policy>) -> Result<Limiter, Error> {
        let definition = self.0.limiters.get(name, policy.into())?;
        Ok(Limiter::new(Arc::clone(&self.0.backend), definition))
    }

    /// Takes the permits of all charges, or none: if one limiter refuses, no other is charged. Never waits for permits. Charges
    /// of one limiter and key are added up.
    ///
    /// # Errors
    ///
    /// [`Error::Limited`] if a policy refuses. [`Error::Store`] if the store fails and the strictest
    /// [`OnStoreError`](crate::OnStoreError) of the limiters does not decide the call. [`Error::Invalid`] if there are no
    /// charges, a limiter belongs to another registry, or two limiters with one name and key have different limits.
    /// [`Error::MissingKey`] if a part of a key cannot be formatted.
    ///
    /// ```
    /// # use ratelimits::{FixedWindow, Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let registry = Registry::in_memory();
    /// let burst = registry.limiter("sms.burst", TokenBucket::per_second(1).burst(5))?;
    /// let daily = registry.limiter("sms.daily", FixedWindow::new(2, std::time::Duration::from_secs(86_400)))?;
    /// for _ in 0..2 {
    ///     registry.try_acquire_all([burst.charge("ann"), daily.charge("ann")]).await?;
    /// }
    /// assert!(registry.try_acquire_all([burst.charge("ann"), daily.charge("ann")]).await.is_err());
    /// assert_eq!(burst.peek("ann").await?.remaining, 3);
    /// # Ok(()) }
    /// ```
    pub fn try_acquire_all(
        &self,
        charges: impl IntoIterator<Item = Charge>,
    ) -> impl Future<Output = Result<Decision, Error>> {
        AcquireAll::new(self.backend(), charges.into_iter())
    }

    /// Returns the health of the store, as seen by the calls of this process: for dashboards and alerts.
    ///
    /// Do not use it as a readiness check. Only a call that the store decides ends an outage, and a process that is not ready
    /// gets no calls.
    ///
    /// ```
    /// let health = ratelimits::Registry::in_memory().store_health();
    /// assert!(health.healthy && health.outages == 0);
    /// ```
    #[must_use]
    pub fn store_health(&self) -> StoreHealth {
        self.0.backend.health()
    }

    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.0.backend
    }

    fn new(backend: Arc<Backend>, max_limiters: usize) -> Self {
        Registry(Arc::new(Inner {
            backend,
            limiters: Arc::new(LimiterCache::new(max_limiters)),
            #[cfg(feature = "overrides")]
            watch: OnceLock::new(),
        }))
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("backend", &self.0.backend).finish_non_exhaustive()
    }
}
