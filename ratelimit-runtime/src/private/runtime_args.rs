//! Numbers that are evaluated in each call.

use std::time::Duration;

use super::Checked;
use crate::bounds::TOO_MANY;
use crate::error::invalid_policy::InvalidPolicy;
use crate::policy::{FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};
use crate::rate::Rate;
use crate::units;

/// A count of permits: any primitive integer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a count of permits",
    label = "this is not a count",
    note = "a count is any primitive integer"
)]
pub trait Count {
    /// The number; those beyond `i128` as its greatest, which is too large anyway.
    fn number(self) -> i128;
}

/// A rate: permits per second as an integer or a float, a string like `"100/min"`, or a `Rate`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a rate",
    label = "this is not a rate",
    note = "a rate is permits per second (an integer or a float), a string like \"100/min\", or a `ratelimits::Rate`"
)]
pub trait IntoRate {
    /// The rate.
    fn rate(self) -> Checked<Rate>;
}

/// A period: whole seconds as an integer, a string like `"1h30m"`, or a `Duration`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a duration",
    label = "this is not a duration",
    note = "a duration is a whole number of seconds, a string with units like \"1h30m\", or a `std::time::Duration`"
)]
pub trait Period {
    /// The duration.
    fn period(self) -> Checked<Duration>;
}

/// The length of a sub-window: a string like `"1s"`, or a `Duration`. An integer would not say its unit.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a duration with its unit",
    label = "this has no unit",
    note = "a precision is a string with units like \"1s\", or a `std::time::Duration`"
)]
pub trait Precision {
    /// The duration.
    fn precision(self) -> Checked<Duration>;
}

/// A burst: permits as an integer, or the time whose worth it is as a `Duration` or a string like `"5s"`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a burst",
    label = "this is not a burst",
    note = "a burst is a whole number of permits, or a time's worth of the rate: a `std::time::Duration` or a string like \"5s\""
)]
pub trait IntoBurst {
    /// The burst.
    fn burst(self) -> Checked<Burst>;
}

/// How much a bucket holds.
#[derive(Clone, Copy, Debug)]
pub enum Burst {
    /// So many permits.
    Permits(u64),
    /// So long a time's worth of its rate.
    For(Duration),
}

/// A count that is an argument of this name.
pub fn count(argument: &'static str, value: impl Count) -> Checked<u64> {
    checked_count(argument, value.number())
}

/// A rate that is an argument of this name.
pub fn rate(argument: &'static str, value: impl IntoRate) -> Checked<Rate> {
    value.rate().map_err(|invalid| invalid.with_argument(argument))
}

/// A period that is an argument of this name.
pub fn period(argument: &'static str, value: impl Period) -> Checked<Duration> {
    value.period().map_err(|invalid| invalid.with_argument(argument))
}

/// A precision that is an argument of this name.
pub fn precision(argument: &'static str, value: impl Precision) -> Checked<Duration> {
    value.precision().map_err(|invalid| invalid.with_argument(argument))
}

/// A burst.
pub fn burst(value: impl IntoBurst) -> Checked<Burst> {
    value.burst()
}

/// How a token bucket refills, and what it lets a call take.
#[derive(Clone, Copy, Debug)]
pub enum Refill {
    /// Continuously.
    Continuous,
    /// At intervals.
    Interval,
    /// Continuously, and a call may borrow.
    Borrow,
    /// As one that warms up for so long.
    Warmup(Checked<Duration>),
}

/// How long a call may wait: a string like `"200ms"`, or `"forever"`, or a `Duration`. An integer would not say its unit.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a duration with its unit",
    label = "this has no unit",
    note = "a timeout is a string with units like \"200ms\", or \"forever\", or a `std::time::Duration`"
)]
pub trait Timeout {
    /// The duration.
    fn timeout(self) -> Checked<Duration>;
}

/// A timeout.
pub fn timeout(value: impl Timeout) -> Checked<Duration> {
    value.timeout().map_err(|invalid| invalid.with_argument("timeout"))
}

/// A token bucket of these numbers.
pub fn token_bucket(rate: Checked<Rate>, burst: Option<Checked<Burst>>, refill: Refill) -> Checked<Policy> {
    let mut bucket = TokenBucket::new(rate?);
    bucket = match refill {
        Refill::Continuous => bucket,
        Refill::Interval => bucket.interval_refill(),
        Refill::Borrow => bucket.borrow(),
        Refill::Warmup(period) => bucket.warmup(period?),
    };
    bucket = match burst.transpose()? {
        Some(Burst::Permits(permits)) => bucket.burst(permits),
        Some(Burst::For(time)) => bucket.burst_for(time),
        None => bucket,
    };
    Ok(bucket.into())
}

/// A fixed window of these numbers.
pub fn fixed_window(limit: Checked<u64>, period: Checked<Duration>, aligned: bool) -> Checked<Policy> {
    let window = FixedWindow::new(limit?, period?);
    Ok(if aligned { window.aligned() } else { window }.into())
}

/// A leaky bucket of these numbers.
pub fn leaky_bucket(capacity: Checked<u64>, leak_rate: Checked<Rate>, queue: bool) -> Checked<Policy> {
    let bucket = LeakyBucket::new(capacity?, leak_rate?);
    Ok(if queue { bucket.queue() } else { bucket }.into())
}

