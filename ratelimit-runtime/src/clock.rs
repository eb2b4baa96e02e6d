//! The clock of the memory store, in whole microseconds.

use std::sync::Arc;
#[cfg(not(feature = "test-util"))]
use std::sync::LazyLock;
#[cfg(feature = "test-util")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(feature = "test-util"))]
use std::time::{Instant, SystemTime};

/// A clock that counts microseconds.
#[derive(Debug)]
pub struct Clock(TimeSource);

#[derive(Debug)]
enum TimeSource {
    /// The time since the Unix epoch, read once and monotonic from then on.
    #[cfg(not(feature = "test-util"))]
    Monotonic,
    /// Tokio's clock, which tests can pause. The first reading is 0.
    #[cfg(feature = "test-util")]
    Tokio(OnceLock<tokio::time::Instant>),
    /// Set by a test.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// Creates a monotonic clock. With the feature `test-util` it follows tokio's clock, and its first reading is 0.
    #[must_use]
    pub fn process() -> Self {
        #[cfg(not(feature = "test-util"))]
        return Clock(TimeSource::Monotonic);
        #[cfg(feature = "test-util")]
        return Clock(TimeSource::Tokio(OnceLock::new()));
    }

    /// Creates a clock that reads the given value, for tests of the stores.
    #[must_use]
    pub fn manual(micros: Arc<AtomicU64>) -> Self {
        Clock(TimeSource::Manual(micros))
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> u64 {
        match &self.0 {
            #[cfg(not(feature = "test-util"))]
            TimeSource::Monotonic => {
                static ANCHOR: LazyLock<(Instant, u64)> = LazyLock::new(|| {
                    let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                    (Instant::now(), epoch.map_or(0, |epoch| epoch.as_micros() as u64))
                });
                let (instant, epoch) = *ANCHOR;
                epoch + instant.elapsed().as_micros() as u64
            }
            #[cfg(feature = "test-util")]
            TimeSource::Tokio(anchor) => {
                let now = tokio::time::Instant::now();
                now.saturating_duration_since(*anchor.get_or_init(|| now)).as_micros() as u64
            }
            TimeSource::Manual(micros) => micros.load(Ordering::SeqCst),
        }
    }
}
