//! The attributes of the `ratelimits` crate, which documents them.
//!
//! `args` reads the attribute's tokens with the parser of `ratelimit-syntax`, `model` validates the arguments together with the function, and `expand` generates
//! the code.
#![forbid(unsafe_code)]

mod args;
mod errors;
mod expand;
mod function;
mod model;
mod number;
mod stack;
mod template;
#[cfg(test)]
mod tests;
mod unparsed;

use proc_macro::TokenStream;
use ratelimit_syntax::AttributeKind;

#[allow(missing_docs, reason = "documented where the facade re-exports it")]
#[proc_macro_attribute]
pub fn rate_limit(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(AttributeKind::Rate, args.into(), item.into()).into()
}

#[allow(missing_docs, reason = "documented where the facade re-exports it")]
#[proc_macro_attribute]
pub fn count_limit(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(AttributeKind::Count, args.into(), item.into()).into()
}

#[allow(missing_docs, reason = "documented where the facade re-exports it")]
#[proc_macro_attribute]
pub fn funnel_limit(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(AttributeKind::Funnel, args.into(), item.into()).into()
}

#[allow(missing_docs, reason = "documented where the facade re-exports it")]
#[proc_macro_attribute]
pub fn window_limit(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(AttributeKind::Window, args.into(), item.into()).into()
}

#[allow(missing_docs, reason = "documented where the facade re-exports it")]
#[proc_macro_attribute]
pub fn concurrency_limit(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(AttributeKind::Concurrency, args.into(), item.into()).into()
}

/// Carries an attribute that was deferred to the last of its siblings on a function. Used by generated code only.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn __limit(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::deferred(args.into(), item.into()).into()
}
