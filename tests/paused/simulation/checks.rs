//! The end of a schedule, and what must have been true in all of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ratelimit_runtime::Promise;
use ratelimits::{DecidedBy, Policy};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::bounds::{Admission, Widening, Windows, check, exceeded};
use super::calendars::visit_of;
use super::log::{Call, Log, Refund, Refusal};
use super::process::Process;
use super::schedule::{KEYS, Run};
use super::target::{Kind, Target};

/// When breakers are closed again, and late messages have come.
const CALM: Duration = Duration::from_secs(15);
/// The longest pause, and step of the clock.
const LONGEST: u64 = 8_000_000;
/// Longer than windows of a calendar pay debts.
const YEAR: Duration = Duration::from_secs(366 * 86_400);
/// For how long after an outage what the server admits counts in the share of a process.
const FLAPPING: u64 = 60_000_000;

impl Run {
    /// Ends all faults and calls, and waits until every key is as new.
    pub(super) async fn end(&self, processes: &[Arc<Process>], calls: Vec<JoinHandle<()>>) {
        processes.iter().for_each(|process| process.link.mend());
        sleep(CALM).await;
        calls.into_iter().for_each(|call| call.abort());
        let now = self.now();
        while !self.log().holds.is_empty() {
            let held = self.log().release(0, now);
            drop(held);
        }
        let longest = self.plan.targets.iter().map(|target| target.period * (target.limit + 8)).max();
        // Twice as many permits may take twice as long each by an override.
        sleep(Duration::from_micros(4 * longest.unwrap_or_default() + LONGEST)).await;
        if self.plan.targets.iter().any(|target| target.calendar().is_some()) {
            match self.plan.mode {
                Some(_) => self.server().step_clock(YEAR.as_micros() as i64),
                None => sleep(YEAR).await,
            }
        }
        for (number, target) in self.plan.targets.iter().enumerate() {
            for key in 0..KEYS {
                for process in processes {
                    self.check_full(process, number, target, key).await;
                }
            }
        }
        processes.iter().for_each(|process| process.die());
    }

    /// Whether nothing of a key is missing for good.
    async fn check_full(&self, process: &Process, number: usize, target: &Target, key: u64) {
        let mut last = String::new();
        for _ in 0..10 {
            match process.limiter(number).peek(key).await {
                Ok(decision) if decision.source != DecidedBy::Local => {
                    // A cold bucket has what it had, and a queue one more than wait.
                    let is_full = decision.remaining == decision.limit || target.kind == Kind::WarmingUp;
                    if !is_full {
                        let problem = format!("{target:?} of {key} is not full at the end: {decision:?}");
                        self.log().problems.push(problem);
                    }
                    return;
                }
                other => last = format!("{other:?}"),
            }
            sleep(Duration::from_secs(1)).await;
        }
        let problem = format!("{} does not reach the server at the end: {last}", process.id);
        self.log().problems.push(problem);
    }

    /// Checks all intervals, given what the clock of the server showed at time 0.
    pub(super) fn check(&self, epoch: u64) -> Result<(), String> {
        let log = self.log();
        if let Some(problem) = log.problems.first() {
            return Err(problem.clone());
        }
        for (number, target) in
            self.plan.targets.iter().enumerate().filter(|(_, target)| target.kind != Kind::Holds)
        {
            for key in 0..KEYS {
                self.check_key(&log, (number, target), key, epoch)?;
            }
        }
        let holds = log.refusals.iter().filter(|refusal| self.plan.is_clean() && self.holds(refusal.target));
        holds.into_iter().try_for_each(|refusal| self.check_refused_hold(&log, refusal))
    }

    fn check_key(
        &self,
        log: &Log,
        (number, target): (usize, &Target),
        key: u64,
        epoch: u64,
    ) -> Result<(), String> {
        let calls: Vec<&Call> =
            log.calls.iter().filter(|call| (call.target, call.key) == (number, key)).collect();
        let of = |of: &dyn Fn(&Call) -> bool| -> Vec<Admission> {
            calls.iter().filter(|call| of(call)).map(|call| call.admission).collect()
        };
        let resets = log.resets.iter().filter(|(target, of, _)| (*target, *of) == (number, key));
        let resets = resets.map(|(.., times)| *times);
        let breaks: Vec<_> = resets.clone().chain(log.breaks.iter().map(|at| [*at, *at])).collect();
        let given_back = |is_counted: &dyn Fn(&Refund) -> bool| -> Vec<(u64, u64)> {
            let of_key = log.refunds.iter().filter(|refund| (refund.target, refund.key) == (number, key));
            of_key.filter(|refund| is_counted(refund)).map(|refund| (refund.at, refund.permits)).collect()
        };
        let refunds = given_back(&|refund| refund.of.is_none());
        // Receipts of windows end with their state.
        let receipts = |local: Option<usize>, losses: &[[u64; 2]]| {
            given_back(&|refund| !target.has_windows() && refund.local == local && refund.outlives(losses))
        };
        let widening = Widening {
            receipts: receipts(None, &breaks),
            breaks,
            refunds: refunds.clone(),
            life: target.lease_life(),
        };
        let windows = match target.kind {
            Kind::Window if self.plan.is_clean() && !self.plan.waits => Windows::Known,
            Kind::Aligned if !self.plan.chances.clock_steps && self.plan.mode.is_some() => {
                Windows::From(epoch)
            }
            _ => Windows::Unknown,
        };
        // The day in which a process alone begins does not end.
        let has_visits = target.calendar().is_some() && self.plan.mode.is_some();
        for state in states(&calls, target, 1) {
            let promises = |numbers| promise(target.with(numbers).policy());
            let is_of = |numbers| target.state(numbers, 1) == state;
            let remote = of(&|call| !call.is_local && is_of(call.admission.numbers));
            if has_visits {
                let losses = log.losses.iter().map(|at| [*at, *at]);
                let breaks = resets.clone().chain(losses).collect();
                let widening = Widening { breaks, ..widening.clone() };
                self.check_visits(log, &promises, (&remote, epoch), &widening)?;
            } else {
                check(&promises, windows, &remote, &widening)?;
            }
            if self.plan.is_clean() {
                let refusals = log.refusals.iter().filter(|call| (call.target, call.key) == (number, key));
                for refusal in refusals.filter(|refusal| is_of(refusal.numbers)) {
                    let promise = promises(refusal.numbers);
                    let began = if has_visits { visit_of(log, promise, epoch, refusal.at) } else { 0 };
                    let since: Vec<_> = remote.iter().filter(|call| call.start >= began).copied().collect();
                    self.check_refusal(*refusal, target, windows, &since)?;
                }
            }
            let pauses = log.pauses.iter().filter(|pause| (pause.target, pause.key) == (number, key));
            pauses
                .filter(|pause| is_of(pause.numbers))
                .try_for_each(|pause| self.check_pause(pause, target, &remote, &widening))?;
        }
        let remote = of(&|call| !call.is_local);
        if target.is_penalized() {
            self.check_penalties(log, (number, target), key, &remote, &widening.breaks)?;
        }
        if target.is_notified() {
            self.check_notices((number, target), key, (&remote, &log.refusals), &widening)?;
        }
        let breaks: Vec<_> = resets.collect();
        let widening = |process| Widening {
            breaks: breaks.clone(),
            refunds: refunds.clone(),
            receipts: receipts(Some(process), &breaks),
            life: 0,
        };
        self.check_shares(log, target, &calls, &widening)
    }

