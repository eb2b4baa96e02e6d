//! Numbers and times as they are written. Their values are checked by constants in the generated code, not here.

use syn::{BinOp, Expr, ExprBinary, ExprLit, Lit};

use crate::args::Args;
use crate::errors::Errors;
use crate::expr::{is_number, literal, peel, shown};

/// How a number is written, as far as tokens tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whole literals and arithmetic on them.
    Int,
    /// Literals with a fraction among them.
    Float,
    /// A string literal.
    Text,
    /// Anything else: known only when the call is made.
    Computed,
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Permits.
    Count,
    /// Permits per time.
    Rate,
    /// A time; a whole number means seconds.
    Period,
    /// A time that always has its unit.
    Precision,
    /// Such a time, or `forever`.
    Timeout,
    /// Permits, or a time's worth of them.
    Burst,
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
    /// The argument's value, if it was given and is written in a way that its unit allows.
    pub(crate) fn read(args: &Args, name: &'static str, unit: Unit, errors: &mut Errors) -> Option<Number> {
        let expr = args.value(name)?;
        let form = form(expr);
        let problem = without_quotes(expr, args)
            .map(|text| format!("a number with a time is a string; write `{name} = \"{text}\"`"))
            .or_else(|| misspelled_timeout(name, unit, expr, args))
            .or_else(|| problem(name, unit, form, expr));
        match problem {
            Some(problem) => {
                errors.on(expr, problem);
                None
            }
            None => Some(Number { name, unit, form, expr: Box::new(peel(expr).clone()) }),
        }
    }

    /// Whether the value is known while compiling.
    pub(crate) fn is_literal(&self) -> bool {
        self.form != Form::Computed
    }

    /// Whether a literal in it names its type, like `10u32`.
    pub(crate) fn has_suffix(&self) -> bool {
        any_literal(&self.expr, &|lit| match lit {
            Lit::Int(int) => !int.suffix().is_empty(),
            Lit::Float(float) => !float.suffix().is_empty(),
            _ => false,
        })
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

fn problem(name: &str, unit: Unit, form: Form, expr: &Expr) -> Option<String> {
    Some(match (unit, form) {
        (Unit::Count, Form::Float | Form::Text) => {
            format!("`{name}` counts whole permits; write a whole number: `{name} = 10`")
        }
        (Unit::Burst, Form::Text) => {
            let permits = literal(expr)?.value();
            if permits.is_empty() || !permits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            format!(
                "`{name}` has no unit; write a time's worth of the rate: `{name} = \"{permits}s\"`, or `{name} = {permits}`"
            )
        }
        (Unit::Burst, Form::Float) => format!(
            "`{name}` has no fractions; write whole permits: `{name} = 10`, or a time's worth of the rate: `{name} = \"5s\"`"
        ),
        (Unit::Rate, Form::Int) if has_division(expr) => format!(
            "`/` between whole numbers drops the fraction; write `{name} = 1.0 / 60.0`, or name the period: `{name} = \"1/min\"`"
        ),
        (Unit::Period, Form::Float) => match with_unit(expr) {
            Some(time) => format!("`{name}` has no fractions; write `{name} = \"{time}\"`"),
            None => format!(
                "`{name}` has no fractions; write whole seconds: `{name} = 60`, or a time with its unit: `{name} = \"500ms\"`"
            ),
        },
        (Unit::Precision, Form::Int | Form::Float) => {
            format!("`{name}` has no unit; write a time with its unit: `{name} = \"1s\"`")
        }
        (Unit::Timeout, Form::Int | Form::Float | Form::Text) => return unit_of_timeout(name, expr),
        _ => return None,
    })
}

/// What to say of a timeout that has no unit.
fn unit_of_timeout(name: &str, expr: &Expr) -> Option<String> {
    let number = match peel(expr) {
        Expr::Unary(_) => {
            return Some(format!(
                "`{name}` is negative; write a time to wait, `{name} = \"200ms\"`, or `{name} = \"forever\"`"
            ));
        }
        Expr::Lit(ExprLit { lit: Lit::Int(int), .. }) => int.base10_digits().to_owned(),
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => text.value(),
        expr => match with_unit(expr) {
            Some(time) => return Some(format!("`{name}` has no unit; write `{name} = \"{time}\"`")),
            None => "5".to_owned(),
        },
    };
    let is_bare = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_bare
        .then(|| format!("`{name}` has no unit; write `{name} = \"{number}s\"` or `{name} = \"{number}ms\"`"))
}

/// The seconds of a literal with a fraction as a text: `0.2` as `200ms`.
fn with_unit(expr: &Expr) -> Option<String> {
    let Expr::Lit(ExprLit { lit: Lit::Float(float), .. }) = peel(expr) else { return None };
    let seconds: f64 = float.base10_parse().ok()?;
    let micros = (seconds * 1_000_000.0).round() as u64;
    let units = [(1_000_000, "s"), (1_000, "ms"), (1, "us")];
    let (size, unit) = units.into_iter().find(|(size, _)| micros > 0 && micros.is_multiple_of(*size))?;
    Some(format!("{}{unit}", micros / size))
}

/// The text that is meant by `100/min`, unless there is a `min`, or by `15m`.
fn without_quotes(expr: &Expr, args: &Args) -> Option<String> {
    let is_time = |word: &str| TIMES.contains(&word);
    match peel(expr) {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(int) if is_time(int.suffix()) => Some(int.to_string()),
            _ => None,
        },
        Expr::Binary(ExprBinary { left, op: BinOp::Div(_), right, .. }) if is_number(left) => {
            match peel(right) {
                Expr::Path(unit) => {
                    let unit = unit.path.get_ident().filter(|unit| !args.binds(unit))?;
                    is_time(&unit.to_string()).then(|| format!("{}/{unit}", shown(left)))
                }
                right => Some(format!("{}/{}", shown(left), without_quotes(right, args)?)),
            }
        }
        _ => None,
    }
}

/// What to say of `forever` without quotes, unless there is one, and of `None`.
fn misspelled_timeout(name: &str, unit: Unit, expr: &Expr, args: &Args) -> Option<String> {
    let Expr::Path(path) = peel(expr) else { return None };
    let word = path.path.get_ident().filter(|word| unit == Unit::Timeout && !args.binds(word))?;
    match word.to_string().as_str() {
        "forever" => Some(format!("`forever` is a string; write `{name} = \"forever\"`")),
        "None" => Some(format!("`None` is no time to wait; leave `{name}` out")),
        _ => None,
    }
}

const TIMES: [&str; 10] = ["ms", "s", "sec", "second", "m", "min", "minute", "h", "hour", "day"];

fn has_division(expr: &Expr) -> bool {
    match peel(expr) {
        Expr::Unary(unary) => has_division(&unary.expr),
        Expr::Binary(binary) => {
            matches!(binary.op, BinOp::Div(_)) || has_division(&binary.left) || has_division(&binary.right)
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
