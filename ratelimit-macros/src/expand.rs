//! The model to tokens: a prologue in front of the body. The body itself is not wrapped, but for `charge_when`, which must
//! see what it comes to.
//!
//! Locals have the hygiene of the macro, so that no argument meets them. Items and paths have none, so paths are absolute
//! and constants stand in blocks that hold no expression of the user's.

mod charge;
mod output;
mod refusal;
mod rule;

use std::collections::HashSet;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use crate::args::Args;
use crate::errors::Errors;
use crate::function::{Argument, Function, Renamed};
use crate::kind::Kind;
use crate::model::{Limits, Policy, Tag};
use crate::stack::{self, Limit};

/// Expands one attribute.
pub(crate) fn attribute(kind: Kind, args: TokenStream, item: TokenStream) -> TokenStream {
    limit(Limit::written(kind, args), item, false)
}

/// Expands an attribute that was carried behind one which a `cfg_attr` then left out.
pub(crate) fn carried(tokens: TokenStream, item: TokenStream) -> TokenStream {
    match Limit::carried(tokens) {
        Some(carried) => limit(carried, item, true),
        None => item,
    }
}

/// After a mistake the function comes back as it was, so that the mistake is all there is to see.
fn limit(limit: Limit, item: TokenStream, carried: bool) -> TokenStream {
    let Ok(mut function) = Function::parse(item.clone()) else {
        let errors = Limits::no_function(limit.kind, item.clone()).into_compile_error();
        return quote!(#errors #item);
    };
    // One that was carried has stepped back as far as it goes. What it still sees is no attribute of ours: the compiler
    // found none of that name, and puts it back.
    if let Some(last) = stack::last_sibling(&function).filter(|_| !carried) {
        stack::step_back(&limit, last, &library_of(&limit, &function), &mut function);
        return function.into_token_stream();
    }
    let mut limits = stack::collect(&mut function);
    let unchanged = if limits.is_empty() { item } else { function.to_token_stream() };
    // Those that were carried here stand above this one, unless this one was carried with them.
    limits.insert(if carried { 0 } else { limits.len() }, limit);
    match Limits::read(&limits, function) {
        Ok(read) => weave(read, &words(&limits)),
        Err(errors) => {
            let errors = errors.into_compile_error();
            // What only the attributes use is used.
            quote!(#errors #[allow(unused_variables)] #unchanged)
        }
    }
}

/// Every word in the arguments of the attributes, also in their templates.
fn words(limits: &[Limit]) -> HashSet<String> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = limits.iter().flat_map(|limit| {
        let text = limit.args.to_string();
        text.split(|letter| !is_word(letter)).map(str::to_owned).collect::<Vec<_>>()
    });
    words.collect()
}

/// Where the library is, as far as this attribute says.
fn library_of(limit: &Limit, function: &Function) -> TokenStream {
    let args = Args::parse(limit, function.bindings(), &mut Errors::default());
    library(args.path("crate"))
}

fn library(krate: Option<&syn::Path>) -> TokenStream {
    krate.map_or_else(|| quote!(::ratelimits), ToTokens::to_token_stream)
}

fn weave(limits: Limits, words: &HashSet<String>) -> TokenStream {
    let Limits { mut function, policies, tag } = limits;
    let passes_args =
        policies.iter().any(|policy| policy.fallback.as_ref().is_some_and(|fallback| fallback.pass_args));
    let (arguments, renamed) = if passes_args { function.name_arguments() } else { Default::default() };
    let library = library(policies.iter().find_map(|policy| policy.krate.as_ref()));
    let import = quote!(use #library::__private as __ratelimits;);
    let prologue = prologue(&function, &policies, tag, (&arguments, &renamed), &import);
    let moved = if output::is_seen(&policies) { function.move_changing() } else { TokenStream::new() };
    let restored = renamed
        .iter()
        .map(|Renamed { name, pattern, attributes, .. }| quote!(#(#attributes)* let #pattern = #name;));
    let restored = quote!(#moved #(#restored)*);
    // What an attribute counts by is used, whether or not the body looks at it.
    let used = function
        .taken_apart(&renamed)
        .flat_map(|renamed| renamed.bindings().into_iter().map(|binding| (binding, renamed.cfgs.as_slice())));
    let moved = function.block.iter().flat_map(|block| block.moved()).map(|name| (name.clone(), &[][..]));
    let used = used.chain(moved).filter(|(binding, _)| words.contains(&binding.unraw().to_string()));
    let used = used.map(|(binding, cfgs)| quote!(#(#cfgs)* let _ = &#binding;));
    let used = quote!(#(#used)*);

    let Function { attributes, visibility, defaultness, signature, .. } = &function;
    let (inner_attributes, body) = function.split_body();
    let brace = function.body.as_ref().map_or_else(Span::call_site, Group::span);
    let [typing, binding, body] = match &function.block {
        None => [TokenStream::new(), TokenStream::new(), body],
        Some(block) => block.split(),
    };
    // Of the macro's hygiene, or rustc finds the inner braces needless.
    let place = hygienic(brace);
    let body = output::body(&function, &policies, &import, quote!(#restored #binding #used), body, place);
    let whole = quote!(#typing #prologue #body);
    let whole = match &function.block {
        None => whole,
        Some(block) => block.with(whole),
    };
    let whole = braced(quote!(#inner_attributes #whole), brace);
    quote!(#(#attributes)* #visibility #defaultness #signature #whole)
}

fn braced(tokens: TokenStream, span: Span) -> Group {
    let mut group = Group::new(Delimiter::Brace, tokens);
    group.set_span(span);
    group
}

/// A place in the user's code, with the hygiene of the macro.
fn hygienic(place: Span) -> Span {
    Span::mixed_site().located_at(place)
}

/// No `let` can have the name of a constant or a unit struct that is in scope, so these names are nobody else's.
fn local(name: &str) -> Ident {
    format_ident!("ratelimits_{name}", span = Span::mixed_site())
}

fn prologue(
    function: &Function,
    policies: &[Policy],
    tag: Tag,
    (arguments, renamed): (&[Argument], &[Renamed]),
    import: &TokenStream,
) -> TokenStream {
    let [call, closure, deciding] = ["call", "closure", "deciding"].map(local);
    let peeks = function.taken_apart(renamed).map(|renamed| {
        let (pattern, name, cfgs) = (renamed.borrowed(), &renamed.name, &renamed.cfgs);
        quote!(#(#cfgs)* #[allow(unused_variables)] let #pattern = &#name;)
    });
    let new = match policies.iter().find_map(|policy| policy.registry.as_ref()) {
        Some(registry) => quote_spanned!(hygienic(registry.span())=> __ratelimits::Call::on(#registry)),
        None => quote!(__ratelimits::Call::new()),
    };
    let charges =
        policies.iter().enumerate().map(|(at, policy)| charge::charge(at, policy, tag, &call, &closure));
    let refusal = refusal::refusal(function, policies, (arguments, renamed), &deciding);
    let charged = if output::is_seen(policies) { local("charged").into_token_stream() } else { quote!(_) };
    // The call is put together in a statement of its own: nothing that a key borrows or locks lives on while awaiting.
    quote! {
        #[allow(
            unknown_lints,
            clippy::cast_lossless,
            clippy::cast_possible_truncation,
            clippy::items_after_statements,
            clippy::needless_return,
            clippy::redundant_closure,
            clippy::redundant_closure_call,
            clippy::redundant_closure_for_method_calls,
            clippy::result_large_err,
            clippy::semicolon_if_nothing_returned,
            clippy::unnecessary_cast,
            clippy::used_underscore_binding
        )]
        let #charged = {
            #import
            let #deciding = {
                #(#peeks)*
                let mut #call = #new;
                // Only the type of something in the function tells which type the function belongs to.
                let #closure = ::core::any::type_name_of_val(&|| ());
                #(#charges)*
                __ratelimits::Call::decide(#call)
            };
            #refusal
        };
    }
}
