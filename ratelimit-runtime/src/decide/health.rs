//! Store health, measured on real calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::field::{DisplayValue, debug, display};

use crate::base::log::{MINUTE, log};
use crate::store::error::StoreError;
use crate::store::{RedisStore, Store};

/// The state of a registry's store, as seen by the decisions of this process.
///
/// An outage begins with the first decision that the store fails to make. It ends with the first decision that the store makes
/// at least one second after the last failed one. A warning is logged at both ends, and once a minute in between. The store of an in-process registry is
/// always healthy.
///
/// ```
/// let health = ratelimits::Registry::in_memory().store_health();
/// assert!(health.healthy);
/// assert_eq!((health.outages, health.failed_decisions), (0, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreHealth {
    /// Whether there is no outage. True for a store that has not been used yet.
    pub healthy: bool,
    /// The number of outages so far, the current one included.
    pub outages: u64,
    /// The number of decisions that the store failed to make, whatever `on_store_error` made of them. A call that waits for a
    /// window may need several decisions.
    pub failed_decisions: u64,
}

impl StoreHealth {
    /// The health of a store that cannot fail.
    pub(crate) const HEALTHY: StoreHealth = StoreHealth { healthy: true, outages: 0, failed_decisions: 0 };
}

/// How long the store must make every decision before an outage is over.
const RECOVERY: Duration = Duration::from_secs(1);

/// Tracks the outages of one store.
#[derive(Debug, Default)]
pub(crate) struct HealthMonitor {
    /// `None` for a store that cannot fail.
    redis: Option<Arc<RedisStore>>,
    /// Whether there is an outage, readable without the lock.
    in_outage: AtomicBool,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    outages: u64,
    failed_decisions: u64,
    current: Option<Outage>,
    failed_refunds: Option<FailedRefunds>,
}

/// Refunds of dropped calls that failed in one outage, or within a second of each other.
#[derive(Debug)]
struct FailedRefunds {
    count: u64,
    last: Instant,
}

#[derive(Debug)]
struct Outage {
    began: Instant,
    last_failure: Instant,
    failed_decisions: u64,
    /// When it was last logged.
    logged: Instant,
}

/// What is logged of a failure.
#[derive(Debug, PartialEq)]
enum OutageEvent {
    Begins,
    GoesOn { failed_decisions: u64, lasted: Duration },
}

impl HealthMonitor {
    pub(crate) fn new(store: &Store) -> Self {
        let redis = match store {
            Store::Redis(redis) => Some(Arc::clone(redis)),
            Store::Memory(_) => None,
        };
        HealthMonitor { redis, ..HealthMonitor::default() }
    }

    /// Records a decision that the store made.
    pub(crate) fn record_success(&self) {
        if self.in_outage.load(Ordering::Relaxed) {
            self.record_success_at(Instant::now());
        }
    }

    /// Records a decision that the store failed to make.
    pub(crate) fn record_failure(&self, error: &StoreError) {
        let Some(event) = self.record_failure_at(Instant::now()) else { return };
        let server = self.server();
        match event {
            OutageEvent::Begins => {
                let deadline = self.redis.as_ref().map(|redis| debug(redis.timeout()));
                log!(WARN, server, deadline, %error, "store unavailable; applying `on_store_error`");
            }
            OutageEvent::GoesOn { failed_decisions, lasted } => {
                log!(WARN, server, failed_decisions, ?lasted, %error, "store still unavailable");
            }
        }
    }

    /// Records that the store did not refund a dropped call. The first of an outage is logged, because a whole service may drop
    /// its calls at once.
    pub(crate) fn record_failed_refund(&self, error: &StoreError) {
        if self.is_first_failed_refund(Instant::now()) {
            let server = self.server();
            log!(WARN, server, %error, "failed to refund a dropped call; others of this outage are only counted");
        }
    }

    pub(crate) fn health(&self) -> StoreHealth {
        let record = self.lock();
        StoreHealth {
            healthy: record.current.is_none(),
            outages: record.outages,
            failed_decisions: record.failed_decisions,
        }
    }

    fn record_success_at(&self, at: Instant) {
        let ended = {
            let mut record = self.lock();
            let is_over = |outage: &mut Outage| at.saturating_duration_since(outage.last_failure) >= RECOVERY;
            let ended = record.current.take_if(is_over);
            self.in_outage.store(record.current.is_some(), Ordering::Relaxed);
            ended.map(|ended| (ended, record.failed_refunds.take().map_or(0, |refunds| refunds.count)))
        };
        // Logged without the lock, because a subscriber may itself be rate limited.
        if let Some((Outage { began, failed_decisions, .. }, failed_refunds)) = ended {
            let (server, lasted) = (self.server(), at.saturating_duration_since(began));
            log!(WARN, server, failed_decisions, failed_refunds, ?lasted, "store recovered");
        }
    }

