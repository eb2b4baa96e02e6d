//! The argument `penalty`.

use ratelimit_syntax::expr::{literal, peel};
use syn::{Expr, LitStr};

use super::conditions::beside_hold;
use crate::args::Args;
use crate::errors::Errors;

const EXAMPLE: &str = "write `penalty = [\"1m\", \"5m\", \"1h\"]`";

/// Reads for how long each refusal in turn pauses the key. All calls have to agree on that.
pub(super) fn penalty(args: &Args, errors: &mut Errors) -> Vec<LitStr> {
    let (Some(value), Some(span)) = (args.value("penalty"), args.span("penalty")) else { return Vec::new() };
    if let Some(problem) = beside_hold(args.kind, "penalty") {
        errors.at(span, problem);
        return Vec::new();
    }
    for (argument, problem) in [
        (
            "queue",
            "a full queue refuses whoever comes, not who came too often; leave out `penalty` or `queue`",
        ),
        (
            "lease",
            "processes spend what they have leased, whether or not the key is paused; leave out `lease` or `penalty`",
        ),
        (
            "slack",
            "processes spend what they have leased, whether or not the key is paused; leave out `slack` or `penalty`",
        ),
        ("shadow", "a policy in `shadow` refuses no call; leave out `penalty` or `shadow`"),
    ] {
        if let Some(span) = args.span(argument) {
            errors.at(span, problem);
        }
    }
    let Expr::Array(steps) = peel(value) else {
        let example = match literal(value) {
            Some(step) => format!("write `penalty = [{:?}]`", step.value()),
            None => EXAMPLE.to_owned(),
        };
        errors
            .on(value, format!("`penalty` is a list of durations, one for each refusal in turn; {example}"));
        return Vec::new();
    };
    if steps.elems.is_empty() {
        errors.on(value, format!("an empty `penalty` pauses nothing; leave it out, or {EXAMPLE}"));
    }
    let mut durations = Vec::with_capacity(steps.elems.len());
    for step in &steps.elems {
        match literal(step) {
            Some(duration) => durations.push(duration.clone()),
            None => errors.on(
                step,
                "a step of `penalty` is a duration with a unit, the same for all calls; write it as `\"1m\"`",
            ),
        }
    }
    durations
}
