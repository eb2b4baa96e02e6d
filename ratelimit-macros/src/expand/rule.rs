//! Policies and their numbers: constants where literals allow it, else calls that check them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::{hygienic, local};
use crate::model::Rule;
use crate::number::{Form, Number, Unit};

/// The policy as a `Checked<Policy>`: a constant if all its numbers are literals, else put together on every call.
pub(super) fn policy(rule: &Rule) -> TokenStream {
    let numbers = match rule {
        Rule::TokenBucket { rate, burst, .. } => vec![Some(rate), burst.as_ref()],
        Rule::FixedWindow { limit, period, .. } => vec![Some(limit), Some(period)],
        Rule::LeakyBucket { capacity, leak } => vec![Some(capacity), Some(leak)],
        Rule::SlidingWindow { limit, period, precision } => {
            vec![Some(limit), Some(period), precision.as_ref()]
        }
    };
    let numbers: Vec<&Number> = numbers.into_iter().flatten().collect();
    if numbers.iter().all(|number| number.is_literal()) {
        constant_rule(rule, &numbers)
    } else {
        computed_rule(rule)
    }
}

fn constant_rule(rule: &Rule, numbers: &[&Number]) -> TokenStream {
    let checked = local("policy");
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
            let precision =
                precision.as_ref().map(constant_name).map(|precision| quote!(.precision(#precision)));
            quote!(SlidingWindow(::ratelimits::__private::SlidingWindow::new(#limit, #period) #precision))
        }
    };
    let constants = numbers.iter().map(|number| constant(number));
    // One check an argument, so that what is wrong is told where it is written.
    let checks = numbers.iter().map(|number| {
        let name = number.name;
        quote_spanned!(hygienic(number.expr.span())=> ::ratelimits::__private::literal::admissible(&#checked, #name);)
    });
    quote!({
        #(#constants)*
        const POLICY: ::ratelimits::__private::Policy = {
            let #checked = ::ratelimits::__private::Policy::#policy;
            #(#checks)*
            #checked
        };
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
    let (function, operand) = match (number.unit, number.form) {
        (Unit::Rate, Form::Text) => ("rate_str", None),
        (Unit::Rate, Form::Float) => ("rate_float", Some("f64")),
        (Unit::Rate, _) => ("rate_int", Some("i128")),
        (_, Form::Text) => ("duration", None),
        (Unit::Period | Unit::Precision, _) => ("seconds", Some("i128")),
        (Unit::Count | Unit::Burst, _) => ("count", Some("i128")),
    };
    let ty = match function {
        "count" => quote_spanned!(place=> ::core::primitive::u64),
        "seconds" | "duration" => quote_spanned!(place=> ::core::time::Duration),
        _ => quote_spanned!(place=> ::ratelimits::__private::Rate),
    };
    let function = Ident::new(function, place);
    // A literal with a type of its own does not become the operand's by itself.
    let value = match operand.filter(|_| number.has_suffix()).map(|operand| Ident::new(operand, place)) {
        Some(operand) => quote_spanned!(place=> (#expr) as ::core::primitive::#operand),
        None => quote!(#expr),
    };
    quote_spanned!(place=> const #name: #ty = ::ratelimits::__private::literal::#function(#value);)
}

fn computed_rule(rule: &Rule) -> TokenStream {
    match rule {
        Rule::TokenBucket { rate, burst, interval } => {
            let (rate, burst) = (checked(rate), checked_option(burst.as_ref()));
            quote!(::ratelimits::__private::dynamic::token_bucket(#rate, #burst, #interval))
        }
        Rule::FixedWindow { limit, period, aligned } => {
            let [limit, period] = [limit, period].map(checked);
            quote!(::ratelimits::__private::dynamic::fixed_window(#limit, #period, #aligned))
        }
        Rule::LeakyBucket { capacity, leak } => {
            let function = if leak.unit == Unit::Rate { "leaky_bucket" } else { "leaky_bucket_draining" };
            let function = Ident::new(function, Span::call_site());
            let [capacity, leak] = [capacity, leak].map(checked);
            quote!(::ratelimits::__private::dynamic::#function(#capacity, #leak))
        }
        Rule::SlidingWindow { limit, period, precision } => {
            let [limit, period] = [limit, period].map(checked);
            let precision = checked_option(precision.as_ref());
            quote!(::ratelimits::__private::dynamic::sliding_window(#limit, #period, #precision))
        }
    }
}

fn checked_option(number: Option<&Number>) -> TokenStream {
    match number.map(checked) {
        Some(number) => quote!(::core::option::Option::Some(#number)),
        None => quote!(::core::option::Option::None),
    }
}

/// The number as a `Checked` value.
pub(super) fn checked(number: &Number) -> TokenStream {
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
