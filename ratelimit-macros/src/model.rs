//! Arguments and function to what they mean. Every rule that tokens can break is checked here.

mod conditions;
mod fallback;
mod rule;
mod stack;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{Expr, Ident, LitStr, Path, Type};

use crate::args::Args;
use crate::errors::{Errors, closest};
use crate::expr::{last_word, literal, peel};
use crate::function::{AsyncBlock, Function};
use crate::kind::{KEY_TYPES, Kind};
use crate::number::{Number, Unit};
use crate::stack::Limit;
use crate::template::{self, Part};
pub(crate) use fallback::{Fallback, Target};
pub(crate) use rule::{Refill, Rule};

/// A function and the decision in front of its body.
pub(crate) struct Limits {
    pub(crate) function: Function,
    /// In the order in which they are written. At least one.
    pub(crate) policies: Vec<Policy>,
    pub(crate) tag: Tag,
}

/// One policy of the decision.
pub(crate) struct Policy {
    pub(crate) kind: Kind,
    /// Where the attribute is written.
    pub(crate) place: Span,
    pub(crate) rule: Rule,
    pub(crate) name: Option<LitStr>,
    /// Among the policies of this kind that have no name of the user's: its number, from 1.
    pub(crate) number: u32,
    pub(crate) prefix: Option<LitStr>,
    pub(crate) cost: Option<Number>,
    pub(crate) timeout: Option<Number>,
    pub(crate) key: Vec<Part>,
    pub(crate) fallback: Option<Fallback>,
    /// One of [`ON_STORE_ERROR`](crate::kind::ON_STORE_ERROR).
    pub(crate) on_store_error: Option<&'static str>,
    pub(crate) skip_when: Option<Expr>,
    pub(crate) charge_when: Option<Expr>,
    pub(crate) shadow: bool,
    pub(crate) registry: Option<Expr>,
    /// Where the facade lives. `crate` is a keyword.
    pub(crate) krate: Option<Path>,
}

/// What ties the keys of the policies together in a Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Key,
    Name,
    Function,
}

impl Limits {
    /// Reads all attributes of a function, reporting all that is wrong with any of them.
    pub(crate) fn read(limits: &[Limit], function: Function) -> syn::Result<Limits> {
        let mut errors = Errors::default();
        check_signature(&function, limits[0].kind, &mut errors);
        let args = limits.iter().map(|limit| Args::parse(limit, function.bindings(), &mut errors));
        let args: Vec<_> = args.collect();
        if function.is_async() && args.iter().any(|args| !args.has("fallback") && !args.has("shadow")) {
            check_output(&function, &mut errors);
        }
        let policies = args.iter().map(|args| Policy::read(args, &function, &mut errors));
        let policies: Vec<_> = policies.collect();
        let policies = policies.into_iter().collect::<Option<Vec<_>>>();
        let limits = policies.map(|mut policies| {
            stack::check(&policies, &mut errors);
            stack::number(&mut policies);
            Limits { function, tag: stack::tag(&policies), policies }
        });
        errors.finish(limits)
    }

    /// The error about an item that is no function.
    pub(crate) fn no_function(kind: Kind, item: TokenStream) -> syn::Error {
        let message = format!("this is no function; write `#[{}(…)]` on each `async fn`", kind.name());
        syn::Error::new(first_word(item), message)
    }
}

/// The word that says what the item is, behind its attributes and `pub`.
fn first_word(item: TokenStream) -> Span {
    let start = item.clone().into_iter().next();
    let word = item.into_iter().find(|token| matches!(token, TokenTree::Ident(word) if *word != "pub"));
    word.or(start).map_or_else(Span::call_site, |token| token.span())
}

fn check_signature(function: &Function, kind: Kind, errors: &mut Errors) {
    let (signature, name) = (&function.signature, function.name());
    if function.body.is_none() {
        let message = format!(
            "there is no body to keep calls from; write `#[{}(…)]` on the implementations of `{name}`",
            kind.name()
        );
        errors.on(&signature.ident, message);
    } else if let Some(constness) = &signature.constness {
        errors.on(
            constness,
            "a `const fn` runs while compiling, where no limit is known; write `async` for `const`",
        );
    } else if let Some(early) = function.block.as_ref().and_then(AsyncBlock::early_return) {
        let message = "this `return` leaves before the decision, so such a call would have no limit; write it in the async \
                       block, or write an `async fn`";
        errors.at(early, message);
    } else if !function.is_async() && function.returns_future() {
        let message = format!(
            "a decision is awaited, and `{name}` does not end in the async block that it returns; write `async fn {name}`, \
             or end it in `async move {{ … }}` or `Box::pin(async move {{ … }})`"
        );
        errors.on(signature.fn_token, message);
    } else if !function.is_async() {
        let message = format!(
            "a decision is awaited, and this function is not async; write `async fn {name}`, or put this attribute above \
             the one that made it so, or keep it and ask a `Limiter` where it is called: \
             `limiter.try_acquire(key, 1).await?`"
        );
        errors.on(signature.fn_token, message);
    }
}

