//! The numbers of policies by the names of the attributes' arguments.

use std::time::Duration;

use super::attribute_kind::not_a_number;
use super::leaky_bucket::Leak;
use super::numbers::{count_of, rate_of};
use super::{Policy, TokenBucket};
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::rate::Rate;
use crate::base::units;

/// The value of an argument, as an attribute or a configuration file has it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArgumentValue<'a> {
    /// Permits, permits per second, or seconds.
    Integer(i128),
    /// Permits per second.
    Float(f64),
    /// A rate such as `"100/min"`, or a duration such as `"5s"`.
    Text(&'a str),
}

impl Policy {
    /// Replaces a number of the policy, by the name and in the spellings of the attribute's argument. Defaults that depend on
    /// it follow: a bucket without a burst has one second's worth of its new rate. Of `leak_rate` and `drain`, the last
    /// one counts.
    ///
    /// Does not check the policy as a whole, since several numbers may change together. [`check`](Self::check) does.
    ///
    /// ```
    /// use ratelimit_runtime::{ArgumentValue, Policy, Rate, TokenBucket};
    ///
    /// let policy = Policy::from(TokenBucket::per_second(5).burst(10));
    /// let changed = policy.with_argument("rate", ArgumentValue::Text("100/min"))?;
    /// assert_eq!(changed, TokenBucket::new(Rate::parse("100/min")?).burst(10).into());
    /// changed.check()?;
    /// # Ok::<(), ratelimit_runtime::InvalidPolicy>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the value is not what the attribute takes, if the argument is no number of this algorithm, and for a `warmup`
    /// or a `precision` if the policy has none. If no attribute has the argument, the error is about the attribute.
    #[doc(hidden)]
    pub fn with_argument(self, argument: &str, value: ArgumentValue<'_>) -> Result<Self, InvalidPolicy> {
        let mut changed = self;
        match (&mut changed, argument) {
            (Policy::TokenBucket(bucket), "rate") => {
                if bucket.interval_refill && !matches!(value, ArgumentValue::Text(_)) {
                    return Err(InvalidPolicy::new("rate", NO_REFILL_PERIOD));
                }
                bucket.rate = value.rate("rate")?;
            }
            (Policy::TokenBucket(bucket), "burst") => *bucket = value.set_burst(*bucket)?,
            (Policy::TokenBucket(bucket), "warmup") if bucket.warmup.is_none() => {
                return Err(InvalidPolicy::new("warmup", NO_WARMUP));
            }
            (Policy::TokenBucket(bucket), "warmup") => bucket.warmup = Some(value.period("warmup")?),
            (Policy::FixedWindow(window), "limit") => window.limit = value.count("limit")?,
            (Policy::FixedWindow(window), "period") => window.period = value.period("period")?,
            (Policy::LeakyBucket(bucket), "capacity") => bucket.capacity = value.count("capacity")?,
            (Policy::LeakyBucket(bucket), "leak_rate") => bucket.leak = Leak::Rate(value.rate("leak_rate")?),
            (Policy::LeakyBucket(bucket), "drain") => bucket.leak = Leak::Drain(value.period("drain")?),
            (Policy::SlidingWindow(window), "limit") => window.limit = value.count("limit")?,
            (Policy::SlidingWindow(window), "period") => window.period = value.period("period")?,
            (Policy::SlidingWindow(window), "precision") if window.precision.is_none() => {
                return Err(InvalidPolicy::new("precision", NO_PRECISION));
            }
            (Policy::SlidingWindow(window), "precision") => {
                window.precision = Some(value.precision("precision")?);
            }
            _ => return Err(not_a_number(self.algorithm().attribute(), argument)),
        }
        Ok(changed)
    }
}

const NO_REFILL_PERIOD: &str = "needs a period with `refill = interval`; write \"100/min\"";
const NO_WARMUP: &str = "cannot be added by changing numbers, because the bucket does not warm up";
const NO_PRECISION: &str = "cannot be added by changing numbers, because the window is an exact log";
const NOT_A_COUNT: &str = "is a whole number of permits; write it without quotes and fraction, like 10";
const NOT_A_PERIOD: &str = "is a whole number of seconds or a string; write 60 or \"500ms\"";
const NOT_A_PRECISION: &str = "needs a unit; write \"1s\"";
const NOT_A_BURST: &str = "is a whole number of permits or a duration; write 10 or \"5s\"";

impl ArgumentValue<'_> {
    fn count(self, argument: &'static str) -> Result<u64, InvalidPolicy> {
        match self {
            ArgumentValue::Integer(count) => count_of(argument, count),
            _ => Err(InvalidPolicy::new(argument, NOT_A_COUNT)),
        }
    }

    fn rate(self, argument: &'static str) -> Result<Rate, InvalidPolicy> {
        let rate = match self {
            ArgumentValue::Integer(per_second) => rate_of(argument, per_second),
            ArgumentValue::Float(per_second) => Rate::from_per_second(per_second),
            ArgumentValue::Text(text) => Rate::parse(text),
        };
        rate.map_err(|invalid| invalid.with_argument(argument))
    }

    fn period(self, argument: &'static str) -> Result<Duration, InvalidPolicy> {
        match self {
            ArgumentValue::Integer(seconds) => Ok(Duration::from_secs(count_of(argument, seconds)?)),
            ArgumentValue::Float(_) => Err(InvalidPolicy::new(argument, NOT_A_PERIOD)),
            ArgumentValue::Text(text) => {
                units::parse_duration(text).map_err(|problem| InvalidPolicy::new(argument, problem))
            }
        }
    }

    fn precision(self, argument: &'static str) -> Result<Duration, InvalidPolicy> {
        match self {
            ArgumentValue::Text(_) => self.period(argument),
            _ => Err(InvalidPolicy::new(argument, NOT_A_PRECISION)),
        }
    }

    fn set_burst(self, bucket: TokenBucket) -> Result<TokenBucket, InvalidPolicy> {
        match self {
            ArgumentValue::Integer(permits) => Ok(bucket.burst(count_of("burst", permits)?)),
            ArgumentValue::Float(_) => Err(InvalidPolicy::new("burst", NOT_A_BURST)),
            ArgumentValue::Text(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(InvalidPolicy::new("burst", NOT_A_BURST))
            }
            ArgumentValue::Text(_) => Ok(bucket.burst_for(self.period("burst")?)),
        }
    }
}

#[cfg(test)]
mod tests;
