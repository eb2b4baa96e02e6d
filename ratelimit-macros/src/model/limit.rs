//! One limit: the validated arguments of one attribute.

use proc_macro2::Span;
use ratelimit_syntax::expr::{literal, peel, word};
use ratelimit_syntax::{AttributeKind, KEY_TYPES, listed};
use syn::{Expr, Ident, LitStr, Path};

use super::conditions;
use super::fallback::Fallback;
use super::lease::Lease;
use super::penalty::penalty;
use super::policy::Policy;
use super::written::Written;
use crate::args::Args;
use crate::errors::Errors;
use crate::function::Function;
use crate::number::{Number, Unit};
use crate::template::{self, Part};

/// One attribute: a policy and how it applies to the function.
pub(crate) struct Limit {
    /// The attribute.
    pub(crate) span: Span,
    pub(crate) kind: AttributeKind,
    pub(crate) written: Written,
    pub(crate) policy: Policy,
    pub(crate) name: Option<LitStr>,
    /// The number of the limit among those of the function that have no name, from 1. For one with a name it is 0.
    pub(crate) number: u32,
    pub(crate) prefix: Option<LitStr>,
    pub(crate) cost: Option<Number>,
    pub(crate) timeout: Option<Number>,
    pub(crate) lease: Option<Lease>,
    pub(crate) key: Vec<Part>,
    pub(crate) fallback: Option<Fallback>,
    /// One of [`ON_STORE_ERROR`](ratelimit_syntax::ON_STORE_ERROR).
    pub(crate) on_store_error: Option<&'static str>,
    pub(crate) skip_when: Option<Expr>,
    pub(crate) charge_when: Option<Expr>,
    pub(crate) settle: Option<Expr>,
    pub(crate) pause_when: Option<Expr>,
    /// The pauses of a key that refuses calls, one after the other.
    pub(crate) penalty: Vec<LitStr>,
    /// The share of the limit at which observers are notified of a key.
    pub(crate) notify_at: Option<Expr>,
    /// The name under which the body sees the decision.
    pub(crate) bind: Option<Ident>,
    /// Whether calls are settled, by the output or by a body that has the decision.
    pub(crate) is_settled: bool,
    pub(crate) shadow: bool,
    pub(crate) registry: Option<Expr>,
    /// Where the facade lives. `crate` is a keyword.
    pub(crate) krate: Option<Path>,
}

/// What the keys of a limit share a cluster slot by: their parts, the policy's name, or the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Key,
    Name,
    Function,
}

impl Limit {
    /// Returns whether the policy looks at the output.
    pub(crate) fn sees_output(&self) -> bool {
        self.corrects() || self.pause_when.is_some()
    }

    /// Returns whether the output says what the policy charges.
    pub(crate) fn corrects(&self) -> bool {
        self.charge_when.is_some() || self.settle.is_some()
    }

    /// Returns whether calls may pause the key.
    pub(crate) fn may_pause(&self) -> bool {
        self.pause_when.is_some() || !self.penalty.is_empty()
    }

    /// Returns whether calls hold their permits while they run.
    pub(crate) fn holds(&self) -> bool {
        matches!(self.policy, Policy::ConcurrencyLimit { .. })
    }

    pub(super) fn read(args: &Args, function: &Function, errors: &mut Errors) -> Option<Limit> {
        let policy = Policy::read(args, errors);
        let name = text(args, "name", "sms.send", errors);
        let prefix = text(args, "prefix", "sms", errors);
        let cost = Number::read(args, "cost", Unit::Cost, errors);
        let timeout = Number::read(args, "timeout", Unit::Timeout, errors);
        without_effect(args, [&cost, &timeout], errors);
        if args.has("shadow")
            && let Some(timeout) = args.span("timeout")
        {
            errors.at(timeout, "a policy in `shadow` never waits; leave out `timeout`");
        }
        let lease = Lease::read(args, policy.as_ref(), errors);
        let key = key(args, function, errors);
        let fallback = Fallback::read(args, function, errors);
        let on_store_error = conditions::on_store_error(args, errors);
        let charge_when = conditions::charge_when(args, function, errors);
        let settle = conditions::settle(args, function, errors);
        let pause_when = conditions::pause_when(args, function, errors);
        let penalty = penalty(args, errors);
        let notify_at = conditions::notify_at(args, errors);
        let bind = conditions::bind(args, errors);
        let krate = conditions::krate(args, errors);
        let expr = |name| args.value(name).map(|value| peel(value).clone());
        Some(Limit {
            span: args.attribute,
            kind: args.kind,
            is_settled: settle.is_some(),
            written: Written::read(args),
            policy: policy?,
            name,
            number: 0,
            prefix,
            cost,
            timeout,
            lease,
            key,
            fallback,
            on_store_error,
            skip_when: expr("skip_when"),
            charge_when,
            settle,
            pause_when,
            penalty,
            notify_at,
            bind,
            shadow: args.has("shadow"),
            registry: expr("registry"),
            krate,
        })
    }
}

/// Reports a cost and a timeout of 0, which leave nothing to do. A queue waits unless it is told not to, and a call that is settled
/// needs a free permit.
fn without_effect(args: &Args, [cost, timeout]: [&Option<Number>; 2], errors: &mut Errors) {
    if let Some(cost) = cost
        && cost.is_zero()
        && !args.has("settle")
    {
        errors.on(
            &cost.expr,
            "a call that costs 0 passes without a decision; leave out the attribute, or write `skip_when = …` for calls that are free",
        );
    }
    if let Some(timeout) = timeout
        && timeout.is_zero()
        && !args.has("queue")
    {
        errors.on(&timeout.expr, "a call never waits without a `timeout`; leave it out");
    }
}

fn key(args: &Args, function: &Function, errors: &mut Errors) -> Vec<Part> {
    let key_type = args.value("key_type").and_then(|value| {
        let known = word(value).and_then(|word| KEY_TYPES.into_iter().find(|known| word == known));
        if known.is_none() {
            errors.on(value, format!("expected one of {}", listed(KEY_TYPES)));
        }
        known.map(|known| (known, value))
    });
    if args.has("key") {
        if let Some((known, value)) = key_type.filter(|(known, _)| *known != "CUSTOM") {
            let message = format!("`key` contradicts `key_type = {known}`; leave out one of them");
            errors.on(value, message);
        }
        let Some(value) = args.value("key") else { return Vec::new() };
        return match literal(value) {
            Some(literal) => template::template(literal, function, errors),
            None => {
                check_context(value, args, errors);
                template::bare(peel(value), errors)
            }
        };
    }
    match key_type {
        Some(("CUSTOM", value)) => {
            errors.on(value, "`key_type = CUSTOM` needs a `key`; write `key = user.id`");
            Vec::new()
        }
        Some(("IP", _)) => vec![Part::Ip],
        Some(("USER", _)) => vec![Part::User],
        _ => Vec::new(),
    }
}

/// Checks that what the request context has is not written as an argument.
fn check_context(key: &Expr, args: &Args, errors: &mut Errors) {
    let is_context = |word: &&Ident| (*word == "IP" || *word == "USER") && !args.binds(word);
    if let Some(word) = word(key).filter(is_context) {
        errors.on(word, format!("the function has no argument `{word}`; write `key_type = {word}`"));
    }
}

fn text(args: &Args, name: &'static str, example: &str, errors: &mut Errors) -> Option<LitStr> {
    let value = args.value(name)?;
    let text = literal(value).filter(|literal| !literal.value().is_empty());
    if text.is_none() {
        errors.on(value, format!("`{name}` is a non-empty string literal; write `{name} = \"{example}\"`"));
    }
    text.cloned()
}
