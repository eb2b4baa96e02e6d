//! A circuit breaker: stops asking a server that does not answer, and has one call find out when it does again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::jitter::jittered;
use crate::error::store::StoreError;

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
    /// When it was closed last, and after how many tries.
    closed: Option<(Instant, u32)>,
    /// The number of the last probe.
    probes: u64,
}

#[derive(Debug)]
struct Open {
    until: Instant,
    /// Tries that have failed.
    tries: u32,
    /// Which probe is trying, and since when.
    trying: Option<(u64, Instant)>,
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

/// The one call that is let through while it is open, until it has told how that went. Dropped before, the next one tries, and
/// also where it takes so long that it may be a future that nobody polls.
#[derive(Debug)]
pub(super) struct Probe<'a>(&'a Breaker, u64);

impl Breaker {
    /// Lets a call through, as the probe if it is open and its time has come.
    pub(super) fn admit(&self, now: Instant) -> Result<Option<Probe<'_>>, StoreError> {
        if !self.stirred.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let State { open, probes, .. } = &mut *self.lock();
        let Some(open) = open else { return Ok(None) };
        let is_tried = open.trying.is_some_and(|(_, since)| now < since + LONG_AGO);
        if is_tried || now < open.until {
            return Err(open.why.clone());
        }
        *probes += 1;
        open.trying = Some((*probes, now));
        Ok(Some(Probe(self, *probes)))
    }

    /// Whether a call that was let through may still ask.
    pub(super) fn admits_still(&self, probe: Option<&Probe<'_>>) -> Result<(), StoreError> {
        if probe.is_some() || !self.stirred.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.lock().open.as_ref().map_or(Ok(()), |open| Err(open.why.clone()))
    }

    /// The server has answered.
    pub(super) fn answered(&self) {
        if self.stirred.load(Ordering::Relaxed) {
            self.close(Instant::now());
        }
    }

    fn close(&self, now: Instant) {
        let mut state = self.lock();
        (state.failures, state.since) = (0, None);
        if let Some(open) = state.open.take() {
            state.closed = Some((now, open.tries));
        }
        self.stirred.store(false, Ordering::Relaxed);
    }

    /// The server has not answered, or only that it cannot.
    pub(super) fn failed(&self, now: Instant, failed: Failed, probe: Option<Probe<'_>>, why: &StoreError) {
        let mut state = self.lock();
        self.stirred.store(true, Ordering::Relaxed);
        state.failures += if failed == Failed::Badly { FAILURES.div_ceil(2) } else { 1 };
        let since = *state.since.get_or_insert(now);
        let many = state.failures >= FAILURES || state.failures > 1 && now >= since + LONG_AGO;
        let closed = state.closed;
        match &mut state.open {
            Some(open) if probe.as_ref().is_some_and(|probe| open.is_tried_by(probe.1)) => {
                open.tries += 1;
                (open.until, open.why) = (now + pause(open.tries), why.clone());
            }
            None if many || failed == Failed::ForNow => {
                // A server that answers some calls, and not others, goes on where it was.
                let again = closed.filter(|(closed, _)| now < *closed + LONG_AGO);
                let tries = again.map_or(0, |(_, tries)| tries + 1);
                let until = now + pause(tries);
                state.open = Some(Open { until, tries, trying: None, why: why.clone() });
            }
            // Others had been let through before it opened.
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn is_tried_by(&self, number: u64) -> bool {
        self.trying.is_some_and(|(trying, _)| trying == number)
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        if let Some(open) = &mut self.0.lock().open
            && open.is_tried_by(self.1)
        {
            open.trying = None;
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
        StoreError::transient("because")
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
        assert!(breaker.admit(now).is_ok());
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
    fn a_try_that_takes_too_long_is_taken_over_and_says_nothing_any_more() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        breaker.failed(now, Failed::ForNow, None, &why());
        let later = now + LONGEST * 2;
        let stuck = breaker.admit(later).unwrap().expect("it is open");
        assert!(breaker.admit(later + LONG_AGO / 2).is_err());
        let next = breaker.admit(later + LONG_AGO).unwrap().expect("it is open");
        drop(stuck);
        assert!(breaker.admit(later + LONG_AGO).is_err(), "the next one still tries");
        breaker.failed(later + LONG_AGO, Failed::Once, Some(next), &why());
        assert!(breaker.admit(later + LONG_AGO).is_err(), "it was tried just now");
    }

    #[test]
    fn where_some_calls_are_answered_and_others_not_it_is_tried_ever_less_often() {
        let breaker = Breaker::default();
        let begin = Instant::now();
        let (mut tries, mut now) = (0, begin);
        while now < begin + Duration::from_secs(10) {
            if breaker.admit(now).is_ok() {
                breaker.close(now);
                breaker.failed(now, Failed::ForNow, None, &why());
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
