//! Numbers and durations as they are written. Constants in the generated code check their values.

use proc_macro2::TokenStream;
use ratelimit_syntax::expr::{has_division, literal, peel, word};
use ratelimit_syntax::{AttributeKind, CALENDAR_PERIODS};
use syn::{BinOp, Expr, ExprBinary, ExprLit, Lit, UnOp};

use crate::args::Args;
use crate::errors::Errors;

/// What to write for a cost of less than a permit.
pub(crate) const SCALE: &str = "permits are whole numbers, so scale them all: with twice the rate and burst, or limit, \
                                `cost = 1` is half a permit";

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Integer literals and arithmetic on them.
    Int,
    /// The same with a float among them.
    Float,
    /// A string literal.
    Text,
    /// Anything else, which is evaluated on every call.
    Computed,
}

/// What a number measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Permits of a policy.
    Count,
    /// Permits of a call.
    Cost,
    /// Permits per time.
    Rate,
    /// A duration; a whole number means seconds.
    Period,
    /// A duration that always has a unit.
    Precision,
    /// The same, or `"forever"`.
    Timeout,
    /// Permits, or a duration's worth of them.
    Burst,
    /// The name of a time zone.
    Zone,
}

/// The value of one argument.
#[derive(Clone)]
pub(crate) struct Number {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) form: Form,
    pub(crate) expr: Box<Expr>,
}

impl Number {
    /// Whether it is written as 0, with a unit or without.
    pub(crate) fn is_zero(&self) -> bool {
        match whole(&self.expr) {
            Some(digits) => digits == "0",
            None => literal(&self.expr).is_some_and(|text| is_zero_duration(&text.value())),
        }
    }

    /// Reads the argument's value, if it is written in a form that its unit allows.
    pub(crate) fn read(args: &Args, name: &'static str, unit: Unit, errors: &mut Errors) -> Option<Number> {
        let expr = args.value(name)?;
        let form = form(expr);
        let is_allowed = match (unit, form) {
            (Unit::Count | Unit::Cost, Form::Float | Form::Text) => false,
            (Unit::Burst | Unit::Period, Form::Float) => false,
            (Unit::Precision | Unit::Timeout, Form::Int | Form::Float) => false,
            (Unit::Zone, Form::Int | Form::Float) => false,
            (Unit::Timeout, Form::Computed) => !is_forever(expr, args),
            (Unit::Rate, Form::Computed) => !is_unquoted_rate(expr, args),
            _ => true,
        };
        if unit == Unit::Rate && form == Form::Int && has_division(expr) {
            let message = format!(
                "integer division drops the fraction; write `{name} = 1.0 / 60.0` or `{name} = \"1/min\"`"
            );
            errors.on(expr, message);
            None
        } else if (unit, form) == (Unit::Cost, Form::Float) {
            errors.on(expr, format!("`{name}` is a fraction; {SCALE}"));
            None
        } else if !is_allowed || has_unit_suffix(expr) {
            let seconds = whole(expr).filter(|_| unit == Unit::Timeout);
            let message = seconds.and_then(|digits| unit.lacked_by(name, digits));
            errors.on(expr, message.unwrap_or_else(|| unit.expected(name)));
            None
        } else if let Some(message) = calendar_word(name, expr, args) {
            errors.on(expr, message);
            None
        } else if let Some(message) = literal(expr).and_then(|text| unit.lacked_by(name, &text.value())) {
            errors.on(expr, message);
            None
        } else {
            Some(Number { name, unit, form, expr: Box::new(peel(expr).clone()) })
        }
    }

    /// Returns whether the value is known at compile time.
    pub(crate) fn is_literal(&self) -> bool {
        self.form != Form::Computed
    }

    /// Returns whether a literal in it has a type suffix, like `10u32`.
    pub(crate) fn has_suffix(&self) -> bool {
        any_literal(&self.expr, &|lit| !lit.suffix().is_empty())
    }
}

impl Unit {
    fn expected(self, name: &str) -> String {
        match self {
            Unit::Count | Unit::Cost => format!("`{name}` is a whole number of permits; write `{name} = 10`"),
            Unit::Rate => {
                format!(
                    "`{name}` is a number of permits per second or a string; write `{name} = 5.0` or `{name} = \"100/min\"`"
                )
            }
            Unit::Period => {
                format!(
                    "`{name}` is a whole number of seconds or a string; write `{name} = 60` or `{name} = \"500ms\"`"
                )
            }
            Unit::Precision => format!("`{name}` needs a unit; write `{name} = \"1s\"`"),
            Unit::Timeout => {
                format!(
                    "`{name}` is a string with a unit; write `{name} = \"200ms\"` or `{name} = \"forever\"`"
                )
            }
            Unit::Burst => {
                format!(
                    "`{name}` is a whole number of permits or a duration; write `{name} = 10` or `{name} = \"5s\"`"
                )
            }
            Unit::Zone => {
                format!(
                    "`{name}` is the name of a time zone; write `{name} = \"Europe/Berlin\"`, or an expression"
                )
            }
        }
    }

