//! Permits that calls hold: that never too many are, and that calls are refused only when there are none.

use std::sync::Arc;
use std::time::Duration;

use ratelimits::{DecidedBy, Decision};
use tokio::time::Instant;

use super::bounds::Numbers;
use super::calls::FOREVER;
use super::log::{Held, Log, Refusal, Span};
use super::process::{HOLD_TTL, Process, Request};
use super::schedule::Run;
use super::target::Kind;

/// For how long a process gathers what has ended before it says so, and the rounding of timers, in microseconds.
const GATHERS: u64 = 3_000;
/// For how long the turn of a call that waits may last after it has gone.
const TURN: u64 = 1_000_000;

impl Run {
    pub(super) fn holds(&self, target: usize) -> bool {
        self.plan.targets[target].kind == Kind::Holds
    }

    /// Logs a call that holds permits, and checks that there are not too many.
    pub(super) fn hold(
        &self,
        process: &Process,
        (request, numbers): (Request, Numbers),
        start: u64,
        source: DecidedBy,
        decision: Arc<Decision>,
    ) {
        let (Request { target, key, cost, .. }, now) = (request, self.now());
        self.print(|| format!("holds since {start} by {source} in {}: {request:?}, {numbers:?}", process.id));
        let is_local = source == DecidedBy::Local;
        let mut log = self.log();
        log.admitted_holds += 1;
        let id = process.id;
        let link = process.link.clone();
        let unknown_until = if is_local { FOREVER } else { self.unknown_until(&log, start) };
        let held = Held {
            process: id,
            target,
            key,
            permits: cost,
            limit: numbers.limit,
            start,
            end: now,
            unknown_until,
            is_reset: false,
            link,
            decision,
        };
        log.holds.push(held);
        let of_key = log.holds.iter().filter(|held| (held.target, held.key) == (target, key));
        let (counted, most): (u64, u64) = if is_local {
            let own = of_key.filter(|held| held.process == id && !held.is_reset);
            (own.map(|held| held.permits).sum(), numbers.limit.div_ceil(self.plan.processes as u64))
        } else {
            let policy = self.plan.targets[target].name(target);
            let known = of_key.filter(|held| {
                // Where all messages arrive at once, no process that holds permits is silent for so long.
                let is_believed =
                    self.plan.is_orderly() || !held.link.forgot((&policy, key), self.at(held.start));
                held.unknown_until <= start && is_believed
            });
            let known: u64 = known.map(|held| held.permits).sum();
            // That of one which may have been the last.
            let limits =
                log.holds.iter().filter(|held| (held.target, held.key) == (target, key) && held.end >= start);
            let limit = limits.map(|held| held.limit).max().unwrap_or_default();
            (known, limit)
        };
        if counted > most {
            let all = log.holds.iter().filter(|held| (held.target, held.key) == (target, key));
            let all: Vec<_> =
                all.map(|held| (held.process, held.start, held.permits, held.unknown_until)).collect();
            let problem = format!("{counted} permits of {most} are held at {now}, by {source}: {all:?}");
            log.problems.push(problem);
        }
    }

    /// Notes that a call may wait for permits to hold, from now on.
    pub(super) fn begin_wait(&self, request: &Request, start: u64) -> Option<usize> {
        request.wait.filter(|_| self.holds(request.target))?;
        let mut log = self.log();
        let Request { target, key, cost, .. } = *request;
        log.waits.push(Span { target, key, permits: cost, from: start, until: FOREVER });
        Some(log.waits.len() - 1)
    }

    pub(super) fn end_wait(&self, waiter: Option<usize>) {
        if let Some(waiter) = waiter {
            let now = self.now();
            self.log().waits[waiter].until = now;
        }
    }

    /// Where nothing fails, a call is refused only if its permits were held. What has just been released may still be, and while calls
    /// wait, permits are kept free for them.
    pub(super) fn check_refused_hold(&self, log: &Log, refusal: &Refusal) -> Result<(), String> {
        let Refusal { target, key, cost, numbers, at } = *refusal;
        let of_key = |span: &&Span| (span.target, span.key) == (target, key) && span.from <= at;
        let held = log.held.iter().filter(of_key).filter(|span| at <= span.until.saturating_add(GATHERS));
        let held: u64 = held.map(|span| span.permits).sum();
        let waits = log.waits.iter().filter(of_key).any(|span| at <= span.until.saturating_add(TURN));
        if held + cost <= numbers.limit && !waits {
            return Err(format!("refused in vain: {refusal:?}, {held} are held: {:?}", log.held));
        }
        Ok(())
    }

    /// Returns until when the server may not know of what a call holds that began then, because of losses before its reply came.
    fn unknown_until(&self, log: &Log, start: u64) -> u64 {
        // Messages that come late or twice may mislead a server that has lost what followed on them.
        let since = if self.plan.is_orderly() {
            start
        } else {
            start.saturating_sub(2 * HOLD_TTL.as_micros() as u64)
        };
        let resets = log.resets.iter().map(|(.., [_, to])| *to);
        let last = log.breaks.iter().copied().chain(resets).filter(|at| *at >= since).max();
        last.map_or(0, |at| self.known_again(at))
    }

    /// Returns when processes have said again what they hold, after a loss at this time.
    pub(super) fn known_again(&self, lost: u64) -> u64 {
        let reports_after = (HOLD_TTL / 3).as_micros() as u64 + 500_000;
        if self.plan.is_orderly() { lost.saturating_add(reports_after) } else { FOREVER }
    }

    pub(super) fn forget_holds(&self, until: u64) {
        self.log().holds.iter_mut().for_each(|held| held.unknown_until = until.max(held.unknown_until));
    }

    pub(super) fn forget_local(&self, target: usize, key: u64) {
        let mut log = self.log();
        let of_key = log.holds.iter_mut().filter(|held| (held.target, held.key) == (target, key));
        of_key.for_each(|held| held.is_reset = true);
    }

    pub(super) fn at(&self, micros: u64) -> Instant {
        self.begun + Duration::from_micros(micros)
    }
}
