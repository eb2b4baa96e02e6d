//! What processes do in the steps of a schedule, and how that is logged.

use std::sync::Arc;
use std::time::Duration;

use ratelimits::{DecidedBy, Decision, Error};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::bounds::{Admission, Numbers};
use super::log::{Call, Held, Log, Pause, Penalty, Refusal};
use super::process::{Called, HOLD_TTL, Process, Request};
use super::schedule::{KEYS, Run, settle};
use super::server::Server;
use super::steps::Action;
use super::target::{Kind, Target};
use crate::random::Random;

const FOREVER: u64 = u64::MAX;

impl Run {
    pub(super) async fn act(
        self: &Arc<Self>,
        action: Action,
        processes: &[Arc<Process>],
        at: usize,
        random: &mut Random,
        calls: &mut Vec<JoinHandle<()>>,
    ) {
        let (process, key, now) = (&processes[at], random.below(KEYS), self.now());
        match action {
            Action::Calls(target, count) => {
                for _ in 0..count {
                    let at = random.below(processes.len() as u64) as usize;
                    let request = self.request(target, key, random);
                    let (run, process) = (Arc::clone(self), Arc::clone(&processes[at]));
                    calls.push(tokio::spawn(async move { run.call(&process, request).await }));
                }
            }
            Action::Hoard(target, micros) => {
                let request = Request { target, key, cost: 1, wait: None, burst: 1 };
                for process in processes.iter().flat_map(|process| [process, process]) {
                    self.call(process, request).await;
                }
                self.pass(micros, false).await;
                let count = 2 * self.plan.targets[target].limit as usize;
                for process in processes.iter().cycle().take(count) {
                    let (run, process) = (Arc::clone(self), Arc::clone(process));
                    calls.push(tokio::spawn(async move { run.call(&process, request).await }));
                }
            }
            Action::Both(target, other) => {
                let requests = [target, other].map(|target| Request {
                    burst: self.plan.targets[target].limit,
                    ..self.request(target, key, random)
                });
                let (run, process) = (Arc::clone(self), Arc::clone(process));
                calls.push(tokio::spawn(async move { run.call_both(&process, requests).await }));
            }
            Action::DropCalls => calls.drain(..).for_each(|call| call.abort()),
            Action::Release => {
                let mut log = self.log();
                if !log.holds.is_empty() {
                    let at = random.below(log.holds.len() as u64) as usize;
                    drop(log.holds.remove(at));
                }
            }
            Action::Refund => {
                let mut of = (0, key);
                let refunded = |call: &mut Call| {
                    call.admission.permits = 0;
                    of = (call.target, call.key);
                };
                let Some(decision) = self.take_decision(random, refunded) else { return };
                calls.push(tokio::spawn(async move { drop(decision.refund().await) }));
                settle().await;
                // What came back is used at once.
                let (target, key) = of;
                for _ in 0..=self.plan.targets[target].limit {
                    let request =
                        Request { target, key, cost: 1, wait: None, burst: self.plan.targets[target].limit };
                    let (run, process) = (Arc::clone(self), Arc::clone(process));
                    calls.push(tokio::spawn(async move { run.call(&process, request).await }));
                }
            }
            Action::Settle => self.settle_call(random),
            Action::RefundUnchecked(target) => {
                let permits = random.between(1, 3);
                let _ = process.limiter(target).refund(key, permits).await;
                self.log().refunds.push((target, key, now, permits));
            }
            Action::Reset(target) => {
                // At some time until it ends.
                self.forget_local(target, key);
                let result = process.limiter(target).reset(key).await;
                self.forget_local(target, key);
                let end = if result.is_ok() { self.now() } else { FOREVER };
                self.log().resets.push((target, key, [now, end]));
                self.forget_holds(FOREVER);
            }
            Action::Pause(target, micros) => {
                let of = Request { target, key, cost: 1, wait: None, burst: self.plan.targets[target].limit };
                let numbers = process.numbers(&of, now);
                let pause = process.limiter(target).pause(key, Duration::from_micros(micros)).await;
                let (from, until) = (self.now(), now + micros);
                if pause.is_ok() {
                    self.log().pauses.push(Pause { target, key, numbers, set: now, from, until });
                }
            }
            Action::Override(target) => {
                let mut overrides = self.overrides.lock().unwrap();
                overrides.change(target, &self.plan.targets[target], key, random);
                let is_everywhere = random.percent(60);
                let those = processes.iter().filter(|it| is_everywhere || it.id == process.id);
                those.for_each(|process| process.override_now(now, &overrides));
                drop(overrides);
                self.print(|| format!("{}, everywhere: {is_everywhere}", process.shown_overrides()));
            }
            Action::LoseData => {
                self.log().losses.push(now);
                self.break_after(|server| server.lose_data());
            }
            Action::FailOver => {
                self.log().losses.push(now);
                self.break_after(|server| server.fail_over(random.below(3)));
            }
            Action::StepClock(by) => {
                self.log().steps.push((now, by));
                self.break_after(|server| server.step_clock(by));
            }
            Action::Snapshot => self.server().keep_snapshot(),
            Action::Cut(millis) => process.link.cut_until(Instant::now() + Duration::from_millis(millis)),
            Action::Die => unreachable!("another process starts"),
        }
    }

