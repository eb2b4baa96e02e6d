//! The numbers that are tried: those of a policy times 1/8 to 8, each rounded up to what people write.

use std::time::Duration;

use crate::algorithm::adjustable_gcra::AdjustableGcraSpec;
use crate::algorithm::fixed_window::FixedWindowSpec;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::{AlgorithmSpec, PlainSpec, PlainState, PlainSteps};
use crate::base::rate::Rate;
use crate::policy::{FixedWindow, LeakyBucket, Policy, TokenBucket};

/// The fourth roots of 2 that the lowest and the highest numbers are away from those of the policy.
const STEPS: i32 = 12;

/// The units of rates in microseconds, by which people count at least ten permits: a second, a minute, an hour, a day.
const UNITS: [u64; 4] = [1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000];

/// Policies from the smallest to the largest. What a smaller one admits of calls that take one permit, a larger one admits as well.
#[derive(Debug)]
pub(super) struct Ladder {
    rungs: Box<[Rung]>,
    /// The length of windows that start on multiples of it.
    aligned: Option<u64>,
    /// How long the limit of the policy is for, in microseconds.
    pub(super) window: u64,
    /// After this time without a call a key is like a new one, for all rungs.
    pub(super) longest: u64,
}

/// A policy that is tried.
#[derive(Debug)]
pub(super) struct Rung {
    pub(super) policy: Policy,
    steps: PlainSpec,
}

impl Ladder {
    /// Returns policies around this one. `None` if it is no token bucket, no meter and no fixed window, or has another kind of refill.
    pub(super) fn around(spec: &AlgorithmSpec) -> Option<Self> {
        match *spec {
            AlgorithmSpec::Gcra(bucket) | AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(bucket)) => {
                Self::of_bucket(bucket)
            }
            AlgorithmSpec::FixedWindow(window) => Some(Self::of_window(window)),
            _ => None,
        }
    }

    fn of_bucket(GcraSpec { kind, interval, capacity }: GcraSpec) -> Option<Self> {
        let is_meter = match kind {
            GcraKind::TokenBucket => false,
            GcraKind::Meter => true,
            GcraKind::Borrowing(_) | GcraKind::Queue => return None,
        };
        let policy = |thousandths| {
            let (rate, burst) =
                (rate(interval, thousandths), times(capacity.div_ceil(interval), thousandths));
            match is_meter {
                true => Policy::from(LeakyBucket::new(burst, rate)),
                false => TokenBucket::new(rate).burst(burst).into(),
            }
        };
        Some(Self::of(capacity, None, policy))
    }

    fn of_window(FixedWindowSpec { limit, period, aligned }: FixedWindowSpec) -> Self {
        let window = |limit| FixedWindow::new(limit, Duration::from_micros(period));
        let policy = |thousandths| {
            let window = window(times(limit, thousandths));
            Policy::from(if aligned { window.aligned() } else { window })
        };
        Self::of(period, aligned.then_some(period), policy)
    }

    /// Makes each policy of thousandths of its numbers.
    fn of(window: u64, aligned: Option<u64>, policy: impl Fn(u128) -> Policy) -> Self {
        let rung = |step: i32| {
            let policy = policy((1_000.0 * (f64::from(step) / 4.0).exp2()).round() as u128);
            let steps = PlainSpec::of(&opened(policy.spec().ok()?))?;
            Some(Rung { policy, steps })
        };
        let mut rungs: Vec<_> = (-STEPS..=STEPS).filter_map(rung).collect();
        rungs.dedup_by_key(|rung| rung.policy);
        let longest = rungs.iter().map(|rung| rung.steps.spec().window()).max().unwrap_or(0);
        Ladder { rungs: rungs.into(), aligned, window, longest }
    }

    pub(super) fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// Returns the states of a new key, one for each rung.
    pub(super) fn new_key(&self) -> Box<[PlainState]> {
        let state = |rung: &Rung| match rung.steps.is_bucket() {
            true => PlainState::Bucket { full: 0 },
            false => PlainState::Window { end: 0, number: 0 },
        };
        self.rungs.iter().map(state).collect()
    }

    /// Decides a call by each rung, which comes no earlier than those before it. Calls a function with the places of those that refuse.
    pub(super) fn decide(
        &self,
        states: &mut [PlainState],
        now: u64,
        cost: u64,
        mut refused: impl FnMut(usize),
    ) {
        let now = self.aligned.map_or(now, |period| now - now % period);
        for (place, (rung, state)) in self.rungs.iter().zip(states).enumerate() {
            // A time that never steps back finds no state from the future.
            match rung.steps.decide(*state, now, cost).and_then(|step| step.after) {
                Some(after) => *state = after,
                None => refused(place),
            }
        }
    }
}

