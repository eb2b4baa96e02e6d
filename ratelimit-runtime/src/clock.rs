//! The clock of the stores in this process, in whole microseconds.

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
pub struct Clock(Kind);

#[derive(Debug)]
enum Kind {
    /// Since the Unix epoch as the process found it, and monotonic from then on.
    #[cfg(not(feature = "test-util"))]
    Monotonic,
    /// Of tokio, which a test can pause. The first snapshot is 0.
    #[cfg(feature = "test-util")]
    Tokio(OnceLock<tokio::time::Instant>),
    /// Set by hand.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The clock of this process. With the feature `test-util` it follows tokio's, and its first snapshot is 0.
    #[must_use]
    pub fn process() -> Self {
        #[cfg(not(feature = "test-util"))]
        return Clock(Kind::Monotonic);
        #[cfg(feature = "test-util")]
        return Clock(Kind::Tokio(OnceLock::new()));
    }

    /// A clock that shows what it is told, for tests of the stores.
    #[must_use]
    pub fn manual(micros: Arc<AtomicU64>) -> Self {
        Clock(Kind::Manual(micros))
    }

    pub(crate) fn now(&self) -> u64 {
        match &self.0 {
            #[cfg(not(feature = "test-util"))]
            Kind::Monotonic => {
                static ANCHOR: LazyLock<(Instant, u64)> = LazyLock::new(|| {
                    let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                    (Instant::now(), epoch.map_or(0, |epoch| epoch.as_micros() as u64))
                });
                let (instant, epoch) = *ANCHOR;
                epoch + instant.elapsed().as_micros() as u64
            }
            #[cfg(feature = "test-util")]
            Kind::Tokio(anchor) => {
                let now = tokio::time::Instant::now();
                now.saturating_duration_since(*anchor.get_or_init(|| now)).as_micros() as u64
            }
            Kind::Manual(micros) => micros.load(Ordering::SeqCst),
        }
    }
}