    fn record_failure_at(&self, at: Instant) -> Option<OutageEvent> {
        let mut record = self.lock();
        record.failed_decisions += 1;
        let begins = record.current.is_none();
        let outage = record.current.get_or_insert(Outage {
            began: at,
            last_failure: at,
            failed_decisions: 0,
            logged: at,
        });
        outage.last_failure = outage.last_failure.max(at);
        outage.failed_decisions += 1;
        let is_due = begins || at.saturating_duration_since(outage.logged) >= MINUTE;
        let event = is_due.then(|| {
            outage.logged = at;
            let lasted = at.saturating_duration_since(outage.began);
            if begins {
                OutageEvent::Begins
            } else {
                OutageEvent::GoesOn { failed_decisions: outage.failed_decisions, lasted }
            }
        });
        record.outages += u64::from(begins);
        if begins {
            let is_earlier =
                |refunds: &mut FailedRefunds| at.saturating_duration_since(refunds.last) >= RECOVERY;
            let _ = record.failed_refunds.take_if(is_earlier);
        }
        self.in_outage.store(true, Ordering::Relaxed);
        event
    }

    fn is_first_failed_refund(&self, at: Instant) -> bool {
        let mut record = self.lock();
        let in_outage = record.current.is_some();
        let continues =
            |refunds: &&mut FailedRefunds| in_outage || at.saturating_duration_since(refunds.last) < RECOVERY;
        if let Some(refunds) = record.failed_refunds.as_mut().filter(continues) {
            (refunds.count, refunds.last) = (refunds.count + 1, at);
            return false;
        }
        record.failed_refunds = Some(FailedRefunds { count: 1, last: at });
        true
    }

    fn server(&self) -> Option<DisplayValue<String>> {
        self.redis.as_ref().map(|redis| display(redis.server()))
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(healthy: bool, outages: u64, failed_decisions: u64) -> StoreHealth {
        StoreHealth { healthy, outages, failed_decisions }
    }

    #[test]
    fn intermittent_failures_are_one_outage() {
        let (monitor, began) = (HealthMonitor::default(), Instant::now());
        let after = |millis| began + Duration::from_millis(millis);
        monitor.record_success();
        assert_eq!(monitor.health(), health(true, 0, 0));
        for millis in (0..5000).step_by(10) {
            monitor.record_failure_at(after(millis));
            monitor.record_success_at(after(millis + 5));
        }
        assert_eq!(monitor.health(), health(false, 1, 500));
        monitor.record_success_at(after(5989));
        assert_eq!(monitor.health(), health(false, 1, 500));
        monitor.record_success_at(after(5990));
        assert_eq!(monitor.health(), health(true, 1, 500));
        monitor.record_failure_at(after(5991));
        assert_eq!(monitor.health(), health(false, 2, 501));
    }

    #[test]
    fn outages_are_logged_every_minute() {
        let (monitor, began) = (HealthMonitor::default(), Instant::now());
        let after = Duration::from_millis;
        let events: Vec<_> = (0..200)
            .filter_map(|second| Some((second, monitor.record_failure_at(began + after(second * 1000))?)))
            .collect();
        let goes_on = |seconds| {
            (seconds, OutageEvent::GoesOn { failed_decisions: seconds + 1, lasted: after(seconds * 1000) })
        };
        assert_eq!(events, [(0, OutageEvent::Begins), goes_on(60), goes_on(120), goes_on(180)]);
        monitor.record_success_at(began + after(201_000));
        assert_eq!(monitor.record_failure_at(began + after(202_000)), Some(OutageEvent::Begins));
    }

    #[test]
    fn failed_refunds_are_logged_once_an_outage() {
        let (monitor, began) = (HealthMonitor::default(), Instant::now());
        let after = |millis| began + Duration::from_millis(millis);
        assert!(monitor.is_first_failed_refund(began));
        assert!((0..1000).all(|millis| !monitor.is_first_failed_refund(after(millis))));
        assert!(monitor.is_first_failed_refund(after(2000)), "a second later, without an outage");
        monitor.record_failure_at(after(2000));
        assert!((2..100).all(|seconds| !monitor.is_first_failed_refund(after(seconds * 1000))));
        monitor.record_success_at(after(200_000));
        assert!(monitor.is_first_failed_refund(after(200_000)));
        monitor.record_failure_at(after(300_000));
        assert!(monitor.is_first_failed_refund(after(300_000)), "of another outage");
    }

    #[test]
    fn earlier_timestamps_do_not_end_an_outage() {
        let (monitor, began) = (HealthMonitor::default(), Instant::now());
        monitor.record_failure_at(began + RECOVERY);
        monitor.record_failure_at(began);
        monitor.record_success_at(began);
        monitor.record_success_at(began + RECOVERY);
        assert!(!monitor.health().healthy);
        monitor.record_success_at(began + 2 * RECOVERY);
        assert!(monitor.health().healthy);
    }
}