    fn request(&self, target: usize, key: u64, random: &mut Random) -> Request {
        let Target { limit, .. } = self.plan.targets[target];
        let cost = if random.percent(75) { 1 } else { random.between(1, limit.min(3)) };
        let may_wait = random.percent(25) && self.plan.waits && self.plan.targets[target].waits();
        let wait = may_wait.then(|| Duration::from_micros(random.below(3_000_000)));
        Request { target, key, cost, wait, burst: random.between(cost, limit.max(cost)) }
    }

    async fn call(&self, process: &Process, request: Request) {
        let start = self.now();
        let numbers = process.numbers(&request, start);
        let Called { result, penalty } = process.call(request).await;
        if let Some(penalty) = penalty {
            let (Request { target, key, .. }, end, micros) =
                (request, self.now(), penalty.as_micros() as u64);
            self.print(|| format!("penalty of {micros} µs"));
            let mut log = self.log();
            log.penalties.push(Penalty { target, key, start, end, micros });
            log.pauses.push(Pause { target, key, numbers, set: start, from: end, until: start + micros });
        }
        match result {
            _ if process.is_dead() => {}
            Ok((source, Some(decision))) if self.holds(request.target) => {
                self.hold(process, (request, numbers), start, source, Arc::new(decision));
            }
            Ok((source, decision)) => self.admit(process, (request, numbers), start, source, decision),
            Err(error) => self.refuse(&[(request, numbers)], start, error),
        }
    }

    async fn call_both(&self, process: &Process, requests: [Request; 2]) {
        let start = self.now();
        let requests = requests.map(|request| (request, process.numbers(&request, start)));
        match process.call_both(requests.map(|(request, _)| request)).await {
            _ if process.is_dead() => {}
            Ok(decision) => {
                let (source, decision) = (decision.source, Arc::new(decision));
                for request in requests {
                    match self.holds(request.0.target) {
                        true => self.hold(process, request, start, source, Arc::clone(&decision)),
                        false => self.admit(process, request, start, source, None),
                    }
                }
            }
            // It does not tell by which policies.
            Err(error) => self.refuse(&[], start, error),
        }
    }

    fn admit(
        &self,
        process: &Process,
        (request, numbers): (Request, Numbers),
        start: u64,
        source: DecidedBy,
        decision: Option<Decision>,
    ) {
        let (Request { target, key, cost, .. }, end) = (request, self.now());
        self.print(|| {
            format!("admitted since {start} by {source} in {}: {request:?}, {numbers:?}", process.id)
        });
        let admission = Admission { start, end, permits: cost, numbers, excess: 0, settled: 0 };
        let (is_local, process) = (source == DecidedBy::Local, process.id);
        let call = Call { process, target, key, is_local, cost, admission, decision };
        self.log().calls.push(call);
    }

