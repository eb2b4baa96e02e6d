//! The body and its output.

use proc_macro2::{Group, Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Expr;
use syn::spanned::Spanned;

use super::context::{Expansion, braced, hygienic, local};
use crate::function::Function;
use crate::model::Limit;

/// Returns whether a policy looks at the output.
pub(super) fn is_seen(limits: &[Limit]) -> bool {
    limits.iter().any(Limit::sees_output)
}

/// Returns whether the output says what is charged.
pub(super) fn corrects(limits: &[Limit]) -> bool {
    limits.iter().any(Limit::corrects)
}

/// Returns whether the call holds permits until its body has ended.
pub(super) fn holds(limits: &[Limit]) -> bool {
    limits.iter().any(Limit::holds)
}

/// Returns whether the prologue keeps what the call was charged: to correct it by the output, or because dropping it releases what
/// the call holds.
pub(super) fn keeps(limits: &[Limit]) -> bool {
    corrects(limits) || holds(limits)
}

/// Returns the name under which the body sees the decision.
pub(super) fn bound(limits: &[Limit]) -> Option<&Ident> {
    limits.iter().find_map(|limit| limit.bind.as_ref())
}

/// Returns whether the output may pause keys.
pub(super) fn pauses(limits: &[Limit]) -> bool {
    limits.iter().any(|limit| limit.pause_when.is_some())
}

/// Returns the output type as an expression can name it, and where it is written.
pub(super) fn written(function: &Function) -> (TokenStream, Span) {
    match function.output() {
        Some(output) => (output.to_token_stream(), output.span()),
        None => {
            let span = function.signature.ident.span();
            (quote_spanned!(span=> ()), span)
        }
    }
}

/// Returns the body after the statements that restore its arguments. If a policy looks at the output, the body is in an async
/// block, or in a closure if the function is not async, and charges are corrected, and keys paused, after it. `brace` is the span of
/// the function's braces.
pub(super) fn body(
    expansion: &Expansion<'_>,
    restored: TokenStream,
    body: TokenStream,
    brace: Span,
) -> TokenStream {
    let Expansion { limits, import, .. } = expansion;
    // Always in a block, so that the body's items do not capture names in the prologue or in patterns. With the hygiene of the
    // macro, or rustc warns about needless inner braces.
    let span = hygienic(brace);
    let body = braced(body, span);
    let releases = holds(limits) && bound(limits).is_none();
    if !is_seen(limits) {
        let body = if releases { held(body) } else { body };
        if restored.is_empty() {
            return body.into_token_stream();
        }
        return braced(quote!(#restored #body), span).into_token_stream();
    }
    let [charged, pausable, output] = ["charged", "pausable", "output"].map(local);
    let corrected = limits.iter().enumerate().filter_map(|(index, limit)| {
        let (function, argument) = match (&limit.charge_when, &limit.settle) {
            (Some(condition), _) => ("charge_when", condition),
            (None, Some(used)) => ("settle", used),
            (None, None) => return None,
        };
        Some(of_output(index, function, argument, &output))
    });
    let correct =
        corrects(limits).then(|| quote!(__ratelimits::Charged::correct(#charged, &[#(#corrected),*]);));
    // The body has ended, and its temporaries with it.
    let release = (releases && !corrects(limits)).then(|| quote!(::core::mem::drop(#charged);));
    let paused = limits.iter().enumerate().filter_map(|(index, limit)| {
        Some(of_output(index, "pause_when", limit.pause_when.as_ref()?, &output))
    });
    let pause = pauses(limits).then(|| quote!(__ratelimits::Pausables::pause(#pausable, &[#(#paused),*]);));
    let run = run(expansion, &restored, &body, brace);
    quote! {
        let #output = #run;
        #[allow(clippy::redundant_closure_for_method_calls)]
        {
            #import
            #correct
            #release
            #pause
        }
        #output
    }
}

/// Returns the output of the body, of which an early `return` and a `?` only leave the block or closure. `brace` is the span of the
/// function's braces, because coverage leaves out blocks of macros.
fn run(expansion: &Expansion<'_>, restored: &TokenStream, body: &Group, brace: Span) -> TokenStream {
    let Expansion { function, library, .. } = expansion;
    let (output, span) = (local("output"), hygienic(brace));
    let (ty, _) = written(function);
    if function.is_async() {
        // The first `return` determines the type that the others are checked against, as that of the function would.
        let typing = quote_spanned! {span=>
            if let ::core::option::Option::Some(#output) = ::core::option::Option::None::<#ty> {
                return #output;
            }
        };
        let block = braced(quote!(#typing #restored #body), brace);
        // With `move`, so that the future holds what the function's would, and not references, which may not be `Send`.
        let body = quote_spanned!(brace=> async move #block);
        return quote!(#body.await);
    }
    let ty = if function.output().is_some() { ty } else { quote_spanned!(span=> ()) };
    let block = braced(quote!(#restored #body), brace);
    let closure = quote_spanned!(brace=> move || -> #ty #block);
    // By a function, so that the compiler knows that the closure is called once, and may give away what it has captured.
    quote!(#library::__private::run(#closure))
}

/// Returns the body as the arm of a match that binds the charges of the call, and so releases what it holds.
///
/// An arm drops the temporaries of its last expression before what it binds. A block of edition 2021 drops its variables before
/// them, and the next call would run beside what is left of this one.
fn held(body: Group) -> Group {
    let (charged, hold) = (local("charged"), format_ident!("_{}", local("hold")));
    let span = body.span();
    braced(quote!(match #charged { #hold => #body }), span)
}

/// Returns what a function of this name makes of the output by the argument, with the index of the attribute.
fn of_output(index: usize, function: &str, argument: &Expr, output: &Ident) -> TokenStream {
    let span = hygienic(argument.span());
    let function = Ident::new(function, span);
    let made = quote_spanned!(span=> __ratelimits::#function(&#output, #argument));
    quote!((#index, #made))
}
