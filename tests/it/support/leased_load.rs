//! Calls of functions with leases, and a check of what leases promise.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ratelimits::{Error, Registry, count_limit, rate_limit};
use tokio::task::JoinSet;

use super::bound_checker::BoundChecker;
use super::policies;
use super::random::Random;
use crate::faults::unix_micros;
use crate::model::Policy;

/// How many tasks of a registry call each function.
const TASKS: u64 = 4;
/// How often all tasks, those of other processes too, change their pace together.
pub(crate) const CYCLE: Duration = Duration::from_millis(600);

#[rate_limit(500, 100, lease = 25, on_store_error = deny, registry = registry)]
async fn bucket(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("5/10ms", 100, refill = interval, lease = 25, on_store_error = deny, registry = registry)]
async fn interval_bucket(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[count_limit(200, "200ms", aligned, lease = 25, on_store_error = deny, registry = registry)]
async fn window(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(500, 100, slack = "5%", on_store_error = deny, registry = registry)]
async fn chosen(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

/// One of the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leased {
    Bucket,
    IntervalBucket,
    Window,
    Chosen,
}

impl Leased {
    pub(crate) const ALL: [Leased; 4] =
        [Leased::Bucket, Leased::IntervalBucket, Leased::Window, Leased::Chosen];

    pub(crate) async fn call(self, registry: &Registry) -> Result<(), Error> {
        match self {
            Leased::Bucket => bucket(registry).await,
            Leased::IntervalBucket => interval_bucket(registry).await,
            Leased::Window => window(registry).await,
            Leased::Chosen => chosen(registry).await,
        }
    }

    /// Returns the policy, and how long leased permits live in µs.
    fn policy(self) -> (Policy, i128) {
        let millis = Duration::from_millis;
        let (pair, life) = match self {
            Leased::Bucket => (policies::token_bucket(500, millis(1000), 100), 50_000),
            Leased::IntervalBucket => (policies::interval_refill(5, millis(10), 100), 50_000),
            Leased::Window => (policies::fixed_window(200, millis(200), true), 200_000),
            Leased::Chosen => (policies::token_bucket(500, millis(1000), 100), 10_000),
        };
        (pair.expect("the policy is valid").model, life)
    }

    /// Checks the promise between any two of the `losses`, the times at which Redis lost all its data (Unix time in µs).
    pub(crate) fn check(self, admitted: &[AdmittedCall], losses: &[u64]) -> Result<(), String> {
        let (policy, life) = self.policy();
        let losses_before = |time: i128| losses.iter().filter(|loss| i128::from(**loss) < time).count();
        let mut between = BTreeMap::<usize, Vec<&AdmittedCall>>::new();
        for call in admitted {
            let before = losses_before(call.end);
            // Otherwise nobody knows on which side it was charged.
            if losses_before(call.start - life) == before {
                between.entry(before).or_default().push(call);
            }
        }
        for (before, calls) in between {
            let held = match policy {
                Policy::Fixed { limit, period, .. } => check_windows(&calls, limit, period),
                _ => {
                    // A clock cuts its time to a whole microsecond.
                    let mut checker = BoundChecker::new(policy).with_lease(life + 1);
                    for (id, call) in calls.into_iter().enumerate() {
                        checker.add_between(id, 1, call.start, call.end);
                    }
                    checker.check()
                }
            };
            held.map_err(|error| format!("{self:?}, after {before} losses: {error}"))?;
        }
        Ok(())
    }
}

/// What is charged to a window is spent before it ends.
fn check_windows(calls: &[&AdmittedCall], limit: i128, period: i128) -> Result<(), String> {
    let mut counts = BTreeMap::new();
    for call in calls.iter().filter(|call| call.start / period == call.end / period) {
        *counts.entry(call.start / period).or_insert(0) += 1;
    }
    match counts.into_iter().find(|(_, count)| *count > limit) {
        Some((window, count)) => Err(format!("{count} permits of window {window}")),
        None => Ok(()),
    }
}

/// When a call was made, and when it was admitted, by the clock that Redis has too. In µs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmittedCall {
    pub(crate) start: i128,
    pub(crate) end: i128,
}

/// The calls of a registry.
#[derive(Debug, Default)]
pub(crate) struct LeasedReport {
    pub(crate) calls: u64,
    pub(crate) failures: u64,
    pub(crate) longest: Duration,
    pub(crate) admitted: [Vec<AdmittedCall>; Leased::ALL.len()],
}

