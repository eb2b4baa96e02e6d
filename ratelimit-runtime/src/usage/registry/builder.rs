//! Constructors of registries, and the settings of those that differ from the default.

mod build;

use std::fmt;
#[cfg(feature = "overrides")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Registry;
use super::off::{warn, warn_if_off};
#[cfg(feature = "overrides")]
use super::overrides::OverridesFrom;
use crate::base::bounds::MAX_PERIOD;
use crate::decide::backend::BackendOptions;
use crate::decide::error::Error;
use crate::decide::observation::{Observation, Observers};
use crate::decide::on_store_error::OnStoreError;
use crate::decide::pausing::MAX_PAUSE;
use crate::store::RedisStore;
#[cfg(feature = "tls")]
use crate::store::tls::ClientCertificate;
use crate::store::tls::Tls;

/// What the URL of a store in process starts with.
pub(super) const MEMORY: &str = "memory://";

/// Sets what the constructors of a [`Registry`] leave at its default.
///
/// ```no_run
/// use std::time::Duration;
/// use ratelimits::{OnStoreError, Registry};
///
/// # fn main() -> Result<(), ratelimits::Error> {
/// let registry = Registry::builder()
///     .namespace("shop")
///     .deadline(Duration::from_millis(50))
///     .on_store_error(OnStoreError::Local)
///     .instances(8)
///     .connect_lazy("redis://127.0.0.1:6379")?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use]
pub struct RegistryBuilder {
    backend: BackendOptions,
    max_limiters: usize,
    deadline: Duration,
    hold_ttl: Duration,
    local_denials: bool,
    shares_calls: bool,
    tls: Tls,
    #[cfg(feature = "overrides")]
    overrides: Option<OverridesFrom>,
}

impl Registry {
    /// Creates an empty registry in process.
    #[must_use]
    pub fn in_memory() -> Self {
        Registry::builder().in_memory()
    }

    /// Creates a registry on the store at this URL, and waits until the store answers.
    ///
    /// | URL | store |
    /// | --- | --- |
    /// | `redis://user:password@host:6379/0` | one Redis |
    /// | `rediss://…` | the same over TLS, with the feature `tls` |
    /// | `redis+unix:///path?db=0` | over a Unix socket |
    /// | `redis+sentinel://host1,host2/name/0` | the master with that name; `rediss+sentinel://…` over TLS |
    /// | `redis+cluster://host1,host2` | a Redis Cluster; `rediss+cluster://…` over TLS |
    /// | `memory://` | in process |
    ///
    /// Characters of a user name or password other than letters and digits are percent-encoded, as in any URL: `%40` for `@`,
    /// `%2F` for `/`. `valkey` and `valkeys` stand for `redis` and `rediss`. A user without a password and unknown arguments after
    /// `?` are errors. Calls to Redis run on the tokio runtime of the caller, which must have time and IO enabled.
    ///
    /// Registries with the same URL, deadline and certificates share their connections, and notice an outage together. So a
    /// registry per tenant, each with its own [`namespace`](RegistryBuilder::namespace), costs a few KiB and no connection.
    ///
    /// Connecting may take two seconds or the deadline, whichever is longer. A log event names the server and its version.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the URL is invalid, no server answers, or authentication fails, or if `RATELIMITS_OFF` is neither yes
    /// nor no (see [`unlimited`](Self::unlimited)).
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Registry::builder().connect(url).await
    }

    /// Creates a registry on the store at this URL, without connecting yet. An absent Redis does not keep a process from
    /// starting. A log event names the server.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the URL is invalid, or `RATELIMITS_OFF` is neither yes nor no.
    pub fn connect_lazy(url: &str) -> Result<Self, Error> {
        Registry::builder().connect_lazy(url)
    }

    /// Creates a registry that limits nothing, and logs a warning. The environment variable `RATELIMITS_OFF` turns every
    /// registry into one if it is `1`, `true`, `yes` or `on`. If it is not `0`, `false`, `no`, `off` or empty either, limits stay
    /// on: constructors with a URL, and [`from_env`](Self::from_env), return an error, all others log one.
    #[must_use]
    pub fn unlimited() -> Self {
        warn("Registry::unlimited() is in use");
        Registry::builder().build(None)
    }

    /// Returns a builder for settings that the other constructors leave at their default.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder {
            backend: BackendOptions {
                namespace: String::from("rl"),
                hash_keys: false,
                max_keys: 1_000_000,
                max_waiters: 10_000,
                on_store_error: OnStoreError::default(),
                instances: 1,
                max_pause: MAX_PAUSE,
                observers: Observers::default(),
            },
            max_limiters: 10_000,
            deadline: RedisStore::DEADLINE,
            hold_ttl: RedisStore::HOLD_TTL,
            local_denials: true,
            shares_calls: true,
            tls: Tls::default(),
            #[cfg(feature = "overrides")]
            overrides: None,
        }
    }
}

