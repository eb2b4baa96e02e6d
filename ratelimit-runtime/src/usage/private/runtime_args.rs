//! Numbers that are evaluated on every call.

use std::time::Duration;

use ratelimit_syntax::CALENDAR_PERIODS;

use super::Checked;
use crate::base::calendar::Zone;
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::rate::Rate;
use crate::base::units;
use crate::policy::numbers::{cost_of, count_of, rate_of};
use crate::policy::{Policy, TokenBucket};

/// A count of permits: any primitive integer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a count of permits",
    label = "not a count",
    note = "a count is any primitive integer"
)]
pub trait Count {
    /// Returns the number. One above `i128::MAX` becomes that, which is too large anyway.
    fn number(self) -> i128;
}

/// A rate: permits per second as an integer or a float, a string like `"100/min"`, or a `Rate`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a rate",
    label = "not a rate",
    note = "a rate is a number of permits per second, a string like \"100/min\", or a `ratelimits::Rate`"
)]
pub trait IntoRate {
    /// Returns the rate.
    fn rate(self) -> Checked<Rate>;
}

/// A period: whole seconds as an integer, a string like `"1h30m"`, or a `Duration`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a duration",
    label = "not a duration",
    note = "a duration is a whole number of seconds, a string with units like \"1h30m\", or a `std::time::Duration`"
)]
pub trait Period {
    /// Returns the duration.
    fn period(self) -> Checked<Duration>;
}

/// The length of a sub-window: a string like `"1s"`, or a `Duration`. An integer would have no unit.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a duration with a unit",
    label = "no unit",
    note = "a precision is a string with units like \"1s\", or a `std::time::Duration`"
)]
pub trait Precision {
    /// Returns the duration.
    fn precision(self) -> Checked<Duration>;
}

/// A burst: permits as an integer, or a `Duration` or string like `"5s"`, which stands for what the rate gives in that time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a burst",
    label = "not a burst",
    note = "a burst is a whole number of permits, or a duration's worth of the rate: a `std::time::Duration` or a string like \"5s\""
)]
pub trait IntoBurst {
    /// Returns the burst.
    fn burst(self) -> Checked<Burst>;
}

/// The size of a token bucket.
#[derive(Clone, Copy, Debug)]
pub enum Burst {
    /// A number of permits.
    Permits(u64),
    /// What the rate gives in this time.
    For(Duration),
}

impl Burst {
    /// Sets the burst of a bucket.
    #[must_use]
    pub const fn set(self, bucket: TokenBucket) -> TokenBucket {
        match self {
            Burst::Permits(permits) => bucket.burst(permits),
            Burst::For(time) => bucket.burst_for(time),
        }
    }
}

const COMPUTED_CALENDAR: &str = "is a calendar window, which cannot be computed for each call; write period = \"month\" in the attribute, for example";

/// Returns the count of permits that the argument is.
pub fn count(argument: &'static str, value: impl Count) -> Checked<u64> {
    count_of(argument, value.number())
}

/// Returns the permits of a call that the argument is, which may be none.
pub fn cost(argument: &'static str, value: impl Count) -> Checked<u64> {
    cost_of(argument, value.number())
}

/// Returns the estimate of what a call will use that the argument is. One of 0 needs a free permit all the same, or no debt would ever
/// refuse it.
pub fn estimate(argument: &'static str, value: impl Count) -> Checked<u64> {
    cost(argument, value).map(|cost| cost.max(1))
}

/// Returns the rate that the argument is.
pub fn rate(argument: &'static str, value: impl IntoRate) -> Checked<Rate> {
    value.rate().map_err(|invalid| invalid.with_argument(argument))
}

/// Returns the period that the argument is.
pub fn period(argument: &'static str, value: impl Period) -> Checked<Duration> {
    value.period().map_err(|invalid| invalid.with_argument(argument))
}

/// The name of a time zone: a string.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the name of a time zone",
    label = "not a string",
    note = "a zone is a string like \"Europe/Berlin\""
)]
pub trait ZoneName {
    /// Returns the name.
    fn name(&self) -> &str;
}

#[diagnostic::do_not_recommend]
impl<T: AsRef<str> + ?Sized> ZoneName for T {
    fn name(&self) -> &str {
        self.as_ref()
    }
}

/// Returns the time zone that the argument names.
pub fn zone(_argument: &'static str, name: &(impl ZoneName + ?Sized)) -> Checked<Zone> {
    Zone::named(name.name())
}

/// Returns the precision that the argument is.
pub fn precision(argument: &'static str, value: impl Precision) -> Checked<Duration> {
    value.precision().map_err(|invalid| invalid.with_argument(argument))
}

/// Returns the burst that the argument is.
pub fn burst(argument: &'static str, value: impl IntoBurst) -> Checked<Burst> {
    value.burst().map_err(|invalid| invalid.with_argument(argument))
}

/// A maximum wait: a string like `"200ms"`, `"forever"`, or a `Duration`. An integer would have no unit.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a duration with a unit",
    label = "no unit",
    note = "a timeout is a string with units like \"200ms\", the string \"forever\", or a `std::time::Duration`"
)]
pub trait Timeout {
    /// Returns the duration.
    fn timeout(self) -> Checked<Duration>;
}

/// Returns the maximum wait that the argument is.
pub fn timeout(argument: &'static str, value: impl Timeout) -> Checked<Duration> {
    value.timeout().map_err(|invalid| invalid.with_argument(argument))
}

/// Builds a policy from computed numbers, in a closure that the first invalid one leaves with `?`.
pub fn policy(build: impl FnOnce() -> Checked<Policy>) -> Checked<Policy> {
    build()
}

// References too: a destructured argument is borrowed during the decision.
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
                rate_of("rate", self.number())
            }
        }

        impl Period for $integer {
            fn period(self) -> Checked<Duration> {
                Ok(Duration::from_secs(count_of("period", self.number())?))
            }
        }

        impl IntoBurst for $integer {
            fn burst(self) -> Checked<Burst> {
                Ok(Burst::Permits(count_of("burst", self.number())?))
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
                Ok(Burst::For(self.period()?))
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
    if CALENDAR_PERIODS.contains(&text) {
        return Err(InvalidPolicy::new("period", COMPUTED_CALENDAR));
    }
    units::parse_duration(text).map_err(|problem| InvalidPolicy::new("period", problem))
}

fn parse_timeout(text: &str) -> Checked<Duration> {
    units::parse_timeout(text).map_err(|problem| InvalidPolicy::new("timeout", problem))
}
