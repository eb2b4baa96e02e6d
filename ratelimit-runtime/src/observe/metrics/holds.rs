//! The series of a concurrency limit.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use ::metrics::{Gauge, Histogram, SharedString, gauge, histogram};

use super::kept::Kept;
use crate::decide::observation::Observation;

pub(super) const HOLDS: &str = "ratelimits_holds";
pub(super) const HOLD_TIME: &str = "ratelimits_hold_seconds";

/// The permits that calls hold of a policy, and for how long they do.
#[derive(Debug, Default)]
pub(super) struct HoldSeries {
    held: AtomicU64,
    holds: Kept<Gauge>,
    time: Kept<Histogram>,
}

impl HoldSeries {
    /// Counts a hold that begins.
    pub(super) fn begin(&self, seen: &Observation<'_>, label: &SharedString) {
        self.held.fetch_add(seen.cost, Ordering::Relaxed);
        self.set(seen.now(), label);
    }

    /// Counts a hold that has ended.
    pub(super) fn end(&self, seen: &Observation<'_>, label: &SharedString) {
        // One that was made for a test has not begun.
        let (Some(held), now) = (seen.held(), seen.now()) else { return };
        self.held.fetch_sub(seen.cost, Ordering::Relaxed);
        self.set(now, label);
        self.time.record(now, || histogram!(HOLD_TIME, "policy" => label.clone()), |time| time.record(held));
    }

    /// Sets the gauge to what is held: what is added to a gauge is lost if an exporter has dropped it while it was idle.
    fn set(&self, now: u64, label: &SharedString) {
        let by_name = || gauge!(HOLDS, "policy" => label.clone());
        self.holds.record(now, by_name, |gauge| {
            loop {
                let held = self.held();
                gauge.set(held as f64);
                // Threads may set the gauge in another order than they count. Whichever is last sees that its count is old.
                if self.held() == held {
                    return;
                }
            }
        });
    }

    /// Returns how many permits are held, after all that this thread has done before.
    fn held(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.held.load(Ordering::Relaxed)
    }
}
