//! The charge of one policy, and the key it counts by.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::{hygienic, local, rule};
use crate::model::{Policy, Tag};
use crate::template::Part;

/// Adds the policy, which stands at this place on the function, to the call.
pub(super) fn charge(at: usize, policy: &Policy, tag: Tag, call: &Ident, closure: &Ident) -> TokenStream {
    let [checked, constants, cost, timeout, named, skips] =
        ["policy", "constants", "cost", "timeout", "named", "skips"].map(local);
    let numbers = rule::policy_and_cost(&policy.rule, policy.cost.as_ref());
    let most = rule::timeout(&policy.rule, policy.timeout.as_ref());
    let declared = declared(at, policy, tag);
    let parts = policy.key.iter().map(|part| match part {
        Part::Text(text) => quote!(__ratelimits::Call::part(&mut #call, #text);),
        Part::Expr(expr) => {
            let place = hygienic(first_span(expr));
            quote_spanned!(place=> __ratelimits::Call::part(&mut #call, &(#expr));)
        }
        Part::Ip => quote!(__ratelimits::Call::ip(&mut #call);),
        Part::User => quote!(__ratelimits::Call::user(&mut #call);),
        Part::UserOrIp => quote!(__ratelimits::Call::user_or_ip(&mut #call);),
    });
    // Of the attribute itself, which may have stepped behind others.
    let line = quote_spanned!(policy.place=> ::core::line!());
    let charge = quote! {
        let ((#checked, #constants), #cost) = #numbers;
        let #timeout = #most;
        let #named = {
            static SITE: __ratelimits::CallSite = __ratelimits::CallSite::new(
                ::core::module_path!(),
                ::core::file!(),
                #line,
                #declared,
            );
            __ratelimits::CallSite::named(&SITE, #closure, #constants)
        };
        __ratelimits::Call::charge(
            &mut #call,
            #named,
            #checked,
            #cost,
            #timeout,
        );
        #(#parts)*
    };
    match &policy.skip_when {
        None => charge,
        Some(condition) => {
            let place = hygienic(condition.span());
            let asked = quote_spanned!(place=> let #skips: ::core::primitive::bool = #condition;);
            quote!(#asked if !#skips { #charge })
        }
    }
}

fn declared(at: usize, policy: &Policy, tag: Tag) -> TokenStream {
    let name = match &policy.name {
        Some(name) => quote!(::core::option::Option::Some(#name)),
        None => quote!(::core::option::Option::None),
    };
    let prefix = policy.prefix.as_ref().map_or_else(|| quote!(""), |prefix| quote!(#prefix));
    let (number, algorithm, shadow) = (policy.number, policy.rule.algorithm(), policy.shadow);
    let refundable = policy.charge_when.is_some();
    let on_store_error = match policy.on_store_error {
        Some("local") => some_on_store_error(quote!(Local)),
        Some("allow") => some_on_store_error(quote!(Allow)),
        Some(_) => some_on_store_error(quote!(Deny)),
        None => quote!(::core::option::Option::None),
    };
    let tag = match tag {
        Tag::Key => quote!(Key),
        Tag::Name => quote!(Name),
        Tag::Function => quote!(Function),
    };
    quote! {
        __ratelimits::SiteOptions {
            policy: #at,
            name: #name,
            number: #number,
            prefix: #prefix,
            algorithm: #algorithm,
            tag: __ratelimits::Tag::#tag,
            shadow: #shadow,
            refundable: #refundable,
            on_store_error: #on_store_error,
        }
    }
}

fn some_on_store_error(mode: TokenStream) -> TokenStream {
    quote!(::core::option::Option::Some(__ratelimits::OnStoreError::#mode))
}

fn first_span(tokens: &TokenStream) -> Span {
    tokens.clone().into_iter().next().map_or_else(Span::call_site, |token| token.span())
}
