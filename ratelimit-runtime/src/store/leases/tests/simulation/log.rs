//! What was admitted, and by how much it exceeds a bucket.

use crate::algorithm::{AlgorithmSpec, Verdict};

/// The permits of a key, each with its time.
#[derive(Clone, Default)]
pub(super) struct Log(Vec<(u64, u64)>);

impl Log {
    pub(super) fn add(&mut self, at: u64, permits: u64) {
        self.0.push((at, permits));
    }

    /// Returns the time of refill, in microseconds, by which the worst interval exceeds what a bucket admits in as long. Negative, if
    /// none reaches that.
    pub(super) fn excess(&mut self, interval: u64, capacity: u64) -> i64 {
        self.0.sort_by_key(|(at, _)| *at);
        // Of all intervals that end here, the one with most permits for its length begins where the bucket was last full.
        let (mut level, mut before, mut most) = (0_i64, 0, 0);
        for (at, permits) in &self.0 {
            level = (level - (at - before) as i64).max(0) + (permits * interval) as i64;
            (before, most) = (*at, most.max(level));
        }
        most - capacity as i64
    }

    pub(super) fn permits(&self) -> u64 {
        self.0.iter().map(|(_, permits)| permits).sum()
    }
}

/// Returns the microseconds of refill of a permit and of the whole bucket.
pub(super) fn micros_of(spec: &AlgorithmSpec) -> (u64, u64) {
    let Verdict { limit, .. } = spec.verdict(spec.check(None, 0, 0), 0, 0, 0);
    (spec.window() / limit, spec.window())
}

#[test]
fn the_worst_interval_is_found() {
    let mut log = Log::default();
    // A bucket of ten that refills one every 100 µs, and one permit too many from 500 to 1000.
    for (at, permits) in [(500, 10), (1000, 6), (0, 4), (5000, 10)] {
        log.add(at, permits);
    }
    assert_eq!((log.excess(100, 1000), log.permits()), (100, 30));
    assert_eq!(log.excess(100, 1100), 0);
    assert_eq!(log.excess(100, 5000), -3900);
}
