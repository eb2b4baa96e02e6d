//! Policies and their numbers: constants where literals allow it, else calls that check them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::{hygienic, local};
use crate::model::{Refill, Rule};
use crate::number::{Form, Number, Unit};

/// `((policy, constants), cost)`, policy and cost as `Checked`: constants as far as their numbers are literals, else put
/// together on every call.
pub(super) fn policy_and_cost(rule: &Rule, cost: Option<&Number>) -> TokenStream {
    let numbers = numbers(rule);
    if !numbers.iter().all(|number| number.is_literal()) {
        let (policy, cost) = (computed_policy(rule, &numbers), computed_cost(cost));
        return quote!((#policy, #cost));
    }
    let (constants, policy) = (constants(&numbers), checked_policy(rule, &numbers));
    let told = told(&numbers, quote!(::core::option::Option::Some(POLICY)));
    let constants = quote!(#(#constants)* const POLICY: __ratelimits::Policy = #policy;);
    let policy = quote!((::core::result::Result::Ok(POLICY), #told));
    match cost.filter(|cost| cost.is_literal()) {
        Some(literal) => {
            let (name, ty, value) = (constant_name(literal), constant_type(literal), constant_value(literal));
            let place = hygienic(literal.expr.span());
            let cost = local("cost");
            let payable = quote_spanned!(place=> __ratelimits::const_args::payable(&POLICY, #cost));
            quote!({
                #constants
                const #name: #ty = {
                    let #cost = #value;
                    #payable;
                    #cost
                };
                (#policy, ::core::result::Result::Ok(#name))
            })
        }
        None => {
            let cost = computed_cost(cost);
            quote!(({ #constants #policy }, #cost))
        }
    }
}

/// The constants, and the policy if it is one, as they are told to whoever meets another policy under the same name.
fn told(literals: &[&Number], policy: TokenStream) -> TokenStream {
    let constants = literals.iter().map(|number| {
        let (name, constant) = (number.name, constant_name(number));
        let value = match (number.unit, number.form) {
            (Unit::Rate, _) => quote!(Rate),
            (Unit::Period | Unit::Precision | Unit::Timeout, _) | (_, Form::Text) => quote!(Time),
            (Unit::Count | Unit::Burst, _) => quote!(Count),
        };
        quote!((#name, __ratelimits::Constant::#value(#constant)))
    });
    quote!(const { &__ratelimits::Constants { numbers: &[#(#constants),*], policy: #policy } })
}

fn computed_cost(cost: Option<&Number>) -> TokenStream {
    cost.map_or_else(|| quote!(::core::result::Result::Ok(1)), by_itself)
}

/// How long a call waits at the most, as `Checked`. The line of a queue ends its waits by itself.
pub(super) fn timeout(rule: &Rule, timeout: Option<&Number>) -> TokenStream {
    let most = match (rule, timeout) {
        (_, Some(timeout)) => return by_itself(timeout),
        (Rule::LeakyBucket { queue: true, .. }, None) => quote!(MAX),
        (_, None) => quote!(ZERO),
    };
    quote!(::core::result::Result::Ok(::core::time::Duration::#most))
}

/// The number as a `Checked` value, where it is checked beside no other.
fn by_itself(number: &Number) -> TokenStream {
    if !number.is_literal() {
        return checked(number);
    }
    let (constant, name) = (constant(number), constant_name(number));
    quote!({ #constant ::core::result::Result::Ok(#name) })
}

fn numbers(rule: &Rule) -> Vec<&Number> {
    let numbers = match rule {
        Rule::TokenBucket { rate, burst, refill } => vec![Some(rate), burst.as_ref(), refill.warmup()],
        Rule::FixedWindow { limit, period, .. } => vec![Some(limit), Some(period)],
        Rule::LeakyBucket { capacity, leak, .. } => vec![Some(capacity), Some(leak)],
        Rule::SlidingWindow { limit, period, precision } => {
            vec![Some(limit), Some(period), precision.as_ref()]
        }
    };
    numbers.into_iter().flatten().collect()
}

/// The policy of the constants, checked while compiling. What stands in for a computed number is never what is wrong.
fn checked_policy(rule: &Rule, numbers: &[&Number]) -> TokenStream {
    let checked = local("policy");
    let value = |number: &Number, stand_in: TokenStream| {
        if number.is_literal() { constant_name(number).into_token_stream() } else { stand_in }
    };
    let stand_in = |name: &str| {
        let name = Ident::new(name, Span::call_site());
        quote!(__ratelimits::const_args::#name)
    };
    let policy = match rule {
        Rule::TokenBucket { rate, burst, refill } => {
            let by_time = burst.as_ref().is_some_and(|burst| burst.form == Form::Text);
            let rate = value(rate, stand_in(if by_time { "ONE_PER_SECOND" } else { "FASTEST" }));
            let burst = burst.as_ref().filter(|burst| burst.is_literal()).map(|burst| {
                let name = constant_name(burst);
                if by_time { quote!(.burst_for(#name)) } else { quote!(.burst(#name)) }
            });
            let refill = match refill {
                Refill::Continuous => TokenStream::new(),
                Refill::Interval => quote!(.interval_refill()),
                Refill::Borrow => quote!(.borrow()),
                Refill::Warmup(period) => {
                    let period = value(period, stand_in("SECOND"));
                    quote!(.warmup(#period))
                }
            };
            quote!(TokenBucket(__ratelimits::TokenBucket::new(#rate) #burst #refill))
        }
        Rule::FixedWindow { limit, period, aligned } => {
            let (limit, period) = (value(limit, quote!(1)), value(period, stand_in("SECOND")));
            let aligned = aligned.then(|| quote!(.aligned()));
            quote!(FixedWindow(__ratelimits::FixedWindow::new(#limit, #period) #aligned))
        }
        Rule::LeakyBucket { capacity, leak, queue } => {
            let (new, stand_in) = match leak.unit {
                Unit::Rate => (quote!(new), stand_in("FASTEST")),
                _ => (quote!(draining), stand_in("SECOND")),
            };
            let (capacity, leak) = (value(capacity, quote!(1)), value(leak, stand_in));
            let queue = queue.then(|| quote!(.queue()));
            quote!(LeakyBucket(__ratelimits::LeakyBucket::#new(#capacity, #leak) #queue))
        }
        Rule::SlidingWindow { limit, period, precision } => {
            let precision = precision.as_ref().map(|precision| value(precision, stand_in("SECOND")));
            let divided = match &precision {
                Some(precision) => quote!(__ratelimits::const_args::divided_by(#precision)),
                None => stand_in("SECOND"),
            };
            let (limit, period) = (value(limit, quote!(1)), value(period, divided));
            let precision = precision.map(|precision| quote!(.precision(#precision)));
            quote!(SlidingWindow(__ratelimits::SlidingWindow::new(#limit, #period) #precision))
        }
    };
    // One check an argument, so that what is wrong is told where it is written.
    let checks = numbers.iter().filter(|number| number.is_literal()).map(|number| {
        let name = number.name;
        quote_spanned!(hygienic(number.expr.span())=> __ratelimits::const_args::admissible(&#checked, #name);)
    });
    quote!({
        let #checked = __ratelimits::Policy::#policy;
        #(#checks)*
        #checked
    })
}

fn constants(numbers: &[&Number]) -> Vec<TokenStream> {
    numbers.iter().filter(|number| number.is_literal()).map(|number| constant(number)).collect()
}

fn constant_name(number: &Number) -> Ident {
    format_ident!("{}", number.name.to_uppercase(), span = hygienic(number.expr.span()))
}

fn constant(number: &Number) -> TokenStream {
    let (name, ty, value) = (constant_name(number), constant_type(number), constant_value(number));
    quote_spanned!(hygienic(number.expr.span())=> const #name: #ty = #value;)
}

fn constant_type(number: &Number) -> TokenStream {
    let place = hygienic(number.expr.span());
    match (number.unit, number.form) {
        (Unit::Rate, _) => quote_spanned!(place=> __ratelimits::Rate),
        (Unit::Period | Unit::Precision | Unit::Timeout, _) | (_, Form::Text) => {
            quote_spanned!(place=> ::core::time::Duration)
        }
        (Unit::Count | Unit::Burst, _) => quote_spanned!(place=> ::core::primitive::u64),
    }
}

fn constant_value(number: &Number) -> TokenStream {
    let expr = &number.expr;
    let place = hygienic(expr.span());
    let (function, operand) = match (number.unit, number.form) {
        (Unit::Rate, Form::Text) => ("rate_str", None),
        (Unit::Rate, Form::Float) => ("rate_float", Some("f64")),
        (Unit::Rate, _) => ("rate_int", Some("i128")),
        (Unit::Timeout, _) => ("timeout", None),
        (_, Form::Text) => ("duration", None),
        (Unit::Period | Unit::Precision, _) => ("seconds", Some("i128")),
        (Unit::Count | Unit::Burst, _) => ("count", Some("i128")),
    };
    let function = Ident::new(function, place);
    // A literal with a type of its own does not become the operand's by itself.
    let value = match operand.filter(|_| number.has_suffix()).map(|operand| Ident::new(operand, place)) {
        Some(operand) => quote_spanned!(place=> (#expr) as ::core::primitive::#operand),
        None => quote!(#expr),
    };
    quote_spanned!(place=> __ratelimits::const_args::#function(#value))
}

/// The policy of a call, and its constants. The literals are taken out first, where no name of the user's can meet them.
fn computed_policy(rule: &Rule, numbers: &[&Number]) -> TokenStream {
    let literals: Vec<&Number> = numbers.iter().copied().filter(|number| number.is_literal()).collect();
    let told_name = local("told");
    let taken_out = {
        let constants = constants(&literals);
        let policy = (!literals.is_empty()).then(|| {
            let policy = checked_policy(rule, &literals);
            quote!(const _: __ratelimits::Policy = #policy;)
        });
        let locals = literals.iter().map(|number| local(number.name));
        let names = literals.iter().map(|number| constant_name(number));
        let told = told(&literals, quote!(::core::option::Option::None));
        quote! {
            let (#(#locals,)* #told_name) = {
                #(#constants)*
                #policy
                (#(#names,)* #told)
            };
        }
    };
    let policy = match rule {
        Rule::TokenBucket { rate, burst, refill } => {
            let (rate, burst) = (checked(rate), checked_option(burst.as_ref()));
            let refill = match refill {
                Refill::Continuous => quote!(Continuous),
                Refill::Interval => quote!(Interval),
                Refill::Borrow => quote!(Borrow),
                Refill::Warmup(period) => {
                    let period = checked(period);
                    quote!(Warmup(#period))
                }
            };
            quote!(token_bucket(#rate, #burst, __ratelimits::runtime_args::Refill::#refill))
        }
        Rule::FixedWindow { limit, period, aligned } => {
            let [limit, period] = [limit, period].map(checked);
            quote!(fixed_window(#limit, #period, #aligned))
        }
        Rule::LeakyBucket { capacity, leak, queue } => {
            let function =
                if leak.unit == Unit::Rate { quote!(leaky_bucket) } else { quote!(leaky_bucket_draining) };
            let [capacity, leak] = [capacity, leak].map(checked);
            quote!(#function(#capacity, #leak, #queue))
        }
        Rule::SlidingWindow { limit, period, precision } => {
            let [limit, period] = [limit, period].map(checked);
            let precision = checked_option(precision.as_ref());
            quote!(sliding_window(#limit, #period, #precision))
        }
    };
    quote!({ #taken_out (__ratelimits::runtime_args::#policy, #told_name) })
}

fn checked_option(number: Option<&Number>) -> TokenStream {
    match number.map(checked) {
        Some(number) => quote!(::core::option::Option::Some(#number)),
        None => quote!(::core::option::Option::None),
    }
}

/// The number as a `Checked` value.
fn checked(number: &Number) -> TokenStream {
    let (name, expr) = (number.name, &number.expr);
    if number.is_literal() {
        let value = local(name);
        let value = match (number.unit, number.form) {
            (Unit::Burst, Form::Text) => quote!(__ratelimits::runtime_args::Burst::For(#value)),
            (Unit::Burst, _) => quote!(__ratelimits::runtime_args::Burst::Permits(#value)),
            _ => quote!(#value),
        };
        return quote!(::core::result::Result::Ok(#value));
    }
    let place = hygienic(expr.span());
    match number.unit {
        Unit::Count => quote_spanned!(place=> __ratelimits::runtime_args::count(#name, #expr)),
        Unit::Rate => quote_spanned!(place=> __ratelimits::runtime_args::rate(#name, #expr)),
        Unit::Period => quote_spanned!(place=> __ratelimits::runtime_args::period(#name, #expr)),
        Unit::Precision => quote_spanned!(place=> __ratelimits::runtime_args::precision(#name, #expr)),
        Unit::Timeout => quote_spanned!(place=> __ratelimits::runtime_args::timeout(#expr)),
        Unit::Burst => quote_spanned!(place=> __ratelimits::runtime_args::burst(#expr)),
    }
}
