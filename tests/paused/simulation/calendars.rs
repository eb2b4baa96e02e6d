//! Windows of a calendar, which the clock of the server may enter several times.

use ratelimit_runtime::Promise;

use super::bounds::{Admission, Promises, Widening, Windows, check};
use super::log::Log;
use super::schedule::Run;

/// A time in which the clock of the server is in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Visit {
    from: u64,
    until: u64,
    window: [u64; 2],
}

impl Run {
    /// Checks that each visit of a window admits its limit at most, given what the clock of the server showed at time 0. Calls that may
    /// be of two visits count in none.
    pub(super) fn check_visits(
        &self,
        log: &Log,
        promises: &Promises<'_>,
        (calls, epoch): (&[Admission], u64),
        widening: &Widening,
    ) -> Result<(), String> {
        let Some(first) = calls.first() else { return Ok(()) };
        for visit in visits(log, promises(first.numbers), epoch, self.now(), calls) {
            let within = |call: &&Admission| visit.from <= call.start && call.end < visit.until;
            let within: Vec<_> = calls.iter().filter(within).copied().collect();
            check(promises, Windows::Unknown, &within, widening)?;
        }
        Ok(())
    }
}

/// Returns when the visit began that a time is of.
pub(super) fn visit_of(log: &Log, promise: Promise, epoch: u64, at: u64) -> u64 {
    visits(log, promise, epoch, at + 1, &[]).last().map_or(0, |visit| visit.from)
}

/// Returns all visits from time 0 to the end. If no time passes between two steps, calls then are of another one.
fn visits(log: &Log, promise: Promise, epoch: u64, end: u64, calls: &[Admission]) -> Vec<Visit> {
    let Promise::CalendarWindows { calendar, .. } = promise else { unreachable!("{promise:?}") };
    let (mut visits, mut now, mut ahead) = (Vec::<Visit>::new(), 0, epoch);
    for (step, by) in log.steps.iter().copied().chain([(end, 0)]) {
        let is_called = calls.iter().any(|call| (call.start..=call.end).contains(&now));
        let mut goes_on = now < step || is_called;
        while goes_on {
            let window = calendar.window_of(now + ahead);
            let until = (window[1] - ahead).min(step);
            match visits.last_mut() {
                Some(last) if last.window == window => last.until = until,
                _ => {
                    // Calls of the time of a step may have come before it.
                    let is_step = log.steps.iter().any(|(step, _)| *step == now);
                    visits.push(Visit { from: now + u64::from(is_step), until, window });
                }
            }
            now = until;
            goes_on = now < step;
        }
        ahead = ahead.saturating_add_signed(by);
    }
    visits
}
