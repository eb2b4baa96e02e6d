//! The attributes of the `ratelimits` crate, where their documentation stands.
//!
//! Tokens become `args`, arguments and function become a `model`, and the model becomes tokens again in `expand`.

mod args;
mod errors;
mod expand;
mod expr;
mod function;
mod kind;
mod model;
mod number;
mod stack;
mod template;
#[cfg(test)]
mod tests;

use kind::Kind;
use proc_macro::TokenStream;

#[allow(missing_docs, reason = "documented where the facade re-exports it")]
#[proc_macro_attribute]
pub fn rate_limit(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(Kind::Rate, args.into(), item.into()).into()
}

#[allow(missing_docs, reason = "documented where the facade re-exports it")]
#[proc_macro_attribute]
pub fn count_limit(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(Kind::Count, args.into(), item.into()).into()
}

#[allow(missing_docs, reason = "documented where the facade re-exports it")]
#[proc_macro_attribute]
pub fn funnel_limit(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(Kind::Funnel, args.into(), item.into()).into()
}

#[allow(missing_docs, reason = "documented where the facade re-exports it")]
#[proc_macro_attribute]
pub fn window_limit(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(Kind::Window, args.into(), item.into()).into()
}

/// Carries an attribute behind the last of its siblings on a function. Only generated code names it.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn __limit(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::carried(args.into(), item.into()).into()
}
