//! The validated model: what the arguments and the function mean together. Everything that tokens alone can violate is
//! checked here.

mod conditions;
mod fallback;
mod lease;
mod limit;
mod penalty;
mod policy;
mod stack;
mod written;

use proc_macro2::{Span, TokenStream, TokenTree};
use ratelimit_syntax::AttributeKind;
use syn::{Abi, Type};

use crate::args::Args;
use crate::errors::Errors;
use crate::function::{AsyncBlock, Function};
use crate::stack::{LimitAttribute, last_number};
pub(crate) use fallback::{Fallback, Target};
pub(crate) use lease::Lease;
pub(crate) use limit::{Limit, Tag};
pub(crate) use policy::{Policy, Refill};
pub(crate) use written::Written;

/// A function and the limits on it, which are decided together.
pub(crate) struct LimitedFunction {
    pub(crate) function: Function,
    /// In source order; at least one.
    pub(crate) limits: Vec<Limit>,
    pub(crate) tag: Tag,
}

impl LimitedFunction {
    /// Reads all attributes of a function, and reports all that is wrong with any of them.
    pub(crate) fn read(attributes: &[LimitAttribute], function: Function) -> syn::Result<LimitedFunction> {
        let mut errors = Errors::default();
        let can_be_limited = check_signature(&function, attributes[0].kind, &mut errors);
        let parse = |attribute| Args::parse(attribute, function.bindings(), &mut errors);
        let args: Vec<_> = attributes.iter().map(parse).collect();
        if can_be_limited {
            check_output(&function, &args, &mut errors);
        }
        let limits: Vec<_> = args.iter().map(|args| Limit::read(args, &function, &mut errors)).collect();
        let limits = limits.into_iter().collect::<Option<Vec<_>>>();
        let limited = limits.map(|mut limits| {
            stack::check(&limits, &mut errors);
            stack::mark_settled(&mut limits);
            stack::number(&mut limits, last_number(&function));
            LimitedFunction { function, tag: stack::tag(&limits), limits }
        });
        errors.finish(limited)
    }

    /// Returns the error for an item that is not a function.
    pub(crate) fn not_a_function(kind: AttributeKind, item: TokenStream) -> syn::Error {
        let message = format!("expected a function; write `#[{}(…)]` on each function", kind.name());
        syn::Error::new(item_keyword(item), message)
    }
}

/// Returns the span of the item's keyword.
fn item_keyword(item: TokenStream) -> Span {
    let start = item.clone().into_iter().next();
    let word = item.into_iter().find(|token| matches!(token, TokenTree::Ident(word) if *word != "pub"));
    word.or(start).map_or_else(Span::call_site, |token| token.span())
}

/// Returns whether it is a function that can be limited.
fn check_signature(function: &Function, kind: AttributeKind, errors: &mut Errors) -> bool {
    let (signature, name, attribute) = (&function.signature, function.name(), kind.name());
    let from_outside = || {
        format!(
            "a function that other languages call cannot be limited, because a refusal means nothing to them; write \
             `#[{attribute}(…)]` on a function that `{name}` calls"
        )
    };
    if function.body.is_none() {
        let message = format!(
            "expected a function with a body; write `#[{attribute}(…)]` on the implementations of `{name}`"
        );
        errors.on(&signature.ident, message);
    } else if let Some(constness) = &signature.constness {
        let message =
            format!("a `const fn` cannot be limited, because it may run in the compiler; write `fn {name}`");
        errors.on(constness, message);
    } else if let Some(early) = function.block.as_ref().and_then(AsyncBlock::early_return) {
        let message =
            "this `return` would skip the limit; move it into the async block, or write an `async fn`";
        errors.at(early, message);
    } else if function.is_async() {
        return true;
    } else if let Some(abi) = signature.abi.as_ref().filter(|abi| !is_rust(abi)) {
        errors.on(abi, from_outside());
    } else if let Some(exported) = function.exported() {
        errors.on(exported, from_outside());
    } else if function.returns_future() {
        let message = format!(
            "the limit of a future is awaited in it; write `async fn {name}`, or end the body with `async move {{ … }}` or \
             `Box::pin(async move {{ … }})`"
        );
        errors.on(signature.fn_token, message);
    } else {
        return true;
    }
    false
}

fn is_rust(abi: &Abi) -> bool {
    abi.name.as_ref().is_some_and(|name| name.value() == "Rust")
}

/// Checks that the return type can be named where a refusal is converted into it.
fn check_output(function: &Function, args: &[Args], errors: &mut Errors) {
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
    let (with_fallback, without_fallback): (Vec<_>, Vec<_>) =
        args.iter().filter(|args| !args.has("shadow")).partition(|args| args.has("fallback"));
    if !with_fallback.is_empty() {
        // At those that lack what others have.
        without_fallback.iter().for_each(|args| errors.at(args.attribute, &message));
    } else if !without_fallback.is_empty() {
        errors.on(&function.signature.output, message);
    }
}
