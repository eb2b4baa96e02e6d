//! The model to tokens: a prologue in front of the body. The body is not wrapped, except for `charge_when`, `settle` and `pause_when`,
//! which must see the output.
//!
//! Local variables have the hygiene of the macro, so that no argument captures them. Items and paths have none, so paths are
//! absolute, and items are in blocks without any expression of the user.

mod charge;
mod context;
mod output;
mod policy;
mod refusal;

use std::collections::HashSet;

use proc_macro2::{Group, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use ratelimit_syntax::AttributeKind;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use self::context::{Expansion, braced, hygienic, local};
use crate::args::Args;
use crate::errors::Errors;
use crate::function::{ArgumentNames, Destructured, Function};
use crate::model::LimitedFunction;
use crate::stack::{self, LimitAttribute};
use crate::unparsed::unparsed;

/// Expands one attribute.
pub(crate) fn attribute(kind: AttributeKind, args: TokenStream, item: TokenStream) -> TokenStream {
    expand(LimitAttribute::new(kind, args), item, false)
}

/// Expands an attribute that was deferred to a sibling which a `cfg_attr` then left out.
pub(crate) fn deferred(tokens: TokenStream, item: TokenStream) -> TokenStream {
    match LimitAttribute::deferred(tokens) {
        Some(attribute) => expand(attribute, item, true),
        None => item,
    }
}

/// After an error, the function is returned unchanged, so that the error is the only one.
fn expand(attribute: LimitAttribute, item: TokenStream, is_deferred: bool) -> TokenStream {
    let Ok(mut function) = Function::parse(item.clone()) else {
        return unparsed(item.clone(), attribute.kind.name()).unwrap_or_else(|| {
            let error = LimitedFunction::not_a_function(attribute.kind, item.clone()).into_compile_error();
            quote!(#error #item)
        });
    };
    // A deferred attribute has no siblings left. If it sees one, it is not ours: the compiler did not find it, and re-emits it.
    if let Some(sibling) = stack::last_sibling(&function).filter(|_| !is_deferred) {
        let args = Args::parse(&attribute, function.bindings(), &mut Errors::default());
        stack::defer(&attribute, sibling, &library(args.path("crate")), &mut function);
        return function.into_token_stream();
    }
    let mut attributes = stack::take_deferred(&mut function);
    let unchanged = if attributes.is_empty() { item } else { function.to_token_stream() };
    if function.is_malformed {
        return unparsed(unchanged.clone(), attribute.kind.name()).unwrap_or(unchanged);
    }
    // Those that were deferred to this one come first, unless it was deferred with them.
    attributes.insert(if is_deferred { 0 } else { attributes.len() }, attribute);
    match LimitedFunction::read(&attributes, function) {
        Ok(limited) => limited_function(limited, &words(&attributes)),
        Err(errors) => {
            let errors = errors.into_compile_error();
            // An argument may be used by the attributes only.
            quote!(#errors #[allow(unused_variables)] #unchanged)
        }
    }
}

/// Returns every word in the arguments of the attributes, templates included.
fn words(attributes: &[LimitAttribute]) -> HashSet<String> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = attributes.iter().flat_map(|attribute| {
        let text = attribute.args.to_string();
        text.split(|letter| !is_word(letter)).map(str::to_owned).collect::<Vec<_>>()
    });
    words.collect()
}

fn library(krate: Option<&syn::Path>) -> TokenStream {
    krate.map_or_else(|| quote!(::ratelimits), ToTokens::to_token_stream)
}

fn limited_function(limited: LimitedFunction, words: &HashSet<String>) -> TokenStream {
    let LimitedFunction { mut function, limits, tag } = limited;
    let passes_args =
        limits.iter().filter_map(|limit| limit.fallback.as_ref()).any(|fallback| fallback.pass_args);
    let arguments = if passes_args { function.name_arguments() } else { ArgumentNames::default() };
    let moved = if output::is_seen(&limits) { function.move_mutable() } else { TokenStream::new() };
    let library = library(limits.iter().find_map(|limit| limit.krate.as_ref()));
    let import = quote!(use #library::__private as __ratelimits;);
    let expansion =
        Expansion { function: &function, limits: &limits, tag, arguments: &arguments, library, import };

    let prologue = prologue(&expansion);
    let patterns = arguments
        .destructured
        .iter()
        .map(|Destructured { name, pattern, attributes, .. }| quote!(#(#attributes)* let #pattern = #name;));
    let restored = quote!(#moved #(#patterns)*);
    let used = used(&expansion, words);

    let Function { attributes, visibility, defaultness, signature, .. } = &function;
    let (inner_attributes, body) = function.split_body();
    let brace = function.body.as_ref().map_or_else(Span::call_site, Group::span);
    let [typing, binding, body] = match &function.block {
        None => [TokenStream::new(), TokenStream::new(), body],
        Some(block) => block.split(),
    };
    let body = output::body(&expansion, quote!(#restored #binding #used), body, brace);
    let whole = quote!(#typing #prologue #body);
    let whole = match &function.block {
        None => whole,
        Some(block) => block.with(whole),
    };
    let whole = braced(quote!(#inner_attributes #whole), brace);
    quote!(#(#attributes)* #visibility #defaultness #signature #whole)
}

/// Uses the variables that the attributes name, so that those the body ignores are not reported as unused.
fn used(expansion: &Expansion<'_>, words: &HashSet<String>) -> TokenStream {
    let Expansion { function, arguments, .. } = expansion;
    let destructured = function.destructured(arguments).flat_map(|destructured| {
        destructured.bindings().into_iter().map(|binding| (binding, destructured.cfgs.as_slice()))
    });
    let moved = function.block.iter().flat_map(|block| block.moved()).map(|name| (name.clone(), &[][..]));
    let used = destructured
        .chain(moved)
        .filter(|(binding, _)| words.contains(&binding.unraw().to_string()))
        .map(|(binding, cfgs)| quote!(#(#cfgs)* let _ = &#binding;));
    quote!(#(#used)*)
}

fn prologue(expansion: &Expansion<'_>) -> TokenStream {
    let Expansion { function, limits, arguments, import, .. } = expansion;
    let [call, closure, decision, pausable] = ["call", "closure", "decision", "pausable"].map(local);
    let borrowed = function.destructured(arguments).map(|destructured| {
        let (pattern, name, cfgs) = (destructured.borrowed(), &destructured.name, &destructured.cfgs);
        quote!(#(#cfgs)* #[allow(unused_variables)] let #pattern = &#name;)
    });
    let new = match limits.iter().find_map(|limit| limit.registry.as_ref()) {
        Some(registry) => quote_spanned!(hygienic(registry.span())=> __ratelimits::Call::on(#registry)),
        None => quote!(__ratelimits::Call::new()),
    };
    let charges = limits.iter().enumerate().map(|(index, limit)| charge::charge(expansion, index, limit));
    let refusal = refusal::refusal(expansion, &decision);
    let bound = output::bound(limits);
    let kept = match bound {
        Some(name) => quote!(mut #name),
        None if output::keeps(limits) => local("charged").into_token_stream(),
        None => quote!(()),
    };
    let decide = match (bound.is_some(), function.is_async()) {
        (false, true) if limits.iter().all(|limit| limit.skip_when.is_some()) => {
            quote!(decide_unless_skipped)
        }
        (false, true) => quote!(decide),
        (true, true) => quote!(decide_bound),
        (false, false) => quote!(decide_blocking),
        (true, false) => quote!(decide_bound_blocking),
    };
    // The keys are taken while the call has them.
    let (kept, decide, refusal) = match output::pauses(limits) {
        true => (
            quote!((#kept, #pausable)),
            quote!((__ratelimits::Call::pausable(&mut #call), __ratelimits::Call::#decide(&mut #call))),
            quote!(({ #refusal }, #pausable)),
        ),
        false => (kept, quote!(__ratelimits::Call::#decide(&mut #call)), refusal),
    };
    let decided = if output::pauses(limits) { quote!((#pausable, #decision)) } else { quote!(#decision) };
    // The call is made in a separate statement, so that nothing a key borrows or locks is alive across the await.
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
            clippy::used_underscore_binding,
            unused_mut
        )]
        let #kept = {
            #import
            let #decided = {
                #(#borrowed)*
                let mut #call = #new;
                // Only the type name of something inside the function contains the type it belongs to.
                let #closure = ::core::any::type_name_of_val(&|| ());
                #(#charges)*
                #decide
            };
            #refusal
        };
    }
}
