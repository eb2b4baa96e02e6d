//! The policy of an attribute, by name.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ratelimit_syntax::closest_path;

use crate::algorithm::AlgorithmSpec;
use crate::base::invalid_policy::InvalidPolicy;
use crate::decide::backend::Backend;
use crate::decide::decision::Decision;
use crate::decide::definition::Definition;
use crate::decide::error::Error;
use crate::key::IntoKey;
use crate::policy::Policy;
use crate::usage::limiter::Limiter;
use crate::usage::policies::{PolicyInfo, policies};
use crate::usage::registry::Registry;
use crate::usage::unknown_policy::UnknownPolicy;

/// The policy of an attribute on the store of a [`Registry`], to look at its keys and reset them.
/// [`Registry::policy`] returns it.
///
/// ```standalone_crate
/// # use ratelimits::{Registry, rate_limit};
/// #[rate_limit(rate = "10/min", burst = 10, key = user, name = "handle.search")]
/// async fn search(user: u64) -> Result<(), ratelimits::Error> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::in_memory();
/// registry.scope(search(42)).await?;
///
/// let policy = registry.policy("handle.search")?;
/// assert_eq!(policy.peek(42).await?.remaining, 9);
/// assert_eq!(policy.usage(42).await?.used, 1);
/// assert!(policy.reset(42).await?);
/// assert_eq!(policy.peek(42).await?.remaining, 10);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PolicyHandle {
    backend: Arc<Backend>,
    info: PolicyInfo,
    /// The limiter of the literal numbers, once somebody has asked for it.
    literal: OnceLock<Limiter>,
}

/// What a key has used of a policy. [`PolicyHandle::usage`] returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The permits that are missing in a bucket, in use in a leaky bucket, counted in a window, or held of a concurrency limit. For a paused bucket, those when it
    /// goes on, which are at least all but one, or if its numbers are literal, all of them.
    pub used: u64,
    /// How long until the state of the key expires, if nothing else is charged, with its pause. Zero if there is none.
    pub reset_after: Duration,
    /// What is left of the key's [pause](Limiter::pause), if it is paused.
    pub paused: Option<Duration>,
    /// As [`Decision::penalty_step`].
    pub penalty_step: u64,
}

impl Registry {
    /// Returns the policy of an attribute by its name, as logs, metrics and [`policies`] have it. Where policies with different
    /// prefixes have one name, write `prefix:name`.
    ///
    /// A policy that a trait or a generic `impl` has for several types is known by the name of each type from its first call on.
    ///
    /// # Errors
    ///
    /// [`UnknownPolicy`] if no policy has this name, or several have. It suggests the closest one.
    pub fn policy(&self, name: &str) -> Result<PolicyHandle, UnknownPolicy> {
        let mut named = policies();
        let with_prefix = |info: &PolicyInfo| format!("{}:{}", info.prefix, info.name);
        if !named.iter().any(|info| *info.name == *name || with_prefix(info) == name) {
            let meant = closest_path(name, named.iter().map(|info| &*info.name)).map(str::to_owned);
            return Err(UnknownPolicy::new(name, meant.into_iter().collect()));
        }
        named.retain(|info| *info.name == *name || with_prefix(info) == name);
        // Attributes may share a policy, and then agree on all that matters here.
        named.dedup_by_key(|info| info.prefix);
        match named.pop() {
            Some(info) if named.is_empty() => {
                let (backend, literal) = (Arc::clone(self.backend()), OnceLock::new());
                Ok(PolicyHandle { backend, info, literal })
            }
            last => Err(UnknownPolicy::new(name, named.iter().chain(&last).map(with_prefix).collect())),
        }
    }
}

impl PolicyHandle {
    /// Returns what the attribute declares.
    #[must_use]
    pub fn info(&self) -> &PolicyInfo {
        &self.info
    }

    /// Returns the limiter of the policy, which shares its state with the function. It has no lease.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if some numbers of the policy are computed for each call. [`limiter_with`](Self::limiter_with) takes
    /// them, and [`usage`](Self::usage) and [`reset`](Self::reset) can do without.
    pub fn limiter(&self) -> Result<Limiter, Error> {
        self.literal().cloned()
    }

    /// Returns the limiter of the policy with these numbers, for a policy whose numbers are computed for each call.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the policy is invalid or has another algorithm, or if the attribute has other literal numbers.
    ///
    /// ```
    /// # use ratelimits::{FixedWindow, Registry, count_limit};
    /// # use std::time::Duration;
    /// # struct Plan { daily: u64 }
    /// #[count_limit(limit = plan.daily, period = "1d", name = "handle.export")]
    /// async fn export(plan: &Plan) -> Result<(), ratelimits::Error> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = Registry::in_memory();
    /// registry.scope(export(&Plan { daily: 5 })).await?;
    ///
    /// let policy = registry.policy("handle.export")?;
    /// assert_eq!(policy.usage(()).await?.used, 1);
    /// let limiter = policy.limiter_with(FixedWindow::new(5, Duration::from_secs(86_400)))?;
    /// assert_eq!(limiter.peek(()).await?.remaining, 4);
    /// # Ok(()) }
    /// ```
    pub fn limiter_with(&self, policy: impl Into<Policy>) -> Result<Limiter, Error> {
        let policy = policy.into();
        if policy.algorithm() != self.info.algorithm {
            return Err(InvalidPolicy::new("policy", "has another algorithm than the attribute").into());
        }
        match self.info.policy {
            Some(own) if own != policy => {
                Err(InvalidPolicy::new("policy", "has other numbers than the attribute; use `limiter`")
                    .into())
            }
            Some(own) => self.with_numbers(own),
            None => self.with_numbers(policy.computed()),
        }
    }

