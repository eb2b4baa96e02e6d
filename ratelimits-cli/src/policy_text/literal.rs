//! Literals, and arithmetic on literals.

use ratelimit_syntax::expr::{peel, word};
use syn::{BinOp, Expr, ExprBinary, ExprLit, Lit, UnOp};

/// The value of a literal, or of arithmetic on literals.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Integer(i128),
    Float(f64),
    Text(String),
}

/// Evaluates an expression as the compiler does. Returns `None` if it is more than literals and arithmetic.
///
/// # Errors
///
/// Returns what is wrong with the literals, as a predicate.
pub(super) fn evaluate(expr: &Expr) -> Result<Option<Literal>, &'static str> {
    Ok(Some(match peel(expr) {
        Expr::Lit(ExprLit { lit, .. }) => match lit {
            Lit::Int(int) if is_type(int.suffix()) => {
                Literal::Integer(int.base10_parse().map_err(|_| TOO_LARGE)?)
            }
            Lit::Float(float) if is_type(float.suffix()) => {
                Literal::Float(float.base10_parse().map_err(|_| TOO_LARGE)?)
            }
            Lit::Str(text) => Literal::Text(text.value()),
            Lit::Int(_) | Lit::Float(_) => return Err(NO_QUOTES),
            _ => return Ok(None),
        },
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => match evaluate(&unary.expr)? {
            Some(Literal::Integer(value)) => Literal::Integer(value.checked_neg().ok_or(TOO_LARGE)?),
            Some(Literal::Float(value)) => Literal::Float(-value),
            Some(Literal::Text(_)) => return Err(TEXT),
            None => return Ok(None),
        },
        Expr::Binary(binary) => return arithmetic(binary),
        _ => return Ok(None),
    }))
}

const TOO_LARGE: &str = "is too large; write a smaller number";
const TEXT: &str = "is text, with which there is no arithmetic; write all of it as one text or as numbers";
const MIXED: &str = "mixes whole numbers and fractions; write all with a point, like `100.0 / 60.0`";
const DIVISION_BY_ZERO: &str = "divides by zero; write the number";
const NO_QUOTES: &str = "has a unit without quotes, which a shell removes unless the whole policy is in single quotes; \
                         write 'rate_limit(rate = \"100/min\")'";
/// What to write instead of an integer division.
pub(super) const DIVISION: &str =
    "is an integer division, which drops the fraction; write `1.0 / 60.0` or `\"1/min\"`";

fn is_type(suffix: &str) -> bool {
    const TYPES: [&str; 15] = [
        "", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32",
        "f64",
    ];
    TYPES.contains(&suffix)
}

fn arithmetic(binary: &ExprBinary) -> Result<Option<Literal>, &'static str> {
    let (left, right) = (evaluate(&binary.left)?, evaluate(&binary.right)?);
    let is_division = matches!(binary.op, BinOp::Div(_));
    Ok(Some(match (left, right) {
        (Some(Literal::Integer(_)), None) if is_division && word(&binary.right).is_some() => {
            return Err(NO_QUOTES);
        }
        (None, _) | (_, None) => return Ok(None),
        (Some(Literal::Integer(left)), Some(Literal::Integer(right))) => {
            let value = match binary.op {
                BinOp::Add(_) => left.checked_add(right),
                BinOp::Sub(_) => left.checked_sub(right),
                BinOp::Mul(_) => left.checked_mul(right),
                BinOp::Div(_) | BinOp::Rem(_) if right == 0 => return Err(DIVISION_BY_ZERO),
                BinOp::Div(_) => left.checked_div(right),
                BinOp::Rem(_) => left.checked_rem(right),
                _ => return Ok(None),
            };
            Literal::Integer(value.ok_or(TOO_LARGE)?)
        }
        (Some(Literal::Float(left)), Some(Literal::Float(right))) => Literal::Float(match binary.op {
            BinOp::Add(_) => left + right,
            BinOp::Sub(_) => left - right,
            BinOp::Mul(_) => left * right,
            BinOp::Div(_) => left / right,
            BinOp::Rem(_) => left % right,
            _ => return Ok(None),
        }),
        (Some(Literal::Text(_)), _) | (_, Some(Literal::Text(_))) => return Err(TEXT),
        (Some(_), Some(_)) => return Err(MIXED),
    }))
}
