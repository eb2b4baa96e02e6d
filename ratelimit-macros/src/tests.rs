//! Error messages and the tokens they span. What rustc says about generated code is in the facade's `tests/ui`.

mod arguments;
mod fallbacks;
mod functions;
mod holds;
mod leases;
mod numbers;
mod options;
mod properties;
mod stacks;
mod tokens;
mod waiting;

use std::str::FromStr;

use proc_macro2::TokenStream;
use ratelimit_syntax::AttributeKind::{self, Concurrency, Count, Funnel, Rate, Window};

use crate::expand;
use crate::function::Function;
use crate::model::LimitedFunction;
use crate::stack::LimitAttribute;

const SEND: &str = "async fn send(user: &User) -> Result<(), AppError> { Ok(()) }";

fn tokens(source: &str) -> TokenStream {
    TokenStream::from_str(source).unwrap()
}

fn read(kind: AttributeKind, args: TokenStream, item: &str) -> syn::Result<LimitedFunction> {
    match Function::parse(tokens(item)) {
        Ok(function) => LimitedFunction::read(&[LimitAttribute::new(kind, args)], function),
        Err(_) => Err(LimitedFunction::not_a_function(kind, tokens(item))),
    }
}

/// Asserts the errors of one attribute, each with the source it spans. `""` is the attribute itself.
#[track_caller]
fn fails_on(item: &str, kind: AttributeKind, args: &str, expected: &[(&str, &str)]) {
    let Err(errors) = read(kind, tokens(args), item) else { panic!("no error in `{args}`") };
    let found: Vec<_> = errors
        .into_iter()
        .map(|error| (error.span().source_text().unwrap_or_default(), error.to_string()))
        .collect();
    let found: Vec<_> = found.iter().map(|(span, message)| (span.as_str(), message.as_str())).collect();
    assert_eq!(found, expected, "`{args}`");
    let expanded = expand::attribute(kind, tokens(args), tokens(item)).to_string();
    assert!(expanded.ends_with(&tokens(item).to_string()), "the function changed: {expanded}");
    assert_eq!(expanded.matches("compile_error").count(), expected.len());
}

#[track_caller]
fn fails(kind: AttributeKind, args: &str, expected: &[(&str, &str)]) {
    fails_on(SEND, kind, args, expected);
}

/// Asserts the same error on each of these values of an argument.
#[track_caller]
fn fails_with(kind: AttributeKind, args: &str, values: &[&str], message: &str) {
    for value in values {
        fails(kind, &format!("{args} = {value}"), &[(value, message)]);
    }
}

#[track_caller]
fn expands(kind: AttributeKind, args: &str, item: &str) -> String {
    match read(kind, tokens(args), item) {
        Ok(_) => expand::attribute(kind, tokens(args), tokens(item)).to_string(),
        Err(errors) => panic!("{errors}"),
    }
}
