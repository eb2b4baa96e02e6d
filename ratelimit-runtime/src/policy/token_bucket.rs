//! Token bucket.

use std::time::Duration;

use super::Policy;
use super::numbers::{ZERO_RATE, checked_count, checked_period, fits, interval, worth};
use crate::algorithm::AlgorithmSpec;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::interval_bucket::IntervalBucketSpec;
use crate::algorithm::warming_up::WarmingUpSpec;
use crate::bounds::{LONGEST, MOST, TOO_MANY};
use crate::error::invalid_policy::InvalidPolicy;
use crate::rate::Rate;

/// Token bucket: permits come back at a rate, and up to `burst` of them wait for their use.
///
/// In every interval of length `t` at most `burst + rate · t` permits are given (Turner 1986; kept as one theoretical
/// arrival time, as in the generic cell rate algorithm of ITU-T I.371). Without a burst it holds one second's worth, and
/// at least one permit.
///
/// A permit takes ⌈period ÷ permits⌉ microseconds to come back. Where that is not whole the rate is a little lower than
/// asked for: 0.02 % at 300 per second. A rate that would lose over 1 % is invalid.
///
/// ```
/// use std::time::Duration;
/// use ratelimits::{Rate, TokenBucket};
///
/// const SMS: TokenBucket = TokenBucket::new(Rate::new(100, Duration::from_secs(60))).burst(10);
/// const _: () = assert!(SMS.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenBucket {
    rate: Rate,
    burst: Burst,
    refill: Refill,
    borrow: bool,
    warmup: Option<Duration>,
}

const NO_BURST: InvalidPolicy =
    InvalidPolicy::new("burst", "is zero; write at least one permit or a time like \"5s\"");

