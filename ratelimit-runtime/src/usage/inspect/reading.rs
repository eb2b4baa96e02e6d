//! What a key's shape says about its policy, and the state under the key.

use std::time::Duration;

use crate::algorithm::adjustable_gcra::AdjustableGcraSpec;
use crate::algorithm::gcra::GcraKind;
use crate::algorithm::holds::HoldsSpec;
use crate::algorithm::settled_gcra::SettledGcraSpec;
use crate::algorithm::{AlgorithmSpec, Verdict};
#[cfg(feature = "calendar")]
use crate::base::calendar::CalendarPeriod;
use crate::base::rate::Rate;
use crate::decide::overrides::Entry;
use crate::policy::{
    Algorithm, ConcurrencyLimit, FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket,
};

/// How the state under keys of one shape is read.
///
/// The shape of a bucket with literal numbers has all of them. That of a window or a concurrency limit lacks the limit, and that of a
/// bucket with computed numbers has none. Without them the state is read with numbers that no policy exceeds, which still tell how many permits are
/// used and when the state ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What the shape does not tell is 1.
    spec: AlgorithmSpec,
    knows_limit: bool,
}

/// The state under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyState {
    /// The permits that a full bucket or an empty window would have beyond those that are left. Unknown for a bucket with
    /// `warmup` whose rate is. Of a concurrency limit, those that calls hold, and those that are kept free for calls that wait.
    pub used: Option<u64>,
    /// The burst, capacity or limit, if it is known.
    pub limit: Option<u64>,
    /// The whole permits that a call would get now, if the limit is known.
    pub remaining: Option<u64>,
    /// Whether a call of cost 1 would be refused now, if that is known. For a queue, one that waits as long as the queue takes.
    pub limited: Option<bool>,
    /// The time until it would be admitted, if it is limited, and that is known.
    pub retry_after: Option<Duration>,
    /// What is left of the key's pause, if it is paused.
    pub paused: Option<Duration>,
    /// The step of the key's penalties that is not forgiven yet; 0 if there is none.
    pub penalty_step: u64,
    /// The time until the state ends: the bucket is full, or the window is over. Zero if it has ended, or there is none. `None` for a
    /// concurrency limit, because it is unknown when calls end.
    pub reset_after: Option<Duration>,
}

impl KeyState {
    /// Returns whether it is as if the key had no state. Redis deletes it up to a second later.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let is_free = self.reset_after.map_or(self.used == Some(0), |reset_after| reset_after.is_zero());
        is_free && self.penalty_step == 0
    }
}

impl Reading {
    /// Returns how keys of this shape are read, given the policy that a program has under their name, if it is known, and what an
    /// operator has changed of it. Keys with another shape than the policy then has are read by what their own says. Returns `None`
    /// if no policy has this shape.
    #[must_use]
    pub fn of(shape: &str, policy: Option<&Policy>, changed: Option<&Entry>) -> Option<Self> {
        let in_force = policy.and_then(|policy| Reading::in_force(policy, changed));
        in_force.filter(|in_force| in_force.shape() == shape).or_else(|| {
            let (policy, knows_limit) = policy_of(shape)?;
            Some(Reading { spec: policy.spec().ok()?, knows_limit })
        })
    }

    /// Returns how the keys are read that calls of a policy have, given what an operator has changed of it. `None` if its numbers are
    /// invalid.
    #[must_use]
    pub fn in_force(policy: &Policy, changed: Option<&Entry>) -> Option<Self> {
        let policy = match changed.filter(|changed| !changed.numbers.is_empty()) {
            Some(changed) => changed.numbers_on(*policy).ok()?.computed(),
            None => *policy,
        };
        Some(Reading { spec: policy.spec().ok()?, knows_limit: true })
    }

    /// Returns the same for calls that compute numbers, of which the policy has any.
    #[must_use]
    pub fn computed(self) -> Self {
        Reading { knows_limit: false, ..self }
    }