    /// Returns what to write instead of a text that is only a number above 0, which has no unit.
    fn lacked_by(self, name: &str, text: &str) -> Option<String> {
        if !text.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        if self == Unit::Rate {
            let rate: f64 = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0)?;
            return Some(format!(
                "`{name}` has no period; write `{name} = {rate:?}` for permits per second, or `{name} = \"100/min\"`"
            ));
        }
        let number: u64 = text.parse().ok().filter(|number| *number > 0)?;
        let instead = match self {
            Unit::Burst => format!(
                "`{name} = {number}` for permits, or `{name} = \"{number}s\"` for what the rate gives in that time"
            ),
            Unit::Period => format!("`{name} = {number}` for seconds, or a unit: `{name} = \"{number}m\"`"),
            Unit::Timeout => {
                format!("`{name} = \"{number}s\"` for seconds, or `{name} = \"{number}ms\"` for milliseconds")
            }
            _ => format!("`{name} = \"{number}s\"` for seconds"),
        };
        Some(format!("`{name}` has no unit; write {instead}"))
    }
}

fn form(expr: &Expr) -> Form {
    if literal(expr).is_some() {
        Form::Text
    } else if !is_number(expr) {
        Form::Computed
    } else if any_literal(expr, &|lit| matches!(lit, Lit::Float(_))) {
        Form::Float
    } else {
        Form::Int
    }
}

/// Returns whether the tokens are a number with a fraction.
pub(crate) fn is_fraction(tokens: TokenStream) -> bool {
    syn::parse2(tokens).is_ok_and(|expr| form(&expr) == Form::Float)
}

/// Returns whether it is `forever` without quotes, and no argument of the function.
fn is_forever(expr: &Expr, args: &Args) -> bool {
    word(expr).is_some_and(|word| word == "forever" && !args.binds(word))
}

/// Returns what to write instead of the period of a calendar without quotes, in the plural or with a number, unless it is an argument of the
/// function, or for another attribute than `count_limit`, which reads its own before.
fn calendar_word(name: &str, expr: &Expr, args: &Args) -> Option<String> {
    if name != "period" {
        return None;
    }
    // A constant may be named `DAY`.
    let text = match word(expr) {
        Some(word) => Some(word).filter(|word| !args.binds(word))?.to_string(),
        None => literal(expr)?.value().to_lowercase().trim_end_matches('s').to_owned(),
    };
    let written = text.trim_start_matches(|char: char| char.is_ascii_digit());
    let count = &text[..text.len() - written.len()];
    let period = CALENDAR_PERIODS.into_iter().find(|period| *period == written.trim_start())?;
    if period == "day" && !count.is_empty() {
        return None;
    }
    Some(match args.kind {
        AttributeKind::Count if !["", "1"].contains(&count) => {
            let days = match period {
                "week" => 7,
                "month" => 30,
                _ => 365,
            };
            let days = count.parse::<u64>().unwrap_or(1).saturating_mul(days);
            format!(
                "a window of a calendar is a single {period}; write `period = \"{period}\"`, or a duration, like `period = \"{days}d\"`"
            )
        }
        AttributeKind::Count => format!("the period of a calendar is written `period = \"{period}\"`"),
        _ => format!(
            "only `count_limit` has the windows of a calendar, such as `\"{period}\"`; write a duration, like `period = \"1d\"`"
        ),
    })
}

/// The units of durations and rates.
const UNITS: [&str; 18] = [
    "us", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h",
    "hour", "hours", "d", "day", "days",
];

/// Returns whether it is like `100 / min` without quotes.
fn is_unquoted_rate(expr: &Expr, args: &Args) -> bool {
    let Expr::Binary(ExprBinary { op: BinOp::Div(_), right, .. }) = peel(expr) else { return false };
    word(right).is_some_and(|word| UNITS.iter().any(|unit| word == unit) && !args.binds(word))
}

/// Returns whether it is like `15m`, a number with a unit and without quotes.
fn has_unit_suffix(expr: &Expr) -> bool {
    any_literal(expr, &|lit| UNITS.contains(&lit.suffix()))
}

/// Whether a duration with a unit has no digit but 0.
fn is_zero_duration(text: &str) -> bool {
    let has = |of: fn(char) -> bool| text.contains(of);
    has(|char| char == '0')
        && has(|char| char.is_ascii_alphabetic())
        && !has(|char| matches!(char, '1'..='9'))
}

/// Returns the digits of a whole number without a unit.
fn whole(expr: &Expr) -> Option<&str> {
    match peel(expr) {
        Expr::Lit(ExprLit { lit: Lit::Int(lit), .. }) if !has_unit_suffix(expr) => Some(lit.base10_digits()),
        _ => None,
    }
}

/// Returns whether the expression is a number literal or arithmetic on some.
fn is_number(expr: &Expr) -> bool {
    match peel(expr) {
        Expr::Lit(lit) => matches!(lit.lit, Lit::Int(_) | Lit::Float(_)),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Neg(_)) && is_number(&unary.expr),
        Expr::Binary(binary) => {
            let known = matches!(
                binary.op,
                BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_)
            );
            known && is_number(&binary.left) && is_number(&binary.right)
        }
        _ => false,
    }
}

fn any_literal(expr: &Expr, test: &dyn Fn(&Lit) -> bool) -> bool {
    match peel(expr) {
        Expr::Lit(lit) => test(&lit.lit),
        Expr::Unary(unary) => any_literal(&unary.expr, test),
        Expr::Binary(binary) => any_literal(&binary.left, test) || any_literal(&binary.right, test),
        _ => false,
    }
}
