//! The algorithm of an attribute and its numbers.

use crate::args::Args;
use crate::errors::Errors;
use crate::kind::Kind;
use crate::number::{Form, Number, Unit};

/// An algorithm and its numbers.
pub(crate) enum Rule {
    TokenBucket { rate: Number, burst: Option<Number>, refill: Refill },
    FixedWindow { limit: Number, period: Number, aligned: bool },
    LeakyBucket { capacity: Number, leak: Number, queue: bool },
    SlidingWindow { limit: Number, period: Number, precision: Option<Number> },
}

/// How a token bucket refills, and what it lets a call take.
pub(crate) enum Refill {
    Continuous,
    Interval,
    /// Continuously, and a call may borrow.
    Borrow,
    /// As one that warms up for so long.
    Warmup(Number),
}

impl Rule {
    /// The algorithm in the words of an error message.
    pub(crate) fn algorithm(&self) -> &'static str {
        match self {
            Rule::TokenBucket { refill, .. } => match refill {
                Refill::Continuous => "token bucket",
                Refill::Interval => "token bucket that refills at intervals",
                Refill::Borrow => "token bucket that borrows",
                Refill::Warmup(_) => "token bucket that warms up",
            },
            Rule::FixedWindow { aligned: false, .. } => "fixed window",
            Rule::FixedWindow { aligned: true, .. } => "fixed window that is aligned",
            Rule::LeakyBucket { queue: false, .. } => "leaky bucket",
            Rule::LeakyBucket { queue: true, .. } => "leaky bucket that queues",
            Rule::SlidingWindow { precision: None, .. } => "sliding window",
            Rule::SlidingWindow { precision: Some(_), .. } => "sliding window of sub-windows",
        }
    }

    pub(super) fn read(args: &Args, errors: &mut Errors) -> Option<Rule> {
        match args.kind {
            Kind::Rate => {
                let rate = required(args, "rate", Unit::Rate, "5.0", errors);
                let burst = Number::read(args, "burst", Unit::Burst, errors);
                let refill = Refill::read(args, rate.as_ref(), errors);
                Some(Rule::TokenBucket { rate: rate?, burst, refill: refill? })
            }
            Kind::Count => {
                let limit = required(args, "limit", Unit::Count, "100", errors);
                let period = required(args, "period", Unit::Period, "\"1m\"", errors);
                Some(Rule::FixedWindow { limit: limit?, period: period?, aligned: args.has("aligned") })
            }
            Kind::Funnel => {
                let capacity = required(args, "capacity", Unit::Count, "10", errors);
                let leak_rate = Number::read(args, "leak_rate", Unit::Rate, errors);
                let drain = Number::read(args, "drain", Unit::Period, errors);
                match (args.has("leak_rate"), args.span("drain")) {
                    (false, None) if args.is_missing("leak_rate") && args.is_missing("drain") => errors.at(
                        args.place,
                        "missing argument `leak_rate`; write `leak_rate = 5.0`, or the time from full to empty: `drain = \"30m\"`",
                    ),
                    (true, Some(drain)) => {
                        errors.at(drain, "`drain` and `leak_rate` say the same; write only one of them");
                    }
                    _ => {}
                }
                let leak = leak_rate.or(drain);
                Some(Rule::LeakyBucket { capacity: capacity?, leak: leak?, queue: args.has("queue") })
            }
            Kind::Window => {
                let limit = required(args, "limit", Unit::Count, "100", errors);
                let period = required(args, "period", Unit::Period, "\"1m\"", errors);
                let precision = Number::read(args, "precision", Unit::Precision, errors);
                Some(Rule::SlidingWindow { limit: limit?, period: period?, precision })
            }
        }
    }
}

impl Refill {
    /// The time that it warms up for.
    pub(crate) fn warmup(&self) -> Option<&Number> {
        match self {
            Refill::Warmup(period) => Some(period),
            _ => None,
        }
    }

    fn read(args: &Args, rate: Option<&Number>, errors: &mut Errors) -> Option<Refill> {
        if args.has("warmup") {
            check_beside_warmup(args, errors);
            // What warms up lets calls borrow, so `borrow` says nothing more.
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
                    "a bucket that lets calls borrow refills continuously; leave out `refill`, or `borrow`",
                );
                None
            }
        }
    }
}

/// What contradicts a warm-up.
fn check_beside_warmup(args: &Args, errors: &mut Errors) {
    for (argument, problem) in [
        ("burst", "what a bucket holds follows from its `warmup`; leave out `burst`, or `warmup`"),
        ("refill", "a bucket that warms up refills continuously; leave out `refill`, or `warmup`"),
        (
            "charge_when",
            "a bucket that warms up takes back only its last charge; leave out `charge_when`, or write `borrow` for `warmup`",
        ),
    ] {
        if let Some(place) = args.span(argument) {
            errors.at(place, problem);
        }
    }
}

fn check_refill(args: &Args, rate: Option<&Number>, errors: &mut Errors) {
    let Some(value) = args.value("refill") else { return };
    if super::word(value).is_none_or(|word| word != "interval") {
        errors.on(
            value,
            "`refill` is continuous unless it is `interval`; leave it out, or write `refill = interval`",
        );
    } else if let Some(rate) = rate
        && matches!(rate.form, Form::Int | Form::Float)
    {
        let message = "a refill at intervals needs the period of its rate; write `rate = \"100/min\"`";
        errors.on(&rate.expr, message);
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
        errors.at(args.place, format!("missing argument `{name}`; write `{name} = {example}`"));
    }
    Number::read(args, name, unit, errors)
}
