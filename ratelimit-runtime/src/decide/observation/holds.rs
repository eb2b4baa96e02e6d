//! The ends of holds, as observers get them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::{CallOutcome, Observation, Observers, Said};
use crate::base::clock;
use crate::decide::charges::PolicyCharge;
use crate::decide::definition::OwnedDefinition;
use crate::key::{KeyParts, PartsOfKey};
use crate::policy::Algorithm;
use crate::store::Hold;
use crate::store::decided_by::DecidedBy;

/// What observers learn of a call that holds permits.
struct Held {
    definition: OwnedDefinition,
    cost: u64,
    shadow: bool,
    source: Option<DecidedBy>,
    parts: KeyParts,
    /// When it began, by the clock of the process.
    since: u64,
}

impl Observation<'_> {
    /// Returns how long the call held its permits; `None` unless the outcome is [`CallOutcome::Released`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use ratelimits::{ConcurrencyLimit, Registry};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let longest = Arc::new(AtomicU64::new(0));
    /// let max = Arc::clone(&longest);
    /// let registry = Registry::builder()
    ///     .observer(move |seen| {
    ///         if let Some(held) = seen.held() {
    ///             max.fetch_max(held.as_micros() as u64, Ordering::Relaxed);
    ///         }
    ///     })
    ///     .in_memory();
    /// let exports = registry.limiter("exports", ConcurrencyLimit::new(2))?;
    /// let decision = exports.try_acquire("tenant-7").await?;
    /// tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    /// drop(decision);
    /// assert!(longest.load(Ordering::Relaxed) >= 5_000);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn held(&self) -> Option<Duration> {
        match self.said {
            Said::Released(duration) => Some(duration),
            _ => None,
        }
    }

    /// Whether the call holds permits of the policy from now on.
    #[inline]
    pub(crate) fn begins_hold(&self) -> bool {
        self.algorithm == Algorithm::Semaphore
            && self.outcome == CallOutcome::Admitted
            && !matches!(self.source, None | Some(DecidedBy::Allowed | DecidedBy::Skipped))
    }
}

impl Observers {
    /// Returns what reports the end of a hold that the memory store has admitted at once, to a key of these parts.
    #[cold]
    pub(crate) fn hold_of(&self, charge: &PolicyCharge<'_>, parts: PartsOfKey<'_>) -> Arc<Hold> {
        let PolicyCharge { definition, cost, shadow, .. } = *charge;
        let observation = Observation::undecided(definition.get(), cost, CallOutcome::Admitted);
        let observation = Observation { shadow, source: Some(DecidedBy::Memory), parts, ..observation };
        self.hold(0, &observation, definition.to_owned())
    }

    /// Returns what reports the end of a hold that has begun with this observation: a hold beside those of the store, which ends with
    /// them.
    pub(super) fn hold(
        &self,
        charge: usize,
        seen: &Observation<'_>,
        definition: OwnedDefinition,
    ) -> Arc<Hold> {
        let Observation { cost, shadow, source, parts, .. } = *seen;
        let held =
            Held { definition, cost, shadow, source, parts: parts.to_owned(), since: clock::PROCESS.now() };
        let observers = self.clone();
        Arc::new(Hold::new(charge, move || observers.released(&held)))
    }

    fn released(&self, Held { definition, cost, shadow, source, parts, since }: &Held) {
        let observation = Observation::undecided(definition, *cost, CallOutcome::Released);
        let held = Duration::from_micros(clock::PROCESS.now().saturating_sub(*since));
        let (parts, said) = (parts.all(), Said::Released(held));
        let observation = Observation { shadow: *shadow, source: *source, parts, said, ..observation };
        for observer in self.0.iter() {
            // The call may end because it panics, and then another panic would abort the process.
            let _ = catch_unwind(AssertUnwindSafe(|| observer(&observation)));
        }
    }
}
