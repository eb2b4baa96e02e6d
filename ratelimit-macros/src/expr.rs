//! What an expression is, as far as its tokens tell.

use quote::ToTokens;
use syn::{BinOp, Expr, ExprField, Lit, LitStr, Member, UnOp};

/// Tokens as a user would write them. The compiler knows how; outside of it, every token has spaces around.
pub(crate) fn shown(tokens: impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    if text.contains('"') {
        return text;
    }
    [(" . ", "."), (" .", "."), (" :: ", "::"), ("& ", "&"), (" (", "(")]
        .into_iter()
        .fold(text, |text, (spaced, written)| text.replace(spaced, written))
}

/// The expression inside the invisible groups that `macro_rules!` puts around its captures, and inside parentheses.
pub(crate) fn peel(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Group(group) => &group.expr,
            Expr::Paren(paren) => &paren.expr,
            _ => return expr,
        };
    }
}

/// The string literal that the expression is.
pub(crate) fn literal(expr: &Expr) -> Option<&LitStr> {
    match peel(expr) {
        Expr::Lit(syn::ExprLit { lit: Lit::Str(literal), .. }) => Some(literal),
        _ => None,
    }
}

/// `IP` of `LimitType.IP`, `LimitType::IP` and `"IP"`.
pub(crate) fn last_word(expr: &Expr) -> Option<String> {
    match peel(expr) {
        Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        Expr::Field(ExprField { member: Member::Named(name), .. }) => Some(name.to_string()),
        value => literal(value).map(LitStr::value),
    }
}

/// Whether it is a number, or arithmetic on some.
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