    /// Returns the shape of the keys.
    #[must_use]
    pub fn shape(&self) -> String {
        self.spec.to_string()
    }

    /// Returns the algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        algorithm_of(&self.spec)
    }

    /// Returns whether the shape and the policy tell the limit.
    #[must_use]
    pub fn knows_limit(&self) -> bool {
        self.knows_limit
    }

    /// Returns a spec that reads the state. More may be held than a limit that was lowered.
    pub(super) fn spec(&self) -> AlgorithmSpec {
        if self.knows_limit && !self.spec.is_semaphore() { self.spec } else { self.unbounded() }
    }

    /// Returns one that reads what is used by a key of whatever limit.
    pub(super) fn unbounded(&self) -> AlgorithmSpec {
        self.spec.unbounded()
    }

    /// Returns one that pauses a key. If its limit is unknown, a bucket goes on with what it has then.
    pub(super) fn pausing(&self) -> &AlgorithmSpec {
        &self.spec
    }

    /// Returns the state that a decision of cost 0 has found, given what is left of the key's pause and the step of its penalties.
    pub(super) fn state(&self, verdict: &Verdict, (paused, penalty_step): (u64, u64)) -> KeyState {
        let Verdict { admitted, limit, remaining, retry_after, reset_after, .. } = *verdict;
        let used = limit.saturating_sub(remaining);
        if let AlgorithmSpec::Holds(spec) = self.spec {
            return self.holds(spec, used);
        }
        // What the last call in a full queue waits.
        let longest_wait = self.spec().queue().map(|queue| queue.max_wait(queue.charge(1), u64::MAX));
        let (limited, retry_after) = match (longest_wait, retry_after) {
            (Some(longest_wait), Some(wait)) => {
                (wait > longest_wait, Some(wait.saturating_sub(longest_wait)))
            }
            _ => (!admitted, retry_after),
        };
        let knows_whether_limited = match self.spec {
            // A call is admitted unless there is debt, whatever the numbers.
            AlgorithmSpec::WarmingUp(_) => true,
            _ => self.knows_limit || used == 0 || (paused > 0 && longest_wait.is_none()),
        };
        KeyState {
            used: (self.knows_limit || !matches!(self.spec, AlgorithmSpec::WarmingUp(_))).then_some(used),
            limit: self.knows_limit.then_some(limit),
            remaining: self.knows_limit.then_some(remaining),
            limited: knows_whether_limited.then_some(limited),
            retry_after: retry_after.filter(|_| limited && knows_whether_limited).map(Duration::from_micros),
            paused: (paused > 0).then(|| Duration::from_micros(paused)),
            penalty_step,
            reset_after: Some(Duration::from_micros(reset_after)),
        }
    }

    /// Returns the state of a key of which so many permits are held.
    fn holds(&self, spec: HoldsSpec, used: u64) -> KeyState {
        let limit = self.knows_limit.then_some(spec.max);
        KeyState {
            used: Some(used),
            limit,
            remaining: limit.map(|limit| limit.saturating_sub(used)),
            limited: if used == 0 { Some(false) } else { limit.map(|limit| used >= limit) },
            retry_after: None,
            paused: None,
            penalty_step: 0,
            reset_after: None,
        }
    }
}

