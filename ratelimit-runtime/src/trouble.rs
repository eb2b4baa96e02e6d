//! Whether the store decides, told once when it ceases to and once when it does again.

/// How the store of a registry is, as far as the decisions tell that it was asked for here.
///
/// Trouble begins with the first decision that the store did not make, and ends with the first one it makes at least a second
/// after the last one it did not. A warning by `tracing` tells of each. A registry in this process is always well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreHealth {
    /// Whether there is no trouble. A store that nobody has asked yet is well.
    pub is_well: bool,
    /// How often trouble began.
    pub troubles: u64,
    /// The decisions that the store did not make, whatever became of the calls. A call that waits for a window may ask for
    /// several.
    pub unanswered: u64,
}

impl StoreHealth {
    #[cfg(any(test, not(feature = "redis")))]
    pub(crate) const WELL: StoreHealth = StoreHealth { is_well: true, troubles: 0, unanswered: 0 };
}

#[cfg(feature = "redis")]
pub(crate) use watched::Trouble;

#[cfg(feature = "redis")]
mod watched {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    use tokio::time::Instant;

    use super::StoreHealth;
    use crate::error::store::StoreError;

    /// So long the store must have made all decisions for the trouble to be over.
    const CALM: Duration = Duration::from_secs(1);

    /// Watches the decisions of one store.
    #[derive(Debug, Default)]
    pub(crate) struct Trouble {
        /// Whether there is any, for those who only look.
        is_on: AtomicBool,
        told: Mutex<Told>,
    }

    #[derive(Debug, Default)]
    struct Told {
        troubles: u64,
        unanswered: u64,
        now: Option<Now>,
    }

    /// A trouble that has not ended.
    #[derive(Debug)]
    struct Now {
        began: Instant,
        last: Instant,
        unanswered: u64,
    }

    impl Trouble {
        /// The store has made a decision.
        pub(crate) fn answered(&self) {
            if self.is_on.load(Ordering::Relaxed) {
                self.answered_at(Instant::now());
            }
        }

        /// The store has not made a decision.
        pub(crate) fn unanswered(&self, error: &StoreError) {
            self.unanswered_at(Instant::now(), error);
        }

        pub(crate) fn health(&self) -> StoreHealth {
            let told = self.told();
            StoreHealth { is_well: told.now.is_none(), troubles: told.troubles, unanswered: told.unanswered }
        }

        fn answered_at(&self, at: Instant) {
            let ended = {
                let mut told = self.told();
                let ended = told.now.take_if(|now| at.saturating_duration_since(now.last) >= CALM);
                self.is_on.store(told.now.is_some(), Ordering::Relaxed);
                ended
            };
            // Told without the lock, as whoever hears it may be limited too.
            if let Some(Now { began, unanswered, .. }) = ended {
                let lasted = at.saturating_duration_since(began);
                tracing::warn!(unanswered, ?lasted, "the store decides again");
            }
        }

        fn unanswered_at(&self, at: Instant, error: &StoreError) {
            let begins = {
                let mut told = self.told();
                told.unanswered += 1;
                let begins = told.now.is_none();
                let now = told.now.get_or_insert(Now { began: at, last: at, unanswered: 0 });
                (now.last, now.unanswered) = (now.last.max(at), now.unanswered + 1);
                told.troubles += u64::from(begins);
                self.is_on.store(true, Ordering::Relaxed);
                begins
            };
            if begins {
                let error = error as &(dyn std::error::Error + 'static);
                tracing::warn!(
                    error,
                    "the store does not decide; until it does, `on_store_error` says what becomes of calls"
                );
            }
        }

        fn told(&self) -> MutexGuard<'_, Told> {
            self.told.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn health(is_well: bool, troubles: u64, unanswered: u64) -> StoreHealth {
            StoreHealth { is_well, troubles, unanswered }
        }

        #[test]
        fn a_store_that_answers_now_and_then_is_in_one_trouble() {
            let (trouble, error, began) = (Trouble::default(), StoreError::new("it is gone"), Instant::now());
            let after = |millis| began + Duration::from_millis(millis);
            trouble.answered();
            assert_eq!(trouble.health(), StoreHealth::WELL);
            for millis in (0..5000).step_by(10) {
                trouble.unanswered_at(after(millis), &error);
                trouble.answered_at(after(millis + 5));
            }
            assert_eq!(trouble.health(), health(false, 1, 500));
            trouble.answered_at(after(5989));
            assert_eq!(trouble.health(), health(false, 1, 500));
            trouble.answered_at(after(5990));
            assert_eq!(trouble.health(), health(true, 1, 500));
            trouble.unanswered_at(after(5991), &error);
            assert_eq!(trouble.health(), health(false, 2, 501));
        }

        #[test]
        fn a_clock_that_steps_back_does_not_end_it() {
            let (trouble, error, began) = (Trouble::default(), StoreError::new("it is gone"), Instant::now());
            trouble.unanswered_at(began + CALM, &error);
            trouble.unanswered_at(began, &error);
            trouble.answered_at(began);
            trouble.answered_at(began + CALM);
            assert!(!trouble.health().is_well);
            trouble.answered_at(began + 2 * CALM);
            assert!(trouble.health().is_well);
        }
    }
}
