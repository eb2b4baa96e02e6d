//! The numbers of policies by the names of the attributes' arguments.

use std::time::Duration;

use ratelimit_syntax::AttributeKind;

use super::attribute_kind::not_a_number;
use super::leaky_bucket::Leak;
use super::numbers::{count_of, rate_of};
use super::{ConcurrencyLimit, FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};
use crate::base::calendar::{CalendarPeriod, Zone};
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
    /// Returns a policy of this attribute with the options that are set, whose numbers are still to be set by
    /// [`with_argument`](Self::with_argument).
    #[doc(hidden)]
    #[must_use]
    pub fn with_options(attribute: AttributeKind, is_set: impl Fn(&str) -> bool) -> Self {
        const SECOND: Duration = Duration::from_secs(1);
        match attribute {
            AttributeKind::Rate => TokenBucket {
                interval_refill: is_set("refill"),
                borrow: is_set("borrow"),
                warmup: is_set("warmup").then_some(SECOND),
                ..TokenBucket::per_second(1)
            }
            .into(),
            AttributeKind::Count => {
                let window = FixedWindow::new(1, SECOND);
                if is_set("aligned") { window.aligned() } else { window }.into()
            }
            AttributeKind::Funnel => {
                LeakyBucket { queue: is_set("queue"), ..LeakyBucket::new(1, Rate::per_second(1)) }.into()
            }
            AttributeKind::Window => SlidingWindow {
                precision: is_set("precision").then_some(SECOND / 2),
                ..SlidingWindow::new(1, SECOND)
            }
            .into(),
            AttributeKind::Concurrency => ConcurrencyLimit::new(1).into(),
        }
    }

    /// Returns the first number that a policy of this attribute needs and has not.
    #[doc(hidden)]
    #[must_use]
    pub fn missing(attribute: AttributeKind, is_set: impl Fn(&str) -> bool) -> Option<&'static str> {
        attribute.positional().iter().copied().find(|name| match *name {
            "burst" => false,
            "leak_rate" => !is_set("leak_rate") && !is_set("drain"),
            name => !is_set(name),
        })
    }

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
        let attribute = self.algorithm().attribute();
        if !attribute.numbers().contains(&argument) {
            return Err(not_a_number(attribute, argument));
        }
        self.with_number(Number::new(argument, value)?)
    }

    /// Sets the time zone of a calendar, once all numbers are set.
    ///
    /// # Errors
    ///
    /// Fails if there is no such zone, or no calendar.
    #[doc(hidden)]
    pub fn with_zone(self, zone: ArgumentValue<'_>) -> Result<Self, InvalidPolicy> {
        let ArgumentValue::Text(name) = zone else { return Err(InvalidPolicy::new("zone", NOT_A_ZONE)) };
        match self {
            Policy::FixedWindow(window) => Ok(window.in_zone(Zone::named(name)?)?.into()),
            _ => Err(not_a_number(self.algorithm().attribute(), "zone")),
        }
    }

    /// Replaces a number of the policy, as [`with_argument`](Self::with_argument) does.
    ///
    /// # Errors
    ///
    /// Fails if this algorithm has no such number, or this policy needs another value of it.
    pub(crate) fn with_number(self, number: Number) -> Result<Self, InvalidPolicy> {
        let Number { argument, value } = number;
        let mut changed = self;
        match (&mut changed, argument, value) {
            (Policy::TokenBucket(bucket), "rate", NumberValue::Rate { has_period: false, .. })
                if bucket.interval_refill =>
            {
                return Err(InvalidPolicy::new("rate", NO_REFILL_PERIOD));
            }
            (Policy::TokenBucket(bucket), "rate", NumberValue::Rate { rate, .. }) => bucket.rate = rate,
            (Policy::TokenBucket(bucket), "burst", NumberValue::Count(permits)) => {
                *bucket = bucket.burst(permits);
            }
            (Policy::TokenBucket(bucket), "burst", NumberValue::Duration(time)) => {
                *bucket = bucket.burst_for(time);
            }
            (Policy::TokenBucket(bucket), "warmup", _) if bucket.warmup.is_none() => {
                return Err(InvalidPolicy::new("warmup", NO_WARMUP));
            }
            (Policy::TokenBucket(bucket), "warmup", NumberValue::Duration(warmup)) => {
                bucket.warmup = Some(warmup);
            }
            (Policy::FixedWindow(window), "limit", NumberValue::Count(limit)) => window.limit = limit,
            (Policy::FixedWindow(window), "period", NumberValue::Duration(period)) => {
                window.set_period(period)
            }
            (Policy::FixedWindow(window), "period", NumberValue::Calendar(period)) => {
                window.set_calendar(period)?;
            }
            (_, "period", NumberValue::Calendar(_)) => {
                return Err(InvalidPolicy::new("period", NO_CALENDAR));
            }
            (Policy::LeakyBucket(bucket), "capacity", NumberValue::Count(capacity)) => {
                bucket.capacity = capacity;
            }
            (Policy::LeakyBucket(bucket), "leak_rate", NumberValue::Rate { rate, .. }) => {
                bucket.leak = Leak::Rate(rate);
            }
            (Policy::LeakyBucket(bucket), "drain", NumberValue::Duration(drain)) => {
                bucket.leak = Leak::Drain(drain);
            }
            (Policy::SlidingWindow(window), "limit", NumberValue::Count(limit)) => window.limit = limit,
            (Policy::SlidingWindow(window), "period", NumberValue::Duration(period)) => {
                window.period = period
            }
            (Policy::SlidingWindow(window), "precision", _) if window.precision.is_none() => {
                return Err(InvalidPolicy::new("precision", NO_PRECISION));
            }
            (Policy::SlidingWindow(window), "precision", NumberValue::Duration(precision)) => {
                window.precision = Some(precision);
            }
            (Policy::ConcurrencyLimit(limit), "max", NumberValue::Count(max)) => limit.max = max,
            _ => return Err(not_a_number(self.algorithm().attribute(), argument)),
        }
        Ok(changed)
    }
}

