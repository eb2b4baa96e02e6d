//! What processes do in the steps of a schedule, and how that is logged.

use std::sync::Arc;
use std::time::Duration;

use ratelimits::{DecidedBy, Decision, Error};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::bounds::{Admission, Numbers};
use super::log::{Call, Held, Pause, Penalty, Refund, Refusal};
use super::process::{Called, Process, Request};
use super::schedule::{KEYS, Run, settle};
use super::server::Server;
use super::steps::Action;
use super::target::{Kind, Target};
use crate::random::Random;

pub(super) const FOREVER: u64 = u64::MAX;

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
                if log.holds.is_empty() {
                    return;
                }
                let at = random.below(log.holds.len() as u64) as usize;
                let Held { process, target, key, .. } = log.release(at, now);
                drop(log);
                let process = processes.iter().find(|it| it.id == process);
                let Some(process) = process.filter(|_| random.percent(40)) else { return };
                // What is free is used at once, by calls that say what has ended.
                let burst = self.plan.targets[target].limit;
                for _ in 0..=burst {
                    let request = Request { target, key, cost: 1, wait: None, burst };
                    let (run, process) = (Arc::clone(self), Arc::clone(process));
                    calls.push(tokio::spawn(async move { run.call(&process, request).await }));
                }
            }
            Action::Refund => {
                let refunded = |call: &mut Call| {
                    call.admission.permits = 0;
                    call.cost
                };
                let Some((decision, Refund { target, key, .. })) = self.take_decision(random, refunded)
                else {
                    return;
                };
                calls.push(tokio::spawn(async move { drop(decision.refund().await) }));
                settle().await;
                // What came back is used at once.
                for _ in 0..=self.plan.targets[target].limit {
                    let request =
                        Request { target, key, cost: 1, wait: None, burst: self.plan.targets[target].limit };
                    let (run, process) = (Arc::clone(self), Arc::clone(process));
                    calls.push(tokio::spawn(async move { run.call(&process, request).await }));
                }
            }
            Action::Settle => self.settle_call(processes, random),
            Action::RefundUnchecked(target) => {
                let permits = random.between(1, 3);
                let _ = process.limiter(target).refund(key, permits).await;
                self.log().refunds.push(Refund { target, key, permits, at: now, of: None, local: None });
            }
            Action::Reset(target) => {
                // At some time until it ends.
                self.forget_local(target, key);
                self.forget_holds(FOREVER);
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
        let waiter = self.begin_wait(&request, start);
        let Called { result, penalty } = process.call(request).await;
        self.end_wait(waiter);
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

    fn refuse(&self, requests: &[(Request, Numbers)], start: u64, error: Error) {
        self.print(|| format!("refused since {start}: {error}, {requests:?}"));
        let (at, mut log) = (self.now(), self.log());
        match error {
            Error::Limited(_) if error.retry_after() == Some(Duration::ZERO) => {
                log.problems.push(format!("refused at {at}, to come back at once: {requests:?}"));
            }
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

    /// Takes the decision of a call that was admitted, some time ago or just now, to give back what the function says.
    fn take_decision(
        &self,
        random: &mut Random,
        change: impl FnOnce(&mut Call) -> u64,
    ) -> Option<(Decision, Refund)> {
        let mut log = self.log();
        let mut calls: Vec<_> = log.calls.iter_mut().filter(|call| call.decision.is_some()).collect();
        // Mostly a recent one.
        let among = random.pick(&[1, 6, calls.len()]);
        let back = random.below(among.clamp(1, calls.len().max(1)) as u64) as usize;
        let at = calls.len().checked_sub(1 + back)?;
        let call = &mut calls[at];
        let permits = change(call);
        let (at, of, decision) = (self.now(), Some(call.admission.start), call.decision.take()?);
        let local = call.is_local.then_some(call.process);
        let refund = Refund { target: call.target, key: call.key, permits, at, of, local };
        log.refunds.push(refund);
        Some((decision, refund))
    }

    fn settle_call(&self, processes: &[Arc<Process>], random: &mut Random) {
        let (used, now, is_prompt) = (random.below(8), self.now(), self.plan.is_prompt());
        let decision = self.take_decision(random, |call| {
            if !self.plan.targets[call.target].can_be_settled() {
                return 0;
            }
            call.admission.permits = used;
            call.admission.excess = used.saturating_sub(call.cost);
            // A debt that is lost or late counts all the same, as one that was not settled.
            let is_charged = is_prompt && !call.is_local && processes.iter().any(|it| it.id == call.process);
            call.admission.settled = if is_charged { now } else { FOREVER };
            // The bucket of such an attribute knows what it has lacked ever since.
            if self.plan.targets[call.target].kind == Kind::Settled {
                0
            } else {
                call.cost.saturating_sub(used)
            }
        });
        if let Some((mut decision, _)) = decision {
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

    pub(super) fn print(&self, line: impl FnOnce() -> String) {
        if self.prints {
            println!("{:>10}   {}", self.now(), line());
        }
    }
}
