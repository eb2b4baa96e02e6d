//! Policies in two forms: the library's and the model's.

use std::time::Duration;

use ratelimit_runtime::CalendarPeriod;
use ratelimit_runtime::store::{AlgorithmSpec, Verdict};
use ratelimits::{ConcurrencyLimit, FixedWindow, LeakyBucket, Policy, Rate, SlidingWindow, TokenBucket};

use crate::model;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) spec: AlgorithmSpec,
    pub(crate) model: model::Policy,
}

const TEN_SECONDS: Duration = Duration::from_secs(10);

/// Returns a policy of each kind that never waits, each for three permits that are all back after 10 s.
pub(crate) fn one_of_each() -> [(&'static str, Pair); 10] {
    [
        ("token bucket", token_bucket(3, Duration::from_secs(9), 3)),
        ("leaky bucket", leaky_bucket(3, 1, Duration::from_secs(3))),
        ("interval refill", interval_refill(3, TEN_SECONDS, 3)),
        ("fixed window", fixed_window(3, TEN_SECONDS, false)),
        ("aligned window", fixed_window(3, TEN_SECONDS, true)),
        ("log", sliding_window(3, TEN_SECONDS, None)),
        ("counter", sliding_window(3, TEN_SECONDS, Some(Duration::from_secs(5)))),
        ("changing bucket", adjustable::token_bucket(3, Duration::from_secs(9), 3)),
        ("changing refill", adjustable::interval_refill(3, TEN_SECONDS, 3)),
        ("settled bucket", adjustable::settled(3, Duration::from_secs(9), 3, false)),
    ]
    .map(|(name, pair)| (name, pair.expect("the policy is valid")))
}

/// Returns a policy of every kind, each for this many permits that are all back after `time`, a multiple of 10 µs.
pub(crate) fn each_for(permits: u64, time: Duration) -> [(&'static str, Pair); 14] {
    [
        ("token-bucket", token_bucket(permits, time, permits)),
        ("leaky-bucket", draining_bucket(permits, time)),
        ("borrowing", borrowing(permits, time, Some(permits))),
        ("queue", queue(permits, permits, time)),
        ("warming-up", warming_up(permits, time, time)),
        ("interval-refill", interval_refill(permits, time, permits)),
        ("fixed-window", fixed_window(permits, time, false)),
        ("aligned-window", fixed_window(permits, time, true)),
        ("log", sliding_window(permits, time, None)),
        ("counter", sliding_window(permits, time, Some(time / 10))),
        ("changing-bucket", adjustable::token_bucket(permits, time, permits)),
        ("changing-refill", adjustable::interval_refill(permits, time, permits)),
        ("changing-warm-up", adjustable::warming_up(permits, time, time)),
        ("settled-bucket", adjustable::settled(permits, time, permits, false)),
    ]
    .map(|(name, pair)| (name, pair.expect("the policy is valid")))
}

/// Returns `None` if the library rejects the policy.
pub(crate) fn pair(policy: impl Into<Policy>, model: model::Policy) -> Option<Pair> {
    Some(Pair { spec: policy.into().spec().ok()?, model })
}

pub(crate) fn token_bucket(permits: u64, period: Duration, burst: u64) -> Option<Pair> {
    let policy = TokenBucket::new(Rate::new(permits, period)).burst(burst);
    pair(policy, model::Policy::bucket(permits.into(), nanos(period), burst.into()))
}

pub(crate) fn token_bucket_for(permits: u64, period: Duration, time: Duration) -> Option<Pair> {
    let policy = TokenBucket::new(Rate::new(permits, period)).burst_for(time);
    pair(policy, model::Policy::bucket_for(permits.into(), nanos(period), nanos(time)))
}

pub(crate) fn leaky_bucket(capacity: u64, permits: u64, period: Duration) -> Option<Pair> {
    let policy = LeakyBucket::new(capacity, Rate::new(permits, period));
    pair(policy, model::Policy::bucket(permits.into(), nanos(period), capacity.into()))
}

pub(crate) fn draining_bucket(capacity: u64, drain: Duration) -> Option<Pair> {
    pair(
        LeakyBucket::draining(capacity, drain),
        model::Policy::bucket(capacity.into(), nanos(drain), capacity.into()),
    )
}

/// Without a burst, holds what one second refills.
pub(crate) fn borrowing(permits: u64, period: Duration, burst: Option<u64>) -> Option<Pair> {
    let policy = TokenBucket::new(Rate::new(permits, period)).borrow();
    let (permits, period_ns) = (permits.into(), nanos(period));
    match burst {
        Some(burst) => pair(policy.burst(burst), model::Policy::borrowing(permits, period_ns, burst.into())),
        None => pair(policy, model::Policy::borrowing_for(permits, period_ns, nanos(Duration::from_secs(1)))),
    }
}

pub(crate) fn borrowing_for(permits: u64, period: Duration, time: Duration) -> Option<Pair> {
    let policy = TokenBucket::new(Rate::new(permits, period)).borrow().burst_for(time);
    pair(policy, model::Policy::borrowing_for(permits.into(), nanos(period), nanos(time)))
}

/// One call leaves at once, `capacity` calls wait.
pub(crate) fn queue(capacity: u64, permits: u64, period: Duration) -> Option<Pair> {
    let policy = LeakyBucket::new(capacity, Rate::new(permits, period)).queue();
    pair(policy, model::Policy::queue(permits.into(), nanos(period), capacity.into()))
}

pub(crate) fn warming_up(permits: u64, period: Duration, warmup: Duration) -> Option<Pair> {
    let policy = TokenBucket::new(Rate::new(permits, period)).warmup(warmup);
    let (permits, period_ns, warmup) = (permits.into(), nanos(period), micros(warmup));
    pair(policy, model::Policy::WarmingUp { permits, period_ns, warmup, adjustable: false })
}

pub(crate) fn interval_refill(refill: u64, every: Duration, burst: u64) -> Option<Pair> {
    let policy = TokenBucket::new(Rate::new(refill, every)).burst(burst).interval_refill();
    let model = interval_model(refill, every, burst, false);
    pair(policy, model)
}

fn interval_model(refill: u64, every: Duration, burst: u64, adjustable: bool) -> model::Policy {
    let (burst, refill, every) = (burst.into(), refill.into(), micros(every));
    model::Policy::Interval { burst, refill, every, adjustable }
}

/// Buckets whose numbers can change, as the functions of the same names make them for numbers that cannot.
pub(crate) mod adjustable {
    use std::time::Duration;

    use ratelimits::{LeakyBucket, Rate, TokenBucket};

    use super::{Pair, interval_model, micros, nanos, pair};
    use crate::model::{self, AdjustableBucket, AdjustableKind, Pace};

    pub(crate) fn token_bucket(permits: u64, period: Duration, burst: u64) -> Option<Pair> {
        let policy = TokenBucket::new(Rate::new(permits, period)).burst(burst).adjustable();
        pair(
            policy,
            of(AdjustableKind::Meter, model::Policy::bucket(permits.into(), nanos(period), burst.into())),
        )
    }

    pub(crate) fn leaky_bucket(capacity: u64, permits: u64, period: Duration) -> Option<Pair> {
        let policy = LeakyBucket::new(capacity, Rate::new(permits, period)).adjustable();
        let model = model::Policy::bucket(permits.into(), nanos(period), capacity.into());
        pair(policy, of(AdjustableKind::Meter, model))
    }

    pub(crate) fn borrowing(permits: u64, period: Duration, burst: u64) -> Option<Pair> {
        let policy = TokenBucket::new(Rate::new(permits, period)).borrow().burst(burst).adjustable();
        let model = model::Policy::borrowing(permits.into(), nanos(period), burst.into());
        pair(policy, of(AdjustableKind::Borrowing, model))
    }

    /// The same buckets for calls that are settled.
    pub(crate) fn settled(permits: u64, period: Duration, burst: u64, borrows: bool) -> Option<Pair> {
        let policy = TokenBucket::new(Rate::new(permits, period)).burst(burst).settled();
        let (policy, pair_of) = match borrows {
            true => (policy.borrow(), borrowing(permits, period, burst)?),
            false => (policy, token_bucket(permits, period, burst)?),
        };
        let model::Policy::Adjustable(bucket) = pair_of.model else { return None };
        pair(policy, model::Policy::Adjustable(AdjustableBucket { settled: true, ..bucket }))
    }

    pub(crate) fn queue(capacity: u64, permits: u64, period: Duration) -> Option<Pair> {
        let policy = LeakyBucket::new(capacity, Rate::new(permits, period)).queue().adjustable();
        let model = model::Policy::queue(permits.into(), nanos(period), capacity.into());
        pair(policy, of(AdjustableKind::Queue, model))
    }

    pub(crate) fn warming_up(permits: u64, period: Duration, warmup: Duration) -> Option<Pair> {
        let policy = TokenBucket::new(Rate::new(permits, period)).warmup(warmup).adjustable();
        let (permits, period_ns, warmup) = (permits.into(), nanos(period), micros(warmup));
        pair(policy, model::Policy::WarmingUp { permits, period_ns, warmup, adjustable: true })
    }

    pub(crate) fn interval_refill(refill: u64, every: Duration, burst: u64) -> Option<Pair> {
        let policy = TokenBucket::new(Rate::new(refill, every)).burst(burst).interval_refill().adjustable();
        pair(policy, interval_model(refill, every, burst, true))
    }

    fn of(kind: AdjustableKind, fixed: model::Policy) -> model::Policy {
        let (pace, full) = match fixed {
            model::Policy::Bucket { permit, full } => (Pace::new(permit, 1), full),
            model::Policy::Borrowing { permits, period_ns, full } => {
                (Pace::new(period_ns, permits * 1000), full)
            }
            model::Policy::Queue { interval, slots } => (Pace::new(interval, 1), slots * interval),
            _ => unreachable!("not a bucket that refills continuously"),
        };
        model::Policy::Adjustable(AdjustableBucket { kind, pace, full, settled: false })
    }
}

pub(crate) fn fixed_window(limit: u64, period: Duration, aligned: bool) -> Option<Pair> {
    let policy = FixedWindow::new(limit, period);
    let policy = if aligned { policy.aligned() } else { policy };
    pair(policy, model::Policy::Fixed { limit: limit.into(), period: micros(period), aligned })
}

pub(crate) fn calendar_window(limit: u64, period: CalendarPeriod, zone: &'static str) -> Option<Pair> {
    let policy = FixedWindow::calendar(limit, period).zone(zone).expect("the zone exists");
    pair(policy, model::Policy::Calendar { limit: limit.into(), period, zone })
}

pub(crate) fn sliding_window(limit: u64, period: Duration, precision: Option<Duration>) -> Option<Pair> {
    let policy = SlidingWindow::new(limit, period);
    let policy = precision.map_or(policy, |precision| policy.precision(precision));
    let model = model::Policy::Sliding {
        limit: limit.into(),
        period: micros(period),
        precision: precision.map(micros),
    };
    pair(policy, model)
}

/// At most so many permits at once.
pub(crate) fn holds(max: u64) -> Option<Pair> {
    pair(ConcurrencyLimit::new(max), model::Policy::Holds { max: max.into() })
}

fn nanos(time: Duration) -> i128 {
    time.as_nanos() as i128
}

fn micros(time: Duration) -> i128 {
    time.as_micros() as i128
}

impl From<&Verdict> for model::Verdict {
    fn from(verdict: &Verdict) -> Self {
        model::Verdict {
            admitted: verdict.admitted,
            wait: verdict.wait.into(),
            limit: verdict.limit.into(),
            remaining: verdict.remaining.into(),
            retry_after: verdict.retry_after.map(|micros| i128::from(micros).min(model::UNKNOWN)),
            reset_after: verdict.reset_after.into(),
        }
    }
}
