//! Every message with the tokens it points at. What rustc says of the generated code is in `tests/ui` of the facade.

mod arguments;
mod conditions;
mod fallbacks;
mod foreign;
mod functions;
mod properties;
mod stacks;
mod tokens;
mod waiting;

use std::str::FromStr;

use proc_macro2::TokenStream;

use crate::expand;
use crate::function::Function;
use crate::kind::Kind::{self, Count, Funnel, Rate, Window};
use crate::model::Limits;
use crate::stack::Limit;

const SEND: &str = "async fn send(user: &User) -> Result<(), AppError> { Ok(()) }";

fn tokens(source: &str) -> TokenStream {
    TokenStream::from_str(source).unwrap()
}

fn read(kind: Kind, args: TokenStream, item: &str) -> syn::Result<Limits> {
    match Function::parse(tokens(item)) {
        Ok(function) => Limits::read(&[Limit::written(kind, args)], function),
        Err(_) => Err(Limits::no_function(kind, tokens(item))),
    }
}

/// Checks the messages of one attribute, each with the source it points at. `""` is the attribute itself.
#[track_caller]
fn fails_on(item: &str, kind: Kind, args: &str, expected: &[(&str, &str)]) {
    let Err(errors) = read(kind, tokens(args), item) else { panic!("no error in `{args}`") };
    let found: Vec<_> = errors
        .into_iter()
        .map(|error| (error.span().source_text().unwrap_or_default(), error.to_string()))
        .collect();
    let found: Vec<_> = found.iter().map(|(place, message)| (place.as_str(), message.as_str())).collect();
    assert_eq!(found, expected, "`{args}`");
    let expanded = expand::attribute(kind, tokens(args), tokens(item)).to_string();
    assert!(expanded.ends_with(&tokens(item).to_string()), "the function comes back as it was: {expanded}");
    assert_eq!(expanded.matches("compile_error").count(), expected.len());
}

#[track_caller]
fn fails(kind: Kind, args: &str, expected: &[(&str, &str)]) {
    fails_on(SEND, kind, args, expected);
}

#[track_caller]
fn expands(kind: Kind, args: &str, item: &str) -> String {
    match read(kind, tokens(args), item) {
        Ok(_) => expand::attribute(kind, tokens(args), tokens(item)).to_string(),
        Err(errors) => panic!("{errors}"),
    }
}

#[test]
fn numbers() {
    fails(
        Rate,
        "1 / 60, 2.5",
        &[
            (
                "1 / 60",
                "`/` between whole numbers drops the fraction; write `rate = 1.0 / 60.0`, or name the period: `rate = \"1/min\"`",
            ),
            (
                "2.5",
                "`burst` has no fractions; write whole permits: `burst = 10`, or a time's worth of the rate: `burst = \"5s\"`",
            ),
        ],
    );
    fails(
        Count,
        "5.5, 0.5, cost = \"1\"",
        &[
            ("5.5", "`limit` counts whole permits; write a whole number: `limit = 10`"),
            ("0.5", "`period` has no fractions; write `period = \"500ms\"`"),
            ("\"1\"", "`cost` counts whole permits; write a whole number: `cost = 10`"),
        ],
    );
    fails(
        Window,
        "5, 60, precision = 1",
        &[("1", "`precision` has no unit; write a time with its unit: `precision = \"1s\"`")],
    );
    fails(Rate, "5/s", &[("5/s", "a number with a time is a string; write `rate = \"5/s\"`")]);
    fails(Rate, "5/10s", &[("5/10s", "a number with a time is a string; write `rate = \"5/10s\"`")]);
    fails(Count, "5, 15m", &[("15m", "a number with a time is a string; write `period = \"15m\"`")]);
    expands(Rate, "5.0 / s", "async fn f(s: f64) -> Result<(), E> {}");
    let permits = "`burst` has no unit; write a time's worth of the rate: `burst = \"5s\"`, or `burst = 5`";
    fails(Rate, "5, burst = \"5\"", &[("\"5\"", permits)]);
    fails(
        Funnel,
        "5, 1.0, drain = 60",
        &[("drain", "`drain` and `leak_rate` say the same; write only one of them")],
    );
}

