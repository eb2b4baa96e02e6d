//! The function that is called instead of the body.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{Expr, ExprField, ExprPath, Ident, Member};

use crate::args::{Args, literal, peel, shown};
use crate::errors::Errors;
use crate::function::Function;

/// The function that is called instead of the body.
pub(crate) struct Fallback {
    pub(crate) span: Span,
    pub(crate) target: Target,
    pub(crate) pass_args: bool,
}

/// How a fallback is named.
pub(crate) enum Target {
    /// `f`
    Function(ExprPath),
    /// `Self::f`, `<T as Trait>::f`: gets `self` as its first argument.
    Associated(ExprPath),
    /// `self.f`
    Method(Box<Expr>, Ident),
}

impl Fallback {
    pub(super) fn read(args: &Args, function: &Function, errors: &mut Errors) -> Option<Fallback> {
        let pass_args = args.span("pass_args");
        if !args.has("fallback")
            && let Some(span) = pass_args
        {
            errors.at(
                span,
                "`pass_args` says what a fallback gets, and there is none; write `fallback = …` beside it",
            );
        }
        let value = args.value("fallback")?;
        let named = match literal(value) {
            Some(path) => path.parse::<Expr>().ok(),
            None => Some(peel(value).clone()),
        };
        let target = named.as_ref().and_then(Target::read);
        let span = syn::spanned::Spanned::span(value);
        let Some(target) = target else {
            let message = match named.as_ref().and_then(called) {
                Some(function) => format!(
                    "`fallback` names a function and does not call it; write `fallback = {function}`, without `()`; \
                     `pass_args` gives it the arguments of the call"
                ),
                None => "`fallback` names a function; write `fallback = f`, `fallback = Self::f` or `fallback = self.f`"
                    .to_owned(),
            };
            errors.on(value, message);
            return None;
        };
        if let Target::Method(base, method) = &target
            && names_only_self(base)
            && function.receiver().is_none()
        {
            errors.on(
                value,
                format!(
                    "this function has no `self`; write `fallback = {method}` or `fallback = Self::{method}`"
                ),
            );
        }
        Some(Fallback { span, target, pass_args: pass_args.is_some() })
    }
}

impl Target {
    fn read(expr: &Expr) -> Option<Target> {
        match expr {
            Expr::Path(path) => {
                let on_self = path.path.segments.len() > 1 && path.path.segments[0].ident == "Self";
                let associated = path.qself.is_some() || on_self;
                Some(if associated {
                    Target::Associated(path.clone())
                } else {
                    Target::Function(path.clone())
                })
            }
            Expr::Field(ExprField { base, member: Member::Named(method), .. }) => {
                Some(Target::Method(base.clone(), method.clone()))
            }
            _ => None,
        }
    }
}

/// The function that the expression calls.
fn called(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Call(call) => Some(shown(&call.func)),
        Expr::MethodCall(call) => Some(format!("{}.{}", shown(&call.receiver), call.method)),
        _ => None,
    }
}

fn names_only_self(base: &Expr) -> bool {
    base.to_token_stream().to_string() == "self"
}
