//! What numbers a policy can have, in the units that the algorithms count in.

use std::time::Duration;

use crate::bounds::{LONGEST, MOST, TOO_MANY};
use crate::error::invalid_policy::InvalidPolicy;
use crate::rate::Rate;

/// The longest period of a rate in nanoseconds: with it, every product here stays below 2^128.
const LONGEST_RATIO: u128 = 10_000_000_000_000 * 1_000_000_000;

pub(super) const ZERO_RATE: &str =
    "is 0, which admits nothing; write permits per second above zero (5.0) or \"1/min\"";

pub(super) const fn checked_count(count: u64, argument: &'static str) -> Result<u64, InvalidPolicy> {
    if count == 0 {
        Err(InvalidPolicy::new(argument, "is 0, which admits nothing; write at least 1"))
    } else if count > MOST {
        Err(InvalidPolicy::new(argument, TOO_MANY))
    } else {
        Ok(count)
    }
}

/// The period in microseconds.
pub(super) const fn checked_period(period: Duration, argument: &'static str) -> Result<u64, InvalidPolicy> {
    let nanos = period.as_nanos();
    let problem = if nanos == 0 {
        "has no length; write a time above zero, like \"1m\""
    } else if nanos > LONGEST.as_nanos() {
        "is too long; a policy covers at most 3650 days"
    } else if !nanos.is_multiple_of(1000) {
        "is not a whole number of microseconds, in which time is counted"
    } else {
        return Ok((nanos / 1000) as u64);
    };
    Err(InvalidPolicy::new(argument, problem))
}

/// The microseconds that one permit takes, rounded up.
pub(super) const fn interval(rate: Rate, argument: &'static str) -> Result<u64, InvalidPolicy> {
    if rate.permits == 0 {
        return Err(InvalidPolicy::new(argument, ZERO_RATE));
    }
    let permits = match checked_count(rate.permits, argument) {
        Ok(permits) => permits as u128 * 1000,
        Err(invalid) => return Err(invalid),
    };
    let nanos = rate.period.as_nanos();
    let interval = if nanos > LONGEST_RATIO { 0 } else { nanos.div_ceil(permits) };
    let problem = if nanos == 0 {
        "has a period of no length; write a time above zero, like \"100/min\""
    } else if nanos > LONGEST_RATIO {
        "has a period that is too long"
    } else if interval > LONGEST.as_micros() {
        "is too slow; the slowest is one permit in 3650 days"
    } else if 100 * (interval * permits - nanos) > interval * permits {
        "is too fast to keep: a permit takes whole microseconds, and rounding them up would lose over 1 % of it; \
         write at most 10000 per second, or a rate whose permits take whole microseconds, like 20000, 50000 or 1000000"
    } else {
        return Ok(interval as u64);
    };
    Err(InvalidPolicy::new(argument, problem))
}

/// What the rate gives in a time, at least one permit, in microseconds of refill.
pub(super) const fn worth(rate: Rate, interval: u64, time: Duration) -> u128 {
    if time.as_nanos() > LONGEST.as_nanos() {
        return u128::MAX;
    }
    let nanos = rate.period.as_nanos();
    let permits = time.as_nanos() * rate.permits as u128;
    let worth = permits / nanos * interval as u128 + permits % nanos * interval as u128 / nanos;
    if worth < interval as u128 { interval as u128 } else { worth }
}

/// A bucket's time from empty to full in microseconds.
pub(super) const fn fits(capacity: u128, argument: &'static str) -> Result<u64, InvalidPolicy> {
    if capacity > LONGEST.as_micros() {
        Err(InvalidPolicy::new(
            argument,
            "is too large for the rate; from empty to full takes over 3650 days",
        ))
    } else {
        Ok(capacity as u64)
    }
}