/// A leaky bucket of these numbers.
pub fn leaky_bucket_draining(
    capacity: Checked<u64>,
    drain: Checked<Duration>,
    queue: bool,
) -> Checked<Policy> {
    let bucket = LeakyBucket::draining(capacity?, drain?);
    Ok(if queue { bucket.queue() } else { bucket }.into())
}

/// A sliding window of these numbers.
pub fn sliding_window(
    limit: Checked<u64>,
    period: Checked<Duration>,
    precision: Option<Checked<Duration>>,
) -> Checked<Policy> {
    let window = SlidingWindow::new(limit?, period?);
    Ok(match precision.transpose()? {
        Some(precision) => window.precision(precision),
        None => window,
    }
    .into())
}

pub(super) const fn checked_count(argument: &'static str, value: i128) -> Checked<u64> {
    whole(argument, value, "is negative; write a whole number above zero")
}

pub(super) const fn checked_rate(argument: &'static str, per_second: i128) -> Checked<Rate> {
    const NEGATIVE: &str = "is negative; write permits per second above zero (5.0) or \"1/min\"";
    match whole(argument, per_second, NEGATIVE) {
        Ok(permits) => Ok(Rate::per_second(permits)),
        Err(invalid) => Err(invalid),
    }
}

const fn whole(argument: &'static str, value: i128, negative: &'static str) -> Checked<u64> {
    let problem = if value < 0 {
        negative
    } else if value > u64::MAX as i128 {
        TOO_MANY
    } else {
        return Ok(value as u64);
    };
    Err(InvalidPolicy::new(argument, problem))
}

// References too: an argument that is taken apart is borrowed while its call is decided.
macro_rules! borrowed {
    ($trait:ident::$method:ident -> $output:ty: $type:ty) => {
        #[diagnostic::do_not_recommend]
        impl $trait for &$type {
            fn $method(self) -> $output {
                (*self).$method()
            }
        }
    };
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl Count for $integer {
            fn number(self) -> i128 {
                i128::try_from(self).unwrap_or(i128::MAX)
            }
        }

        impl IntoRate for $integer {
            fn rate(self) -> Checked<Rate> {
                checked_rate("rate", self.number())
            }
        }

        impl Period for $integer {
            fn period(self) -> Checked<Duration> {
                Ok(Duration::from_secs(checked_count("period", self.number())?))
            }
        }

        impl IntoBurst for $integer {
            fn burst(self) -> Checked<Burst> {
                Ok(Burst::Permits(checked_count("burst", self.number())?))
            }
        }

        borrowed!(Count::number -> i128: $integer);
        borrowed!(IntoRate::rate -> Checked<Rate>: $integer);
        borrowed!(Period::period -> Checked<Duration>: $integer);
        borrowed!(IntoBurst::burst -> Checked<Burst>: $integer);
    )*};
}
integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

macro_rules! rates {
    ($($type:ty: |$value:ident| $rate:expr;)*) => {$(
        impl IntoRate for $type {
            fn rate(self) -> Checked<Rate> {
                let $value = self;
                $rate
            }
        }
    )*};
}
rates! {
    f64: |value| Rate::from_per_second(value);
    f32: |value| Rate::from_per_second(value.into());
    &str: |value| Rate::parse(value);
    &String: |value| Rate::parse(value);
    String: |value| Rate::parse(&value);
    Rate: |value| Ok(value);
}
borrowed!(IntoRate::rate -> Checked<Rate>: f64);
borrowed!(IntoRate::rate -> Checked<Rate>: f32);
borrowed!(IntoRate::rate -> Checked<Rate>: &str);
borrowed!(IntoRate::rate -> Checked<Rate>: Rate);

macro_rules! durations {
    ($($type:ty: |$value:ident| $duration:expr, $timeout:expr;)*) => {$(
        impl Period for $type {
            fn period(self) -> Checked<Duration> {
                let $value = self;
                $duration
            }
        }

        impl Precision for $type {
            fn precision(self) -> Checked<Duration> {
                self.period()
            }
        }

        impl Timeout for $type {
            fn timeout(self) -> Checked<Duration> {
                let $value = self;
                $timeout
            }
        }

        impl IntoBurst for $type {
            fn burst(self) -> Checked<Burst> {
                Ok(Burst::For(self.period().map_err(|invalid| invalid.with_argument("burst"))?))
            }
        }
    )*};
}
durations! {
    &str: |value| parse_duration(value), parse_timeout(value);
    &&str: |value| parse_duration(value), parse_timeout(value);
    &String: |value| parse_duration(value), parse_timeout(value);
    String: |value| parse_duration(&value), parse_timeout(&value);
    Duration: |value| Ok(value), Ok(value);
    &Duration: |value| Ok(*value), Ok(*value);
}

fn parse_duration(text: &str) -> Checked<Duration> {
    units::parse_duration(text).map_err(|problem| InvalidPolicy::new("period", problem))
}

fn parse_timeout(text: &str) -> Checked<Duration> {
    units::parse_timeout(text).map_err(|problem| InvalidPolicy::new("timeout", problem))
}