/// Without a fallback, the return type has to be named where a refusal is turned into it.
fn check_output(function: &Function, errors: &mut Errors) {
    let Some(output) = function.declared_output() else { return };
    let written = match output {
        Type::ImplTrait(_) => "impl Trait",
        Type::Never(_) => "!",
        _ => return,
    };
    // A fallback of a function that never returns would be one too.
    let fallback = if matches!(output, Type::Never(_)) { "" } else { ", or `fallback = …`" };
    let message = format!(
        "`{written}` does not say what a refused call returns; write `Result<_, E>` where `E: From<ratelimits::Error>`{fallback}"
    );
    errors.on(&function.signature.output, message);
}

impl Policy {
    fn read(args: &Args, function: &Function, errors: &mut Errors) -> Option<Policy> {
        let rule = Rule::read(args, errors);
        let name = text(args, "name", "sms.send", errors);
        let prefix = text(args, "prefix", "sms", errors);
        let cost = Number::read(args, "cost", Unit::Count, errors);
        let timeout = Number::read(args, "timeout", Unit::Timeout, errors);
        if args.has("shadow")
            && let Some(timeout) = args.span("timeout")
        {
            errors.at(timeout, "a policy in `shadow` never waits; leave out `timeout`");
        }
        let key = key(args, function, errors);
        let fallback = Fallback::read(args, function, errors);
        let on_store_error = conditions::on_store_error(args, errors);
        let skip_when = conditions::skip_when(args, errors);
        let charge_when = conditions::charge_when(args, function, errors);
        let registry = conditions::registry(args, errors);
        let krate = conditions::krate(args, errors);
        let shadow = args.has("shadow");
        Some(Policy {
            kind: args.kind,
            place: args.place,
            rule: rule?,
            name,
            number: 1,
            prefix,
            cost,
            timeout,
            key,
            fallback,
            on_store_error,
            skip_when,
            charge_when,
            shadow,
            registry,
            krate,
        })
    }
}

fn key(args: &Args, function: &Function, errors: &mut Errors) -> Vec<Part> {
    let key_type = args.value("key_type").and_then(|value| {
        let known = word(value).and_then(|word| KEY_TYPES.into_iter().find(|known| word == known));
        if known.is_none() {
            let meant = match last_word(value).and_then(|written| closest(&written, &KEY_TYPES)) {
                Some(known) => format!("`key_type = {known}`"),
                None => "`IP`, `USER`, `METHOD` or `CUSTOM`".to_owned(),
            };
            errors.on(value, format!("unknown `key_type`; write {meant}"));
        }
        known.map(|known| (known, value))
    });
    if args.has("key") {
        if let Some((known, value)) = key_type.filter(|(known, _)| *known != "CUSTOM") {
            errors.on(
                value,
                format!("`{known}` takes no `key`; write `key_type = CUSTOM`, or leave out `key`"),
            );
        }
        let Some(value) = args.value("key") else { return Vec::new() };
        return match literal(value) {
            Some(literal) => template::template(literal, function, errors),
            None => template::bare(peel(value), errors),
        };
    }
    match key_type {
        Some(("CUSTOM", value)) => {
            errors.on(value, "`CUSTOM` counts by a `key`, which is missing; write `key = \"<user.id>\"`");
            Vec::new()
        }
        Some(("IP", _)) => vec![Part::Ip],
        Some(("USER", _)) => vec![Part::User],
        _ => Vec::new(),
    }
}

fn text(args: &Args, name: &'static str, example: &str, errors: &mut Errors) -> Option<LitStr> {
    let value = args.value(name)?;
    match literal(value) {
        Some(literal) if !literal.value().is_empty() => Some(literal.clone()),
        None => {
            errors.on(value, format!("`{name}` is a string literal; write `{name} = \"{example}\"`"));
            None
        }
        Some(_) => {
            errors.on(value, format!("`{name}` is a text that is not empty; write `{name} = \"{example}\"`"));
            None
        }
    }
}

/// The single identifier that the expression is.
fn word(expr: &Expr) -> Option<&Ident> {
    match peel(expr) {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    }
}