impl Rung {
    /// Whether no policy of this kind is smaller.
    pub(super) fn is_smallest(&self) -> bool {
        !self.steps.is_bucket() && self.steps.limit() == 1
    }
}

/// Returns the same windows as those that a call opens: one on a multiple of the period is opened there.
fn opened(spec: AlgorithmSpec) -> AlgorithmSpec {
    match spec {
        AlgorithmSpec::FixedWindow(window) => {
            AlgorithmSpec::FixedWindow(FixedWindowSpec { aligned: false, ..window })
        }
        bucket => bucket,
    }
}

/// Returns the rate of a bucket in which a permit takes so many microseconds, times a factor.
fn rate(interval: u64, thousandths: u128) -> Rate {
    let divisor = 1_000 * u128::from(interval);
    let permits = |unit: u64| u128::from(unit) * thousandths;
    let unit = UNITS.into_iter().find(|unit| permits(*unit) / divisor >= 10).unwrap_or(UNITS[3]);
    Rate::new(round_up(permits(unit).div_ceil(divisor)), Duration::from_micros(unit))
}

fn times(number: u64, thousandths: u128) -> u64 {
    round_up((u128::from(number) * thousandths).div_ceil(1_000))
}

/// Returns the smallest number with at most two significant digits that is no smaller.
fn round_up(number: u128) -> u64 {
    let power = 10u128.pow(number.max(1).ilog10().saturating_sub(1));
    u64::try_from(number.div_ceil(power) * power).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(policy: impl Into<Policy>) -> Vec<String> {
        let ladder = Ladder::around(&policy.into().spec().unwrap()).unwrap();
        ladder.rungs().iter().map(|rung| rung.policy.arguments().unwrap()).collect()
    }

    #[test]
    fn numbers_are_tried_that_people_write() {
        let buckets = tried(TokenBucket::new("100/min".parse().unwrap()).burst(3));
        assert_eq!(buckets.len(), 25);
        assert_eq!(buckets[0], r#"rate = "13/min", burst = 1"#);
        assert_eq!(buckets[12], r#"rate = "100/min", burst = 3"#);
        assert_eq!(buckets[13], r#"rate = "120/min", burst = 4"#);
        assert_eq!(buckets[24], r#"rate = "14/s", burst = 24"#);

        let windows = tried(FixedWindow::new(2, Duration::from_secs(3600)).aligned());
        let limits = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16];
        assert_eq!(windows, limits.map(|limit| format!(r#"limit = {limit}, period = "1h", aligned"#)));

        let meter = tried(LeakyBucket::new(1_250, Rate::per_second(1)));
        assert_eq!((&*meter[0], meter.len()), (r#"capacity = 160, leak_rate = "450/h""#, 25));
        // The fastest rates are few, and those above the maximum none.
        let fast = tried(TokenBucket::per_second(1_000_000).burst(1_000_000_000_000));
        assert_eq!(fast.last().unwrap(), r#"rate = "1000000/s", burst = 1000000000000"#);
    }

    #[test]
    fn larger_rungs_refill_faster_and_hold_more() {
        for interval in (1..400).map(|n| n * n * n) {
            let spec = GcraSpec { kind: GcraKind::TokenBucket, interval, capacity: 7 * interval };
            let ladder = Ladder::of_bucket(spec).unwrap();
            let numbers = ladder.rungs().iter().map(|rung| match rung.policy.spec().unwrap() {
                AlgorithmSpec::Gcra(GcraSpec { interval, capacity, .. }) => (interval, capacity / interval),
                other => panic!("{other:?}"),
            });
            let numbers: Vec<_> = numbers.collect();
            let grows = |pair: &[(u64, u64)]| pair[1].0 <= pair[0].0 && pair[1].1 >= pair[0].1;
            assert!(numbers.windows(2).all(grows), "{interval}: {numbers:?}");
        }
    }

    #[test]
    fn other_algorithms_have_no_rungs() {
        let bucket = TokenBucket::per_second(5);
        for policy in [
            bucket.interval_refill().into(),
            bucket.borrow().into(),
            bucket.warmup(Duration::from_secs(1)).into(),
            LeakyBucket::new(5, Rate::per_second(1)).queue().into(),
            Policy::from(crate::SlidingWindow::new(5, Duration::from_secs(1))),
            crate::ConcurrencyLimit::new(5).into(),
        ] {
            assert!(Ladder::around(&policy.spec().unwrap()).is_none(), "{policy:?}");
        }
    }
}
