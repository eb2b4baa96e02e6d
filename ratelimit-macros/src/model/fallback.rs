//! The function that is called instead of the body.

use proc_macro2::Span;
use quote::{ToTokens, quote};
use syn::{Expr, ExprClosure, ExprField, ExprPath, FnArg, Ident, Member};

use crate::args::Args;
use crate::errors::Errors;
use crate::expr::{literal, peel, shown};
use crate::function::{Function, cfgs, plain};

/// With each of them the calls in the generated code double.
const MOST_CONDITIONAL: usize = 3;

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
    /// `|error| …`: gets the error, and sees the arguments by itself.
    Closure(Expr),
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
        if pass_args.is_some() {
            check_arguments(function, errors);
        }
        let named = match literal(value) {
            Some(text) => text.parse::<Expr>().ok(),
            None => Some(peel(value).clone()),
        };
        if let Some(Expr::Closure(closure)) = &named {
            check_closure(closure, value, pass_args, errors);
        }
        let target = named.as_ref().and_then(Target::read);
        let span = syn::spanned::Spanned::span(value);
        let Some(target) = target else {
            errors.on(value, named.as_ref().and_then(called).unwrap_or_else(|| {
                "`fallback` names a function; write `fallback = f`, `fallback = Self::f`, `fallback = self.f` or \
                 `fallback = |error| …`"
                    .to_owned()
            }));
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
            Expr::Closure(_) => Some(Target::Closure(expr.clone())),
            _ => None,
        }
    }
}

/// What keeps arguments of the function from being passed on.
fn check_arguments(function: &Function, errors: &mut Errors) {
    let arguments = function.signature.inputs.iter().filter_map(|argument| match argument {
        FnArg::Typed(argument) => Some(argument),
        FnArg::Receiver(_) => None,
    });
    let mut conditional = 0;
    for argument in arguments {
        if function.block.is_some() && plain(&argument.pat).is_none() {
            errors.on(
                &argument.pat,
                "`pass_args` passes an argument whole, and here it is taken apart before the async block; write a name \
                 for it, and take it apart in the block",
            );
        }
        conditional += usize::from(!cfgs(&argument.attrs).is_empty());
        if conditional > MOST_CONDITIONAL {
            errors.on(
                &argument.pat,
                "`pass_args` passes at most three arguments that have a `#[cfg]`; write `fallback = |_| …`, which sees \
                 them by itself",
            );
            return;
        }
    }
}

fn check_closure(closure: &ExprClosure, value: &Expr, pass_args: Option<Span>, errors: &mut Errors) {
    if let Some(text) = literal(value) {
        errors.on(value, format!("a closure has no quotes; write `fallback = {}`", text.value()));
        return;
    }
    if closure.inputs.len() != 1 {
        let ExprClosure { inputs_begin, inputs, inputs_end, .. } = closure;
        errors.on(
            quote!(#inputs_begin #inputs #inputs_end),
            "a closure gets one argument, the `Error`, and sees those of the call itself; write `|_| …` or `|error| …`",
        );
    }
    if let Some(span) = pass_args {
        errors.at(span, "a closure sees the arguments of the call itself; leave `pass_args` out");
    }
}

/// What to write for an expression that calls the function.
fn called(expr: &Expr) -> Option<String> {
    let (function, arguments) = match expr {
        Expr::Call(call) => (shown(&call.func), &call.args),
        Expr::MethodCall(call) => (format!("{}.{}", shown(&call.receiver), call.method), &call.args),
        _ => return None,
    };
    let instead = if arguments.is_empty() {
        format!("write `fallback = {function}`, without `()`")
    } else {
        format!(
            "write `fallback = {function}`, and `pass_args` for the arguments of the call, or `fallback = |_| {}`",
            shown(expr)
        )
    };
    Some(format!("`fallback` names a function and does not call it; {instead}"))
}

fn names_only_self(base: &Expr) -> bool {
    base.to_token_stream().to_string() == "self"
}
