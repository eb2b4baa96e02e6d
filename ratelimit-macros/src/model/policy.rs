//! The algorithm of an attribute and its numbers.

use ratelimit_syntax::expr::{literal, word};
use ratelimit_syntax::{AttributeKind, CALENDAR_PERIODS};
use syn::LitStr;

use crate::args::Args;
use crate::errors::Errors;
use crate::number::{Form, Number, Unit};

/// An algorithm and its numbers.
pub(crate) enum Policy {
    TokenBucket {
        rate: Number,
        burst: Option<Number>,
        refill: Refill,
    },
    FixedWindow {
        limit: Number,
        period: Number,
        aligned: bool,
    },
    /// The period is one of [`CALENDAR_PERIODS`](ratelimit_syntax::CALENDAR_PERIODS).
    CalendarWindow {
        limit: Number,
        period: LitStr,
        zone: Option<Number>,
    },
    LeakyBucket {
        capacity: Number,
        leak: Number,
        queue: bool,
    },
    SlidingWindow {
        limit: Number,
        period: Number,
        precision: Option<Number>,
    },
    ConcurrencyLimit {
        max: Number,
    },
}

/// How a token bucket refills, and what it lets a call take.
pub(crate) enum Refill {
    Continuous,
    Interval,
    /// Continuously, and calls may borrow.
    Borrow,
    /// The same, with a warm-up of this length.
    Warmup(Number),
}

impl Policy {
    /// Returns the name of the algorithm with its options.
    pub(crate) fn variant(&self) -> &'static str {
        match self {
            Policy::TokenBucket { refill, .. } => match refill {
                Refill::Continuous => "token bucket",
                Refill::Interval => "token bucket with interval refill",
                Refill::Borrow => "borrowing token bucket",
                Refill::Warmup(_) => "warming-up token bucket",
            },
            Policy::FixedWindow { aligned: false, .. } => "fixed window",
            Policy::FixedWindow { aligned: true, .. } => "aligned fixed window",
            Policy::CalendarWindow { .. } => "calendar window",
            Policy::LeakyBucket { queue: false, .. } => "leaky bucket",
            Policy::LeakyBucket { queue: true, .. } => "leaky bucket queue",
            Policy::SlidingWindow { precision: None, .. } => "sliding window log",
            Policy::SlidingWindow { precision: Some(_), .. } => "sliding window counter",
            Policy::ConcurrencyLimit { .. } => "concurrency limit",
        }
    }

    /// Returns the numbers in the order in which they are evaluated.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &Number> {
        let numbers = match self {
            Policy::TokenBucket { rate, burst, refill } => [Some(rate), burst.as_ref(), refill.warmup()],
            Policy::FixedWindow { limit, period, .. } => [Some(limit), Some(period), None],
            Policy::CalendarWindow { limit, zone, .. } => [Some(limit), zone.as_ref(), None],
            Policy::LeakyBucket { capacity, leak, .. } => [Some(capacity), Some(leak), None],
            Policy::SlidingWindow { limit, period, precision } => {
                [Some(limit), Some(period), precision.as_ref()]
            }
            Policy::ConcurrencyLimit { max } => [Some(max), None, None],
        };
        numbers.into_iter().flatten()
    }

    /// Returns the numbers in an order in which the validity of each depends only on those before it.
    pub(crate) fn numbers_by_dependency(&self) -> Vec<&Number> {
        let mut numbers: Vec<_> = self.numbers().collect();
        if matches!(self, Policy::LeakyBucket { .. }) {
            numbers.reverse();
        }
        numbers
    }

    /// Returns whether calls wait without a `timeout`.
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Policy::LeakyBucket { queue: true, .. })
    }

    pub(super) fn read(args: &Args, errors: &mut Errors) -> Option<Policy> {
        match args.kind {
            AttributeKind::Rate => {
                let rate = required(args, "rate", Unit::Rate, "5.0", errors);
                let burst = Number::read(args, "burst", Unit::Burst, errors);
                let refill = Refill::read(args, rate.as_ref(), errors);
                Some(Policy::TokenBucket { rate: rate?, burst, refill: refill? })
            }
            AttributeKind::Count => {
                let limit = required(args, "limit", Unit::Count, "100", errors);
                let zone = Number::read(args, "zone", Unit::Zone, errors);
                if let Some(period) = calendar_period(args) {
                    if let Some(aligned) = args.span("aligned") {
                        errors.at(aligned, "the windows of a calendar are aligned; leave out `aligned`");
                    }
                    return Some(Policy::CalendarWindow { limit: limit?, period, zone });
                }
                if let Some(zone) = args.span("zone") {
                    errors.at(
                        zone,
                        "`zone` belongs to the windows of a calendar; write `period = \"day\"`, `\"week\"`, `\"month\"` or `\"year\"`",
                    );
                }
                let period = required(args, "period", Unit::Period, "\"1m\"", errors);
                Some(Policy::FixedWindow { limit: limit?, period: period?, aligned: args.has("aligned") })
            }
            AttributeKind::Funnel => {
                let capacity = required(args, "capacity", Unit::Count, "10", errors);
                let leak_rate = Number::read(args, "leak_rate", Unit::Rate, errors);
                let drain = Number::read(args, "drain", Unit::Period, errors);
                match (args.has("leak_rate"), args.span("drain")) {
                    (false, None) if args.is_missing("leak_rate") => errors.at(
                        args.attribute,
                        "missing argument `leak_rate`; write `leak_rate = 5.0`, or `drain = \"30m\"` for the time from full to empty",
                    ),
                    (true, Some(drain)) => {
                        errors.at(drain, "`drain` and `leak_rate` set the same number; leave out one of them");
                    }
                    _ => {}
                }
                let leak = leak_rate.or(drain);
                Some(Policy::LeakyBucket { capacity: capacity?, leak: leak?, queue: args.has("queue") })
            }
            AttributeKind::Window => {
                let limit = required(args, "limit", Unit::Count, "100", errors);
                let period = required(args, "period", Unit::Period, "\"1m\"", errors);
                let precision = Number::read(args, "precision", Unit::Precision, errors);
                Some(Policy::SlidingWindow { limit: limit?, period: period?, precision })
            }
            AttributeKind::Concurrency => {
                let max = required(args, "max", Unit::Count, "20", errors);
                Some(Policy::ConcurrencyLimit { max: max? })
            }
        }
    }
}

