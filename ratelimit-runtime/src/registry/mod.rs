//! Hands out limiters, and is the store that a process counts in.

mod builder;
mod cache;
mod current;

pub use builder::RegistryBuilder;
pub(crate) use current::current;
pub use current::install;

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use crate::backend::Backend;
#[cfg(feature = "redis")]
use crate::backend::Local;
use crate::decision::Decision;
use crate::error::Error;
use crate::error::invalid_policy::InvalidPolicy;
use crate::error::store::StoreError;
use crate::health::StoreHealth;
use crate::limiter::{Limiter, NamedCharge};
use crate::policy::Policy;
use crate::store::Store;
use crate::waiters::Waiters;
use cache::Cache;

/// Where limits are decided, and the limiters that are decided there.
///
/// Without one, functions count in this process. [`install`] one in `main`, and they count there: all processes that talk
/// to one Redis then share their limits. Cheap to clone.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    backend: Arc<Backend>,
    limiters: Cache,
}

impl Registry {
    /// A registry in this process, with nothing in it.
    #[must_use]
    pub fn in_memory() -> Self {
        Registry::builder().in_memory()
    }

    /// A registry on the store of the URL:
    ///
    /// | URL | store |
    /// | --- | --- |
    /// | `redis://user:password@host:6379/0` | one Redis |
    /// | `rediss://…` | the same over TLS, with the feature `tls` |
    /// | `redis+unix:///path?db=0` | over a socket |
    /// | `redis+sentinel://host1,host2/name/0` | the master of that name; `rediss+sentinel://…` over TLS |
    /// | `redis+cluster://host1,host2` | a Redis Cluster; `rediss+cluster://…` over TLS |
    /// | `memory://` | in this process |
    ///
    /// In a user's name and password what is neither a letter nor a digit is escaped, as in any URL: `%40` for `@`, `%2F` for
    /// `/`. Redis is talked to on the tokio runtime of each call, which must have time and IO enabled.
    ///
    /// It takes as long as the connection does, two seconds or the deadline at the most, whichever is longer.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the URL is wrong, no server answers, or it does not let us in.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Registry::builder().connect(url).await
    }

    /// A registry on the store of the URL, which is asked when it is first needed: a Redis that is absent is no reason
    /// not to start.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the URL is wrong.
    pub fn connect_lazy(url: &str) -> Result<Self, Error> {
        Registry::builder().connect_lazy(url)
    }

    /// A registry on the store that the environment variable `RATELIMITS_URL` names, in this process if it is not set.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn from_env() -> Result<Self, Error> {
        match std::env::var("RATELIMITS_URL") {
            Ok(url) => Registry::connect(&url).await,
            Err(std::env::VarError::NotPresent) => Ok(Registry::in_memory()),
            // Whose own words hold the URL, and with it perhaps a password.
            Err(_) => Err(StoreError::permanent("RATELIMITS_URL is not UTF-8").into()),
        }
    }

    /// A registry that limits nothing, and says so on the log. The environment variable `RATELIMITS_OFF=1` makes
    /// every registry one.
    #[must_use]
    pub fn unlimited() -> Self {
        warn_of_unlimited("Registry::unlimited() is in use");
        Registry::new(Registry::builder(), None)
    }

    /// For what the other constructors leave at its default.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::new()
    }

    /// The limiter of this name and policy. Limiters are cached: to ask again costs a look-up.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the policy makes no sense, or a limiter of this name has another algorithm. Idle limiters leave the
    /// cache when it is full, and their names with them.
    pub fn limiter(&self, name: &str, policy: impl Into<Policy>) -> Result<Limiter, Error> {
        let definition = self.0.limiters.get(name, policy.into())?;
        Ok(Limiter::new(Arc::clone(&self.0.backend), definition))
    }

    /// Takes the permits of all charges, or none: nobody is charged by one limiter for a call that another refused.
    /// Never waits for permits. Charges of one limiter and key are added up.
    ///
    /// # Errors
    ///
    /// [`Error::Limited`] if a policy refuses. [`Error::Store`] if the store fails, and the strictest
    /// [`OnStoreError`](crate::OnStoreError) of the limiters does not say otherwise. [`Error::Invalid`] if there is no charge, a
    /// limiter is of another registry, or two are of one name and key with different limits.
    ///
    /// ```
    /// # use ratelimits::{FixedWindow, Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let registry = Registry::in_memory();
    /// let burst = registry.limiter("sms.burst", TokenBucket::per_second(1).burst(5))?;
    /// let daily = registry.limiter("sms.daily", FixedWindow::new(2, std::time::Duration::from_secs(86_400)))?;
    /// for _ in 0..2 {
    ///     registry.try_acquire_all([burst.charge("ann", 1), daily.charge("ann", 1)]).await?;
    /// }
    /// assert!(registry.try_acquire_all([burst.charge("ann", 1), daily.charge("ann", 1)]).await.is_err());
    /// assert_eq!(burst.peek("ann").await?.remaining, 3);
    /// # Ok(()) }
    /// ```
    pub async fn try_acquire_all(
        &self,
        charges: impl IntoIterator<Item = NamedCharge>,
    ) -> Result<Decision, Error> {
        let mut pending = Vec::new();
        for charge in charges {
            if !Arc::ptr_eq(&charge.backend, &self.0.backend) {
                return Err(InvalidPolicy::new("charges", "are of limiters of another registry").into());
            }
            pending.push(charge.pending);
        }
        if pending.is_empty() {
            return Err(InvalidPolicy::new("charges", "are none; there is nothing to decide").into());
        }
        self.0.backend.decide(pending).await
    }

    /// How its store is, as far as the calls of this process tell: for dashboards and alerts. Not for a readiness check: only
    /// a call that the store decides ends a trouble, and who is not ready gets no calls.
    ///
    /// ```
    /// let health = ratelimits::Registry::in_memory().store_health();
    /// assert!(health.healthy && health.outages == 0);
    /// ```
    #[must_use]
    pub fn store_health(&self) -> StoreHealth {
        self.0.backend.health()
    }

    /// Runs the future with this registry in place of the installed one: tests, tenants. Holds for everything awaited in
    /// it, not for what is spawned there.
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        current::scope(self.clone(), future).await
    }

    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.0.backend
    }

    fn new(builder: RegistryBuilder, store: Option<Store>) -> Self {
        let (store, waiters) = (store.filter(|_| !*OFF), Waiters::new(builder.max_waiters));
        #[cfg(feature = "redis")]
        let local = matches!(store, Some(Store::Redis(_)))
            .then(|| Local::new(builder.max_keys, builder.instances, &waiters));
        let backend = Backend {
            on_store_error: builder.on_store_error,
            #[cfg(feature = "redis")]
            local,
            ..Backend::new(builder.namespace, store, waiters)
        };
        Registry(Arc::new(Inner { backend: Arc::new(backend), limiters: Cache::default() }))
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("backend", &self.0.backend).finish_non_exhaustive()
    }
}

/// The switch for emergencies. Read once, so that it is on or off for a whole process.
static OFF: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os("RATELIMITS_OFF").is_some_and(|value| value == "1"));

/// Says once that limits are turned off, if they are. Not where a lock is held, as whoever hears it may be limited too.
fn warn_if_off() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if *OFF && !WARNED.swap(true, Ordering::Relaxed) {
        warn_of_unlimited("RATELIMITS_OFF=1 is set");
    }
}

fn warn_of_unlimited(why: &str) {
    tracing::warn!("{why}: nothing is limited");
    if !tracing::dispatcher::has_been_set() {
        eprintln!("ratelimits: {why}: nothing is limited");
    }
}
