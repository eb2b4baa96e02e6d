//! A circuit breaker: stops asking a server that does not answer, and has one call find out when it does again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::jitter::jittered;
use crate::error::StoreError;

/// So many failures in a row open it, or two of which the first is long ago. One that is bad counts as half of them.
const FAILURES: u32 = 5;
const LONG_AGO: Duration = Duration::from_secs(1);

/// How long it is open before the first try, doubled with each try up to the longest.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_millis(400);

/// Closed while the server answers. Shared by all runtimes, as the server is.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// Whether there is anything in the state: most calls look no further.
    stirred: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Failures in a row, and the first of them.
    failures: u32,
    since: Option<Instant>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    until: Instant,
    /// Tries that have failed.
    tries: u32,
    /// Whether a call is trying.
    trying: bool,
    why: StoreError,
}

/// How bad a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// Once is nothing.
    Once,
    /// Twice is too often.
    Badly,
    /// There is no use in asking again at once.
    ForNow,
}

/// The one call that is let through while it is open, until it has told how that went. Dropped before, the next one tries.
#[derive(Debug)]
pub(super) struct Probe<'a>(&'a Breaker);

impl Breaker {
    /// Lets a call through, as the probe if it is open and its time has come.
    pub(super) fn admit(&self, now: Instant) -> Result<Option<Probe<'_>>, StoreError> {
        if !self.stirred.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match &mut self.lock().open {
            None => Ok(None),
            Some(open) if open.trying || now < open.until => Err(open.why.again()),
            Some(open) => {
                open.trying = true;
                Ok(Some(Probe(self)))
            }
        }
    }

    /// Whether a call that was let through may still ask.
    pub(super) fn admits_still(&self, probe: Option<&Probe<'_>>) -> Result<(), StoreError> {
        if probe.is_some() || !self.stirred.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.lock().open.as_ref().map_or(Ok(()), |open| Err(open.why.again()))
    }

    /// The server has answered.
    pub(super) fn answered(&self) {
        if self.stirred.load(Ordering::Relaxed) {
            let mut state = self.lock();
            *state = State::default();
            self.stirred.store(false, Ordering::Relaxed);
        }
    }

    /// The server has not answered, or only that it cannot.
    pub(super) fn failed(&self, now: Instant, failed: Failed, probe: Option<Probe<'_>>, why: &StoreError) {
        let mut state = self.lock();
        self.stirred.store(true, Ordering::Relaxed);
        state.failures += if failed == Failed::Badly { FAILURES.div_ceil(2) } else { 1 };
        let since = *state.since.get_or_insert(now);
        let many = state.failures >= FAILURES || state.failures > 1 && now >= since + LONG_AGO;
        match &mut state.open {
            Some(open) if probe.is_some() => {
                open.tries += 1;
                (open.until, open.why) = (now + pause(open.tries), why.again());
            }
            None if many || failed == Failed::ForNow => {
                let why = why.again();
                state.open = Some(Open { until: now + pause(0), tries: 0, trying: false, why });
            }
            // Others had been let through before it opened.
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        if let Some(open) = &mut self.0.lock().open {
            open.trying = false;
        }
    }
}

/// Processes that lost a server together do not come back together.
fn pause(tries: u32) -> Duration {
    jittered(FIRST.saturating_mul(1 << tries.min(8)).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why() -> StoreError {
        StoreError::new("because")
    }

    #[test]
    fn some_failures_in_a_row_open_it_and_an_answer_closes_it() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 1..FAILURES {
            breaker.failed(now, Failed::Once, None, &why());
        }
        breaker.answered();
        for _ in 1..FAILURES {
            breaker.failed(now, Failed::Once, None, &why());
            assert!(breaker.admit(now).is_ok_and(|probe| probe.is_none()));
        }
        breaker.failed(now, Failed::Once, None, &why());
        assert_eq!(breaker.admit(now).unwrap_err().to_string(), "because");
        assert!(breaker.admits_still(None).is_err());
        breaker.answered();
        assert!(breaker.admit(now).is_ok_and(|probe| probe.is_none()));
        assert!(breaker.admits_still(None).is_ok());
    }

    #[test]
    fn where_calls_are_rare_two_failures_open_it() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        breaker.failed(now, Failed::Once, None, &why());
        breaker.failed(now + LONG_AGO, Failed::Once, None, &why());
        assert!(breaker.admit(now + LONG_AGO).is_err());
    }

    #[test]
    fn one_call_at_a_time_tries_and_ever_less_often() {
        let (breaker, mut now) = (Breaker::default(), Instant::now());
        breaker.failed(now, Failed::ForNow, None, &why());
        let mut tries = 0;
        let begin = now;
        while now < begin + Duration::from_secs(10) {
            if let Ok(probe) = breaker.admit(now) {
                let probe = probe.expect("it is open");
                assert!(breaker.admit(now).is_err(), "a second one tries");
                // Of those that were let through before it opened.
                breaker.failed(now, Failed::Once, None, &why());
                breaker.failed(now, Failed::Once, Some(probe), &why());
                tries += 1;
            }
            now += Duration::from_millis(1);
        }
        assert!((20..=40).contains(&tries), "{tries} tries in 10 s");
    }

    #[test]
    fn a_try_that_is_dropped_is_taken_up_by_the_next_call() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        breaker.failed(now, Failed::ForNow, None, &why());
        let later = now + LONGEST * 2;
        drop(breaker.admit(later).unwrap().expect("it is open"));
        let probe = breaker.admit(later).unwrap();
        assert!(probe.is_some() && breaker.admits_still(probe.as_ref()).is_ok());
    }
}
