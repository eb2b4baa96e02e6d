//! Policies and their numbers. Literals become constants, which are checked at compile time; other numbers are evaluated and
//! checked on every call.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::LitStr;
use syn::spanned::Spanned;

use super::context::{hygienic, local};
use crate::model::{Lease, Limit, Policy, Refill};
use crate::number::{Form, Number, Unit};

/// The numbers of one limit.
pub(super) struct Numbers<'a> {
    limit: &'a Limit,
    policy: Vec<&'a Number>,
    /// Whether all numbers of the policy are literals.
    is_literal: bool,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(limit: &'a Limit) -> Self {
        let policy: Vec<_> = limit.policy.numbers().collect();
        let is_literal = policy.iter().all(|number| number.is_literal());
        Numbers { limit, policy, is_literal }
    }

    /// Evaluates the numbers that are not literals into local variables. No item is in scope that they could name.
    pub(super) fn computed(&self) -> TokenStream {
        let numbers = self.policy.iter().copied().chain(&self.limit.cost).chain(&self.limit.timeout);
        let computed = numbers.filter(|number| !number.is_literal()).map(|number| {
            let (name, local, expr) = (number.name, local(number.name), &number.expr);
            let span = hygienic(expr.span());
            let function = Ident::new(
                match number.unit {
                    Unit::Count => "count",
                    Unit::Cost if self.limit.settle.is_some() => "estimate",
                    Unit::Cost => "cost",
                    Unit::Rate => "rate",
                    Unit::Period => "period",
                    Unit::Precision => "precision",
                    Unit::Timeout => "timeout",
                    Unit::Burst => "burst",
                    Unit::Zone => "zone",
                },
                span,
            );
            // The others are copied.
            let value = if number.unit == Unit::Zone {
                quote_spanned!(span=> &(#expr))
            } else {
                expr.to_token_stream()
            };
            let value = quote_spanned!(span=> __ratelimits::runtime_args::#function(#name, #value));
            quote!(let #local = #value;)
        });
        quote!(#(#computed)*)
    }

    /// Defines the constants.
    pub(super) fn constants(&self) -> TokenStream {
        // The literals of a constant policy need no names, which would add notes to their errors.
        let named = self.policy.iter().filter(|number| !self.is_literal && number.is_literal());
        let named = named.copied().chain(self.limit.timeout.as_ref().filter(|timeout| timeout.is_literal()));
        let named = named.map(|number| constant(number, &literal(number)));
        let policy = self.checked_policy();
        let lease = match &self.limit.lease {
            Some(Lease::Permits(permits)) => Some(permits),
            _ => None,
        };
        let permits = self.limit.cost.iter().chain(lease).filter(|permits| permits.is_literal());
        let permits = permits.map(|permits| {
            let (name, local) = (permits.name, local(permits.name));
            let value = if permits.unit == Unit::Cost { self.literal_cost(permits) } else { literal(permits) };
            let check = quote_spanned!(hygienic(permits.expr.span())=> __ratelimits::const_args::check_permits(&POLICY, #name, #local));
            let check = self.is_literal.then_some(check);
            constant(permits, &quote!({ let #local = #value; #check; #local }))
        });
        let (period, penalty) = (self.calendar_period(), self.penalty());
        quote!(#(#named)* #period #policy #(#permits)* #penalty)
    }

    /// Defines the period of a calendar beside computed numbers, so that one without the feature does not compile.
    fn calendar_period(&self) -> Option<TokenStream> {
        let Policy::CalendarWindow { period, .. } = &self.limit.policy else { return None };
        let (name, value) = (calendar_period_name(period), calendar_period(period));
        (!self.is_literal).then(|| quote!(const #name: __ratelimits::CalendarPeriod = #value;))
    }

    /// Defines the microseconds of penalties.
    fn penalty(&self) -> Option<TokenStream> {
        let (first, steps) = (self.limit.penalty.first()?, &self.limit.penalty);
        let durations = steps.iter().map(|step| {
            quote_spanned!(hygienic(step.span())=> __ratelimits::const_args::duration("penalty", #step))
        });
        let (size, span) = (steps.len(), hygienic(first.span()));
        let is_calendar = matches!(self.limit.policy, Policy::CalendarWindow { .. });
        Some(quote_spanned!(span=>
            const PENALTY: [::core::primitive::u64; #size] = __ratelimits::const_args::penalty([#(#durations),*], #is_calendar);
        ))
    }

    /// Returns the value of a literal cost, which is an estimate if calls are settled.
    fn literal_cost(&self, cost: &Number) -> TokenStream {
        let function = if self.limit.settle.is_some() { "estimate" } else { "cost" };
        literal_by(cost, function, Some("i128"))
    }

    /// Returns the size of leases.
    pub(super) fn lease(&self) -> Option<TokenStream> {
        self.limit.lease.as_ref().map(|lease| match lease {
            Lease::Permits(permits) => {
                let permits = constant_name(permits);
                quote!(__ratelimits::LeaseSize::Permits(#permits))
            }
            Lease::Slack(percentage) => {
                quote_spanned!(hygienic(percentage.span())=> __ratelimits::const_args::slack("slack", #percentage))
            }
        })
    }

    /// Returns the names of the policy's numbers that are not literals.
    pub(super) fn computed_names(&self) -> impl Iterator<Item = &'static str> {
        self.policy.iter().filter(|number| !number.is_literal()).map(|number| number.name)
    }

    /// Returns the function that adds the charge to a call, and what it takes: the numbers of the policy unless they are literals, the
    /// cost, and the maximum wait.
    pub(super) fn charge(&self) -> (Ident, TokenStream) {
        let Limit { cost, timeout, .. } = self.limit;
        let default_timeout = self.default_timeout();
        if self.is_literal && cost.iter().chain(timeout).all(|number| number.is_literal()) {
            let cost =
                cost.as_ref().map_or_else(|| quote!(1), |cost| constant_name(cost).into_token_stream());
            let timeout = timeout.as_ref().map(|timeout| constant_name(timeout).into_token_stream());
            let timeout = timeout.unwrap_or(default_timeout);
            let numbers = quote!(#cost, const { __ratelimits::const_args::wait(#timeout) });
            return (format_ident!("charge_literal"), numbers);
        }
        let cost = cost.as_ref().map_or_else(|| quote!(::core::result::Result::Ok(1)), checked);
        let timeout =
            timeout.as_ref().map_or_else(|| quote!(::core::result::Result::Ok(#default_timeout)), checked);
        if self.is_literal {
            return (format_ident!("charge_written"), quote!(#cost, #timeout));
        }
        let policy = self.checked_policy_of_call();
        (format_ident!("charge"), quote!(#policy, #cost, #timeout))
    }

    fn checked_policy_of_call(&self) -> TokenStream {
        let policy = build(self.limit, |number| {
            if number.is_literal() {
                constant_name(number).into_token_stream()
            } else {
                let local = local(number.name);
                quote!(#local?)
            }
        });
        quote!(__ratelimits::runtime_args::policy(|| ::core::result::Result::Ok(#policy)))
    }

    /// Returns the maximum wait of a call without `timeout`. A queue limits it by itself, and a shadow never waits.
    fn default_timeout(&self) -> TokenStream {
        let waits = self.limit.policy.waits() && !self.limit.shadow;
        let default = if waits { quote!(MAX) } else { quote!(ZERO) };
        quote!(::core::time::Duration::#default)
    }

    /// Defines the policy of the literals, and checks it argument by argument, so that an error is where the argument is. Any
    /// number can stand for a computed one, because those that depend on it are not checked.
    fn checked_policy(&self) -> TokenStream {
        let (checked, policy) = (local("policy"), self.policy_of_literals());
        let numbers = self.limit.policy.numbers_by_dependency().into_iter();
        let independent = numbers.take_while(|number| number.is_literal() || number.unit == Unit::Count);
        let checks = independent.filter(|number| number.is_literal()).map(|number| {
            let name = number.name;
            quote_spanned!(hygienic(number.expr.span())=> __ratelimits::const_args::check(&#checked, #name);)
        });
        let checks: Vec<_> = checks.collect();
        let name = match self.is_literal {
            true => quote!(POLICY),
            false if checks.is_empty() => return TokenStream::new(),
            false => quote!(_),
        };
        quote! {
            const #name: __ratelimits::Policy = {
                let #checked = #policy;
                #(#checks)*
                #checked
            };
        }
    }

    /// Returns the policy of the literals, with any numbers for those that are computed.
    pub(super) fn policy_of_literals(&self) -> TokenStream {
        build(self.limit, |number| match number.unit {
            _ if number.is_literal() && self.is_literal => literal(number),
            _ if number.is_literal() => constant_name(number).into_token_stream(),
            Unit::Count | Unit::Cost => quote!(1),
            Unit::Rate => quote!(__ratelimits::Rate::per_second(1)),
            Unit::Burst => quote!(__ratelimits::runtime_args::Burst::Permits(1)),
            Unit::Period | Unit::Precision | Unit::Timeout => quote!(::core::time::Duration::from_secs(1)),
            Unit::Zone => quote!(__ratelimits::Zone::UTC),
        })
    }
}

/// Returns the policy, with these values of its numbers.
///
/// If some of its numbers are computed, a bucket keeps one state per key whatever they are: otherwise each burst would come
/// with a fresh bucket. So it does if its calls are settled, and remembers what can be given back of them, or if they may pause it, so
/// that no override forgets a pause.
fn build(limit: &Limit, value: impl Fn(&Number) -> TokenStream) -> TokenStream {
    let is_computed = limit.policy.numbers().any(|number| !number.is_literal());
    let adjustable = match limit.is_settled {
        true => quote!(.settled()),
        false if is_computed || limit.may_pause() => quote!(.adjustable()),
        false => TokenStream::new(),
    };
    match &limit.policy {
        Policy::TokenBucket { rate, burst, refill } => {
            let rate = value(rate);
            let mut bucket = quote!(__ratelimits::TokenBucket::new(#rate));
            if let Some(burst) = burst {
                let size = value(burst);
                bucket = match burst.form {
                    Form::Text => quote!(#bucket.burst_for(#size)),
                    Form::Computed => quote!(__ratelimits::runtime_args::Burst::set(#size, #bucket)),
                    Form::Int | Form::Float => quote!(#bucket.burst(#size)),
                };
            }
            let refill = match refill {
                Refill::Continuous => TokenStream::new(),
                Refill::Interval => quote!(.interval_refill()),
                Refill::Borrow => quote!(.borrow()),
                Refill::Warmup(period) => {
                    let period = value(period);
                    quote!(.warmup(#period))
                }
            };
            quote!(__ratelimits::Policy::TokenBucket(#bucket #refill #adjustable))
        }
        Policy::FixedWindow { limit, period, aligned } => {
            let (limit, period) = (value(limit), value(period));
            let aligned = aligned.then(|| quote!(.aligned()));
            quote!(__ratelimits::Policy::FixedWindow(__ratelimits::FixedWindow::new(#limit, #period) #aligned))
        }
        Policy::CalendarWindow { limit, period, zone } => {
            let (limit, zone) = (value(limit), zone.as_ref().map(&value));
            let zone = zone.unwrap_or_else(|| quote!(__ratelimits::Zone::UTC));
            let period = if is_computed {
                calendar_period_name(period).into_token_stream()
            } else {
                calendar_period(period)
            };
            let window = quote!(__ratelimits::const_args::calendar_window(#limit, #period, #zone));
            quote!(__ratelimits::Policy::FixedWindow(#window))
        }
        Policy::LeakyBucket { capacity, leak, queue } => {
            let new = if leak.unit == Unit::Rate { quote!(new) } else { quote!(draining) };
            let (capacity, leak) = (value(capacity), value(leak));
            let queue = queue.then(|| quote!(.queue()));
            quote!(__ratelimits::Policy::LeakyBucket(__ratelimits::LeakyBucket::#new(#capacity, #leak) #queue #adjustable))
        }
        Policy::SlidingWindow { limit, period, precision } => {
            let (limit, period) = (value(limit), value(period));
            let precision = precision.as_ref().map(&value).map(|precision| quote!(.precision(#precision)));
            quote!(__ratelimits::Policy::SlidingWindow(__ratelimits::SlidingWindow::new(#limit, #period) #precision))
        }
        Policy::ConcurrencyLimit { max } => {
            let max = value(max);
            quote!(__ratelimits::Policy::ConcurrencyLimit(__ratelimits::ConcurrencyLimit::new(#max)))
        }
    }
}

/// Returns the number as a `Checked` value.
fn checked(number: &Number) -> TokenStream {
    if number.is_literal() {
        let name = constant_name(number);
        quote!(::core::result::Result::Ok(#name))
    } else {
        local(number.name).into_token_stream()
    }
}

fn constant(number: &Number, value: &TokenStream) -> TokenStream {
    let name = constant_name(number);
    let ty = match (number.unit, number.form) {
        (Unit::Rate, _) => quote!(__ratelimits::Rate),
        (Unit::Zone, _) => quote!(__ratelimits::Zone),
        (Unit::Period | Unit::Precision | Unit::Timeout, _) | (_, Form::Text) => {
            quote!(::core::time::Duration)
        }
        (Unit::Count | Unit::Cost | Unit::Burst, _) => quote!(::core::primitive::u64),
    };
    quote!(const #name: #ty = #value;)
}

fn calendar_period_name(period: &LitStr) -> Ident {
    format_ident!("PERIOD", span = hygienic(period.span()))
}

fn calendar_period(period: &LitStr) -> TokenStream {
    quote_spanned!(hygienic(period.span())=> __ratelimits::const_args::calendar_period(#period))
}

fn constant_name(number: &Number) -> Ident {
    format_ident!("{}", number.name.to_uppercase(), span = hygienic(number.expr.span()))
}

/// Returns the value of a literal, checked.
fn literal(number: &Number) -> TokenStream {
    let (function, operand) = match (number.unit, number.form) {
        (Unit::Rate, Form::Text) => ("rate_str", None),
        (Unit::Rate, Form::Float) => ("rate_float", Some("f64")),
        (Unit::Rate, _) => ("rate_int", Some("i128")),
        (Unit::Timeout, _) => ("timeout", None),
        (Unit::Zone, _) => ("zone", None),
        (_, Form::Text) => ("duration", None),
        (Unit::Period | Unit::Precision, _) => ("seconds", Some("i128")),
        (Unit::Count | Unit::Burst, _) => ("count", Some("i128")),
        (Unit::Cost, _) => ("cost", Some("i128")),
    };
    literal_by(number, function, operand)
}

fn literal_by(number: &Number, function: &str, operand: Option<&str>) -> TokenStream {
    let (name, expr) = (number.name, &number.expr);
    let span = hygienic(expr.span());
    let function = Ident::new(function, span);
    // A literal with a type suffix does not become the operand's type by itself.
    let value = match operand.filter(|_| number.has_suffix()).map(|operand| Ident::new(operand, span)) {
        Some(operand) => quote_spanned!(span=> (#expr) as ::core::primitive::#operand),
        None => quote!(#expr),
    };
    quote_spanned!(span=> __ratelimits::const_args::#function(#name, #value))
}