impl RegistryBuilder {
    /// Sets what all keys start with (default `rl`). Registries with different namespaces on one Redis share nothing.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.backend.namespace = namespace.into();
        self
    }

    /// Replaces the parts of keys in Redis by their digest (128 bits of SHA-256), as for keys that are too long: for secrets that are
    /// counted by, such as API keys, which whoever may read that Redis could read otherwise. In process no key is kept in any case.
    ///
    /// Set it alike in all processes that share limits, as the texts of keys are others: where they differ, each counts by itself. A
    /// digest hides what is hard to guess. Of addresses and numbers, all can be tried.
    ///
    /// The command `ratelimits` shows digests, and does not find a key by its parts; [`PolicyHandle`](crate::PolicyHandle) does.
    ///
    /// ```
    /// # fn main() -> Result<(), ratelimits::Error> {
    /// # use ratelimits::Registry;
    /// let registry = Registry::builder().hash_keys().connect_lazy("redis://127.0.0.1:6379")?;
    /// # Ok(()) }
    /// ```
    pub fn hash_keys(mut self) -> Self {
        self.backend.hash_keys = true;
        self
    }

    /// Sets the maximum number of keys in memory (default 1,000,000; at least 1, at most 2^29). For a registry on Redis these are
    /// the keys with local state during and soon after an outage. It is a number of keys, not of bytes: among a million, a bucket or
    /// a fixed window takes about 70 bytes, and other policies take more.
    ///
    /// Each new key removes expired ones among the next few. If the store is full nevertheless, the policies share it. A policy is
    /// a prefix and a name, and its share is `max_keys` divided by the number of policies that hold keys. A new key of a policy
    /// that holds less than its share replaces a key of the policy with the most keys. Any other new key replaces one of its own
    /// policy. Of 16 keys at random, the one closest to expiry goes. Keys of concurrency limits stay while calls hold their permits,
    /// also beyond `max_keys`.
    ///
    /// So a policy that holds no more than its share loses no key to a flood of others. It does not protect a policy from a flood
    /// of its own keys. Each name that [`Registry::limiter`] is called with is a policy, so names made from user input make the
    /// shares small.
    ///
    /// A call needs a key for each of its policies. With a lower `max_keys` it evicts keys that it has just charged, and some of its
    /// policies limit nothing.
    ///
    /// ```
    /// use ratelimits::{Registry, TokenBucket};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let registry = Registry::builder().max_keys(2).in_memory();
    /// let hourly = registry.limiter("hourly", TokenBucket::new("10/h".parse()?).burst(10))?;
    /// for user in ["ann", "bob", "eve"] {
    ///     hourly.try_acquire(user).await?;
    /// }
    /// // The key closest to expiry is gone: that of the first call.
    /// assert_eq!(hourly.peek("ann").await?.remaining, 10);
    /// # Ok(()) }
    /// ```
    pub fn max_keys(mut self, max_keys: usize) -> Self {
        self.backend.max_keys = max_keys;
        self
    }

    /// Sets how many limiters [`Registry::limiter`] keeps by name and policy (default 10,000), so that asking for one again costs
    /// a look-up. Limiters in use do not leave, so there may be more, at most about twice as many as are in use. Those that have
    /// left are created again when they are asked for. Their permits are not lost, because they are in the store. Attributes
    /// need no limiters.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ratelimits::{FixedWindow, Registry};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let registry = Registry::builder().max_limiters(1).in_memory();
    /// let daily = FixedWindow::new(5, Duration::from_secs(86_400));
    /// for tenant in ["a", "b", "a"] {
    ///     registry.limiter(tenant, daily)?.try_acquire(()).await?;
    /// }
    /// assert_eq!(registry.limiter("a", daily)?.peek(()).await?.remaining, 3);
    /// # Ok(()) }
    /// ```
    pub fn max_limiters(mut self, max_limiters: usize) -> Self {
        self.max_limiters = max_limiters;
        self
    }

    /// Sets how many calls of the registry may wait at one time (default 10,000). Further calls do not wait: they are admitted at
    /// once or limited, with an exact `retry_after`. In Redis, a call that may have to wait counts while Redis decides.
    pub fn max_waiters(mut self, max_waiters: usize) -> Self {
        self.backend.max_waiters = max_waiters;
        self
    }

    /// Sets what happens to a call that Redis does not decide (default [`OnStoreError::Local`]), where neither its attribute nor
    /// its limiter does. It has no effect in process.
    pub fn on_store_error(mut self, on_store_error: OnStoreError) -> Self {
        self.backend.on_store_error = on_store_error;
        self
    }

    /// Sets how many processes share the Redis (default 1, at least 1). During an outage each process decides by this fraction of
    /// every policy ([`OnStoreError::Local`]), so every process beyond this number adds one more share on top of the policy. It
    /// has no effect in process, nor while Redis answers.
    pub fn instances(mut self, instances: u32) -> Self {
        self.backend.instances = instances.max(1);
        self
    }

    /// Sets the longest pause (default one day, at most 3650 days): [`Limiter::pause`](crate::Limiter::pause), and `pause_when` of an
    /// attribute. A longer one is cut to it and logged, so that an upstream that answers nonsense does not block a key for years.
    pub fn max_pause(mut self, max_pause: Duration) -> Self {
        self.backend.max_pause = max_pause.min(MAX_PERIOD);
        self
    }

    /// Sets the deadline for each Redis call, including connecting (default 100 ms, at most one hour).
    ///
    /// A call that is not answered by then is decided as `on_store_error` says, although Redis may have charged it. The deadline
    /// does not limit how long a call waits for permits. It has no effect in process.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets for how long Redis believes what calls of this process hold of a [`ConcurrencyLimit`](crate::ConcurrencyLimit) without
    /// hearing of them (default 10 s, at least one second and four deadlines, at most an hour).
    ///
    /// The process says so three times as often, so this does not limit how long a call runs. What a process that dies has held is
    /// free after this time. If one stands still for longer, or is cut off from Redis, or if Redis does not answer for so long, others
    /// get its permits while its calls still run. It has no effect in process.
    pub fn hold_ttl(mut self, hold_ttl: Duration) -> Self {
        self.hold_ttl = hold_ttl;
        self
    }

    /// Sets whether a key that Redis has refused is refused without asking Redis, until `retry_after`, for at most one second
    /// (default `true`). It has no effect in process.
    ///
    /// This concerns calls of the same key, cost and numbers. They are reported as Redis reported the first, with what is left of
    /// `retry_after` and `reset_after`; of several policies, only those that are known to refuse are reported. So callers that
    /// ignore `retry_after` cost Redis nothing.
    ///
    /// A refund or reset by this registry ends it. One that is made elsewhere, by another process or registry or with `DEL`, may
    /// go unnoticed for up to a second. So may a call that makes a bucket with computed numbers refill faster.
    ///
    /// Redis is always asked by `peek`, by calls that may wait or have a shadow policy, by policies with `charge_when`, and by
    /// calls that can never be admitted. A registry remembers at most 8,192 refusals, in at most 2 MB.
    ///
    /// ```
    /// # fn main() -> Result<(), ratelimits::Error> {
    /// # use ratelimits::Registry;
    /// // Resets by an administrator's tool take effect at once.
    /// let registry = Registry::builder().local_denials(false).connect_lazy("redis://127.0.0.1:6379")?;
    /// # Ok(()) }
    /// ```
    pub fn local_denials(mut self, local_denials: bool) -> Self {
        self.local_denials = local_denials;
        self
    }

    /// Adds a function that is called for every decision of the registry, for metrics and audit logs. It gets one [`Observation`] for
    /// each policy of a call, after the decision and before the call goes on. A call that holds permits of a
    /// [`ConcurrencyLimit`](crate::ConcurrencyLimit) is reported once more, when it releases them:
    /// [`CallOutcome::Released`](crate::CallOutcome::Released). That may be in a `Drop`, on any thread.
    ///
    /// A key that has used the share of its limit which `notify_at` of an attribute says is reported once for each window:
    /// [`CallOutcome::NearLimit`](crate::CallOutcome::NearLimit). With Redis that is in a task. So is each pause of a key that this process
    /// makes: [`CallOutcome::Paused`](crate::CallOutcome::Paused).
    ///
    /// Not reported are calls with a cost of 0, calls that are dropped before they are decided, and refunds: a call with
    /// `charge_when` is reported as admitted. A refusal that repeats what Redis has said lately reports only the policies that are
    /// known to refuse. If a policy of a call is invalid, or a part of its key is missing, only such policies are reported.
    ///
    /// The function must be quick, and neither block nor panic; a panic about a release is caught. An observer changes nothing
    /// about how calls are decided. One that does nothing costs a few nanoseconds per call. The text of a key is made only if
    /// somebody reads it; a refusal remembers the key for [`Limited::key`](crate::Limited::key).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use ratelimits::{Registry, TokenBucket};
    /// use ratelimits::observe::CallOutcome;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let limited = Arc::new(AtomicU64::new(0));
    /// let counter = Arc::clone(&limited);
    /// let registry = Registry::builder()
    ///     .observer(move |seen| {
    ///         if seen.outcome == CallOutcome::Limited {
    ///             counter.fetch_add(seen.cost, Ordering::Relaxed);
    ///         }
    ///     })
    ///     .in_memory();
    /// let reports = registry.limiter("reports", TokenBucket::per_second(1).burst(1))?;
    /// reports.try_acquire("tenant-7").await?;
    /// assert!(reports.try_acquire("tenant-7").await.is_err());
    /// assert_eq!(limited.load(Ordering::Relaxed), 1);
    /// # Ok(()) }
    /// ```
    pub fn observer(mut self, observer: impl Fn(&Observation<'_>) + Send + Sync + 'static) -> Self {
        self.backend.observers.push(Arc::new(observer));
        self
    }

    /// Sets a file of overrides: numbers, `shadow` and `off` for policies by name, which are in force at once and whenever the file
    /// changes, without a restart. It is TOML with a table for each policy:
    ///
    /// ```toml
    /// ["app::search#2"]          # numbers in place of the attribute's
    /// rate = "100/min"
    /// burst = 20
    ///
    /// ["sms.daily"]
    /// shadow = true              # evaluate and report, but never refuse
    ///
    /// ["legacy.import"]
    /// off = true                 # neither limit nor charge
    ///
    /// ["sms.daily".keys."ann"]   # for one key, which may also be `blocked`
    /// limit = 1000
    /// ```
    ///
    /// At most 10,000 keys have overrides, of all policies together. The parts of a key follow each other as names of tables.
    ///
    /// The numbers are those of the attribute, in the same spellings. A bucket with literal numbers has a state of its own while they
    /// are overridden, which starts full; a window keeps its count.
    ///
    /// A thread that all registries share reads the file every two seconds, once it has not been written to for half a second. An
    /// override that is invalid or names no policy changes nothing and concerns no other: one event at error level says what is
    /// wrong, and [`check_policies`](crate::check_policies) returns it. While there is no file, or it is empty or not TOML, what was in
    /// force stays so; a comment line alone ends all overrides. Limiters take theirs when they are created.
    ///
    /// Overrides cost the other policies nothing that can be measured. An overridden policy costs as much as one with computed
    /// numbers.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use ratelimits::Registry;
    ///
    /// # let limits = std::env::temp_dir().join(format!("limits-{}.toml", std::process::id()));
    /// std::fs::write(&limits, "# none yet\n")?;
    /// let registry = Registry::builder().overrides(&limits).in_memory();
    /// # std::fs::remove_file(limits)
    /// # }
    /// ```
    #[cfg(feature = "overrides")]
    pub fn overrides(mut self, file: impl Into<PathBuf>) -> Self {
        self.overrides = Some(OverridesFrom::File(file.into()));
        self
    }

    /// Sets that overrides, as of [`overrides`](Self::overrides), are in the Redis of the registry, so that they are in force in all
    /// processes of its namespace. The command `ratelimits override` writes them, to the hash `namespace:overrides`. Replaces a
    /// file.
    ///
    /// A thread that all registries share asks for their version every two seconds, once for each namespace and over one connection
    /// to each Redis. The user of the connection needs the permission `+hmget`. While Redis does not answer, and if it loses the
    /// overrides, what was in force stays so. It has no effect in process.
    ///
    /// For the command, the registry also says in the hash `namespace:inventory`, once a minute, which policies the program has: those
    /// of attributes, and of up to 100 limiters. They are known for an hour. This needs the permissions
    /// `+hset +hget +hgetall +hdel +expire`; without them it is logged once.
    ///
    /// ```
    /// # fn main() -> Result<(), ratelimits::Error> {
    /// # use ratelimits::Registry;
    /// let registry = Registry::builder().overrides_in_redis().connect_lazy("redis://127.0.0.1:6379")?;
    /// # Ok(()) }
    /// ```
    #[cfg(all(feature = "overrides", feature = "redis"))]
    pub fn overrides_in_redis(mut self) -> Self {
        self.overrides = Some(OverridesFrom::Redis);
        self
    }

    /// Sends every decision to Redis in a call of its own, for tests that count calls.
    #[doc(hidden)]
    pub fn without_batches(mut self) -> Self {
        self.shares_calls = false;
        self
    }

    /// Sets the certificate authorities that are trusted for `rediss://`, as PEM, in place of those of the system. Servers are
    /// always verified.
    #[cfg(feature = "tls")]
    pub fn ca_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.tls.authorities = Some(pem.as_ref().into());
        self
    }

    /// Sets the certificate and the private key, as PEM, that the registry presents to `rediss://` servers (mTLS). Redis asks for
    /// a certificate unless `tls-auth-clients` is `no` or `optional`. Certificates that lead to its authority may follow it.
    ///
    /// The key is in PKCS#8, PKCS#1 or SEC1, not encrypted. [`connect`](Self::connect) and
    /// [`connect_lazy`](Self::connect_lazy) fail if it cannot be read, and `connect` if it does not belong to the certificate.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = ratelimits::Registry::builder()
    ///     .ca_certificates(std::fs::read("ca.crt")?)
    ///     .client_certificate(std::fs::read("client.crt")?, std::fs::read("client.key")?)
    ///     .connect_lazy("rediss://redis.example.com:6380")?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "tls")]
    pub fn client_certificate(mut self, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        let (certificates, key) = (certificate.as_ref().into(), key.as_ref().into());
        self.tls.client = Some(ClientCertificate { certificates, key });
        self
    }

    /// Creates the registry like [`Registry::in_memory`].
    #[must_use]
    pub fn in_memory(self) -> Registry {
        warn_if_off();
        let registry = self.in_memory_unlogged();
        registry.backend().log_store(None);
        registry
    }

    /// Creates the registry like [`Registry::connect`].
    ///
    /// # Errors
    ///
    /// As [`Registry::connect`].
    pub async fn connect(self, url: &str) -> Result<Registry, Error> {
        answered(self.at_url(url)?).await
    }

    /// Creates the registry like [`Registry::connect_lazy`].
    ///
    /// # Errors
    ///
    /// As [`Registry::connect_lazy`].
    pub fn connect_lazy(self, url: &str) -> Result<Registry, Error> {
        let registry = self.at_url(url)?;
        registry.backend().log_store(None);
        Ok(registry)
    }
}

/// Waits until the registry's store answers, and logs where it is.
pub(super) async fn answered(registry: Registry) -> Result<Registry, Error> {
    let version = registry.backend().ping().await?;
    registry.backend().log_store(version.as_deref());
    Ok(registry)
}

/// Without certificates.
impl fmt::Debug for RegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RegistryBuilder { backend, max_limiters, deadline, local_denials, .. } = self;
        f.debug_struct("RegistryBuilder")
            .field("backend", backend)
            .field("max_limiters", max_limiters)
            .field("deadline", deadline)
            .field("local_denials", local_denials)
            .finish_non_exhaustive()
    }
}
