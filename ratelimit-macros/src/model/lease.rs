//! The arguments `lease` and `slack`.

use proc_macro2::Span;
use ratelimit_syntax::expr::literal;
use syn::LitStr;

use super::policy::Policy;
use crate::args::Args;
use crate::errors::Errors;
use crate::number::{Number, Unit};

/// How many permits a process takes at a time. All calls have to agree on it.
pub(crate) enum Lease {
    Permits(Number),
    /// As many as exceed the bucket by no more than this percentage.
    Slack(LitStr),
}

/// The arguments that say that permits are leased.
pub(super) const LEASES: [&str; 2] = ["lease", "slack"];

impl Lease {
    pub(super) fn read(args: &Args, policy: Option<&Policy>, errors: &mut Errors) -> Option<Lease> {
        for lease in LEASES.into_iter().filter(|lease| args.has(lease)) {
            for (argument, problem) in [
                ("timeout", "a call that may wait cannot use a"),
                ("charge_when", "leased permits cannot be refunded"),
                ("bind", "a call from a lease has no decision of its own"),
                ("shadow", "a policy in `shadow` cannot have a"),
                ("borrow", "a bucket with `borrow` cannot have a"),
                ("warmup", "a bucket with `warmup` cannot have a"),
            ] {
                let Some(span) = args.span(argument) else { continue };
                let subject = if problem.ends_with(" a") { format!(" `{lease}`") } else { String::new() };
                errors.at(span, format!("{problem}{subject}; leave out `{argument}` or `{lease}`"));
            }
        }
        if let Some(slack) = args.span("slack") {
            check_slack(args, policy, slack, errors);
            return slack_of(args, errors);
        }
        let lease = Number::read(args, "lease", Unit::Count, errors)?;
        if !lease.is_literal() {
            errors.on(
                &lease.expr,
                "`lease` is a whole number that is the same for all calls; write `lease = 100`",
            );
        }
        Some(Lease::Permits(lease))
    }
}

/// Checks that there is a bound for the slack.
fn check_slack(args: &Args, policy: Option<&Policy>, slack: Span, errors: &mut Errors) {
    if args.has("lease") {
        errors.at(slack, "`slack` chooses the size of leases; leave out `lease` or `slack`");
    }
    if let Some(refill) = args.span("refill") {
        errors.at(
            refill,
            "a lease that outlives a refill lets a whole one more through, so `slack` bounds nothing; leave out `refill`, or write `lease = 10` instead of `slack`",
        );
    }
    if let Some(Policy::TokenBucket { rate, .. }) = policy
        && !rate.is_literal()
    {
        errors.on(
            &rate.expr,
            "`slack` bounds nothing if the rate changes while permits are leased; write a literal rate, or `lease = 10` instead of `slack`",
        );
    }
}

fn slack_of(args: &Args, errors: &mut Errors) -> Option<Lease> {
    let value = args.value("slack")?;
    let percentage = literal(value);
    if percentage.is_none() {
        errors.on(
            value,
            "`slack` is a percentage in quotes that is the same for all calls; write `slack = \"1%\"`",
        );
    }
    percentage.cloned().map(Lease::Slack)
}
