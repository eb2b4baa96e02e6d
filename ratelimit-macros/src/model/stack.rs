//! What several policies of one function are to one another.

use quote::ToTokens;
use syn::LitStr;

use super::{Policy, Tag};
use crate::errors::Errors;
use crate::expr::shown;
use crate::kind::Kind;
use crate::template::Part;

/// Checks that the policies can be decided together.
pub(super) fn check(policies: &[Policy], errors: &mut Errors) {
    for (at, policy) in policies.iter().enumerate() {
        let named = |other: &&Policy| given(&other.name) == given(&policy.name) && policy.name.is_some();
        if policies[..at].iter().any(|other| named(&other)) {
            errors.on(
                &policy.name,
                "this name is that of another attribute of the function; give each a name of its own, or leave it out",
            );
        }
    }
    let Some(registry) = policies.iter().find_map(|policy| policy.registry.as_ref()) else { return };
    let written = registry.to_token_stream().to_string();
    for policy in policies {
        let message = || {
            format!(
                "the attributes of a function are one decision, on one registry; write `registry = {}` on each of them",
                shown(registry)
            )
        };
        match &policy.registry {
            None => errors.at(policy.place, message()),
            Some(other) if other.to_token_stream().to_string() != written => errors.on(other, message()),
            Some(_) => {}
        }
    }
}

fn given(name: &Option<LitStr>) -> Option<String> {
    name.as_ref().map(LitStr::value)
}

/// Numbers the policies of one kind that are named after the function: those in shadow last, so that one that comes for a
/// while renames no other.
pub(super) fn number(policies: &mut [Policy]) {
    for kind in Kind::ALL {
        let (enforced, in_shadow): (Vec<_>, Vec<_>) = policies
            .iter_mut()
            .filter(|policy| policy.kind == kind && policy.name.is_none())
            .partition(|policy| !policy.shadow);
        for (number, policy) in (1..).zip(enforced.into_iter().chain(in_shadow)) {
            policy.number = number;
        }
    }
}

/// Ties the keys of the policies together: by their parts where they are the same, else by the function. The same is what
/// is written the same, as what a call makes of it must not change where its state lies.
pub(super) fn tag(policies: &[Policy]) -> Tag {
    let key = |policy: &Policy| policy.key.iter().map(written).collect::<Vec<_>>();
    let first = key(&policies[0]);
    if policies.iter().any(|policy| key(policy) != first) {
        Tag::Function
    } else if !first.is_empty() {
        Tag::Key
    } else if policies.len() > 1 {
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
