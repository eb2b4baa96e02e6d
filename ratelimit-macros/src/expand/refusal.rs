//! What a refused call returns.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;

use super::context::{Expansion, hygienic, local};
use super::output;
use crate::function::{Destructured, Function};
use crate::model::{Fallback, Target};

/// Awaits the decision, unless it is there, and returns from the function if it is a refusal: by the fallback of the policy that
/// refused, or without one by converting the error into the return type.
pub(super) fn refusal(expansion: &Expansion<'_>, decision: &Ident) -> TokenStream {
    let Expansion { function, limits, .. } = expansion;
    let [charged, refusal, verdict] = ["charged", "refusal", "verdict"].map(local);
    let (never, binds) = (limits.iter().all(|limit| limit.shadow), output::bound(limits).is_some());
    let mut default = match never {
        true if binds => quote!(__ratelimits::unlimited()),
        true if output::keeps(limits) => quote!(__ratelimits::Charged::NOTHING),
        true => quote!(()),
        false => refuse(function, &refusal),
    };
    // If no policy refused, as when the store failed, the first fallback is called.
    let first = limits.iter().position(|limit| limit.fallback.is_some() && !limit.shadow);
    let last_without = limits.iter().rposition(|limit| limit.fallback.is_none() && !limit.shadow);
    let mut arms = Vec::new();
    for (index, limit) in limits.iter().enumerate() {
        let refused = quote!(::core::option::Option::Some(#index));
        match &limit.fallback {
            Some(fallback) => {
                let answer = call_fallback(expansion, fallback, &refusal);
                match first == Some(index) {
                    true if last_without.is_none() => default = answer,
                    true => arms.push(quote!(#refused | ::core::option::Option::None => #answer)),
                    // In shadow too, where it is never called, so that it is not reported as dead code.
                    false => arms.push(quote!(#refused => #answer)),
                }
            }
            // Each on its own, so that the compiler points at those that lack what others have.
            None if first.is_some() && !limit.shadow => {
                let answer = refuse_beside_fallback(&refusal, limit.span);
                match last_without == Some(index) {
                    true => default = answer,
                    false => arms.push(quote!(#refused => #answer)),
                }
            }
            None => {}
        }
    }
    let (refused, default) = match arms.is_empty() {
        true if never => (quote!(_), default),
        true => (quote!(#refusal), default),
        false => (quote!(#refusal), quote!(match #refusal.policy() { #(#arms)* _ => #default })),
    };
    // The value is what the call was charged: an arm that does not return does not compile. A function that neither looks at
    // its output nor holds permits keeps nothing of it.
    let (nothing, kept) = match output::keeps(limits) {
        true => (quote!(__ratelimits::Charged::NOTHING), quote!(#charged)),
        false => (quote!(()), quote!(_)),
    };
    let value = if output::keeps(limits) { quote!(#charged) } else { quote!(()) };
    let decided = match (binds, function.is_async()) {
        (_, false) => decision.to_token_stream(),
        (true, true) => quote! {
            match #decision {
                __ratelimits::Bound::Decided(#verdict) => #verdict,
                __ratelimits::Bound::Later(#decision) => #decision.await,
            }
        },
        (false, true) => quote! {
            match #decision {
                __ratelimits::Decided::Charged(#verdict) => ::core::result::Result::Ok(#verdict),
                __ratelimits::Decided::Refused(#verdict) => ::core::result::Result::Err(#verdict),
                __ratelimits::Decided::Later(#decision) => #decision.await,
            }
        },
    };
    if binds {
        return quote! {
            let #verdict = #decided;
            match #verdict {
                ::core::result::Result::Ok(#charged) => #charged,
                ::core::result::Result::Err(#refused) => #default,
            }
        };
    }
    quote! {
        match #decision {
            ::core::option::Option::None => #nothing,
            ::core::option::Option::Some(#decision) => {
                let #verdict = #decided;
                match #verdict {
                    ::core::result::Result::Ok(#kept) => #value,
                    ::core::result::Result::Err(#refused) => #default,
                }
            }
        }
    }
}

fn refuse(function: &Function, refusal: &Ident) -> TokenStream {
    let (output, span) = output::written(function);
    let returned = quote_spanned!(hygienic(span)=> return __ratelimits::refuse::<#output>(#refusal));
    quote!({ #returned; })
}

/// Refuses for an attribute without a fallback among some that have one. The type is inferred, so that the compiler points at the
/// attribute and not at the type.
fn refuse_beside_fallback(refusal: &Ident, attribute: Span) -> TokenStream {
    let refuse = quote_spanned!(hygienic(attribute)=> __ratelimits::refuse_beside_fallback);
    quote!({ return #refuse(#refusal); })
}

/// Calls a fallback. Whether it is async is determined from its result, so that an error in the call is an ordinary type error. That of
/// a function that is not async is not async either.
fn call_fallback(expansion: &Expansion<'_>, fallback: &Fallback, refusal: &Ident) -> TokenStream {
    let Expansion { function, arguments, .. } = expansion;
    let span = hygienic(fallback.span);
    let receiver = function.receiver().filter(|_| fallback.pass_args).into_iter();
    let names = if fallback.pass_args { arguments.names.as_slice() } else { &[] };
    let [called, error_name, future, kind] = ["called", "error", "future", "kind"].map(local);
    let answer = format_ident!("ratelimits_answer", span = span);
    let error = match fallback.target {
        Target::Closure(_) => {
            let restored = function.destructured(arguments).map(|Destructured { name, pattern, cfgs, .. }| {
                quote!(#(#cfgs)* #[allow(unused_variables, unused_mut)] let #pattern = #name;)
            });
            quote!(let #error_name = #refusal.into_error(); #(#restored)*)
        }
        // Dropped first, so that it is not alive while the fallback is awaited.
        _ => quote!(::core::mem::drop(#refusal.into_error());),
    };
    let call = match &fallback.target {
        Target::Function(path) => quote_spanned!(span=> #path(#(#names),*)),
        Target::Associated(path) => quote_spanned!(span=> #path(#(#receiver,)* #(#names),*)),
        Target::Method(base, method) => quote_spanned!(span=> #base.#method(#(#names),*)),
        Target::Closure(closure) => {
            quote_spanned!(span=> __ratelimits::call_fallback(#error_name, #closure))
        }
    };
    let returned = quote_spanned!(span=> return #answer);
    let output = fallback_output(function);
    // What follows a call that never returns is unreachable.
    let answered = |answer: TokenStream| {
        quote! {
            #[allow(clippy::diverging_sub_expression)]
            let #called = #call;
            #[allow(unreachable_code)]
            {
                use __ratelimits::{FutureFallback as _, OutputFallback as _, ValueFallback as _};
                let #kind = (&&&__ratelimits::Fallback::<_, #output>::of(&#called)).ratelimits_kind();
                #answer
            }
        }
    };
    let answered = if function.is_async() {
        // A value is not awaited, and leaves before anything is, because it may not be `Send`.
        let called = answered(quote! {
            match #kind.ratelimits_answer(#called) {
                ::core::ops::ControlFlow::Break(#answer) => break 'ratelimits_answer #answer,
                ::core::ops::ControlFlow::Continue(#future) => #future,
            }
        });
        quote!('ratelimits_answer: {
            let #future = { #called };
            #[allow(unreachable_code)]
            {
                #future.await
            }
        })
    } else {
        let value = quote_spanned!(span=> ratelimits_value);
        let called = answered(quote!(#kind.#value(#called)));
        quote!({ #called })
    };
    quote!({
        #error
        let #answer = #answered;
        #[allow(unreachable_code)]
        #returned;
    })
}

/// Returns the output type that a fallback's result of unknown type gets: that of the function, or `!` if a part of it has no
/// name, because nothing would determine that part beside an async fallback.
fn fallback_output(function: &Function) -> TokenStream {
    let (output, _) = output::written(function);
    match function.output() {
        Some(Type::Never(_)) => quote!(__ratelimits::Never),
        Some(_) if is_inferred(output.clone()) => quote!(__ratelimits::Never),
        _ => output,
    }
}

/// Returns whether a type has a `_` in it.
fn is_inferred(ty: TokenStream) -> bool {
    ty.into_iter().any(|token| match token {
        TokenTree::Ident(word) => word == "_",
        TokenTree::Group(group) => is_inferred(group.stream()),
        _ => false,
    })
}