impl LeasedReport {
    /// Calls all functions while `go_on` returns true.
    pub(crate) async fn of(
        registry: &Registry,
        random: &Random,
        go_on: impl Fn() -> bool + Clone + Send + 'static,
    ) -> LeasedReport {
        let mut tasks = JoinSet::new();
        for task in 0..TASKS * Leased::ALL.len() as u64 {
            let leased = Leased::ALL[task as usize % Leased::ALL.len()];
            let (registry, mut random, go_on) = (registry.clone(), random.run(task), go_on.clone());
            tasks.spawn(async move {
                let mut report = LeasedReport::default();
                while go_on() {
                    report.call(leased, &registry).await;
                    tokio::time::sleep(pause(&mut random)).await;
                }
                report
            });
        }
        LeasedReport::sum(tasks.join_all().await)
    }

    pub(crate) fn sum(reports: impl IntoIterator<Item = LeasedReport>) -> LeasedReport {
        let mut total = LeasedReport::default();
        for report in reports {
            total.calls += report.calls;
            total.failures += report.failures;
            total.longest = total.longest.max(report.longest);
            for (calls, others) in total.admitted.iter_mut().zip(report.admitted) {
                calls.extend(others);
            }
        }
        total
    }

    /// Asserts that each function kept its promise but for one capacity per loss.
    pub(crate) fn assert_promises_held(&self, losses: &[u64]) {
        for (leased, admitted) in Leased::ALL.into_iter().zip(&self.admitted) {
            // There would be little to check otherwise.
            assert!(admitted.len() > 200, "{leased:?}: only {} calls admitted", admitted.len());
            println!("{leased:?}: {} calls admitted", admitted.len());
            leased.check(admitted, losses).unwrap_or_else(|broken| panic!("{broken}"));
        }
    }

    async fn call(&mut self, leased: Leased, registry: &Registry) {
        let (start, start_micros) = (Instant::now(), unix_micros());
        let result = leased.call(registry).await;
        let call = AdmittedCall { start: start_micros.into(), end: unix_micros().into() };
        self.calls += 1;
        self.longest = self.longest.max(start.elapsed());
        match result {
            Ok(()) => self.admitted[leased as usize].push(call),
            Err(error) => self.failures += u64::from(!error.is_limited()),
        }
    }
}

/// Calls come in a rush, in which permits run out, and once more after a break: too few to spend their leases, which lapse while
/// the buckets fill up for the next rush.
fn pause(random: &mut Random) -> Duration {
    let cycle = CYCLE.as_micros() as u64;
    Duration::from_micros(match unix_micros() % cycle {
        0..150_000 => random.below(2000),
        early @ ..350_000 => 350_000 - early + random.below(30_000),
        late => cycle - late,
    })
}

mod tests {
    use super::{AdmittedCall, Leased};

    /// So many calls, all admitted within these times.
    fn calls(count: usize, start: i128, end: i128) -> Vec<AdmittedCall> {
        vec![AdmittedCall { start, end }; count]
    }

    #[test]
    fn each_promise_allows_so_many_permits() {
        // What a bucket holds, and what refills while a lease lives and in 4 ms.
        for (leased, most) in [
            (Leased::Bucket, 127),
            (Leased::IntervalBucket, 130),
            (Leased::Window, 200),
            (Leased::Chosen, 107),
        ] {
            let check = |count, losses: &[u64]| leased.check(&calls(count, 600_000, 604_000), losses);
            check(most, &[]).unwrap();
            check(most + 1, &[]).unwrap_err();
            // Before a loss, after it, and on either side.
            check(most + 1, &[604_000]).unwrap_err();
            check(most + 1, &[390_000]).unwrap_err();
            check(most + 1, &[602_000]).unwrap();
        }
    }

    #[test]
    fn what_is_lost_is_admitted_again() {
        for (leased, most) in [(Leased::Bucket, 125), (Leased::IntervalBucket, 130), (Leased::Window, 200)] {
            let check = |most| {
                let admitted = [calls(most, 100_000, 100_000), calls(most, 390_000, 390_000)].concat();
                leased.check(&admitted, &[150_000])
            };
            check(most).unwrap();
            check(most + 1).unwrap_err();
        }
    }

    #[test]
    fn a_slow_call_counts_with_those_during_it() {
        let check = |end: i128| Leased::Bucket.check(&[calls(1, 0, end), calls(125, 500, 500)].concat(), &[]);
        check(1000).unwrap_err();
        check(2000).unwrap();
    }
}