    /// Returns what a call of cost 1 that does not wait would get now, as [`Limiter::peek`] does.
    ///
    /// # Errors
    ///
    /// As [`limiter`](Self::limiter) and [`Limiter::peek`].
    pub async fn peek<M>(&self, key: impl IntoKey<M>) -> Result<Decision, Error> {
        self.literal()?.peek(key).await
    }

    /// Returns what the key has used, also if numbers of the policy are computed for each call.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if a number is computed that the key depends on (the `period` or `precision` of a window, the `rate` of
    /// interval refill): [`limiter_with`](Self::limiter_with) takes it. The same for a bucket with `warmup`, which knows how many
    /// permits it stores, but not how many are in use. Otherwise as [`Limiter::peek`].
    pub async fn usage<M>(&self, key: impl IntoKey<M>) -> Result<Usage, Error> {
        let spec = self.known_spec()?;
        if matches!(spec, AlgorithmSpec::WarmingUp(_)) {
            return Err(
                InvalidPolicy::new("warmup", "has no number of permits that are in use; use `peek`").into()
            );
        }
        let (used, decision) = self.with_spec((self.info.site.policy)(), spec)?.used(key).await?;
        let (paused, penalty_step) = (decision.paused(), decision.penalty_step());
        Ok(Usage { used, reset_after: decision.reset_after, paused, penalty_step })
    }

    /// Removes the state of the key, and returns whether there was any, as [`Limiter::reset`] does, also if numbers of the policy
    /// are computed for each call.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if a number is computed that the key depends on, as for [`usage`](Self::usage). [`Error::Store`] if the
    /// store fails.
    pub async fn reset<M>(&self, key: impl IntoKey<M>) -> Result<bool, Error> {
        self.with_known_numbers()?.reset(key).await
    }

    /// Admits no call of the key for this long, as [`Limiter::pause`] does, also if numbers of the policy are computed for each call.
    /// If its burst or capacity is, a bucket goes on with what it had.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if a number is computed that the key depends on, as for [`usage`](Self::usage). Otherwise as
    /// [`Limiter::pause`].
    ///
    /// ```standalone_crate
    /// # use ratelimits::{Registry, rate_limit};
    /// # use std::time::Duration;
    /// #[rate_limit(rate = "10/min", burst = 10, key = user, name = "handle.suggest")]
    /// async fn suggest(user: u64) -> Result<(), ratelimits::Error> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = Registry::in_memory();
    /// let policy = registry.policy("handle.suggest")?;
    /// policy.pause(42, Duration::from_secs(30)).await?;
    /// assert!(registry.scope(suggest(42)).await.is_err());
    /// let usage = policy.usage(42).await?;
    /// assert_eq!(usage.used, 10);
    /// assert!(usage.paused > Some(Duration::from_secs(29)));
    /// # Ok(()) }
    /// ```
    pub async fn pause<M>(&self, key: impl IntoKey<M>, duration: Duration) -> Result<(), Error> {
        self.with_known_numbers()?.pause(key, duration).await
    }

    /// Returns what a call would get whose computed numbers have any value: only its pause and its penalties are right.
    #[cfg(feature = "dashboard")]
    pub(crate) async fn peek_pause<M>(&self, key: impl IntoKey<M>) -> Result<Decision, Error> {
        self.with_known_numbers()?.peek(key).await
    }

    /// Returns a limiter with the keys of the policy. Numbers that are computed have any value.
    fn with_known_numbers(&self) -> Result<Limiter, Error> {
        self.with_spec((self.info.site.policy)(), self.known_spec()?)
    }

    fn literal(&self) -> Result<&Limiter, Error> {
        if let Some(limiter) = self.literal.get() {
            return Ok(limiter);
        }
        let computed = InvalidPolicy::new(
            "policy",
            "has numbers that are computed for each call; use `usage`, or pass the numbers to `limiter_with`",
        );
        let limiter = self.with_numbers(self.info.policy.ok_or(computed)?)?;
        Ok(self.literal.get_or_init(|| limiter))
    }

    /// Returns a spec with the keys of the policy.
    fn known_spec(&self) -> Result<AlgorithmSpec, Error> {
        let site = self.info.site;
        let policy = (site.policy)();
        // Those that are computed have any value here, with which the policy may be invalid.
        match policy.shaping().iter().find(|argument| site.computed.contains(argument)) {
            Some(argument) => Err(InvalidPolicy::new(
                argument,
                "is computed, and each has its own keys; use `limiter_with`",
            )
            .into()),
            None => Ok(policy.spec()?),
        }
    }

    fn with_numbers(&self, policy: Policy) -> Result<Limiter, Error> {
        self.with_spec(policy, policy.spec()?)
    }

    fn with_spec(&self, policy: Policy, spec: AlgorithmSpec) -> Result<Limiter, Error> {
        policy.check_zone()?;
        let PolicyInfo { name, prefix, function, site, .. } = &self.info;
        let function = site.options.tag.of(function);
        let mut definition =
            Definition::of_limiter(name.as_ref().into(), policy, spec).with_keys(prefix, function);
        definition.on_store_error = site.options.on_store_error;
        definition.attribute.penalty = site.options.penalty;
        Ok(Limiter::new(Arc::clone(&self.backend), Arc::new(definition.with_numbers(policy, spec))))
    }
}

impl fmt::Debug for PolicyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyHandle").field("name", &self.info.name).finish_non_exhaustive()
    }
}
