//! The body, and what it comes to.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;

use super::{braced, hygienic, local};
use crate::function::Function;
use crate::model::Policy;

/// Whether a policy asks what the body comes to.
pub(super) fn is_seen(policies: &[Policy]) -> bool {
    policies.iter().any(|policy| policy.charge_when.is_some())
}

/// The output as an expression can name it, and where it is written.
pub(super) fn written(function: &Function) -> (TokenStream, Span) {
    match function.output() {
        Some(output) => (output.to_token_stream(), output.span()),
        None => {
            let place = function.signature.ident.span();
            (quote_spanned!(place=> ()), place)
        }
    }
}

/// The body as it was. Where a policy asks what it comes to, it stands in an async block, and what the policies then do not
/// charge for is given back.
pub(super) fn body(
    function: &Function,
    policies: &[Policy],
    import: &TokenStream,
    restored: TokenStream,
    body: TokenStream,
    place: Span,
) -> TokenStream {
    if !is_seen(policies) {
        // In a block of its own in any case, so that items of the body are not in the way of the prologue or of patterns.
        let body = braced(body, place);
        if restored.is_empty() {
            return body.into_token_stream();
        }
        return braced(quote!(#restored #body), place).into_token_stream();
    }
    let [charged, output, refunding] = ["charged", "output", "refunding"].map(local);
    let (ty, _) = written(function);
    // The first `return` tells the compiler the type that the others are held against, as that of the function would.
    let typing = quote_spanned! {place=>
        if let ::core::option::Option::Some(#output) = ::core::option::Option::None::<#ty> {
            return #output;
        }
    };
    let block = braced(quote!(#typing #restored { #body }), place);
    let charges = policies.iter().enumerate().filter_map(|(at, policy)| {
        let condition = policy.charge_when.as_ref()?;
        let place = hygienic(condition.span());
        let satisfied = quote_spanned!(place=> __ratelimits::satisfies(&#output, #condition));
        Some(quote!((#at, #satisfied)))
    });
    // With `move`, so that what the future holds is what it would hold, and not a reference to it, which may not be `Send`.
    let body = quote_spanned!(place=> async move #block);
    quote! {
        let #output = #body.await;
        #[allow(clippy::redundant_closure_for_method_calls)]
        let #refunding = {
            #import
            __ratelimits::Charged::refund(#charged, &[#(#charges),*])
        };
        #refunding.await;
        #output
    }
}