/// Returns the period, if it is one of a calendar.
fn calendar_period(args: &Args) -> Option<LitStr> {
    let period = literal(args.value("period")?)?;
    CALENDAR_PERIODS.contains(&period.value().as_str()).then(|| period.clone())
}

impl Refill {
    fn warmup(&self) -> Option<&Number> {
        match self {
            Refill::Warmup(period) => Some(period),
            _ => None,
        }
    }

    fn read(args: &Args, rate: Option<&Number>, errors: &mut Errors) -> Option<Refill> {
        if args.has("warmup") {
            check_beside_warmup(args, errors);
            // A warm-up implies `borrow`.
            return Number::read(args, "warmup", Unit::Period, errors).map(Refill::Warmup);
        }
        match (args.span("refill"), args.has("borrow")) {
            (None, false) => Some(Refill::Continuous),
            (None, true) => Some(Refill::Borrow),
            (Some(_), false) => {
                check_refill(args, rate, errors);
                Some(Refill::Interval)
            }
            (Some(refill), true) => {
                errors.at(
                    refill,
                    "a bucket with `borrow` refills continuously; leave out `refill` or `borrow`",
                );
                None
            }
        }
    }
}

/// Checks for arguments that contradict a warm-up.
fn check_beside_warmup(args: &Args, errors: &mut Errors) {
    for (argument, problem) in [
        ("burst", "`warmup` determines the burst; leave out `burst` or `warmup`"),
        ("refill", "a bucket with `warmup` refills continuously; leave out `refill` or `warmup`"),
        (
            "charge_when",
            "a bucket with `warmup` can refund only its last charge; leave out `charge_when`, or write `borrow` instead of `warmup`",
        ),
    ] {
        if let Some(span) = args.span(argument) {
            errors.at(span, problem);
        }
    }
}

fn check_refill(args: &Args, rate: Option<&Number>, errors: &mut Errors) {
    let Some(value) = args.value("refill") else { return };
    if word(value).is_none_or(|word| word != "interval") {
        errors.on(value, "expected `interval`; leave out `refill` for continuous refill");
    } else if let Some(rate) = rate
        && matches!(rate.form, Form::Int | Form::Float)
    {
        errors.on(&rate.expr, "`refill = interval` needs a rate with a period; write `rate = \"100/min\"`");
    }
}

fn required(
    args: &Args,
    name: &'static str,
    unit: Unit,
    example: &str,
    errors: &mut Errors,
) -> Option<Number> {
    if args.is_missing(name) {
        errors.at(args.attribute, format!("missing argument `{name}`; write `{name} = {example}`"));
    }
    Number::read(args, name, unit, errors)
}
