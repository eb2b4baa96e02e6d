//! Checks of the numbers of policies, and their conversion to the units that the algorithms count in.

use std::time::Duration;

use crate::algorithm::AlgorithmSpec;
use crate::base::bounds::{MAX_PERIOD, MAX_PERMITS, TOO_MANY};
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::rate::{Rate, div_ceil};

/// The maximum period of a rate in nanoseconds. With it, every product here stays below 2^128.
const MAX_RATE_PERIOD: u128 = 10_000_000_000_000 * 1_000_000_000;

pub(super) const ZERO_RATE: &str =
    "is 0, which admits nothing; write permits per second above zero (5.0) or \"1/min\"";

/// The `?` operator for `const fn`.
macro_rules! tri {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Err(error),
        }
    };
}
pub(super) use tri;

pub(super) const fn is_valid(spec: Result<AlgorithmSpec, InvalidPolicy>) -> Result<(), InvalidPolicy> {
    tri!(spec);
    Ok(())
}

pub(super) const fn checked_count(count: u64, argument: &'static str) -> Result<u64, InvalidPolicy> {
    if count == 0 {
        Err(InvalidPolicy::new(argument, "is 0, which admits nothing; write at least 1"))
    } else if count > MAX_PERMITS {
        Err(InvalidPolicy::new(argument, TOO_MANY))
    } else {
        Ok(count)
    }
}

/// Returns an integer as a count of permits.
pub(crate) const fn count_of(argument: &'static str, value: i128) -> Result<u64, InvalidPolicy> {
    whole(argument, value, "is negative; write a positive whole number")
}

/// Returns an integer as the permits of a call, which may be none.
pub(crate) const fn cost_of(argument: &'static str, value: i128) -> Result<u64, InvalidPolicy> {
    whole(argument, value, "is negative; write a whole number, 0 or above")
}

/// Returns an integer of permits per second as a rate.
pub(crate) const fn rate_of(argument: &'static str, per_second: i128) -> Result<Rate, InvalidPolicy> {
    const NEGATIVE: &str = "is negative; write permits per second (5.0) or \"1/min\"";
    Ok(Rate::per_second(tri!(whole(argument, per_second, NEGATIVE))))
}

const fn whole(argument: &'static str, value: i128, negative: &'static str) -> Result<u64, InvalidPolicy> {
    let problem = if value < 0 {
        negative
    } else if value > u64::MAX as i128 {
        TOO_MANY
    } else {
        return Ok(value as u64);
    };
    Err(InvalidPolicy::new(argument, problem))
}

/// Returns the period in microseconds.
pub(super) const fn checked_period(period: Duration, argument: &'static str) -> Result<u64, InvalidPolicy> {
    let (seconds, nanos) = (period.as_secs(), period.subsec_nanos());
    let problem = if period.is_zero() {
        "is zero; write a duration above zero, like \"1m\""
    } else if seconds > MAX_PERIOD.as_secs() || seconds == MAX_PERIOD.as_secs() && nanos > 0 {
        "is too long; the maximum is 3650 days"
    } else if !nanos.is_multiple_of(1000) {
        "is not a whole number of microseconds"
    } else {
        return Ok(seconds * 1_000_000 + nanos as u64 / 1000);
    };
    Err(InvalidPolicy::new(argument, problem))
}

/// Returns the microseconds in which one permit refills, rounded up.
pub(super) const fn checked_interval(rate: Rate, argument: &'static str) -> Result<u64, InvalidPolicy> {
    if rate.permits == 0 {
        return Err(InvalidPolicy::new(argument, ZERO_RATE));
    }
    let permits = tri!(checked_count(rate.permits, argument)) as u128 * 1000;
    let nanos = rate.period.as_nanos();
    let interval = if nanos > MAX_RATE_PERIOD { 0 } else { div_ceil(nanos, permits) };
    let problem = if nanos == 0 {
        "has a period of zero; write a period above zero, like \"100/min\""
    } else if nanos > MAX_RATE_PERIOD {
        "has a period that is too long"
    } else if interval > MAX_PERIOD.as_micros() {
        "is too slow; the minimum is one permit per 3650 days"
    } else if 100 * (interval * permits - nanos) > interval * permits {
        "is too fast: a permit takes a whole number of microseconds, and rounding it up would lose over 1 % of the rate; \
         write at most 10000 per second, or a rate without rounding, like 20000, 50000 or 1000000 per second"
    } else {
        return Ok(interval as u64);
    };
    Err(InvalidPolicy::new(argument, problem))
}

/// Returns a bucket's time from empty to full in microseconds.
pub(super) const fn checked_capacity(capacity: u128, argument: &'static str) -> Result<u64, InvalidPolicy> {
    if capacity > MAX_PERIOD.as_micros() {
        Err(InvalidPolicy::new(
            argument,
            "is too large for the rate; filling the bucket would take over 3650 days",
        ))
    } else {
        Ok(capacity as u64)
    }
}

/// Returns what the rate refills in this time, but at least one permit, in microseconds of refill.
pub(super) const fn refill_in(rate: Rate, interval: u64, time: Duration) -> u128 {
    if time.as_nanos() > MAX_PERIOD.as_nanos() {
        return u128::MAX;
    }
    let nanos = rate.period.as_nanos();
    let permits = time.as_nanos() * rate.permits as u128;
    let micros = permits / nanos * interval as u128 + permits % nanos * interval as u128 / nanos;
    if micros < interval as u128 { interval as u128 } else { micros }
}