const NOT_AT_INTERVALS: InvalidPolicy = InvalidPolicy::new(
    "refill",
    "is continuous where calls borrow or the bucket warms up; leave out `refill`, or `borrow` and `warmup`",
);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Burst {
    Default,
    Permits(u64),
    For(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Refill {
    Continuous,
    Interval,
}

impl TokenBucket {
    /// A bucket that refills at `rate`.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        TokenBucket { rate, burst: Burst::Default, refill: Refill::Continuous, borrow: false, warmup: None }
    }

    /// A bucket that refills with `permits` per second.
    #[must_use]
    pub const fn per_second(permits: u64) -> Self {
        TokenBucket::new(Rate::per_second(permits))
    }

    /// Holds up to so many permits.
    #[must_use]
    pub const fn burst(mut self, permits: u64) -> Self {
        self.burst = Burst::Permits(permits);
        self
    }

    /// Holds so long a time's worth of its rate, fractions kept, and at least one permit.
    #[must_use]
    pub const fn burst_for(mut self, time: Duration) -> Self {
        self.burst = Burst::For(time);
        self
    }

    /// Refills all at once: the permits of its rate every period of its rate, counted from the call that found the
    /// bucket full. In every interval of length `t` at most `burst + refill · (⌊t / period⌋ + 1)` permits are given.
    /// Without a burst it holds one refill.
    #[must_use]
    pub const fn interval_refill(mut self) -> Self {
        self.refill = Refill::Interval;
        self
    }

    /// Lets a call of any cost go ahead while there is no debt, and the next one wait for what that call was short of:
    /// `SmoothBursty` of Guava's `RateLimiter`. Without a burst it holds exactly one second's worth. In every interval of
    /// length `t` at most `burst + rate · t` permits are given, and one call's cost more.
    ///
    /// A new bucket is full, where Guava's is empty. What a call is short of is rounded up to a microsecond, not each permit.
    ///
    /// ```
    /// use ratelimits::{Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let jobs = Registry::in_memory().limiter("jobs", TokenBucket::per_second(10).borrow())?;
    /// jobs.try_acquire((), 25).await?; // 10 that the bucket holds, and 15 on credit
    /// let debt = jobs.try_acquire((), 1).await.unwrap_err().retry_after().unwrap();
    /// assert!(debt.as_secs_f64() > 1.4 && debt.as_secs_f64() <= 1.5);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn borrow(mut self) -> Self {
        self.borrow = true;
        self
    }

    /// Warms up for so long after it was idle: `SmoothWarmingUp` of Guava's `RateLimiter` with its cold factor of 3. A cold
    /// bucket gives permits at a third of its rate, and comes to the full rate over the period; idle for as long, it is cold
    /// again, and so is a new one. It implies [`borrow`](Self::borrow) and takes the place of a burst. In every interval of
    /// length `t` at most `rate · t` permits are given, and one call's cost more.
    ///
    /// A call waits as long as it would in Guava, to a microsecond a call. Guava cuts the parts of a call's time to whole
    /// microseconds, and where stored permits run out amid a call this may be 2 µs less than the rate asks for.
    ///
    /// It takes back only its last charge: the receipt of an older one gives nothing back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ratelimits::TokenBucket;
    ///
    /// const CACHE: TokenBucket = TokenBucket::per_second(100).warmup(Duration::from_secs(30));
    /// const _: () = assert!(CACHE.check().is_ok());
    /// ```
    #[must_use]
    pub const fn warmup(mut self, period: Duration) -> Self {
        self.warmup = Some(period);
        self
    }

    /// Whether the numbers make sense.
    ///
    /// # Errors
    ///
    /// If the rate, the burst or the warm-up is zero or out of range, a microsecond is too coarse for the rate, or two of
    /// them contradict: a warm-up has no burst and no interval refill, and what borrows refills continuously.
    pub const fn check(&self) -> Result<(), InvalidPolicy> {
        Policy::TokenBucket(*self).check()
    }

    pub(super) const fn spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        match (&self.refill, self.warmup) {
            (Refill::Interval, None) if !self.borrow => return self.interval_rule(),
            (Refill::Interval, None) => return Err(NOT_AT_INTERVALS),
            (_, Some(warmup)) => return self.warming_up_rule(warmup),
            (Refill::Continuous, None) => {}
        }
        let interval = match interval(self.rate, "rate") {
            Ok(interval) => interval,
            Err(invalid) => return Err(invalid),
        };
        if self.borrow {
            return self.borrowing_rule(interval);
        }
        let capacity = match self.burst {
            Burst::Default => worth(self.rate, interval, Duration::from_secs(1)),
            Burst::For(time) if time.is_zero() => return Err(NO_BURST),
            Burst::For(time) => worth(self.rate, interval, time),
            Burst::Permits(permits) => match checked_count(permits, "burst") {
                Ok(permits) => permits as u128 * interval as u128,
                Err(invalid) => return Err(invalid),
            },
        };
        match fits(capacity, "burst") {
            Ok(capacity) => {
                Ok(AlgorithmSpec::Gcra(GcraSpec { kind: GcraKind::TokenBucket, interval, capacity }))
            }
            Err(invalid) => Err(invalid),
        }
    }

    const fn borrowing_rule(&self, interval: u64) -> Result<AlgorithmSpec, InvalidPolicy> {
        let capacity = match self.burst {
            Burst::Default => 1_000_000,
            Burst::For(time) if time.is_zero() => return Err(NO_BURST),
            Burst::For(time) => time.as_nanos().div_ceil(1000),
            Burst::Permits(permits) => match checked_count(permits, "burst") {
                Ok(permits) => match self.rate.takes(permits) {
                    Some(micros) => micros as u128,
                    None => u128::MAX,
                },
                Err(invalid) => return Err(invalid),
            },
        };
        match fits(capacity, "burst") {
            Ok(capacity) => {
                let kind = GcraKind::Borrowing(self.rate.reduced());
                Ok(AlgorithmSpec::Gcra(GcraSpec { kind, interval, capacity }))
            }
            Err(invalid) => Err(invalid),
        }
    }

    const fn warming_up_rule(&self, warmup: Duration) -> Result<AlgorithmSpec, InvalidPolicy> {
        match (&self.burst, &self.refill) {
            (Burst::Default, Refill::Continuous) => {}
            (Burst::Default, Refill::Interval) => return Err(NOT_AT_INTERVALS),
            _ => {
                let problem = "is what `warmup` takes the place of; leave out one of them";
                return Err(InvalidPolicy::new("burst", problem));
            }
        }
        if let Err(invalid) = interval(self.rate, "rate") {
            return Err(invalid);
        }
        match checked_period(warmup, "warmup") {
            Ok(warmup) => Ok(AlgorithmSpec::WarmingUp(WarmingUpSpec { rate: self.rate.reduced(), warmup })),
            Err(invalid) => Err(invalid),
        }
    }

    const fn interval_rule(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        if self.rate.permits == 0 {
            return Err(InvalidPolicy::new("rate", ZERO_RATE));
        }
        let refill = match checked_count(self.rate.permits, "rate") {
            Ok(refill) => refill,
            Err(invalid) => return Err(invalid),
        };
        let period = match checked_period(self.rate.period, "rate") {
            Ok(period) => period,
            Err(invalid) => return Err(invalid),
        };
        let burst = match self.burst {
            Burst::Default => refill as u128,
            Burst::Permits(permits) => permits as u128,
            Burst::For(time) if time.is_zero() => return Err(NO_BURST),
            Burst::For(time) if time.as_nanos() > LONGEST.as_nanos() => u128::MAX,
            Burst::For(time) => {
                let worth = time.as_nanos() * refill as u128 / (period as u128 * 1000);
                if worth == 0 { 1 } else { worth }
            }
        };
        if burst > MOST as u128 {
            return Err(InvalidPolicy::new("burst", TOO_MANY));
        }
        let burst = match checked_count(burst as u64, "burst") {
            Ok(burst) => burst,
            Err(invalid) => return Err(invalid),
        };
        match fits(burst.div_ceil(refill) as u128 * period as u128, "burst") {
            Ok(_) => Ok(AlgorithmSpec::IntervalBucket(IntervalBucketSpec { burst, refill, period })),
            Err(invalid) => Err(invalid),
        }
    }
}
