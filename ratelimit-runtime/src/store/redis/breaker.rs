//! A circuit breaker: stops sending to a server that does not answer, and lets one call probe for its recovery.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::jitter::jittered;
use crate::store::error::StoreError;

/// The number of consecutive failures that open the breaker. Two suffice if the first was `STALE_AFTER` ago.
const MAX_FAILURES: u32 = 5;

/// After this time a second failure opens the breaker, a probe counts as stuck, and a closed breaker forgets its backoff.
const STALE_AFTER: Duration = Duration::from_secs(1);

/// How long the breaker stays open before the first probe, doubled with each failed one up to the maximum.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_millis(400);

/// Closed while the server answers. Shared by all runtimes, as the server is.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// False if the state holds nothing, which is all that most calls read.
    has_failures: AtomicBool,
    state: Mutex<BreakerState>,
}

#[derive(Debug, Default)]
struct BreakerState {
    /// Consecutive failures, and the time of the first.
    failures: u32,
    first_failure: Option<Instant>,
    outage: Option<OpenBreaker>,
    last_outage: Option<ClosedOutage>,
    /// The number of the last probe.
    probes: u64,
}

/// An open breaker.
#[derive(Debug)]
struct OpenBreaker {
    until: Instant,
    failed_probes: u32,
    probing: Option<RunningProbe>,
    reason: StoreError,
}

#[derive(Clone, Copy, Debug)]
struct RunningProbe {
    number: u64,
    since: Instant,
}

#[derive(Clone, Copy, Debug)]
struct ClosedOutage {
    at: Instant,
    failed_probes: u32,
}

/// How much a failure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severity {
    /// One of `MAX_FAILURES`.
    Minor,
    /// Half of them: two such failures open the breaker.
    Major,
    /// Opens the breaker at once.
    Critical,
}

/// The one call that an open breaker admits, until its outcome is recorded. If it is dropped before, or takes longer than
/// `STALE_AFTER` because its future may not be polled any more, the next call becomes the probe.
#[derive(Debug)]
pub(super) struct Probe<'a> {
    breaker: &'a Breaker,
    number: u64,
}

