//! The model to tokens: a prologue in front of the body. The body itself is never wrapped.
//!
//! Locals have the hygiene of the macro, so that no argument meets them. Items and paths have none, so paths are absolute
//! and constants stand in blocks that hold no expression of the user's.

mod rule;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use crate::args::Kind;
use crate::function::{Function, Renamed};
use crate::model::{Fallback, Limits, Policy, Target};
use crate::template::Part;

/// Expands one attribute. After a mistake the function comes back as it was, so that the mistake is all there is to see.
pub(crate) fn attribute(kind: Kind, args: TokenStream, item: TokenStream) -> TokenStream {
    match Limits::read(kind, args, item.clone()) {
        Ok(limits) => function(limits),
        Err(errors) => {
            let errors = errors.to_compile_error();
            quote!(#errors #item)
        }
    }
}

fn function(limits: Limits) -> TokenStream {
    let Limits { mut function, policies } = limits;
    let fallback = policies.iter().find_map(|policy| policy.fallback.as_ref());
    let passes_args = fallback.is_some_and(|fallback| fallback.pass_args);
    let (names, renamed) = if passes_args { function.name_arguments() } else { Default::default() };
    let prologue = prologue(&function, &policies, &renamed, fallback, &names);
    let restored = renamed.iter().map(|Renamed { name, pattern }| quote!(let #pattern = #name;));

    let Function { attributes, visibility, defaultness, signature, .. } = &function;
    let (inner_attributes, body) = function.split_body();
    let brace = function.body.as_ref().map_or_else(Span::call_site, Group::span);
    // Of the macro's hygiene, or rustc finds the inner braces needless.
    let body = braced(body, hygienic(brace));
    let whole = braced(quote!(#inner_attributes #prologue #(#restored)* #body), brace);
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

fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

fn prologue(
    function: &Function,
    policies: &[Policy],
    renamed: &[Renamed],
    fallback: Option<&Fallback>,
    names: &[Ident],
) -> TokenStream {
    let [call, deciding] = ["call", "deciding"].map(local);
    let peeks = renamed.iter().map(|renamed| {
        let (pattern, name) = (renamed.borrowed(), &renamed.name);
        quote!(#[allow(unused_variables)] let #pattern = &#name;)
    });
    let charges = policies.iter().map(|policy| charge(policy, &call));
    let refusal = match fallback {
        Some(fallback) => call_fallback(fallback, function, names, &deciding),
        None => refuse(function, &deciding),
    };
    // The call is put together in a statement of its own: nothing that a key borrows or locks lives on while awaiting.
    quote! {
        #[allow(
            unknown_lints,
            clippy::cast_lossless,
            clippy::cast_possible_truncation,
            clippy::items_after_statements,
            clippy::needless_return,
            clippy::redundant_closure_call,
            clippy::semicolon_if_nothing_returned,
            clippy::unnecessary_cast,
            clippy::used_underscore_binding
        )]
        {
            let #deciding = {
                #(#peeks)*
                let mut #call = ::ratelimits::__private::Call::new();
                #(#charges)*
                ::ratelimits::__private::Call::decide(#call)
            };
            #refusal
        }
    }
}

fn refuse(function: &Function, deciding: &Ident) -> TokenStream {
    let [verdict, error] = ["verdict", "error"].map(local);
    let output = function.output();
    let (output, place) = match &output {
        Some(output) => (quote!(#output), output.span()),
        None => {
            let place = function.signature.ident.span();
            (quote_spanned!(place=> ()), place)
        }
    };
    let refused = quote_spanned!(hygienic(place)=> return ::ratelimits::__private::refuse::<#output>(#error));
    quote! {
        let #verdict = #deciding.await;
        if let ::core::result::Result::Err(#error) = #verdict {
            #refused;
        }
    }
}

/// Whether the fallback is async is asked of its value, so that a mistake in the call is an ordinary type error there.
fn call_fallback(fallback: &Fallback, function: &Function, names: &[Ident], deciding: &Ident) -> TokenStream {
    let names = if fallback.pass_args { names } else { &[] };
    let receiver = function.receiver().filter(|_| fallback.pass_args);
    let place = hygienic(fallback.span);
    let called = match &fallback.target {
        Target::Function(path) => quote_spanned!(place=> #path(#(#names),*)),
        Target::Associated(path) => {
            let receiver = receiver.into_iter();
            quote_spanned!(place=> #path(#(#receiver,)* #(#names),*))
        }
        Target::Method(base, method) => quote_spanned!(place=> #base.#method(#(#names),*)),
        Target::Closure(closure) => quote_spanned!(place=> ::ratelimits::__private::answer(#closure)),
    };
    let [refused, called_name, kind] = ["refused", "called", "kind"].map(local);
    let answer = Ident::new("answer", place);
    let returned = quote_spanned!(place=> return #answer.await);
    quote! {
        let #refused = ::core::result::Result::is_err(&#deciding.await);
        if #refused {
            let #answer = {
                let #called_name = #called;
                {
                    use ::ratelimits::__private::{FutureFallback as _, ValueFallback as _};
                    let #kind = (&&::ratelimits::__private::Fallback(&#called_name)).ratelimits_kind();
                    #kind.ratelimits_answer(#called_name)
                }
            };
            #returned;
        }
    }
}

fn charge(policy: &Policy, call: &Ident) -> TokenStream {
    let [checked, cost] = ["policy", "cost"].map(local);
    let name = match &policy.name {
        Some(name) => quote!(::ratelimits::__private::Name::given(#name)),
        // Only the type of something in the function tells which type the function belongs to.
        None => quote!({
            static PLACE: ::ratelimits::__private::Place =
                ::ratelimits::__private::Place::new(::core::module_path!());
            ::ratelimits::__private::Place::name(&PLACE, ::core::any::type_name_of_val(&|| ()))
        }),
    };
    let prefix = policy.prefix.as_ref().map_or_else(|| quote!(""), |prefix| quote!(#prefix));
    let numbers = rule::policy_and_cost(&policy.rule, policy.cost.as_ref());
    let parts = policy.key.iter().map(|part| match part {
        Part::Text(text) => quote!(::ratelimits::__private::Call::part(&mut #call, #text);),
        Part::Expr(expr) => {
            let place = hygienic(first_span(expr));
            quote_spanned!(place=> ::ratelimits::__private::Call::part(&mut #call, &(#expr));)
        }
        Part::Ip => quote!(::ratelimits::__private::Call::ip(&mut #call);),
        Part::User => quote!(::ratelimits::__private::Call::user(&mut #call);),
        Part::UserOrIp => quote!(::ratelimits::__private::Call::user_or_ip(&mut #call);),
    });
    quote! {
        let (#checked, #cost) = #numbers;
        ::ratelimits::__private::Call::charge(&mut #call, #name, #prefix, #checked, #cost);
        #(#parts)*
    }
}

fn first_span(tokens: &TokenStream) -> Span {
    tokens.clone().into_iter().next().map_or_else(Span::call_site, |token| token.span())
}
