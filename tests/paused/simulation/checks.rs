//! The end of a schedule, and what must have been true in all of it.

use std::sync::Arc;
use std::time::Duration;

use ratelimit_runtime::Promise;
use ratelimits::DecidedBy;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::bounds::{Admission, Widening, Windows, check, exceeded};
use super::log::{Call, Log, Refusal};
use super::process::Process;
use super::schedule::{KEYS, Run};
use super::target::{Kind, Target};

/// When breakers are closed again, and late messages have come.
const CALM: Duration = Duration::from_secs(15);
/// The longest pause, and step of the clock.
const LONGEST: u64 = 8_000_000;
/// For how long after an outage what the server admits counts in the share of a process.
const FLAPPING: u64 = 60_000_000;

impl Run {
    /// Ends all faults and calls, and waits until every key is as new.
    pub(super) async fn end(&self, processes: &[Arc<Process>], calls: Vec<JoinHandle<()>>) {
        processes.iter().for_each(|process| process.link.mend());
        sleep(CALM).await;
        calls.into_iter().for_each(|call| call.abort());
        self.log().holds.clear();
        let longest = self.plan.targets.iter().map(|target| target.period * (target.limit + 8)).max();
        sleep(Duration::from_micros(2 * longest.unwrap_or_default() + LONGEST)).await;
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
        Ok(())
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
        let refunds = log.refunds.iter().filter(|(target, of, ..)| (*target, *of) == (number, key));
        let refunds: Vec<_> = refunds.map(|(.., from, permits)| (*from, *permits)).collect();
        let breaks = resets.clone().chain(log.breaks.iter().map(|at| [*at, *at])).collect();
        let widening = Widening { breaks, refunds: refunds.clone(), life: target.lease_life() };
        let windows = match target.kind {
            Kind::Window if self.plan.is_clean() && !self.plan.waits => Windows::Known,
            Kind::Aligned if !self.plan.chances.clock_steps && self.plan.mode.is_some() => {
                Windows::From(epoch)
            }
            _ => Windows::Unknown,
        };
        let promise = target.policy().promise().map_err(|error| error.to_string())?;
        let remote = of(&|call| !call.is_local);
        check(promise, windows, &remote, &widening)?;
        if self.plan.is_clean() {
            let refusals = log.refusals.iter().filter(|call| (call.target, call.key) == (number, key));
            refusals
                .into_iter()
                .try_for_each(|refusal| self.check_refusal(*refusal, target, windows, &remote))?;
        }
        for pause in log.pauses.iter().filter(|pause| (pause.target, pause.key) == (number, key)) {
            let is_void = |at: &[u64; 2]| at[0] <= pause.until && at[1] >= pause.from;
            let starts = |call: &&Admission| call.start > pause.from && call.end < pause.until;
            if !widening.breaks.iter().any(is_void)
                && !target.is_leased()
                && remote.iter().any(|call| starts(&call))
            {
                return Err(format!("paused: {pause:?}, {remote:?}"));
            }
            // A bucket has one permit then.
            let is_bucket =
                matches!(target.kind, Kind::Bucket | Kind::Changing | Kind::Settled | Kind::Meter);
            let after = remote.iter().filter(|call| call.start > pause.from);
            let (mut permits, mut last) =
                (refunds.iter().map(|(_, permits)| -(*permits as i64)).sum::<i64>(), 0);
            let mut after: Vec<_> = after.copied().collect();
            after.sort_by_key(|call| call.end);
            for call in after.iter().filter(|_| is_bucket && !self.plan.waits) {
                permits += call.permits as i64 - call.excess as i64;
                last = last.max(call.end.saturating_sub(pause.until));
                let is_void = |at: &[u64; 2]| at[0] <= call.end && at[1] >= pause.from;
                let is_over = permits > 1 + (last / target.period) as i64;
                if is_over && !widening.breaks.iter().any(is_void) {
                    return Err(format!("{permits} permits after {pause:?}: {remote:?}"));
                }
            }
        }
        let share = target.share(self.plan.processes as u64);
        let share = share.promise().map_err(|error| error.to_string())?;
        let widening = Widening { breaks: resets.collect(), refunds, life: 0 };
        let processes = calls.iter().map(|call| call.process).max().unwrap_or_default();
        (0..=processes).try_for_each(|process| {
            let local = of(&|call| call.is_local && call.process == process);
            check(share, Windows::Unknown, &local, &widening).map_err(|error| format!("local: {error}"))?;
            if self.plan.chances.corrections {
                return Ok(());
            }
            self.mirrored(log, &calls, process).iter().try_for_each(|mirrored| {
                let all: Vec<_> = local
                    .iter()
                    .filter(|call| call.start > mirrored.end)
                    .chain([mirrored])
                    .copied()
                    .collect();
                check(share, Windows::Unknown, &all, &widening).map_err(|error| format!("mirrored: {error}"))
            })
        })
    }

    /// Returns the calls of a key that the server has admitted to a process during an outage, or soon after it. A permit of each counts
    /// in the share as well.
    fn mirrored(&self, log: &Log, calls: &[&Call], process: usize) -> Vec<Admission> {
        let outages = log.calls.iter().filter(|call| call.is_local && call.process == process);
        let outages: Vec<u64> = outages.map(|call| call.admission.end).collect();
        let follows = |at: u64| outages.iter().any(|outage| *outage < at && at < outage + FLAPPING);
        let remote = calls.iter().filter(|call| !call.is_local && call.process == process);
        let remote = remote.map(|call| call.admission.end).filter(|at| follows(*at));
        remote.map(|at| Admission { start: at, end: at, permits: 1, excess: 0, settled: 0 }).collect()
    }

    /// A refusal that the promise did not call for is an error.
    fn check_refusal(
        &self,
        refusal: Refusal,
        target: &Target,
        windows: Windows,
        admitted: &[Admission],
    ) -> Result<(), String> {
        let Refusal { cost: permits, at, burst, .. } = refusal;
        let tells = matches!(
            target.kind,
            Kind::Bucket
                | Kind::Changing
                | Kind::Settled
                | Kind::Meter
                | Kind::Window
                | Kind::Aligned
                | Kind::Log
        );
        let policy = target.with_burst(burst).unwrap_or_else(|| target.policy());
        let promise: Promise = policy.promise().map_err(|error| error.to_string())?;
        let refused = Admission { start: at, end: at, permits, excess: 0, settled: 0 };
        let mut all: Vec<Admission> = admitted.iter().copied().filter(|call| call.start <= at).collect();
        // Calls that wait have taken their permits.
        all.iter_mut().for_each(|call| call.end = at.min(call.end));
        all.push(refused);
        let is_due = exceeded(promise, windows, &all, refused, &Widening::default()).is_some();
        let tells = tells && !(target.is_window() && windows == Windows::Unknown);
        if tells && !is_due && !self.plan.waits {
            return Err(format!("refused in vain: {refusal:?} by {promise:?} after {admitted:?}"));
        }
        Ok(())
    }
}