    /// Checks what processes have admitted during outages.
    fn check_shares(
        &self,
        log: &Log,
        target: &Target,
        calls: &[&Call],
        widening: &dyn Fn(usize) -> Widening,
    ) -> Result<(), String> {
        let instances = self.plan.processes as u64;
        let promises = |numbers| promise(target.with(numbers).share(instances));
        let processes = calls.iter().map(|call| call.process).max().unwrap_or_default();
        for (process, state) in (0..=processes).flat_map(|process| {
            states(calls, target, instances).into_iter().map(move |state| (process, state))
        }) {
            let is_of = |call: &Call| target.state(call.admission.numbers, instances) == state;
            let calls: Vec<_> =
                calls.iter().filter(|call| call.process == process && is_of(call)).copied().collect();
            let local: Vec<_> =
                calls.iter().filter(|call| call.is_local).map(|call| call.admission).collect();
            let widening = &widening(process);
            check(&promises, Windows::Unknown, &local, widening)
                .map_err(|error| format!("local: {error}"))?;
            if self.plan.chances.corrections {
                continue;
            }
            for mirrored in self.mirrored(log, &calls, process) {
                let after = local.iter().filter(|call| call.start > mirrored.end);
                let all: Vec<_> = after.chain([&mirrored]).copied().collect();
                let checked = check(&promises, Windows::Unknown, &all, widening);
                checked.map_err(|error| format!("mirrored: {error}"))?;
            }
        }
        Ok(())
    }

    /// Returns the calls of a key that the server has admitted to a process during an outage, or soon after it. A permit of each counts
    /// in the share as well.
    fn mirrored(&self, log: &Log, calls: &[&Call], process: usize) -> Vec<Admission> {
        let outages = log.calls.iter().filter(|call| call.is_local && call.process == process);
        let outages: Vec<u64> = outages.map(|call| call.admission.end).collect();
        let follows = |at: u64| outages.iter().any(|outage| *outage < at && at < outage + FLAPPING);
        let remote = calls.iter().filter(|call| !call.is_local && call.process == process);
        let remote = remote.map(|call| call.admission).filter(|call| follows(call.end));
        remote.map(|call| Admission { permits: 1, ..Admission::at(call.end, call.numbers) }).collect()
    }

    /// A refusal that the promise did not call for is an error.
    fn check_refusal(
        &self,
        refusal: Refusal,
        target: &Target,
        windows: Windows,
        admitted: &[Admission],
    ) -> Result<(), String> {
        let Refusal { cost: permits, at, numbers, .. } = refusal;
        let is_checked = matches!(
            target.kind,
            Kind::Bucket
                | Kind::Changing
                | Kind::Settled
                | Kind::Meter
                | Kind::Window
                | Kind::Aligned
                | Kind::Day
                | Kind::Month
                | Kind::Log
        );
        let promise = promise(target.with(numbers).policy());
        let refused = Admission { permits, ..Admission::at(at, numbers) };
        let mut all: Vec<Admission> = admitted.iter().copied().filter(|call| call.start <= at).collect();
        // Calls that wait have taken their permits.
        all.iter_mut().for_each(|call| call.end = at.min(call.end));
        all.push(refused);
        let is_due = exceeded(&|_| promise, windows, &all, refused, &Widening::default()).is_some();
        let is_checked = is_checked && !(target.is_window() && windows == Windows::Unknown);
        // It refilled more slowly at times.
        let is_checked = is_checked && all.iter().all(|call| call.numbers.period == numbers.period);
        if is_checked && !is_due && !self.plan.waits {
            return Err(format!("refused in vain: {refusal:?} by {promise:?} after {admitted:?}"));
        }
        Ok(())
    }
}

fn promise(policy: Policy) -> Promise {
    policy.promise().expect("the policy is valid")
}

/// Returns the states of a key that its calls have had.
fn states(calls: &[&Call], target: &Target, instances: u64) -> BTreeSet<(bool, u64)> {
    calls.iter().map(|call| target.state(call.admission.numbers, instances)).collect()
}