    /// Logs a call that holds permits, and checks that there are not too many.
    fn hold(
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
        if !is_local {
            process.link.hear(self.at(start));
        }
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
            // Where messages may fail, a process may have been silent about this key.
            let youth = 2 * (HOLD_TTL / 3).as_micros() as u64;
            let known = of_key.filter(|held| {
                let is_believed = self.plan.is_orderly() || now < held.start + youth;
                let forgot = held.link.forgot();
                held.unknown_until <= start && is_believed && forgot.is_none_or(|at| at < self.at(held.start))
            });
            // That of one which may have been the last.
            let limits =
                log.holds.iter().filter(|held| (held.target, held.key) == (target, key) && held.end >= start);
            let limit = limits.map(|held| held.limit).max().unwrap_or_default();
            (known.map(|held| held.permits).sum(), limit)
        };
        if counted > most {
            let all = log.holds.iter().filter(|held| (held.target, held.key) == (target, key));
            let all: Vec<_> =
                all.map(|held| (held.process, held.start, held.permits, held.unknown_until)).collect();
            let problem = format!("{counted} permits of {most} are held at {now}, by {source}: {all:?}");
            log.problems.push(problem);
        }
    }

    fn refuse(&self, requests: &[(Request, Numbers)], start: u64, error: Error) {
        self.print(|| format!("refused since {start}: {error}, {requests:?}"));
        let (at, mut log) = (self.now(), self.log());
        match error {
            Error::Limited(_) => {
                log.refused += 1;
                let refusal = |(Request { target, key, cost, wait, .. }, numbers): &(Request, Numbers)| {
                    let is_exact = start == at && wait.is_none();
                    let (target, key, cost, numbers) = (*target, *key, *cost, *numbers);
                    is_exact.then_some(Refusal { target, key, cost, numbers, at })
                };
                log.refusals.extend(requests.iter().filter_map(refusal));
            }
            Error::Store(error) if error.is_transient() => log.store_errors += 1,
            error => log.problems.push(format!("at {at}: {error}")),
        }
    }

    fn holds(&self, target: usize) -> bool {
        self.plan.targets[target].kind == Kind::Holds
    }

    /// Takes the decision of a call that was admitted, some time ago or just now.
    fn take_decision(&self, random: &mut Random, change: impl FnOnce(&mut Call)) -> Option<Decision> {
        let mut log = self.log();
        let mut calls: Vec<_> = log.calls.iter_mut().filter(|call| call.decision.is_some()).collect();
        // Mostly a recent one.
        let among = random.pick(&[1, 6, calls.len()]);
        let back = random.below(among.clamp(1, calls.len().max(1)) as u64) as usize;
        let at = calls.len().checked_sub(1 + back)?;
        let call = &mut calls[at];
        change(call);
        call.decision.take()
    }

    fn settle_call(&self, random: &mut Random) {
        let (used, now, is_prompt) = (random.below(8), self.now(), self.plan.is_prompt());
        let decision = self.take_decision(random, |call| {
            if !self.plan.targets[call.target].can_be_settled() {
                return;
            }
            call.admission.permits = used;
            call.admission.excess = used.saturating_sub(call.cost);
            // A debt that is lost or late counts all the same, as one that was not settled.
            call.admission.settled = if is_prompt && !call.is_local { now } else { FOREVER };
        });
        if let Some(mut decision) = decision {
            self.print(|| format!("settled {used} of {decision:?}"));
            decision.settle(used);
        }
    }

    /// What may cost keys their states.
    fn break_after(&self, change: impl FnOnce(&mut Server)) {
        change(&mut self.server());
        let now = self.now();
        self.log().breaks.push(now);
        self.forget_holds(self.known_again(now));
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
    fn known_again(&self, lost: u64) -> u64 {
        let reports_after = (HOLD_TTL / 3).as_micros() as u64 + 500_000;
        if self.plan.is_orderly() { lost.saturating_add(reports_after) } else { FOREVER }
    }

    fn forget_holds(&self, until: u64) {
        self.log().holds.iter_mut().for_each(|held| held.unknown_until = until.max(held.unknown_until));
    }

    fn forget_local(&self, target: usize, key: u64) {
        let mut log = self.log();
        let of_key = log.holds.iter_mut().filter(|held| (held.target, held.key) == (target, key));
        of_key.for_each(|held| held.is_reset = true);
    }

    fn at(&self, micros: u64) -> Instant {
        self.begun + Duration::from_micros(micros)
    }

    fn print(&self, line: impl FnOnce() -> String) {
        if self.prints {
            println!("{:>10}   {}", self.now(), line());
        }
    }
}
