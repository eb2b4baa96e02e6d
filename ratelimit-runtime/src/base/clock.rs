//! The clock of the memory store, in whole microseconds.

#[cfg(not(feature = "test-util"))]
mod anchor;
#[cfg(not(feature = "test-util"))]
mod counter;
#[cfg(not(feature = "test-util"))]
mod shared_anchor;

#[cfg(feature = "test-util")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
#[cfg(feature = "calendar")]
use std::time::SystemTime;

#[cfg(not(feature = "test-util"))]
use counter::{CounterClock, monotonic};

/// A clock that counts microseconds.
#[derive(Debug)]
pub struct Clock(TimeSource);

#[derive(Debug)]
enum TimeSource {
    /// The time since the Unix epoch, read once and monotonic from then on, by the processor's counter.
    #[cfg(not(feature = "test-util"))]
    Counter(&'static CounterClock),
    /// The same by [`std::time::Instant`], where the counter is of no use.
    #[cfg(not(feature = "test-util"))]
    Monotonic,
    /// Tokio's clock, which tests can pause. The first reading is 0.
    #[cfg(feature = "test-util")]
    Tokio(OnceLock<tokio::time::Instant>),
    /// Set by a test.
    Manual(Arc<AtomicU64>),
}

/// The clock of this process, for times that are of no store. It takes half as long to read as that of the standard library.
pub(crate) static PROCESS: LazyLock<Clock> = LazyLock::new(Clock::process);

/// Returns by how many microseconds the system's clock is ahead of those of the memory stores, which it was read for once. With the
/// feature `test-util` they are the same.
#[cfg(feature = "calendar")]
pub(crate) fn ahead() -> i64 {
    #[cfg(any(test, feature = "test-util"))]
    return 0;
    #[cfg(not(any(test, feature = "test-util")))]
    {
        // What adjusts the system's clock slowly, without setting it, adjusts the others as well.
        const SET: i64 = 100_000;
        let [before, system, after] = [PROCESS.now(), system(), PROCESS.now()].map(|time| time as i64);
        if (before - SET..=after + SET).contains(&system) { 0 } else { system - after }
    }
}

/// Returns the time of the system's clock, in microseconds since the Unix epoch.
#[cfg(all(feature = "calendar", any(feature = "redis", not(any(test, feature = "test-util")))))]
pub(crate) fn system() -> u64 {
    let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    epoch.map_or(0, |epoch| epoch.as_micros() as u64)
}

impl Clock {
    /// Creates a monotonic clock. With the feature `test-util` it follows tokio's clock, and its first reading is 0.
    #[must_use]
    pub fn process() -> Self {
        #[cfg(not(feature = "test-util"))]
        return Clock(CounterClock::of_process().map_or(TimeSource::Monotonic, TimeSource::Counter));
        #[cfg(feature = "test-util")]
        return Clock(TimeSource::Tokio(OnceLock::new()));
    }

    /// Creates a clock that reads the given value, for tests of the stores.
    #[must_use]
    pub fn manual(micros: Arc<AtomicU64>) -> Self {
        Clock(TimeSource::Manual(micros))
    }

    /// Returns the current time. On one thread it never steps back.
    ///
    /// Between threads it is not ordered with other memory accesses: the processor may read its counter while a load before it
    /// still waits for another core, so a thread may read some microseconds less than another one has just passed to it. A
    /// thread that is interrupted right after reading the time is late by more.
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        match &self.0 {
            #[cfg(not(feature = "test-util"))]
            TimeSource::Counter(counter) => counter.now() / 1_000,
            #[cfg(not(feature = "test-util"))]
            TimeSource::Monotonic => monotonic() / 1_000,
            #[cfg(feature = "test-util")]
            TimeSource::Tokio(anchor) => {
                let now = tokio::time::Instant::now();
                now.saturating_duration_since(*anchor.get_or_init(|| now)).as_micros() as u64
            }
            TimeSource::Manual(micros) => {
                let now = micros.load(Ordering::SeqCst);
                #[cfg(test)]
                AFTER_READING.take().into_iter().for_each(|then| then());
                now
            }
        }
    }

    /// Returns the current time, which is no earlier than that of any decision whose effects this thread has seen.
    pub(crate) fn now_in_order(&self) -> u64 {
        match &self.0 {
            #[cfg(not(feature = "test-util"))]
            TimeSource::Counter(counter) => counter.now_in_order() / 1_000,
            _ => self.now(),
        }
    }
}

// What a test does right after this thread reads a manual clock.
#[cfg(test)]
std::thread_local! {
    pub(crate) static AFTER_READING: std::cell::Cell<Option<Box<dyn FnOnce()>>> = const { std::cell::Cell::new(None) };
}
