//! The model to tokens: a prologue in front of the body. The body itself is never wrapped.
//!
//! Locals have the hygiene of the macro, so that no argument meets them. Items and paths have none, so paths are absolute
//! and constants stand in blocks that hold no expression of the user's.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::args::Kind;
use crate::function::{Function, Renamed, names_self};
use crate::model::{Fallback, Limits, Policy, Rule, Target};
use crate::number::{Form, Number, Unit};
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
    let charges = policies.iter().map(|policy| charge(function, policy, &call));
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

fn charge(function: &Function, policy: &Policy, call: &Ident) -> TokenStream {
    let [checked, cost] = ["policy", "cost"].map(local);
    let name = name(function, policy);
    let prefix = policy.prefix.as_ref().map_or_else(|| quote!(""), |prefix| quote!(#prefix));
    let policy_value = rule(&policy.rule);
    let cost_value = match &policy.cost {
        Some(cost) => checked_number(cost),
        None => quote!(::core::result::Result::Ok(1)),
    };
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
        let #checked = #policy_value;
        let #cost = #cost_value;
        ::ratelimits::__private::Call::charge(&mut #call, #name, #prefix, #checked, #cost);
        #(#parts)*
    }
}

fn first_span(tokens: &TokenStream) -> Span {
    tokens.clone().into_iter().next().map_or_else(Span::call_site, |token| token.span())
}

fn name(function: &Function, policy: &Policy) -> TokenStream {
    if let Some(name) = &policy.name {
        return quote!(::ratelimits::__private::Name::path(#name));
    }
    let name = function.name();
    let fallback_names_self = policy.fallback.as_ref().is_some_and(|fallback| match &fallback.target {
        Target::Associated(path) => names_self(quote!(#path)),
        _ => false,
    });
    if function.is_method() || fallback_names_self {
        quote!(::ratelimits::__private::Name::method(::core::any::type_name::<Self>(), #name))
    } else {
        quote!(::ratelimits::__private::Name::path(
            ::core::concat!(::core::module_path!(), "::", #name)
        ))
    }
}

/// The policy as a `Checked<Policy>`: a constant if all its numbers are literals, else put together on every call.
fn rule(rule: &Rule) -> TokenStream {
    let numbers = match rule {
        Rule::TokenBucket { rate, burst, .. } => vec![Some(rate), burst.as_ref()],
        Rule::FixedWindow { limit, period, .. } => vec![Some(limit), Some(period)],
        Rule::LeakyBucket { capacity, leak } => vec![Some(capacity), Some(leak)],
        Rule::SlidingWindow { limit, period, precision } => vec![Some(limit), Some(period), precision.as_ref()],
    };
    let numbers: Vec<&Number> = numbers.into_iter().flatten().collect();
    if numbers.iter().all(|number| number.is_literal()) {
        constant_rule(rule, &numbers)
    } else {
        computed_rule(rule)
    }
}

fn constant_rule(rule: &Rule, numbers: &[&Number]) -> TokenStream {
    let policy = match rule {
        Rule::TokenBucket { rate, burst, interval } => {
            let rate = constant_name(rate);
            let burst = burst.as_ref().map(|burst| {
                let name = constant_name(burst);
                if burst.form == Form::Text { quote!(.burst_for(#name)) } else { quote!(.burst(#name)) }
            });
            let refill = interval.then(|| quote!(.interval_refill()));
            quote!(TokenBucket(::ratelimits::__private::TokenBucket::new(#rate) #burst #refill))
        }
        Rule::FixedWindow { limit, period, aligned } => {
            let [limit, period] = [limit, period].map(constant_name);
            let aligned = aligned.then(|| quote!(.aligned()));
            quote!(FixedWindow(::ratelimits::__private::FixedWindow::new(#limit, #period) #aligned))
        }
        Rule::LeakyBucket { capacity, leak } => {
            let new = if leak.unit == Unit::Rate { quote!(new) } else { quote!(draining) };
            let [capacity, leak] = [capacity, leak].map(constant_name);
            quote!(LeakyBucket(::ratelimits::__private::LeakyBucket::#new(#capacity, #leak)))
        }
        Rule::SlidingWindow { limit, period, precision } => {
            let [limit, period] = [limit, period].map(constant_name);
            let precision = precision.as_ref().map(constant_name).map(|precision| quote!(.precision(#precision)));
            quote!(SlidingWindow(::ratelimits::__private::SlidingWindow::new(#limit, #period) #precision))
        }
    };
    let constants = numbers.iter().map(|number| constant(number));
    // One check an argument: a constant that does not evaluate is reported at the argument that is to blame.
    let checks = numbers.iter().map(|number| {
        let name = number.name;
        quote_spanned!(hygienic(number.expr.span())=>
            const _: () = ::ratelimits::__private::literal::admissible(&POLICY, #name);
        )
    });
    quote!({
        #(#constants)*
        const POLICY: ::ratelimits::__private::Policy = ::ratelimits::__private::Policy::#policy;
        #(#checks)*
        ::core::result::Result::Ok(POLICY)
    })
}

fn constant_name(number: &Number) -> Ident {
    format_ident!("{}", number.name.to_uppercase(), span = hygienic(number.expr.span()))
}

fn constant(number: &Number) -> TokenStream {
    let expr = &number.expr;
    let place = hygienic(expr.span());
    let name = constant_name(number);
    let (ty, function, operand) = match (number.unit, number.form) {
        (Unit::Rate, Form::Text) => ("Rate", "rate_str", None),
        (Unit::Rate, Form::Float) => ("Rate", "rate_float", Some("f64")),
        (Unit::Rate, _) => ("Rate", "rate_int", Some("i128")),
        (_, Form::Text) => ("Duration", "duration", None),
        (Unit::Period | Unit::Precision, _) => ("Duration", "seconds", Some("i128")),
        (Unit::Count | Unit::Burst, _) => ("u64", "count", Some("i128")),
    };
    let function = Ident::new(function, place);
    let ty = match ty {
        "Rate" => quote_spanned!(place=> ::ratelimits::__private::Rate),
        "Duration" => quote_spanned!(place=> ::core::time::Duration),
        _ => quote_spanned!(place=> ::core::primitive::u64),
    };
    let value = match operand.filter(|_| number.has_suffix()).map(|operand| Ident::new(operand, place)) {
        Some(operand) => quote_spanned!(place=> (#expr) as ::core::primitive::#operand),
        None => quote!(#expr),
    };
    quote_spanned!(place=> const #name: #ty = ::ratelimits::__private::literal::#function(#value);)
}

fn computed_rule(rule: &Rule) -> TokenStream {
    match rule {
        Rule::TokenBucket { rate, burst, interval } => {
            let (rate, burst) = (checked_number(rate), checked_option(burst.as_ref()));
            quote!(::ratelimits::__private::dynamic::token_bucket(#rate, #burst, #interval))
        }
        Rule::FixedWindow { limit, period, aligned } => {
            let [limit, period] = [limit, period].map(checked_number);
            quote!(::ratelimits::__private::dynamic::fixed_window(#limit, #period, #aligned))
        }
        Rule::LeakyBucket { capacity, leak } => {
            let function = if leak.unit == Unit::Rate { "leaky_bucket" } else { "leaky_bucket_draining" };
            let function = Ident::new(function, Span::call_site());
            let [capacity, leak] = [capacity, leak].map(checked_number);
            quote!(::ratelimits::__private::dynamic::#function(#capacity, #leak))
        }
        Rule::SlidingWindow { limit, period, precision } => {
            let [limit, period] = [limit, period].map(checked_number);
            let precision = checked_option(precision.as_ref());
            quote!(::ratelimits::__private::dynamic::sliding_window(#limit, #period, #precision))
        }
    }
}

fn checked_option(number: Option<&Number>) -> TokenStream {
    match number.map(checked_number) {
        Some(number) => quote!(::core::option::Option::Some(#number)),
        None => quote!(::core::option::Option::None),
    }
}

/// The number as a `Checked` value.
fn checked_number(number: &Number) -> TokenStream {
    let (name, expr) = (number.name, &number.expr);
    let place = hygienic(expr.span());
    if number.is_literal() {
        let (constant, constant_name) = (constant(number), constant_name(number));
        let value = match (number.unit, number.form) {
            (Unit::Burst, Form::Text) => quote!(::ratelimits::__private::dynamic::Burst::For(#constant_name)),
            (Unit::Burst, _) => quote!(::ratelimits::__private::dynamic::Burst::Permits(#constant_name)),
            _ => quote!(#constant_name),
        };
        return quote!({ #constant ::core::result::Result::Ok(#value) });
    }
    match number.unit {
        Unit::Count => quote_spanned!(place=> ::ratelimits::__private::dynamic::count(#name, #expr)),
        Unit::Rate => quote_spanned!(place=> ::ratelimits::__private::dynamic::rate(#name, #expr)),
        Unit::Period | Unit::Precision => {
            quote_spanned!(place=> ::ratelimits::__private::dynamic::period(#name, #expr))
        }
        Unit::Burst => quote_spanned!(place=> ::ratelimits::__private::dynamic::burst(#expr)),
    }
}
