//! Rates as exact ratios.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::base::bounds::{MAX_PERIOD, MAX_PERIOD_MICROS};
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::units;

/// A rate of permits per period, kept as an exact ratio.
///
/// A rate is written as a number of permits per second, as text, or as permits and a period. A float becomes the simplest
/// ratio within 10⁻¹² of it, relatively: `1.0 / 60.0` is exactly one permit per minute, and `0.1 * 3.0` is three in ten seconds.
///
/// ```
/// use std::time::Duration;
/// use ratelimits::Rate;
///
/// assert_eq!(Rate::new(100, Duration::from_secs(60)), "100/min".parse()?);
/// assert_eq!(Rate::try_from(1.0 / 60.0)?, Rate::new(1, Duration::from_secs(60)));
/// assert_eq!(Rate::new(100, Duration::from_secs(60)).to_string(), "100/min");
/// # Ok::<(), ratelimits::error::InvalidPolicy>(())
/// ```
///
/// Rates are equal if both permits and period are equal. `2/2s` and `1/s` are different rates, because they refill a bucket
/// with [`interval_refill`](crate::TokenBucket::interval_refill) in different steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    pub(crate) permits: u64,
    pub(crate) period: Duration,
}

impl Rate {
    /// Creates a rate of `permits` per `period`. It is checked with the policy that uses it.
    #[must_use]
    pub const fn new(permits: u64, period: Duration) -> Self {
        Rate { permits, period }
    }

    /// Creates a rate of `permits` per second.
    #[must_use]
    pub const fn per_second(permits: u64) -> Self {
        Rate::new(permits, Duration::from_secs(1))
    }

    /// Parses text such as `"100/min"`, `"5/s"`, `"1/5s"` or `"5 per minute"`.
    ///
    /// The period is a duration (`"1h30m"`, `"10 seconds"`) or a single unit: `us`, `ms`, `s`, `min`, `h`, `day`, or a longer form
    /// such as `second`.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a rate.
    pub const fn parse(text: &str) -> Result<Self, InvalidPolicy> {
        match units::parse_rate(text) {
            Ok((permits, period)) => Ok(Rate { permits, period }),
            Err(problem) => Err(InvalidPolicy::new("rate", problem)),
        }
    }

    /// Returns the permits of one [`period`](Self::period).
    #[must_use]
    pub const fn permits(self) -> u64 {
        self.permits
    }

    /// Returns the time in which [`permits`](Self::permits) are granted.
    #[must_use]
    pub const fn period(self) -> Duration {
        self.period
    }

    /// Returns the same rate in the smallest numbers with a period of whole microseconds. For continuous refill `60/min` and
    /// `1/s` are the same.
    pub(crate) const fn reduced(self) -> Self {
        let micros = self.period.as_micros();
        if self.permits == 0 || micros > u64::MAX as u128 || micros * 1000 != self.period.as_nanos() {
            return self;
        }
        let (mut divisor, mut rest) = (self.permits, micros as u64);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Rate::new(self.permits / divisor, Duration::from_micros(micros as u64 / divisor))
    }

    /// Returns this rate divided by a number, rounded down, but at least the minimum rate of a policy.
    pub(crate) fn per_instance(self, by: u32) -> Self {
        let Rate { permits, period } = match self.period.checked_mul(by) {
            Some(period) => Rate { period, ..self },
            None => Rate { permits: self.permits / u64::from(by), ..self },
        };
        let slowest = Rate::new(1, MAX_PERIOD);
        let is_too_slow = period.as_nanos() > slowest.period.as_nanos() * u128::from(permits);
        if is_too_slow { slowest } else { Rate { permits, period } }
    }

    /// Returns the microseconds that this many permits take, rounded up, or `None` if they exceed what a policy covers.
    pub(crate) const fn micros_for(self, permits: u64) -> Option<u64> {
        match self.micros_up_to(permits, MAX_PERIOD_MICROS + 1) {
            micros if micros > MAX_PERIOD_MICROS => None,
            micros => Some(micros),
        }
    }

    /// Returns the same, or `most` if it is longer.
    pub(crate) const fn micros_up_to(self, permits: u64, most: u64) -> u64 {
        let Some(nanos) = self.period.as_nanos().checked_mul(permits as u128) else { return most };
        let micros = div_ceil(nanos, self.permits as u128 * 1000);
        if micros > most as u128 { most } else { micros as u64 }
    }

    /// Returns the microseconds that one permit takes.
    pub(crate) fn micros_per_permit(self) -> f64 {
        self.period.as_nanos() as f64 / 1000.0 / self.permits as f64
    }

    /// Returns the whole permits that refill in this many microseconds.
    pub(crate) const fn permits_in(self, micros: u64) -> u64 {
        let Some(permits) = (micros as u128 * 1000).checked_mul(self.permits as u128) else {
            return u64::MAX;
        };
        (permits / self.period.as_nanos()) as u64
    }

