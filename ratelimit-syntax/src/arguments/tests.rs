use std::str::FromStr;

use proc_macro2::{Ident, TokenStream};

use super::*;
use crate::AttributeKind::{self, Count, Rate};
use crate::expr::shown;

fn parse(
    attribute: AttributeKind,
    text: &str,
    is_value: impl Fn(&Ident) -> bool,
) -> (Arguments, Vec<Problem>) {
    Arguments::parse(attribute, TokenStream::from_str(text).unwrap(), &is_value)
}

/// Returns each argument as it is named, with its value.
fn given(attribute: AttributeKind, text: &str) -> Vec<String> {
    let (arguments, problems) = parse(attribute, text, |_| false);
    assert!(problems.is_empty(), "{text}: {problems:?}");
    let written = |argument: &Argument| match &argument.value {
        Some(value) => format!("{} = {}", argument.name, shown(value)),
        None => argument.name.to_owned(),
    };
    arguments.iter().map(written).collect()
}

/// Returns each problem, with the tokens that it is about.
fn problems(attribute: AttributeKind, text: &str) -> Vec<(String, String)> {
    let (_, problems) = parse(attribute, text, |_| false);
    problems.iter().map(|problem| (shown(&problem.tokens), problem.to_string())).collect()
}

#[test]
fn arguments_are_positional_or_named() {
    assert_eq!(given(Count, "5, 60, aligned,"), ["limit = 5", "period = 60", "aligned"]);
    assert_eq!(given(Rate, "key = user.id, rate = 2.5"), ["key = user.id", "rate = 2.5"]);
    assert_eq!(given(Rate, "5, fallback = |e| f(e), crate = a::b")[2], "crate = a::b");
    assert_eq!(given(Rate, ""), [""; 0]);
}

#[test]
fn single_words_may_be_values() {
    let (arguments, problems) = parse(Count, "MAX, aligned", |word| word == "MAX");
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(shown(arguments.get("limit").unwrap().value.as_ref().unwrap()), "MAX");
    assert!(arguments.get("aligned").unwrap().value.is_none());
    assert_eq!(parse(Count, "MAX, aligned", |_| false).1.len(), 1);
    // Names come last.
    assert_eq!(parse(Count, "aligned, MAX", |_| true).1.len(), 1);
}

#[test]
fn problems_are_reported_together_with_their_tokens() {
    let found = problems(Rate, "burts = 5, shadow = 1, rate, lease: 5, cost = 2 +, 10");
    let messages = [
        ("burts", "unknown argument `burts`; did you mean `burst`?"),
        ("shadow", "`shadow` takes no value; write `shadow`, or leave it out"),
        ("rate", "`rate` needs a value; write `rate = …`"),
        (":", "unexpected `:`; write `lease = 5`"),
        ("2 +", "expected an expression; write `cost = …`"),
    ];
    assert_eq!(found, messages.map(|(tokens, message)| (tokens.to_owned(), message.to_owned())));
}

#[test]
fn arguments_are_missing_if_all_were_understood() {
    let is_missing = |text| parse(Rate, text, |_| false).0.is_missing("rate");
    assert!(is_missing("burst = 5") && is_missing("shadow = 1"));
    assert!(!is_missing("rte = 5") && !is_missing("5") && !is_missing("rate = "));
}