#[test]
fn refills() {
    fails(
        Rate,
        "5, refill = interval",
        &[("5", "a refill at intervals needs the period of its rate; write `rate = \"100/min\"`")],
    );
    fails(
        Rate,
        "\"5/s\", refill = greedy",
        &[(
            "greedy",
            "`refill` is continuous unless it is `interval`; leave it out, or write `refill = interval`",
        )],
    );
    expands(Rate, "\"5/s\", refill = interval", SEND);
    expands(Rate, "RATE, refill = interval", SEND);
}

#[test]
fn keys() {
    fails(
        Rate,
        "5, key_type = CUSTOM",
        &[("CUSTOM", "`CUSTOM` counts by a `key`, which is missing; write `key = \"<user.id>\"`")],
    );
    fails(
        Rate,
        "5, key_type = IP, key = user.id",
        &[("IP", "`IP` takes no `key`; write `key_type = CUSTOM`, or leave out `key`")],
    );
    fails(Rate, "5, key_type = user", &[("user", "unknown `key_type`; write `key_type = USER`")]);
    for written in ["\"IP\"", "KeyType::Ip", "LimitType.IP"] {
        let args = format!("5, key_type = {written}");
        fails(Rate, &args, &[(written, "unknown `key_type`; write `key_type = IP`")]);
    }
    fails(
        Rate,
        "5, key_type = 5, key = ()",
        &[
            ("5", "unknown `key_type`; write `IP`, `USER`, `METHOD` or `CUSTOM`"),
            ("()", "`()` names nobody to count; write what to count by: `key = user.id`"),
        ],
    );
    fails(
        Rate,
        "5, key = \"a<user\"",
        &[(
            "\"a<user\"",
            "`<user` in this template is not closed; write `<user>`, or `<<` for the character itself",
        )],
    );
}

#[test]
fn texts() {
    fails(
        Rate,
        "5, prefix = sms, name = \"\"",
        &[
            ("\"\"", "`name` is a text that is not empty; write `name = \"sms.send\"`"),
            ("sms", "`prefix` is a string literal; write `prefix = \"sms\"`"),
        ],
    );
    fails(
        Rate,
        "5, name = names::SEND",
        &[("names::SEND", "`name` is a string literal; write `name = \"sms.send\"`")],
    );
}

#[test]
fn many_mistakes_are_reported_at_once() {
    let Err(errors) =
        read(Rate, tokens("rat = 1, 1 / 60, busrt = 2, pass_args, key = \"<\", aligned"), "fn f() {}")
    else {
        panic!("no error");
    };
    assert_eq!(errors.into_iter().count(), 7);
}

#[test]
fn literals_become_constants_and_the_rest_is_computed() {
    let constant = expands(Count, "2 * 50, \"1d\", aligned", SEND);
    assert!(constant.contains("literal :: count (2 * 50)"), "{constant}");
    assert!(constant.contains("FixedWindow :: new (LIMIT , PERIOD) . aligned ()"), "{constant}");
    let computed = expands(Count, "user.limit, \"1d\"", SEND);
    assert!(computed.contains("dynamic :: count (\"limit\" , user . limit)"), "{computed}");
    assert!(computed.contains("const PERIOD"), "{computed}");
    assert!(computed.contains("FixedWindow :: new (1 , PERIOD)"), "{computed}");
    let named = expands(Count, "LIMIT, PERIOD", SEND);
    assert!(named.contains("dynamic :: period (\"period\" , PERIOD)"), "{named}");
    let suffixed = expands(Count, "10u8, -5", SEND);
    assert!(suffixed.contains("(10u8) as :: core :: primitive :: i128"), "{suffixed}");
}
