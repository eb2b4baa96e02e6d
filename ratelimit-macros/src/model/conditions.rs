//! When the limit holds and what is charged, what holds where the store fails, and where the generated code finds the
//! registry and the crate.

use syn::{Expr, PathArguments, Type};

use super::word;
use crate::args::{self, Args};
use crate::errors::Errors;
use crate::expr::{is_number, literal, peel};
use crate::function::Function;
use crate::kind::ON_STORE_ERROR;

/// The condition under which a call has no limit.
pub(super) fn skip_when(args: &Args, errors: &mut Errors) -> Option<Expr> {
    let value = args.value("skip_when")?;
    let is_condition = match peel(value) {
        Expr::Lit(lit) => matches!(lit.lit, syn::Lit::Bool(_)),
        Expr::Closure(_) | Expr::Let(_) | Expr::Assign(_) => false,
        other => !is_number(other),
    };
    if is_condition {
        return Some(peel(value).clone());
    }
    let meant = unquoted(value).unwrap_or_else(|| "user.is_admin".to_owned());
    errors.on(value, format!("`skip_when` is a condition; write `skip_when = {meant}`"));
    None
}

/// The function that says of an output whether its call is charged.
pub(super) fn charge_when(args: &Args, function: &Function, errors: &mut Errors) -> Option<Expr> {
    let value = args.value("charge_when")?;
    if let Some(Type::Never(_)) = function.declared_output() {
        errors.on(value, "a function that never returns comes to nothing; leave `charge_when` out");
        return None;
    }
    let problem = match peel(value) {
        Expr::Path(_) => return Some(peel(value).clone()),
        Expr::Closure(closure) if closure.asyncness.is_some() => "answers at once, without `async`",
        Expr::Closure(closure) if closure.inputs.len() == 1 => return Some(peel(value).clone()),
        Expr::Closure(_) => "gets one argument, the output",
        _ => "is a closure over the output",
    };
    errors.on(value, format!("`charge_when` {problem}; write `charge_when = |out| out.is_err()`"));
    None
}

/// What becomes of the call if the store does not decide it.
pub(super) fn on_store_error(args: &Args, errors: &mut Errors) -> Option<&'static str> {
    let value = args.value("on_store_error")?;
    let known = word(value).and_then(|word| ON_STORE_ERROR.into_iter().find(|known| word == known));
    if known.is_none() {
        let meant = match args::closest_on_store_error(value) {
            Some(meant) => format!("`on_store_error = {meant}`"),
            None => "`local`, `allow` or `deny`".to_owned(),
        };
        errors.on(value, format!("unknown `on_store_error`; write {meant}"));
    }
    known
}

/// The registry that decides instead of the installed one.
pub(super) fn registry(args: &Args, errors: &mut Errors) -> Option<Expr> {
    let value = args.value("registry")?;
    if !matches!(peel(value), Expr::Lit(_) | Expr::Closure(_)) && !is_number(value) {
        return Some(peel(value).clone());
    }
    let meant = unquoted(value).unwrap_or_else(|| "&state.registry".to_owned());
    errors.on(value, format!("`registry` is a `&Registry`; write `registry = {meant}`"));
    None
}

/// Where the facade lives.
pub(super) fn krate(args: &Args, errors: &mut Errors) -> Option<syn::Path> {
    let value = args.value("crate")?;
    match peel(value) {
        Expr::Path(path) if path.qself.is_none() && is_of_modules(&path.path) => {
            return Some(path.path.clone());
        }
        _ => {}
    }
    let quoted = literal(value).filter(|text| text.parse::<syn::Path>().is_ok()).map(|text| text.value());
    let meant = match quoted {
        Some(path) if ["::", "crate", "self", "super"].iter().any(|start| path.starts_with(start)) => path,
        Some(name) => format!("::{name}"),
        None => "::renamed".to_owned(),
    };
    errors.on(value, format!("`crate` is the path of the renamed crate; write `crate = {meant}`"));
    None
}

fn is_of_modules(path: &syn::Path) -> bool {
    path.segments.iter().all(|segment| matches!(segment.arguments, PathArguments::None))
}

/// The expression that a string literal holds, as it is written without quotes.
fn unquoted(value: &Expr) -> Option<String> {
    let text = literal(value)?;
    let expr = text.parse::<Expr>().ok()?;
    (!matches!(expr, Expr::Lit(_) | Expr::Closure(_))).then(|| text.value())
}
