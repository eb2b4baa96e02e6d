//! Notices to observers of keys that have used a share of their limit: `notify_at`.

use std::collections::HashSet;
use std::sync::Mutex;

use ratelimits::observe::{CallOutcome, Observation};
use tokio::time::Instant;

use super::bounds::{Admission, Widening};
use super::log::{Notice, Refusal};
use super::schedule::Run;
use super::target::{Kind, Target};

/// For how long the reply to a process may take that asks whether there was a notice of a key, in microseconds.
const DEADLINE: u64 = 100_000;

/// Those of all processes.
#[derive(Debug)]
pub(super) struct Notices {
    begun: Instant,
    targets: Vec<Target>,
    all: Mutex<Vec<Notice>>,
}

impl Notices {
    pub(super) fn new(begun: Instant, targets: &[Target]) -> Self {
        Notices { begun, targets: targets.to_vec(), all: Mutex::default() }
    }

    pub(super) fn take(&self, seen: &Observation<'_>) {
        if seen.outcome != CallOutcome::NearLimit {
            return;
        }
        let mut targets = self.targets.iter().enumerate();
        let target = targets.find(|(number, target)| target.name(*number) == seen.policy);
        let (target, _) = target.expect("only targets are called");
        let key = seen.key()[0].parse().expect("keys are numbers");
        let at = self.begun.elapsed().as_micros() as u64;
        let quota = seen.quota().expect("a decision has found the key");
        let ends = at + quota.reset_after.as_micros() as u64;
        self.all.lock().unwrap().push(Notice { target, key, at, ends });
    }

    fn of(&self, target: usize, key: u64) -> Vec<Notice> {
        let all = self.all.lock().unwrap();
        all.iter().filter(|it| (it.target, it.key) == (target, key)).copied().collect()
    }

    pub(super) fn count(&self) -> u64 {
        self.all.lock().unwrap().len() as u64
    }
}

impl Run {
    /// Checks the notices of a key, given the calls that the server has admitted.
    pub(super) fn check_notices(
        &self,
        (number, target): (usize, &Target),
        key: u64,
        (calls, refusals): (&[Admission], &[Refusal]),
        widening: &Widening,
    ) -> Result<(), String> {
        let notices = self.notices.of(number, key);
        let refused = refusals.iter().filter(|call| (call.target, call.key) == (number, key));
        let numbers = calls.iter().map(|call| call.numbers).chain(refused.map(|call| call.numbers));
        let least = numbers.map(|numbers| numbers.limit).min().unwrap_or(target.limit);
        let window = if target.kind == Kind::NotifiedWindow { target.period } else { least * target.period };
        let problem = |what: &str| Err(format!("{what}: {notices:?}, {calls:?}"));
        // Data that are lost tell it once more.
        let broken = |from: u64, to: u64| {
            widening.breaks.iter().filter(|at| at[0] <= to && at[1].saturating_add(DEADLINE) >= from).count()
                as u64
        };
        let delay = if self.plan.is_prompt() { 0 } else { DEADLINE };
        for (at, last) in notices.iter().enumerate() {
            for (back, first) in notices[..=at].iter().rev().enumerate() {
                let times = (last.at - first.at + delay) / window;
                let more = if target.kind == Kind::NotifiedWindow { 2 } else { 1 };
                if back as u64 + 1 > times + more + broken(first.at, last.at) {
                    return problem("notified too often");
                }
            }
        }
        if self.plan.is_prompt() && target.kind == Kind::NotifiedWindow && widening.breaks.is_empty() {
            let mut windows = HashSet::new();
            if !notices.iter().all(|notice| windows.insert(notice.ends)) {
                return problem("notified twice of a window");
            }
        }
        let chances = self.plan.chances;
        if !self.plan.is_orderly() || chances.corrections || chances.clock_steps || chances.deaths {
            return Ok(());
        }
        // What a failover brings back was used as well.
        for notice in &notices {
            let before = calls.iter().filter(|call| call.start <= notice.at);
            let used_since = |call: &Admission| -> u64 {
                calls
                    .iter()
                    .filter(|it| it.start >= call.start && it.start <= notice.at)
                    .map(|it| it.permits)
                    .sum()
            };
            // A bucket lacks more than all but one of these permits.
            let is_reached = |call: &Admission| {
                let (used, passed) = (used_since(call), notice.at - call.start);
                match target.kind {
                    Kind::NotifiedWindow => used >= share_of(least) && passed < window,
                    _ => used * target.period > (share_of(least) - 1) * target.period + passed,
                }
            };
            if !before.into_iter().any(is_reached) {
                return problem("notified before the share is reached");
            }
        }
        if !self.plan.is_clean() || chances.overrides || target.kind != Kind::NotifiedWindow {
            return Ok(());
        }
        let mut calls = calls.to_vec();
        calls.sort_by_key(|call| call.start);
        let windows = calls.chunk_by(|one, next| one.start == next.start);
        let (mut opened, mut used) = (None, 0);
        for call in windows.flatten() {
            if opened.is_none_or(|opened| call.start >= opened + window) {
                (opened, used) = (Some(call.start), 0);
            }
            used += call.permits;
            let ends = opened.unwrap_or_default() + window;
            if used >= share_of(target.limit) && !notices.iter().any(|notice| notice.ends == ends) {
                return problem("not notified");
            }
        }
        Ok(())
    }
}

/// Returns the permits that `notify_at = 0.8` says.
fn share_of(limit: u64) -> u64 {
    (limit * 8).div_ceil(10)
}
