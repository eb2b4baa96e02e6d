//! The validated model: what the arguments and the function mean together. Everything that tokens alone can violate is
//! checked here.

mod conditions;
mod fallback;
mod policy;
mod stack;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{Expr, LitStr, Path, Type};

use crate::args::Args;
use crate::errors::{Errors, listed};
use crate::expr::{literal, peel, word};
use crate::function::{AsyncBlock, Function};
use crate::kind::{KEY_TYPES, Kind};
use crate::number::{Number, Unit};
use crate::stack::LimitAttribute;
use crate::template::{self, Part};
pub(crate) use fallback::{Fallback, Target};
pub(crate) use policy::{Policy, Refill};

/// A function and the limits on it, which are decided together.
pub(crate) struct LimitedFunction {
    pub(crate) function: Function,
    /// In source order; at least one.
    pub(crate) limits: Vec<Limit>,
    pub(crate) tag: Tag,
}

/// One attribute: a policy and how it applies to the function.
pub(crate) struct Limit {
    pub(crate) kind: Kind,
    /// The attribute.
    pub(crate) span: Span,
    pub(crate) policy: Policy,
    pub(crate) name: Option<LitStr>,
    /// The number of the limit among those of its kind that derive their name from the function, from 1.
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

/// What the keys of a limit share a cluster slot by: their parts, the policy's name, or the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Key,
    Name,
    Function,
}

impl LimitedFunction {
    /// Reads all attributes of a function, and reports all that is wrong with any of them.
    pub(crate) fn read(attributes: &[LimitAttribute], function: Function) -> syn::Result<LimitedFunction> {
        let mut errors = Errors::default();
        check_signature(&function, attributes[0].kind, &mut errors);
        let parse = |attribute| Args::parse(attribute, function.bindings(), &mut errors);
        let args: Vec<_> = attributes.iter().map(parse).collect();
        if function.is_async() && args.iter().any(|args| !args.has("fallback") && !args.has("shadow")) {
            check_output(&function, &mut errors);
        }
        let limits: Vec<_> = args.iter().map(|args| Limit::read(args, &function, &mut errors)).collect();
        let limits = limits.into_iter().collect::<Option<Vec<_>>>();
        let limited = limits.map(|mut limits| {
            stack::check(&limits, &mut errors);
            stack::number(&mut limits);
            LimitedFunction { function, tag: stack::tag(&limits), limits }
        });
        errors.finish(limited)
    }

    /// Returns the error for an item that is not a function.
    pub(crate) fn not_a_function(kind: Kind, item: TokenStream) -> syn::Error {
        let message = format!("expected an `async fn`; write `#[{}(…)]` on each function", kind.name());
        syn::Error::new(item_keyword(item), message)
    }
}

/// Returns the span of the item's keyword.
fn item_keyword(item: TokenStream) -> Span {
    let start = item.clone().into_iter().next();
    let word = item.into_iter().find(|token| matches!(token, TokenTree::Ident(word) if *word != "pub"));
    word.or(start).map_or_else(Span::call_site, |token| token.span())
}

fn check_signature(function: &Function, kind: Kind, errors: &mut Errors) {
    let (signature, name) = (&function.signature, function.name());
    if function.body.is_none() {
        let message = format!(
            "expected a function with a body; write `#[{}(…)]` on the implementations of `{name}`",
            kind.name()
        );
        errors.on(&signature.ident, message);
    } else if let Some(constness) = &signature.constness {
        errors.on(constness, format!("a `const fn` cannot be limited; write `async fn {name}`"));
    } else if let Some(early) = function.block.as_ref().and_then(AsyncBlock::early_return) {
        let message =
            "this `return` would skip the limit; move it into the async block, or write an `async fn`";
        errors.at(early, message);
    } else if !function.is_async() && function.returns_future() {
        let message = format!(
            "the limit is awaited, so `{name}` must be async; write `async fn {name}`, or end the body with \
             `async move {{ … }}` or `Box::pin(async move {{ … }})`"
        );
        errors.on(signature.fn_token, message);
    } else if !function.is_async() {
        let message = format!(
            "the limit is awaited, so `{name}` must be async; write `async fn {name}`, move this attribute above the one \
             that makes it sync, or use a `Limiter` in its caller: `limiter.try_acquire(key, 1).await?`"
        );
        errors.on(signature.fn_token, message);
    }
}

/// Checks that the return type can be named where a refusal is converted into it.
fn check_output(function: &Function, errors: &mut Errors) {
    let Some(output) = function.declared_output() else { return };
    let written = match output {
        Type::ImplTrait(_) => "impl Trait",
        Type::Never(_) => "!",
        _ => return,
    };
    // A fallback of a function that never returns would never return either.
    let fallback = if matches!(output, Type::Never(_)) { "" } else { ", or add `fallback = …`" };
    let message = format!(
        "`{written}` cannot represent a refused call; return `Result<_, E>` where `E: From<ratelimits::Error>`{fallback}"
    );
    errors.on(&function.signature.output, message);
}

impl Limit {
    fn read(args: &Args, function: &Function, errors: &mut Errors) -> Option<Limit> {
        let policy = Policy::read(args, errors);
        let name = text(args, "name", "sms.send", errors);
        let prefix = text(args, "prefix", "sms", errors);
        let cost = Number::read(args, "cost", Unit::Cost, errors);
        let timeout = Number::read(args, "timeout", Unit::Timeout, errors);
        if args.has("shadow")
            && let Some(timeout) = args.span("timeout")
        {
            errors.at(timeout, "a policy in `shadow` never waits; leave out `timeout`");
        }
        let key = key(args, function, errors);
        let fallback = Fallback::read(args, function, errors);
        let on_store_error = conditions::on_store_error(args, errors);
        let charge_when = conditions::charge_when(args, function, errors);
        let krate = conditions::krate(args, errors);
        let expr = |name| args.value(name).map(|value| peel(value).clone());
        Some(Limit {
            kind: args.kind,
            span: args.attribute,
            policy: policy?,
            name,
            number: 1,
            prefix,
            cost,
            timeout,
            key,
            fallback,
            on_store_error,
            skip_when: expr("skip_when"),
            charge_when,
            shadow: args.has("shadow"),
            registry: expr("registry"),
            krate,
        })
    }
}

fn key(args: &Args, function: &Function, errors: &mut Errors) -> Vec<Part> {
    let key_type = args.value("key_type").and_then(|value| {
        let known = word(value).and_then(|word| KEY_TYPES.into_iter().find(|known| word == known));
        if known.is_none() {
            errors.on(value, format!("expected one of {}", listed(&KEY_TYPES)));
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
            None => template::bare(peel(value), errors),
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

fn text(args: &Args, name: &'static str, example: &str, errors: &mut Errors) -> Option<LitStr> {
    let value = args.value(name)?;
    let text = literal(value).filter(|literal| !literal.value().is_empty());
    if text.is_none() {
        errors.on(value, format!("`{name}` is a non-empty string literal; write `{name} = \"{example}\"`"));
    }
    text.cloned()
}
