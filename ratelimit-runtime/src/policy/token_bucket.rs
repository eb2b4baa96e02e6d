//! Token bucket.

use std::time::Duration;

use super::numbers::{
    ZERO_RATE, checked_capacity, checked_count, checked_interval, checked_period, is_valid, refill_in, tri,
};
use crate::algorithm::AlgorithmSpec;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::interval_bucket::IntervalBucketSpec;
use crate::algorithm::settled_gcra::SettledGcraSpec;
use crate::algorithm::warming_up::WarmingUpSpec;
use crate::base::bounds::{MAX_PERIOD, MAX_PERMITS, TOO_MANY};
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::rate::Rate;

/// Token bucket: permits refill at a rate, and up to `burst` of them are saved for later calls.
///
/// Admits at most `burst + rate · t` permits in every interval of length `t` (Turner 1986). The default burst is one second's
/// worth of the rate, but at least one permit. The bucket is stored as a single theoretical arrival time, as in the generic
/// cell rate algorithm (ITU-T I.371).
///
/// Each permit takes ⌈period ÷ permits⌉ microseconds to refill. If this is rounded, the effective rate is slightly lower than
/// requested: 0.02 % at 300 per second. A rate that would lose over 1 % is invalid.
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
    pub(super) rate: Rate,
    pub(super) burst: BurstSize,
    pub(super) interval_refill: bool,
    pub(super) borrow: bool,
    pub(super) warmup: Option<Duration>,
    pub(super) adjustable: bool,
    pub(super) settled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum BurstSize {
    Default,
    Permits(u64),
    For(Duration),
}

const NO_BURST: InvalidPolicy =
    InvalidPolicy::new("burst", "is zero; write at least one permit or a duration like \"5s\"");

const NOT_AT_INTERVALS: InvalidPolicy = InvalidPolicy::new(
    "refill",
    "must be continuous with `borrow` or `warmup`; remove `refill`, or `borrow` and `warmup`",
);

