//! The charge of one policy and its key.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::context::{Expansion, hygienic, local};
use super::policy::Numbers;
use crate::model::{Limit, Policy, Tag, Written};
use crate::template::Part;

/// Adds a policy to the call.
pub(super) fn charge(expansion: &Expansion<'_>, index: usize, limit: &Limit) -> TokenStream {
    let [call, closure, skips] = ["call", "closure", "skips"].map(local);
    let numbers = Numbers::new(limit);
    let (computed, constants) = (numbers.computed(), numbers.constants());
    let (policy, computed_names) = (numbers.policy_of_literals(), numbers.computed_names());
    let lease = option(numbers.lease());
    let (text, library) = (site_text(limit), &expansion.library);
    let (function, numbers) = numbers.charge();
    let options = options(expansion.tag, index, limit, &lease);
    // Of the attribute itself, even if it was deferred to another.
    let line = quote_spanned!(limit.span=> ::core::line!());
    let parts = parts(&limit.key, &call);
    let charge = quote! {
        #computed
        {
            #constants
            // The runtime knows the name `SITE`.
            static SITE: __ratelimits::CallSite = __ratelimits::CallSite::new(
                __ratelimits::Attribute {
                    module: ::core::module_path!(),
                    file: ::core::file!(),
                    line: #line,
                    options: #options,
                    policy: || #policy,
                    computed: &[#(#computed_names),*],
                    text: #text,
                },
                || ::core::any::type_name_of_val(&|| ()),
            );
            // By its own path, because one through the import is not resolved while some attribute is unknown.
            #library::__private::inventory::submit! { __ratelimits::RegisteredSite(&SITE) }
            __ratelimits::Call::#function(&mut #call, &SITE, #closure, #numbers);
        }
        #parts
    };
    match &limit.skip_when {
        None => charge,
        Some(condition) => {
            let span = hygienic(condition.span());
            let condition = quote_spanned!(span=> let #skips: ::core::primitive::bool = #condition;);
            quote!(#condition if !#skips { #charge })
        }
    }
}

fn parts(key: &[Part], call: &Ident) -> TokenStream {
    let parts = key.iter().map(|part| match part {
        Part::Text(text) => quote!(__ratelimits::Call::part(&mut #call, #text);),
        Part::Expr(expr) => {
            let span = hygienic(first_span(expr));
            quote_spanned!(span=> __ratelimits::Call::part(&mut #call, &(#expr));)
        }
        Part::Ip => quote!(__ratelimits::Call::ip(&mut #call);),
        Part::User => quote!(__ratelimits::Call::user(&mut #call);),
        Part::UserOrIp => quote!(__ratelimits::Call::user_or_ip(&mut #call);),
    });
    quote!(#(#parts)*)
}

fn options(tag: Tag, index: usize, limit: &Limit, lease: &TokenStream) -> TokenStream {
    let name = option(limit.name.as_ref().map(|name| quote!(#name)));
    let prefix = limit.prefix.as_ref().map_or_else(|| quote!(""), |prefix| quote!(#prefix));
    let (number, variant, shadow) = (limit.number, limit.policy.variant(), limit.shadow);
    let algorithm = match limit.policy {
        Policy::TokenBucket { .. } => quote!(TokenBucket),
        Policy::FixedWindow { .. } | Policy::CalendarWindow { .. } => quote!(FixedWindow),
        Policy::LeakyBucket { .. } => quote!(LeakyBucket),
        Policy::SlidingWindow { .. } => quote!(SlidingWindow),
        Policy::ConcurrencyLimit { .. } => quote!(Semaphore),
    };
    let (refundable, pauses) = (limit.corrects() || limit.holds(), limit.pause_when.is_some());
    let penalty = if limit.penalty.is_empty() { quote!(&[]) } else { quote!(&PENALTY) };
    let notify_at = option(limit.notify_at.as_ref().map(|share| {
        quote_spanned!(hygienic(share.span())=> __ratelimits::const_args::notify_at("notify_at", #share))
    }));
    let on_store_error = option(limit.on_store_error.map(|mode| match mode {
        "local" => quote!(__ratelimits::OnStoreError::Local),
        "allow" => quote!(__ratelimits::OnStoreError::Allow),
        _ => quote!(__ratelimits::OnStoreError::Deny),
    }));
    let tag = match tag {
        Tag::Key => quote!(Key),
        Tag::Name => quote!(Name),
        Tag::Function => quote!(Function),
    };
    quote! {
        __ratelimits::SiteOptions {
            policy: #index,
            name: #name,
            number: #number,
            prefix: #prefix,
            algorithm: __ratelimits::Algorithm::#algorithm,
            variant: #variant,
            tag: __ratelimits::Tag::#tag,
            shadow: #shadow,
            refundable: #refundable,
            pauses: #pauses,
            penalty: #penalty,
            lease: #lease,
            notify_at: #notify_at,
            on_store_error: #on_store_error,
        }
    }
}

/// Returns the attribute as it is written.
fn site_text(limit: &Limit) -> TokenStream {
    let (attribute, Written { arguments, key, flags }) = (limit.kind.name(), &limit.written);
    let key = option(key.as_ref().map(|key| quote!(#key)));
    quote! {
        __ratelimits::SiteText {
            attribute: #attribute,
            arguments: #arguments,
            key: #key,
            flags: &[#(#flags),*],
        }
    }
}

fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn first_span(tokens: &TokenStream) -> Span {
    tokens.clone().into_iter().next().map_or_else(Span::call_site, |token| token.span())
}