/// Returns a policy with this shape, and whether its numbers are those of every policy with this shape. Returns `None` if there is no
/// such policy.
#[must_use]
pub fn policy_of(shape: &str) -> Option<(Policy, bool)> {
    #[cfg(feature = "calendar")]
    if let Some(period) = shape.strip_prefix("fc1-") {
        let period = CalendarPeriod::named(period).ok()??;
        return Some((FixedWindow::calendar(1, period).into(), false));
    }
    let mut pieces = shape.split('-');
    let kind = pieces.next()?;
    let numbers: Vec<u64> = pieces.map(str::parse).collect::<Result<_, _>>().ok()?;
    let micros = Duration::from_micros;
    // What the shape does not have is 1.
    let (bucket, leaky) = (TokenBucket::per_second(1), LeakyBucket::new(1, Rate::per_second(1)));
    let policy: Policy = match (kind, &numbers[..]) {
        ("tb1", [interval, capacity]) => {
            TokenBucket::new(Rate::new(1, micros(*interval))).burst_for(micros(*capacity)).into()
        }
        ("lb1", [interval, capacity]) => {
            LeakyBucket::new(capacity.checked_div(*interval)?, Rate::new(1, micros(*interval))).into()
        }
        ("lq1", [interval, capacity]) => {
            let capacity = capacity.checked_div(*interval)?.checked_sub(1)?;
            LeakyBucket::new(capacity, Rate::new(1, micros(*interval))).queue().into()
        }
        ("bb1", [permits, nanos, capacity]) => {
            let rate = Rate::new(*permits, Duration::from_nanos(*nanos));
            TokenBucket::new(rate).borrow().burst_for(micros(*capacity)).into()
        }
        ("ib1", [burst, refill, period]) => {
            TokenBucket::new(Rate::new(*refill, micros(*period))).interval_refill().burst(*burst).into()
        }
        ("wu1", [permits, nanos, warmup]) => {
            TokenBucket::new(Rate::new(*permits, Duration::from_nanos(*nanos))).warmup(micros(*warmup)).into()
        }
        ("fw2", [period]) => FixedWindow::new(1, micros(*period)).into(),
        ("fa2", [period]) => FixedWindow::new(1, micros(*period)).aligned().into(),
        ("sl1", [period]) => SlidingWindow::new(1, micros(*period)).into(),
        ("sc1", [period, precision]) => {
            SlidingWindow::new(1, micros(*period)).precision(micros(*precision)).into()
        }
        ("cl1", []) => ConcurrencyLimit::new(1).into(),
        ("tb3", []) => bucket.adjustable().into(),
        ("bb3", []) => bucket.borrow().adjustable().into(),
        ("lb3", []) => leaky.adjustable().into(),
        ("lq3", []) => leaky.queue().adjustable().into(),
        ("tb4", []) => bucket.settled().into(),
        ("bb4", []) => bucket.borrow().settled().into(),
        ("lb4", []) => leaky.settled().into(),
        ("wu2", []) => bucket.warmup(Duration::from_secs(1)).adjustable().into(),
        ("ib2", [period]) => {
            TokenBucket::new(Rate::new(1, micros(*period))).interval_refill().adjustable().into()
        }
        _ => return None,
    };
    let has_numbers = kind.ends_with('1') && !matches!(kind, "sl1" | "sc1" | "cl1");
    // The bounds of policies are those of shapes.
    let has_shape = policy.spec().is_ok_and(|spec| spec.to_string() == shape);
    has_shape.then_some((policy, has_numbers))
}

fn algorithm_of(spec: &AlgorithmSpec) -> Algorithm {
    match spec {
        AlgorithmSpec::Gcra(spec)
        | AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec))
        | AlgorithmSpec::SettledGcra(SettledGcraSpec(spec)) => match spec.kind {
            GcraKind::TokenBucket | GcraKind::Borrowing(_) => Algorithm::TokenBucket,
            GcraKind::Meter | GcraKind::Queue => Algorithm::LeakyBucket,
        },
        AlgorithmSpec::IntervalBucket(_) | AlgorithmSpec::WarmingUp(_) => Algorithm::TokenBucket,
        AlgorithmSpec::FixedWindow(_) | AlgorithmSpec::CalendarWindow(_) => Algorithm::FixedWindow,
        AlgorithmSpec::SlidingWindow(_) => Algorithm::SlidingWindow,
        AlgorithmSpec::Holds(_) => Algorithm::Semaphore,
    }
}

#[cfg(test)]
mod tests;