impl TokenBucket {
    /// Creates a bucket that refills at `rate`.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        TokenBucket {
            rate,
            burst: BurstSize::Default,
            interval_refill: false,
            borrow: false,
            warmup: None,
            adjustable: false,
            settled: false,
        }
    }

    /// Creates a bucket that refills at `permits` per second.
    #[must_use]
    pub const fn per_second(permits: u64) -> Self {
        TokenBucket::new(Rate::per_second(permits))
    }

    /// Sets the number of permits that the bucket holds.
    #[must_use]
    pub const fn burst(mut self, permits: u64) -> Self {
        self.burst = BurstSize::Permits(permits);
        self
    }

    /// Sets the burst to what the rate refills in this time, including fractions of a permit, but at least one permit.
    #[must_use]
    pub const fn burst_for(mut self, time: Duration) -> Self {
        self.burst = BurstSize::For(time);
        self
    }

    /// Refills all permits of the rate at once, every period of the rate, counted from the call that found the bucket full.
    ///
    /// Admits at most `burst + refill · (⌊t / period⌋ + 1)` permits in every interval of length `t`. The default burst is one
    /// refill.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ratelimits::{Rate, TokenBucket};
    ///
    /// // Up to 100 calls at once, and 50 more every minute.
    /// const QUOTA: TokenBucket = TokenBucket::new(Rate::new(50, Duration::from_secs(60))).interval_refill().burst(100);
    /// const _: () = assert!(QUOTA.check().is_ok());
    /// ```
    #[must_use]
    pub const fn interval_refill(mut self) -> Self {
        self.interval_refill = true;
        self
    }

    /// Admits a call of any cost while there is no debt, and makes later calls wait until the debt is paid, as
    /// `SmoothBursty` of Guava's `RateLimiter` does.
    ///
    /// Admits at most `burst + rate · t` permits plus the cost of one call in every interval of length `t`. The default burst
    /// is exactly one second's worth of the rate.
    ///
    /// A new bucket is full, where Guava's is empty. The debt of a call is rounded up to a microsecond as a whole, not per
    /// permit.
    ///
    /// ```
    /// use ratelimits::{Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let jobs = Registry::in_memory().limiter("jobs", TokenBucket::per_second(10).borrow())?;
    /// jobs.try_acquire_n((), 25).await?; // takes the 10 permits in the bucket and borrows 15
    /// let debt = jobs.try_acquire(()).await.unwrap_err().retry_after().unwrap();
    /// assert!(debt.as_secs_f64() > 1.4 && debt.as_secs_f64() <= 1.5);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn borrow(mut self) -> Self {
        self.borrow = true;
        self
    }

    /// Warms up over `period` after the bucket was idle, as `SmoothWarmingUp` of Guava's `RateLimiter` does with its cold
    /// factor of 3.
    ///
    /// A cold bucket refills at a third of its rate and reaches the full rate over `period`. A new bucket is cold, and a
    /// bucket that is idle for `period` is cold again. Implies [`borrow`](Self::borrow), and replaces the burst. Admits at
    /// most `rate · t` permits plus the cost of one call in every interval of length `t`.
    ///
    /// Waits equal Guava's to one microsecond per call. Guava truncates the parts of a call's time to whole microseconds, so
    /// a call during which the stored permits run out may take up to 2 µs less than the rate requires.
    ///
    /// Only the last charge can be refunded; the receipts of earlier ones refund nothing.
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

    /// Keeps one state per key, whatever the rate and the burst, so that a key gets no fresh burst when they change. Attributes
    /// do this by themselves where a number is computed.
    ///
    /// The permits that are missing stay missing. They refill at the rate of the last admitted call until the next one is
    /// admitted. In every interval of length `t` the bucket admits no more than the largest burst and the largest rate in
    /// use allow. Each change of the rate rounds the missing permits up to the next microsecond of refill. With
    /// [`interval_refill`](Self::interval_refill), buckets with different periods have different states.
    ///
    /// Without this, buckets of one name with different numbers have different states, and each starts full.
    ///
    /// A receipt of a call that was admitted before the rate changed refunds nothing.
    ///
    /// ```
    /// use ratelimits::{Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let registry = Registry::in_memory();
    /// let plan = |burst| registry.limiter("api", TokenBucket::per_second(1).burst(burst).adjustable());
    /// plan(10)?.try_acquire_n("tenant-7", 10).await?;
    /// // The tenant moves to a larger plan: ten of its twenty permits are missing.
    /// assert_eq!(plan(20)?.peek("tenant-7").await?.remaining, 10);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub const fn adjustable(mut self) -> Self {
        self.adjustable = true;
        self
    }

    /// Remembers what a key has lacked since its calls, so that most of what they have not used can be given back however long they
    /// take. Attributes with `settle` or `bind` do this by themselves. Implies [`adjustable`](Self::adjustable).
    #[doc(hidden)]
    #[must_use]
    pub const fn settled(mut self) -> Self {
        (self.adjustable, self.settled) = (true, true);
        self
    }

    /// Checks the numbers of the policy.
    ///
    /// # Errors
    ///
    /// Fails if the rate, the burst or the warm-up is zero or out of range, if rounding to microseconds would change the rate
    /// by over 1 %, or if two options contradict each other: a warm-up excludes a burst, and interval refill excludes
    /// borrowing and a warm-up.
    pub const fn check(&self) -> Result<(), InvalidPolicy> {
        is_valid(self.spec())
    }

    pub(super) const fn spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        match self.warmup {
            Some(warmup) => self.warming_up_spec(warmup),
            None if self.interval_refill && self.borrow => Err(NOT_AT_INTERVALS),
            None if self.interval_refill => self.interval_bucket_spec(),
            None if self.borrow => self.borrowing_spec(),
            None => self.continuous_spec(),
        }
    }

    const fn continuous_spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        let interval = tri!(checked_interval(self.rate, "rate"));
        let capacity = match self.burst {
            BurstSize::Default => refill_in(self.rate, interval, Duration::from_secs(1)),
            BurstSize::For(time) if time.is_zero() => return Err(NO_BURST),
            BurstSize::For(time) => refill_in(self.rate, interval, time),
            BurstSize::Permits(permits) => tri!(checked_count(permits, "burst")) as u128 * interval as u128,
        };
        let capacity = tri!(checked_capacity(capacity, "burst"));
        Ok(self.gcra(GcraSpec { kind: GcraKind::TokenBucket, interval, capacity }))
    }

    const fn borrowing_spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        let interval = tri!(checked_interval(self.rate, "rate"));
        let capacity = match self.burst {
            BurstSize::Default => 1_000_000,
            BurstSize::For(time) if time.is_zero() => return Err(NO_BURST),
            BurstSize::For(time) => time.as_nanos().div_ceil(1000),
            BurstSize::Permits(permits) => {
                match self.rate.micros_for(tri!(checked_count(permits, "burst"))) {
                    Some(micros) => micros as u128,
                    None => u128::MAX,
                }
            }
        };
        let capacity = tri!(checked_capacity(capacity, "burst"));
        let kind = GcraKind::Borrowing(self.rate.reduced());
        Ok(self.gcra(GcraSpec { kind, interval, capacity }))
    }

    const fn gcra(&self, spec: GcraSpec) -> AlgorithmSpec {
        if self.settled {
            AlgorithmSpec::SettledGcra(SettledGcraSpec(spec))
        } else {
            AlgorithmSpec::gcra(spec, self.adjustable)
        }
    }

    const fn warming_up_spec(&self, warmup: Duration) -> Result<AlgorithmSpec, InvalidPolicy> {
        if !matches!(self.burst, BurstSize::Default) {
            let problem = "cannot be combined with `warmup`, which replaces it; remove one of them";
            return Err(InvalidPolicy::new("burst", problem));
        }
        if self.interval_refill {
            return Err(NOT_AT_INTERVALS);
        }
        tri!(checked_interval(self.rate, "rate"));
        let warmup = tri!(checked_period(warmup, "warmup"));
        let rate = self.rate.reduced();
        Ok(AlgorithmSpec::WarmingUp(WarmingUpSpec { rate, warmup, adjustable: self.adjustable }))
    }

    const fn interval_bucket_spec(&self) -> Result<AlgorithmSpec, InvalidPolicy> {
        if self.rate.permits == 0 {
            return Err(InvalidPolicy::new("rate", ZERO_RATE));
        }
        let refill = tri!(checked_count(self.rate.permits, "rate"));
        let period = tri!(checked_period(self.rate.period, "rate"));
        let burst = match self.burst {
            BurstSize::Default => refill as u128,
            BurstSize::Permits(permits) => permits as u128,
            BurstSize::For(time) if time.is_zero() => return Err(NO_BURST),
            BurstSize::For(time) if time.as_nanos() > MAX_PERIOD.as_nanos() => u128::MAX,
            BurstSize::For(time) => {
                let permits = time.as_nanos() * refill as u128 / (period as u128 * 1000);
                if permits == 0 { 1 } else { permits }
            }
        };
        if burst > MAX_PERMITS as u128 {
            return Err(InvalidPolicy::new("burst", TOO_MANY));
        }
        let burst = tri!(checked_count(burst as u64, "burst"));
        tri!(checked_capacity(burst.div_ceil(refill) as u128 * period as u128, "burst"));
        let adjustable = self.adjustable;
        Ok(AlgorithmSpec::IntervalBucket(IntervalBucketSpec { burst, refill, period, adjustable }))
    }
}
