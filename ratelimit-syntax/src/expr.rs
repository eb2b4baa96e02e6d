//! Questions about expressions that their tokens answer.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{BinOp, Expr, ExprLit, Lit, LitStr};

/// Formats tokens as a user would write them. The compiler does; outside of it, all tokens are separated by spaces.
pub fn shown(tokens: impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    if text.contains('"') {
        return text;
    }
    [(" . ", "."), (" .", "."), (" :: ", "::"), ("& ", "&"), ("! ", "!"), (" (", "(")]
        .into_iter()
        .fold(text, |text, (spaced, written)| text.replace(spaced, written))
}

/// Returns the expression inside parentheses and inside the invisible groups of `macro_rules!` captures.
#[must_use]
pub fn peel(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Group(group) => &group.expr,
            Expr::Paren(paren) => &paren.expr,
            _ => return expr,
        };
    }
}

/// Returns the expression as a string literal.
#[must_use]
pub fn literal(expr: &Expr) -> Option<&LitStr> {
    match peel(expr) {
        Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) => Some(literal),
        _ => None,
    }
}

/// Returns the expression as a single identifier.
#[must_use]
pub fn word(expr: &Expr) -> Option<&Ident> {
    match peel(expr) {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    }
}

/// Returns whether the arithmetic divides.
#[must_use]
pub fn has_division(expr: &Expr) -> bool {
    match peel(expr) {
        Expr::Unary(unary) => has_division(&unary.expr),
        Expr::Binary(binary) => {
            matches!(binary.op, BinOp::Div(_)) || has_division(&binary.left) || has_division(&binary.right)
        }
        _ => false,
    }
}
