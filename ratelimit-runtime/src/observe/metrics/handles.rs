//! The series of a policy, kept so that a decision looks none up by name.
//!
//! A kept series belongs to the recorder of the process. A thread with a local recorder, and every thread until a recorder is
//! installed, records by name instead. So does one call each second, because an exporter may have dropped a series that was idle:
//! what is recorded to a dropped one is lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use ::metrics::{Counter, Gauge, SharedString, counter, gauge};

use super::recorder;
use crate::decide::observation::{CallOutcome, Observation};
use crate::store::decided_by::DecidedBy;

pub(super) const DECISIONS: &str = "ratelimits_decisions_total";
pub(super) const LIMIT: &str = "ratelimits_limit";

/// How long a series that was looked up is trusted to exist, in microseconds.
const TRUSTED: u64 = 1_000_000;

/// The series of a policy.
#[derive(Debug)]
pub(super) struct PolicySeries {
    label: SharedString,
    decisions: [[OnceLock<Box<Kept<Counter>>>; SOURCES]; OUTCOMES],
    limit: Kept<Gauge>,
    /// What the last one was set to.
    last_limit: AtomicU64,
}

/// A series of the recorder of the process.
#[derive(Debug)]
struct Kept<T> {
    /// When it was looked up, by the clock of the store that decides.
    looked_up: AtomicU64,
    series: RwLock<Option<T>>,
}

const OUTCOMES: usize = CallOutcome::Paused as usize + 1;
/// One more is for calls that nothing decided.
const SOURCES: usize = DecidedBy::Skipped as usize + 2;

impl PolicySeries {
    pub(super) fn new(name: &Arc<str>) -> Self {
        PolicySeries {
            label: Arc::clone(name).into(),
            decisions: [const { [const { OnceLock::new() }; SOURCES] }; OUTCOMES],
            limit: Kept::default(),
            last_limit: AtomicU64::new(u64::MAX),
        }
    }

    pub(super) fn label(&self) -> &SharedString {
        &self.label
    }

    /// Counts a decision, and sets the limit that it had.
    pub(super) fn record(&self, seen: &Observation<'_>, limit: Option<u64>) {
        let now = seen.now();
        let is_kept = recorder::is_of_process(now);
        let by_name = || {
            let (outcome, source) = (seen.outcome.name(), seen.source.map_or("none", DecidedBy::name));
            counter!(DECISIONS, "policy" => self.label.clone(), "outcome" => outcome, "source" => source)
        };
        if is_kept {
            let source = seen.source.map_or(SOURCES - 1, |source| source as usize);
            let kept = self.decisions[seen.outcome as usize][source].get_or_init(Box::default);
            kept.with(now, by_name, |counter| counter.increment(1));
        } else {
            by_name().increment(1);
        }
        let Some(limit) = limit else { return };
        let by_name = || gauge!(LIMIT, "policy" => self.label.clone());
        if !is_kept {
            by_name().set(limit as f64);
        } else if self.last_limit.load(Ordering::Relaxed) != limit || !self.limit.is_fresh(now) {
            self.last_limit.store(limit, Ordering::Relaxed);
            self.limit.with(now, by_name, |gauge| gauge.set(limit as f64));
        }
    }
}

impl<T> Kept<T> {
    /// Whether it was looked up a moment ago.
    fn is_fresh(&self, now: u64) -> bool {
        now.wrapping_sub(self.looked_up.load(Ordering::Relaxed)) < TRUSTED
    }

    /// Calls a function with the series, which is looked up by name if that is too long ago.
    fn with(&self, now: u64, by_name: impl FnOnce() -> T, then: impl FnOnce(&T)) {
        if self.is_fresh(now)
            && let Some(series) = &*self.series.read().unwrap_or_else(PoisonError::into_inner)
        {
            return then(series);
        }
        let mut series = self.series.write().unwrap_or_else(PoisonError::into_inner);
        then(series.insert(by_name()));
        self.looked_up.store(now, Ordering::Relaxed);
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept { looked_up: AtomicU64::new(0), series: RwLock::new(None) }
    }
}
