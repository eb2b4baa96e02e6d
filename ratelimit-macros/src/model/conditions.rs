//! The arguments `on_store_error`, `charge_when`, `settle`, `pause_when`, `notify_at`, `bind` and `crate`.

use quote::ToTokens;
use ratelimit_syntax::expr::{literal, peel, shown, word};
use ratelimit_syntax::{AttributeKind, ON_STORE_ERROR, listed};
use syn::{Expr, Ident, LitStr, PathArguments, Type};

use super::lease::LEASES;
use crate::args::Args;
use crate::errors::Errors;
use crate::function::Function;
use crate::number::is_fraction;

/// Reads what to do when the store fails.
pub(super) fn on_store_error(args: &Args, errors: &mut Errors) -> Option<&'static str> {
    let value = args.value("on_store_error")?;
    let known = word(value).and_then(|word| ON_STORE_ERROR.into_iter().find(|known| word == known));
    if known.is_none() {
        errors.on(value, format!("expected one of {}", listed(ON_STORE_ERROR)));
    }
    known
}

/// Reads the function that decides by a call's output whether it is charged.
pub(super) fn charge_when(args: &Args, function: &Function, errors: &mut Errors) -> Option<Expr> {
    of_output(args, "charge_when", "|out| out.is_err()", function, errors)
}

/// Reads the function that says by a call's output what it has used.
pub(super) fn settle(args: &Args, function: &Function, errors: &mut Errors) -> Option<Expr> {
    for (argument, problem) in [
        (
            "charge_when",
            "`settle` says what a call has used, which may be 0; leave out `charge_when` or `settle`",
        ),
        ("queue", "a call in a queue takes slots, which cannot be settled; leave out `queue` or `settle`"),
        (
            "warmup",
            "a bucket with `warmup` cannot be settled; leave out `settle`, or write `borrow` instead of `warmup`",
        ),
        ("lease", "leased permits cannot be settled; leave out `lease` or `settle`"),
        ("slack", "leased permits cannot be settled; leave out `slack` or `settle`"),
    ] {
        if let Some(span) = args.span(argument).filter(|_| args.has("settle")) {
            errors.at(span, problem);
        }
    }
    of_output(args, "settle", "|out| out.len()", function, errors)
}

/// Reads the function that says by a call's output for how long the key is paused.
pub(super) fn pause_when(args: &Args, function: &Function, errors: &mut Errors) -> Option<Expr> {
    for lease in LEASES {
        if let Some(span) = args.span(lease).filter(|_| args.has("pause_when")) {
            errors.at(
                span,
                format!("processes spend what they have leased, whether or not the key is paused; leave out `{lease}` or `pause_when`"),
            );
        }
    }
    of_output(args, "pause_when", "|out| out.retry_after()", function, errors)
}

/// Reads the share of the limit at which observers are notified of a key.
pub(super) fn notify_at(args: &Args, errors: &mut Errors) -> Option<Expr> {
    let value = args.value("notify_at")?;
    if let Some(problem) = beside_hold(args.kind, "notify_at") {
        errors.on(value, problem);
        return None;
    }
    for (argument, problem) in [
        (
            "lease",
            "a process takes the permits of a lease before calls use them, so no call reaches the share; leave out `lease` or `notify_at`",
        ),
        (
            "slack",
            "a process takes the permits of a lease before calls use them, so no call reaches the share; leave out `slack` or `notify_at`",
        ),
        (
            "warmup",
            "calls at the usual rate empty a bucket with `warmup`, so a share of it says nothing; leave out `notify_at`, or write `borrow` instead of `warmup`",
        ),
    ] {
        if let Some(span) = args.span(argument) {
            errors.at(span, problem);
        }
    }
    if !is_fraction(value.to_token_stream()) {
        let share = share_of(value).unwrap_or(0.8);
        errors.on(
            value,
            format!(
                "`notify_at` is a share of the limit, a number above 0 and below 1 that is the same for all calls; write `notify_at = {share}`"
            ),
        );
        return None;
    }
    Some(peel(value).clone())
}

/// Returns the share that is written as a percentage or in quotes.
fn share_of(value: &Expr) -> Option<f64> {
    let text = literal(value).map_or_else(|| shown(value), LitStr::value);
    let number: f64 = text.trim_end_matches(['%', ' ']).parse().ok()?;
    let share = if text.contains('%') || number > 1.0 { number / 100.0 } else { number };
    (share > 0.0 && share < 1.0).then_some(share)
}

/// Reads the name under which the body sees the decision.
pub(super) fn bind(args: &Args, errors: &mut Errors) -> Option<Ident> {
    let value = args.value("bind")?;
    match word(value) {
        Some(name) if args.binds(name) => {
            errors.on(name, format!("the function has an argument `{name}`; give the decision another name"));
            None
        }
        Some(name) if !["self", "Self", "super", "crate"].iter().any(|word| name == word) => {
            Some(name.clone())
        }
        _ => {
            errors.on(value, "`bind` is a name for the decision; write `bind = decision`");
            None
        }
    }
}

/// Reads a function of a call's output.
fn of_output(
    args: &Args,
    name: &'static str,
    example: &str,
    function: &Function,
    errors: &mut Errors,
) -> Option<Expr> {
    let value = args.value(name)?;
    if let (Some(problem), Some(span)) = (beside_hold(args.kind, name), args.span(name)) {
        errors.at(span, problem);
        return None;
    }
    if let Some(Type::Never(_)) = function.declared_output() {
        errors.on(value, format!("a function that never returns has no output; leave out `{name}`"));
        return None;
    }
    if !matches!(peel(value), Expr::Path(_) | Expr::Closure(_)) {
        errors
            .on(value, format!("`{name}` takes a closure that gets the output; write `{name} = {example}`"));
        return None;
    }
    Some(peel(value).clone())
}

/// Returns why calls that hold permits while they run have no such argument.
pub(super) fn beside_hold(kind: AttributeKind, name: &str) -> Option<&'static str> {
    if kind != AttributeKind::Concurrency {
        return None;
    }
    match name {
        "charge_when" => Some(
            "a call holds its permits only while it runs, so there is nothing to refund; leave out `charge_when`",
        ),
        "settle" => Some(
            "a call holds its permits only while it runs, so there is nothing to settle; leave out `settle`",
        ),
        "pause_when" => Some(
            "what bounds the calls that run at once is never paused; leave out `pause_when`, or write it on another attribute of the function",
        ),
        "penalty" => Some(
            "what bounds the calls that run at once is never paused; leave out `penalty`, or write it on another attribute of the function",
        ),
        "notify_at" => Some(
            "what calls hold comes and goes without a window in which to tell of it once; leave out `notify_at`, or write it on another attribute of the function",
        ),
        _ => None,
    }
}

/// Reads where the facade lives.
pub(super) fn krate(args: &Args, errors: &mut Errors) -> Option<syn::Path> {
    let value = args.value("crate")?;
    match peel(value) {
        Expr::Path(path) if path.qself.is_none() && is_module_path(&path.path) => Some(path.path.clone()),
        _ => {
            errors.on(value, "`crate` is the path of the renamed crate; write `crate = ::renamed`");
            None
        }
    }
}

fn is_module_path(path: &syn::Path) -> bool {
    path.segments.iter().all(|segment| matches!(segment.arguments, PathArguments::None))
}
