//! What a decision knows of pauses and penalties.

use std::time::Duration;

use super::{Decision, More};
use crate::algorithm::Pause;

impl Decision {
    /// Returns how much is left of the pause of the key, if it is [paused](crate::Limiter::pause); of several policies, that of the
    /// reported one. [`retry_after`](Self::retry_after) includes it, and is all that is known of a refusal by Redis that this process
    /// [remembers](crate::RegistryBuilder::local_denials).
    ///
    /// ```
    /// # use ratelimits::{Registry, TokenBucket};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let api = Registry::in_memory().limiter("api", TokenBucket::per_second(10))?;
    /// assert_eq!(api.peek("host").await?.paused(), None);
    /// api.pause("host", Duration::from_secs(30)).await?;
    /// assert!(api.peek("host").await?.paused().is_some_and(|left| left > Duration::from_secs(29)));
    /// let Err(ratelimits::Error::Limited(limited)) = api.try_acquire("host").await else { panic!() };
    /// assert!(limited.decision().paused().is_some());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn paused(&self) -> Option<Duration> {
        self.more.get()?.paused.get().copied()
    }

    /// Returns the step of the key's penalties that is not forgiven yet: 1 after the first one, and 0 if there is none. Of several
    /// policies, that of the reported one.
    ///
    /// ```
    /// # use ratelimits::{Registry, count_limit};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// #[count_limit(1, "1h", key = user, penalty = ["1m", "5m"], name = "login")]
    /// async fn log_in(user: &str) -> Result<(), ratelimits::Error> {
    ///     Ok(())
    /// }
    ///
    /// let registry = Registry::in_memory();
    /// registry.scope(log_in("ada")).await?;
    /// assert!(registry.scope(log_in("ada")).await.is_err());
    /// assert_eq!(registry.policy("login")?.peek("ada").await?.penalty_step(), 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn penalty_step(&self) -> u64 {
        self.more.get().and_then(|more| more.penalty.get()).copied().unwrap_or(0)
    }

    /// Adds the pause of the key, of which nothing may be left.
    pub(crate) fn with_pause(self, pause: Pause, now: u64) -> Self {
        let (left, step) = (Duration::from_micros(pause.left(now)), pause.step(now));
        if !left.is_zero() {
            self.more.get_or_init(More::default).paused.get_or_init(|| left);
        }
        if step > 0 {
            self.more.get_or_init(More::default).penalty.get_or_init(|| step);
        }
        self
    }
}
