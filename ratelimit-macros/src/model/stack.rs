//! How several limits of one function relate.

use quote::ToTokens;
use ratelimit_syntax::expr::shown;
use syn::LitStr;

use super::lease::Lease;
use super::limit::{Limit, Tag};
use crate::errors::Errors;
use crate::template::Part;

/// Checks that the limits can be decided together.
pub(super) fn check(limits: &[Limit], errors: &mut Errors) {
    for (at, limit) in limits.iter().enumerate() {
        let Some(name) = &limit.name else { continue };
        let is_same = |other: &Limit| other.name.as_ref().map(LitStr::value) == Some(name.value());
        if limits[..at].iter().any(is_same) {
            errors.on(name, "another attribute of this function has the same name; rename one");
        }
    }
    for lease in limits.iter().filter_map(|limit| limit.lease.as_ref()).filter(|_| limits.len() > 1) {
        let (argument, value) = match lease {
            Lease::Permits(permits) => ("lease", permits.expr.to_token_stream()),
            Lease::Slack(percentage) => ("slack", percentage.to_token_stream()),
        };
        errors.on(value, format!("several limits on a function cannot have a `{argument}`; leave it out"));
    }
    check_bind(limits, errors);
    let Some(registry) = limits.iter().find_map(|limit| limit.registry.as_ref()) else { return };
    let written = registry.to_token_stream().to_string();
    for limit in limits {
        let message = || {
            let registry = shown(registry);
            format!("all attributes of a function use one registry; write `registry = {registry}` on each")
        };
        match &limit.registry {
            None => errors.at(limit.span, message()),
            Some(other) if other.to_token_stream().to_string() != written => errors.on(other, message()),
            Some(_) => {}
        }
    }
}

/// Checks that one attribute at most binds the decision, and that the body alone settles it then.
fn check_bind(limits: &[Limit], errors: &mut Errors) {
    let mut bound = limits.iter().filter_map(|limit| limit.bind.as_ref());
    if bound.next().is_none() {
        return;
    }
    for other in bound {
        errors.on(other, "one decision is made for all attributes of a function; bind it once");
    }
    let settle = |used: &str| match limits {
        [_] => format!("decision.settle({used})"),
        _ => format!("decision.settle_each([{}])", vec![used; limits.len()].join(", ")),
    };
    for limit in limits {
        if let Some(condition) = &limit.charge_when {
            errors.on(
                condition,
                format!("beside `bind` the body decides what is charged; write `{}` in it, and leave out `charge_when`", settle("0")),
            );
        }
        if let Some(used) = &limit.settle {
            errors.on(
                used,
                format!(
                    "beside `bind` the body settles the call; write `{}` in it, and leave out `settle`",
                    settle("…")
                ),
            );
        }
    }
}

/// Marks all limits as settled whose decision the body gets. The text of each says so, as the state of a bucket depends on it.
pub(super) fn mark_settled(limits: &mut [Limit]) {
    let Some(name) = limits.iter().find_map(|limit| limit.bind.clone()) else { return };
    for limit in limits {
        limit.is_settled = true;
        limit.written.arguments += &format!(", bind = {name}");
    }
}

/// Numbers the limits without a name, after those that the function has already. Those in shadow come last, so that a temporary
/// one renames no other.
pub(super) fn number(limits: &mut [Limit], numbered: u32) {
    let unnamed = limits.iter_mut().filter(|limit| limit.name.is_none());
    let (enforced, in_shadow): (Vec<_>, Vec<_>) = unnamed.partition(|limit| !limit.shadow);
    for (number, limit) in (numbered + 1..).zip(enforced.into_iter().chain(in_shadow)) {
        limit.number = number;
    }
}

/// Returns what the keys share a cluster slot by: their parts if all limits write the same ones, else the function. Only the
/// source counts, because the slot must not depend on the values of a call.
pub(super) fn tag(limits: &[Limit]) -> Tag {
    let key = |limit: &Limit| limit.key.iter().map(written).collect::<Vec<_>>();
    let first = key(&limits[0]);
    if limits.iter().any(|limit| key(limit) != first) {
        Tag::Function
    } else if !first.is_empty() {
        Tag::Key
    } else if limits.len() > 1 {
        Tag::Function
    } else {
        Tag::Name
    }
}

fn written(part: &Part) -> String {
    match part {
        Part::Expr(expr) => expr.to_string(),
        other => format!("{other:?}"),
    }
}
