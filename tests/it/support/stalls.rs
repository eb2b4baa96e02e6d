//! How long the machine stands still: one that is virtual may, for seconds, and then everything takes so much longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// On each processor, as they stall one by one.
const THREADS: usize = 4;
const TICK: Duration = Duration::from_millis(10);

/// Looks for as long as it lives.
#[derive(Debug, Default)]
pub(crate) struct Stalls(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    over: AtomicBool,
    longest: AtomicU64,
}

impl Stalls {
    pub(crate) fn watch() -> Stalls {
        let stalls = Stalls::default();
        for _ in 0..THREADS {
            let seen = Arc::clone(&stalls.0);
            thread::spawn(move || {
                while !seen.over.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    thread::sleep(TICK);
                    let stalled = begun.elapsed().saturating_sub(TICK);
                    seen.longest.fetch_max(stalled.as_millis() as u64, Ordering::Relaxed);
                }
            });
        }
        stalls
    }

    /// The longest one so far, of which nothing that runs here knows.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_millis(self.0.longest.load(Ordering::Relaxed))
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}