/// A number of a policy: the name of the argument, and its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    argument: &'static str,
    value: NumberValue,
}

#[derive(Clone, Copy, Debug)]
enum NumberValue {
    Count(u64),
    Rate {
        rate: Rate,
        /// Whether it says its period, as `"100/min"` does.
        has_period: bool,
    },
    Duration(Duration),
    /// The days, weeks, months or years of a calendar.
    Calendar(CalendarPeriod),
}

impl Number {
    /// Returns the number that an argument of this name and value is.
    ///
    /// # Errors
    ///
    /// Fails if the value is not what the attributes take, or no attribute has such a number.
    pub(crate) fn new(argument: &str, value: ArgumentValue<'_>) -> Result<Self, InvalidPolicy> {
        let (argument, value) = match argument {
            "rate" => ("rate", value.rate("rate")?),
            "burst" => ("burst", value.burst()?),
            "warmup" => ("warmup", value.period("warmup")?),
            "limit" => ("limit", value.count("limit")?),
            "period" => ("period", value.window_period()?),
            "capacity" => ("capacity", value.count("capacity")?),
            "leak_rate" => ("leak_rate", value.rate("leak_rate")?),
            "drain" => ("drain", value.period("drain")?),
            "precision" => ("precision", value.precision("precision")?),
            "max" => ("max", value.count("max")?),
            _ => return Err(InvalidPolicy::new("policy", "has no number of this name")),
        };
        Ok(Number { argument, value })
    }
}

const NOT_A_ZONE: &str = "is the name of a time zone; write \"Europe/Berlin\"";
const NO_CALENDAR: &str = "is a calendar window, which only `count_limit` has; write a duration, like \"1d\"";
const NO_REFILL_PERIOD: &str = "needs a period with `refill = interval`; write \"100/min\"";
const NO_WARMUP: &str = "cannot be added by changing numbers, because the bucket does not warm up";
const NO_PRECISION: &str = "cannot be added by changing numbers, because the window is an exact log";
const NOT_A_COUNT: &str = "is a whole number of permits; write it without quotes and fraction, like 10";
const NOT_A_PERIOD: &str = "is a whole number of seconds or a string; write 60 or \"500ms\"";
const NOT_A_PRECISION: &str = "needs a unit; write \"1s\"";
const NOT_A_BURST: &str = "is a whole number of permits or a duration; write 10 or \"5s\"";

impl ArgumentValue<'_> {
    fn count(self, argument: &'static str) -> Result<NumberValue, InvalidPolicy> {
        match self {
            ArgumentValue::Integer(count) => Ok(NumberValue::Count(count_of(argument, count)?)),
            _ => Err(InvalidPolicy::new(argument, NOT_A_COUNT)),
        }
    }

    fn rate(self, argument: &'static str) -> Result<NumberValue, InvalidPolicy> {
        let rate = match self {
            ArgumentValue::Integer(per_second) => rate_of(argument, per_second),
            ArgumentValue::Float(per_second) => Rate::from_per_second(per_second),
            ArgumentValue::Text(text) => Rate::parse(text),
        };
        let rate = rate.map_err(|invalid| invalid.with_argument(argument))?;
        Ok(NumberValue::Rate { rate, has_period: matches!(self, ArgumentValue::Text(_)) })
    }

    fn period(self, argument: &'static str) -> Result<NumberValue, InvalidPolicy> {
        let period = match self {
            ArgumentValue::Integer(seconds) => Duration::from_secs(count_of(argument, seconds)?),
            ArgumentValue::Float(_) => return Err(InvalidPolicy::new(argument, NOT_A_PERIOD)),
            ArgumentValue::Text(text) => {
                units::parse_duration(text).map_err(|problem| InvalidPolicy::new(argument, problem))?
            }
        };
        Ok(NumberValue::Duration(period))
    }

    fn window_period(self) -> Result<NumberValue, InvalidPolicy> {
        if let ArgumentValue::Text(text) = self
            && let Some(period) = CalendarPeriod::named(text)?
        {
            return Ok(NumberValue::Calendar(period));
        }
        self.period("period")
    }

    fn precision(self, argument: &'static str) -> Result<NumberValue, InvalidPolicy> {
        match self {
            ArgumentValue::Text(_) => self.period(argument),
            _ => Err(InvalidPolicy::new(argument, NOT_A_PRECISION)),
        }
    }

    fn burst(self) -> Result<NumberValue, InvalidPolicy> {
        match self {
            ArgumentValue::Integer(_) => self.count("burst"),
            ArgumentValue::Text(text) if !text.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.period("burst")
            }
            _ => Err(InvalidPolicy::new("burst", NOT_A_BURST)),
        }
    }
}

#[cfg(test)]
mod tests;