impl Breaker {
    /// Admits a call: as the probe if the breaker is open and its backoff is over. The clock is read only while it is open.
    pub(super) fn admit(&self, now: impl FnOnce() -> Instant) -> Result<Option<Probe<'_>>, StoreError> {
        if !self.has_failures.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let BreakerState { outage, probes, .. } = &mut *self.lock();
        let Some(outage) = outage else { return Ok(None) };
        let now = now();
        let is_probing = outage.probing.is_some_and(|probe| now < probe.since + STALE_AFTER);
        if is_probing || now < outage.until {
            return Err(outage.reason.clone());
        }
        *probes += 1;
        outage.probing = Some(RunningProbe { number: *probes, since: now });
        Ok(Some(Probe { breaker: self, number: *probes }))
    }

    /// Checks whether an admitted call may still be sent.
    pub(super) fn still_admits(&self, probe: Option<&Probe<'_>>) -> Result<(), StoreError> {
        if probe.is_some() || !self.has_failures.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.lock().outage.as_ref().map_or(Ok(()), |outage| Err(outage.reason.clone()))
    }

    /// Records an answer of the server.
    pub(super) fn succeeded(&self) {
        if self.has_failures.load(Ordering::Relaxed) {
            self.close(Instant::now());
        }
    }

    fn close(&self, now: Instant) {
        let mut state = self.lock();
        (state.failures, state.first_failure) = (0, None);
        if let Some(outage) = state.outage.take() {
            state.last_outage = Some(ClosedOutage { at: now, failed_probes: outage.failed_probes });
        }
        self.has_failures.store(false, Ordering::Relaxed);
    }

    /// Records that the server did not answer, or only that it cannot work.
    pub(super) fn failed(
        &self,
        now: Instant,
        severity: Severity,
        probe: Option<Probe<'_>>,
        reason: &StoreError,
    ) {
        let mut state = self.lock();
        self.has_failures.store(true, Ordering::Relaxed);
        state.failures += if severity == Severity::Major { MAX_FAILURES.div_ceil(2) } else { 1 };
        let first_failure = *state.first_failure.get_or_insert(now);
        let too_many =
            state.failures >= MAX_FAILURES || state.failures > 1 && now >= first_failure + STALE_AFTER;
        let last_outage = state.last_outage;
        match &mut state.outage {
            Some(outage) if probe.as_ref().is_some_and(|probe| outage.is_probed_by(probe.number)) => {
                outage.failed_probes += 1;
                outage.until = now + backoff(outage.failed_probes);
                outage.reason = reason.clone();
            }
            None if too_many || severity == Severity::Critical => {
                // A server that answers only some calls continues the backoff where it left off.
                let recent = last_outage.filter(|last| now < last.at + STALE_AFTER);
                let failed_probes = recent.map_or(0, |last| last.failed_probes + 1);
                let until = now + backoff(failed_probes);
                let reason = reason.clone();
                state.outage = Some(OpenBreaker { until, failed_probes, probing: None, reason });
            }
            // A call that was admitted before the breaker opened.
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, BreakerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenBreaker {
    fn is_probed_by(&self, number: u64) -> bool {
        self.probing.is_some_and(|probe| probe.number == number)
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        if let Some(outage) = &mut self.breaker.lock().outage
            && outage.is_probed_by(self.number)
        {
            outage.probing = None;
        }
    }
}

/// With jitter, so that processes that lost a server together do not return together.
fn backoff(failed_probes: u32) -> Duration {
    jittered(MIN_BACKOFF.saturating_mul(1 << failed_probes.min(8)).min(MAX_BACKOFF))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(breaker: &Breaker, now: Instant, severity: Severity, probe: Option<Probe<'_>>) {
        breaker.failed(now, severity, probe, &StoreError::transient("reason"));
    }

    #[test]
    fn opens_after_failures_and_closes_after_an_answer() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 1..MAX_FAILURES {
            fail(&breaker, now, Severity::Minor, None);
        }
        breaker.succeeded();
        for _ in 1..MAX_FAILURES {
            fail(&breaker, now, Severity::Minor, None);
            assert!(breaker.admit(|| now).is_ok_and(|probe| probe.is_none()));
        }
        fail(&breaker, now, Severity::Minor, None);
        assert_eq!(breaker.admit(|| now).unwrap_err().to_string(), "reason");
        assert!(breaker.still_admits(None).is_err());
        breaker.succeeded();
        assert!(breaker.admit(|| now).is_ok_and(|probe| probe.is_none()));
        assert!(breaker.still_admits(None).is_ok());
    }

    #[test]
    fn opens_after_two_failures_if_calls_are_rare() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        fail(&breaker, now, Severity::Minor, None);
        assert!(breaker.admit(|| now).is_ok());
        fail(&breaker, now + STALE_AFTER, Severity::Minor, None);
        assert!(breaker.admit(|| now + STALE_AFTER).is_err());
    }

    #[test]
    fn probes_run_one_at_a_time_and_back_off() {
        let (breaker, mut now) = (Breaker::default(), Instant::now());
        fail(&breaker, now, Severity::Critical, None);
        let mut probes = 0;
        let start = now;
        while now < start + Duration::from_secs(10) {
            if let Ok(probe) = breaker.admit(|| now) {
                let probe = probe.expect("it is open");
                assert!(breaker.admit(|| now).is_err(), "two probes at once");
                // A call that was admitted before the breaker opened.
                fail(&breaker, now, Severity::Minor, None);
                fail(&breaker, now, Severity::Minor, Some(probe));
                probes += 1;
            }
            now += Duration::from_millis(1);
        }
        assert!((20..=40).contains(&probes), "{probes} probes in 10 s");
    }

    #[test]
    fn stuck_probe_is_replaced_and_ignored() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        fail(&breaker, now, Severity::Critical, None);
        let later = now + MAX_BACKOFF * 2;
        let stuck = breaker.admit(|| later).unwrap().expect("it is open");
        assert!(breaker.admit(|| later + STALE_AFTER / 2).is_err());
        let next = breaker.admit(|| later + STALE_AFTER).unwrap().expect("it is open");
        drop(stuck);
        assert!(breaker.admit(|| later + STALE_AFTER).is_err(), "the next probe is still running");
        fail(&breaker, later + STALE_AFTER, Severity::Minor, Some(next));
        assert!(breaker.admit(|| later + STALE_AFTER).is_err(), "the last probe has only just failed");
    }

    #[test]
    fn partial_outage_backs_off() {
        let breaker = Breaker::default();
        let start = Instant::now();
        let (mut calls, mut now) = (0, start);
        while now < start + Duration::from_secs(10) {
            if breaker.admit(|| now).is_ok() {
                breaker.close(now);
                fail(&breaker, now, Severity::Critical, None);
                calls += 1;
            }
            now += Duration::from_millis(1);
        }
        assert!((20..=40).contains(&calls), "{calls} calls in 10 s");
    }

    #[test]
    fn dropped_probe_is_replaced() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        fail(&breaker, now, Severity::Critical, None);
        let later = now + MAX_BACKOFF * 2;
        drop(breaker.admit(|| later).unwrap().expect("it is open"));
        let probe = breaker.admit(|| later).unwrap();
        assert!(probe.is_some() && breaker.still_admits(probe.as_ref()).is_ok());
    }
}