    /// Converts permits per second to the simplest ratio within a relative 10⁻¹² of this number: `0.1` is 1 per 10 s, and so is
    /// `0.3 - 0.2`.
    ///
    /// # Errors
    ///
    /// Fails if the number is zero, negative, infinite, NaN, below one per 3650 days, or above 10¹².
    pub const fn from_per_second(per_second: f64) -> Result<Self, InvalidPolicy> {
        let problem = if per_second.is_nan() {
            "is not a number; write permits per second (5.0) or \"100/min\""
        } else if per_second <= 0.0 {
            "is not above zero; write permits per second (5.0) or \"100/min\""
        } else if per_second.is_infinite() {
            "is infinite; write permits per second (5.0) or \"100/min\""
        } else if per_second < 3.1e-9 {
            "is too slow; the minimum is one permit per 3650 days"
        } else if per_second > 1e12 {
            "is too fast; the maximum is 1000000 per second, one permit per microsecond"
        } else {
            let (permits, seconds) = simplest_ratio(per_second);
            return Ok(Rate::new(permits, Duration::from_secs(seconds)));
        };
        Err(InvalidPolicy::new("rate", problem))
    }
}

impl TryFrom<f64> for Rate {
    type Error = InvalidPolicy;

    fn try_from(per_second: f64) -> Result<Self, InvalidPolicy> {
        Rate::from_per_second(per_second)
    }
}

/// Writes the rate as [`parse`](Rate::parse) reads it, such as `100/min`, if its period is a whole number of microseconds.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rate { permits, period } = *self;
        match units::write_rate(permits, period) {
            Some(text) => f.pad(&text),
            None => write!(f, "{permits}/{period:?}"),
        }
    }
}

impl FromStr for Rate {
    type Err = InvalidPolicy;

    fn from_str(text: &str) -> Result<Self, InvalidPolicy> {
        Rate::parse(text)
    }
}

/// Divides and rounds up, without a call where the numbers are small: policies with computed numbers do it at each call.
pub(crate) const fn div_ceil(dividend: u128, divisor: u128) -> u128 {
    if dividend <= u64::MAX as u128 && divisor <= u64::MAX as u128 {
        (dividend as u64).div_ceil(divisor as u64) as u128
    } else {
        dividend.div_ceil(divisor)
    }
}

/// Returns the fraction with the smallest numbers that differs from `number` by less than a relative 10⁻¹², which the rounding
/// errors of a computation stay far below. Expands both ends of the interval as continued fractions until an integer lies
/// between them. Exact for numbers from 1e-9 to 1e12: the denominators are at most 2^122, and the result is at most 2^40.
const fn simplest_ratio(number: f64) -> (u64, u64) {
    // The interval of a whole number has no other one in it.
    if number >= 1.0 && number as u64 as f64 == number {
        return (number as u64, 1);
    }
    const MANTISSA: u32 = 52;
    const PRECISION: u128 = 1_000_000_000_000;
    let bits = number.to_bits();
    let exponent = (bits >> MANTISSA) as i32 - 1075;
    let mantissa = ((bits & ((1 << MANTISSA) - 1)) | (1 << MANTISSA)) as u128;
    let denominator = PRECISION << -exponent;
    let mut low = (mantissa * (PRECISION - 1), denominator);
    let mut high = (mantissa * (PRECISION + 1), denominator);
    let (mut before, mut ratio) = ((0u128, 1u128), (1u128, 0u128));
    loop {
        let whole = low.0 / low.1;
        let integer_between = (whole + 1) * high.1 < high.0;
        let term = if integer_between { whole + 1 } else { whole };
        (before, ratio) = (ratio, (term * ratio.0 + before.0, term * ratio.1 + before.1));
        if integer_between {
            return (ratio.0 as u64, ratio.1 as u64);
        }
        (low, high) = ((high.1, high.0 - whole * high.1), (low.1, low.0 - whole * low.1));
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_becomes_simplest_ratio() {
        for (number, permits, seconds) in [
            (5.0, 5, 1),
            (0.1, 1, 10),
            (1.0 / 60.0, 1, 60),
            (100.0 / 60.0, 5, 3),
            (2.5, 5, 2),
            (1.0 / 3.0, 1, 3),
            (1.0, 1, 1),
            (0.5, 1, 2),
            (1e6, 1_000_000, 1),
            (1e12, 1_000_000_000_000, 1),
            (1.0 / 86_400.0, 1, 86_400),
            (1000.0 / 86_400.0, 5, 432),
            (0.1 + 0.2, 3, 10),
            (0.3 - 0.2, 1, 10),
            (1234.5678, 6_172_839, 5_000),
            (999_999_999_999.0, 999_999_999_999, 1),
        ] {
            assert_eq!(simplest_ratio(number), (permits, seconds), "{number}");
        }
    }

    #[test]
    fn ratio_is_close_to_float() {
        let mut number = 3.2e-9;
        while number < 1e12 {
            let (permits, seconds) = simplest_ratio(number);
            assert!((permits as f64 / seconds as f64 / number - 1.0).abs() < 1.001e-12, "{number}");
            number *= 1.003_7;
        }
    }

    #[test]
    fn rates_are_reduced() {
        for (text, reduced) in [
            ("60/min", "1/s"),
            ("100/min", "1/600ms"),
            ("7/s", "7/s"),
            ("1000000/s", "1/us"),
            ("0/s", "0/s"),
            ("5/0s", "1/0s"),
        ] {
            assert_eq!(Rate::parse(text).unwrap().reduced(), Rate::parse(reduced).unwrap(), "{text}");
        }
        let finer = Rate::new(10, Duration::from_nanos(5));
        assert_eq!(finer.reduced(), finer);
        let longest = Rate::new(u64::MAX, Duration::MAX);
        assert_eq!(longest.reduced(), longest);
    }

    #[test]
    fn invalid_floats_are_errors() {
        for number in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-10, 1e300, 5e-324] {
            assert!(Rate::from_per_second(number).is_err(), "{number}");
        }
    }
}
