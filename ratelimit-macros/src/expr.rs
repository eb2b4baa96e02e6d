//! Questions about expressions that their tokens answer.

use quote::ToTokens;
use syn::{BinOp, Expr, Ident, Lit, LitStr, UnOp};

/// Formats tokens as a user would write them. The compiler does; outside of it, all tokens are separated by spaces.
pub(crate) fn shown(tokens: impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    if text.contains('"') {
        return text;
    }
    [(" . ", "."), (" .", "."), (" :: ", "::"), ("& ", "&"), (" (", "(")]
        .into_iter()
        .fold(text, |text, (spaced, written)| text.replace(spaced, written))
}

/// Returns the expression inside parentheses and inside the invisible groups of `macro_rules!` captures.
pub(crate) fn peel(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Group(group) => &group.expr,
            Expr::Paren(paren) => &paren.expr,
            _ => return expr,
        };
    }
}

/// Returns the expression as a string literal.
pub(crate) fn literal(expr: &Expr) -> Option<&LitStr> {
    match peel(expr) {
        Expr::Lit(syn::ExprLit { lit: Lit::Str(literal), .. }) => Some(literal),
        _ => None,
    }
}

/// Returns the expression as a single identifier.
pub(crate) fn word(expr: &Expr) -> Option<&Ident> {
    match peel(expr) {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    }
}

/// Returns whether the expression is a number literal or arithmetic on some.
pub(crate) fn is_number(expr: &Expr) -> bool {
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
