//! The series of a policy, kept so that a decision looks none up by name.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ::metrics::{Counter, Gauge, SharedString, counter, gauge};

use super::holds::HoldSeries;
use super::kept::Kept;
use super::recorder;
use crate::decide::observation::{CallOutcome, Observation};
use crate::store::decided_by::DecidedBy;

pub(super) const DECISIONS: &str = "ratelimits_decisions_total";
pub(super) const LIMIT: &str = "ratelimits_limit";

/// The series of a policy.
#[derive(Debug)]
pub(super) struct PolicySeries {
    label: SharedString,
    decisions: [[OnceLock<Box<Kept<Counter>>>; SOURCES]; OUTCOMES],
    limit: Kept<Gauge>,
    /// What the last one was set to.
    last_limit: AtomicU64,
    holds: OnceLock<Box<HoldSeries>>,
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
            holds: OnceLock::new(),
        }
    }

    pub(super) fn label(&self) -> &SharedString {
        &self.label
    }

    /// Counts a hold that begins.
    #[cold]
    pub(super) fn begin_hold(&self, seen: &Observation<'_>) {
        self.holds.get_or_init(Box::default).begin(seen, &self.label);
    }

    /// Counts a hold that has ended.
    pub(super) fn end_hold(&self, seen: &Observation<'_>) {
        self.holds.get_or_init(Box::default).end(seen, &self.label);
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
