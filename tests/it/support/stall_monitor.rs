//! Measures for how long a shared or virtual machine stops running its threads, by which latency assertions are relaxed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// One per core, as cores stall independently.
const THREADS: usize = 4;
const TICK: Duration = Duration::from_millis(10);

/// Measures until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct StallMonitor(Arc<State>);

#[derive(Debug, Default)]
struct State {
    stopped: AtomicBool,
    longest_ms: AtomicU64,
}

impl StallMonitor {
    pub(crate) fn start() -> StallMonitor {
        let monitor = StallMonitor::default();
        for _ in 0..THREADS {
            let state = Arc::clone(&monitor.0);
            thread::spawn(move || {
                while !state.stopped.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    thread::sleep(TICK);
                    let stalled = start.elapsed().saturating_sub(TICK);
                    state.longest_ms.fetch_max(stalled.as_millis() as u64, Ordering::Relaxed);
                }
            });
        }
        monitor
    }

    /// Asserts that an operation took less than `limit`, not counting the longest stall.
    #[track_caller]
    pub(crate) fn assert_within(&self, limit: Duration, took: Duration, what: &str) {
        let stalled = Duration::from_millis(self.0.longest_ms.load(Ordering::Relaxed));
        assert!(took < limit + stalled, "{what} took {took:?}; the machine stalled for {stalled:?}");
    }
}

impl Drop for StallMonitor {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }
}
