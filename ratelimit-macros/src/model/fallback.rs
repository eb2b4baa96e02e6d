//! The function that is called instead of the body.

use proc_macro2::Span;
use quote::{ToTokens, quote};
use ratelimit_syntax::expr::{literal, peel, shown};
use syn::spanned::Spanned;
use syn::{Expr, ExprClosure, ExprField, ExprPath, FnArg, Ident, Member};

use crate::args::Args;
use crate::errors::Errors;
use crate::function::{Function, cfgs, plain};

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
    /// `Self::f` or `<T as Trait>::f`, which gets `self` as its first argument.
    Associated(ExprPath),
    /// `self.f`
    Method(Box<Expr>, Ident),
    /// `|error| …`, which gets the error and captures the arguments.
    Closure(Expr),
}

impl Fallback {
    pub(super) fn read(args: &Args, function: &Function, errors: &mut Errors) -> Option<Fallback> {
        let pass_args = args.span("pass_args");
        if !args.has("fallback")
            && let Some(span) = pass_args
        {
            errors.at(span, "`pass_args` needs a fallback; write `fallback = f, pass_args`");
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
        let Some(target) = named.as_ref().and_then(Target::read) else {
            errors.on(value, not_a_function(named.as_ref(), function, pass_args.is_some()));
            return None;
        };
        if let Target::Method(base, method) = &target
            && base.to_token_stream().to_string() == "self"
            && function.receiver().is_none()
        {
            let message = format!(
                "this function has no `self`; write `fallback = {method}` or `fallback = Self::{method}`"
            );
            errors.on(value, message);
        }
        Some(Fallback { span: value.span(), target, pass_args: pass_args.is_some() })
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

/// Checks that the arguments can be passed on.
fn check_arguments(function: &Function, errors: &mut Errors) {
    let arguments = function.signature.inputs.iter().filter_map(|argument| match argument {
        FnArg::Typed(argument) => Some(argument),
        FnArg::Receiver(_) => None,
    });
    for argument in arguments {
        if function.block.is_some() && plain(&argument.pat).is_none() {
            let message = "`pass_args` needs the whole argument, which is destructured before the async block; give it a \
                           name, and destructure it in the block";
            errors.on(&argument.pat, message);
        }
        if !cfgs(&argument.attrs).is_empty() {
            let message = "`pass_args` cannot pass an argument under `#[cfg]`; write `fallback = |_| …`, which captures it";
            errors.on(&argument.pat, message);
        }
    }
}

fn check_closure(closure: &ExprClosure, value: &Expr, pass_args: Option<Span>, errors: &mut Errors) {
    if let Some(text) = literal(value) {
        errors.on(value, format!("a closure is written without quotes; write `fallback = {}`", text.value()));
        return;
    }
    if closure.inputs.len() != 1 {
        let ExprClosure { inputs_begin, inputs, inputs_end, .. } = closure;
        errors.on(
            quote!(#inputs_begin #inputs #inputs_end),
            "a fallback closure takes one argument, the `Error`, and captures those of the function; write `|error| …`",
        );
    }
    if let Some(span) = pass_args {
        errors.at(span, "a closure captures the arguments of the function; leave out `pass_args`");
    }
}

fn not_a_function(value: Option<&Expr>, function: &Function, pass_args: bool) -> String {
    let call = value.and_then(|value| match value {
        Expr::Call(call) => Some((value, shown(&call.func), &call.args)),
        Expr::MethodCall(call) => {
            Some((value, format!("{}.{}", shown(&call.receiver), call.method), &call.args))
        }
        _ => None,
    });
    let can_pass = function.signature.inputs.iter().any(|argument| matches!(argument, FnArg::Typed(_)));
    match call {
        Some((call, called, arguments)) => {
            let call = shown(call);
            let instead = match arguments.is_empty() {
                // A closure takes no `pass_args`.
                _ if pass_args => format!("`fallback = {called}`"),
                true => format!("`fallback = {called}` or `fallback = |_| {call}`"),
                false if can_pass => format!("`fallback = {called}, pass_args` or `fallback = |_| {call}`"),
                false => format!("`fallback = |_| {call}`"),
            };
            format!("expected a function, found a call; write {instead}")
        }
        None => "expected a function; write `fallback = f`, `fallback = Self::f`, `fallback = self.f` or \
                 `fallback = |error| …`"
            .to_owned(),
    }
}
