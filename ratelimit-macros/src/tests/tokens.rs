//! Odd tokens, truncated ones, and those that other macros produce.

use proc_macro2::{Delimiter, Group, TokenTree};

use super::*;

/// Valid arguments of each attribute.
const VALID: [(AttributeKind, &str); 5] = [
    (
        Rate,
        "rate = \"100/min\", burst = 2 * 5, refill = interval, key = (user.id, \"x\"), skip_when = user.is_admin, shadow",
    ),
    (
        Count,
        "100, \"1d\", aligned, key = \"<user.id>:<@ip>\", cost = user.cost(), fallback = Self::busy, pass_args",
    ),
    (
        Funnel,
        "capacity = user.plan.size, drain = \"30m\", key_type = CUSTOM, key = user.id, fallback = |error| Err(error.into())",
    ),
    (
        Window,
        "limit = 5, period = 60, precision = \"1s\", prefix = \"sms\", name = \"send\", \
         charge_when = |out: &Result<(), E>| out.is_err(), registry = &self.registry, crate = ::renamed::limits",
    ),
    (
        Concurrency,
        "user.jobs, key = (user.id, \"x\"), cost = user.cost(), timeout = \"10s\", fallback = Self::busy, pass_args, bind = decision",
    ),
];

const METHOD: &str = "async fn send(&self, user: &User) -> Result<(), AppError> { Ok(()) }";

#[test]
fn odd_tokens_do_not_panic() {
    for args in [
        "=",
        ",",
        ",,",
        "= =",
        "limit =",
        "limit = =",
        "key = \"<\", <",
        "#",
        "a b c",
        "5 5",
        "'a",
        "key = |",
        "()",
        "limit == 5",
        "limit:",
        "limit: :",
        "limit()",
        "key = @",
        "key = <",
        "aligned()",
    ] {
        for item in ["", "x", "fn", "async fn f", "async fn f()", "async fn f() {", "struct S;", SEND] {
            if let (Ok(args), Ok(item)) = (TokenStream::from_str(args), TokenStream::from_str(item)) {
                for kind in AttributeKind::ALL {
                    expand::attribute(kind, args.clone(), item.clone());
                }
            }
        }
    }
}

/// Returns the first `count` tokens, counted through all groups.
fn truncated(tokens: TokenStream, count: &mut usize) -> TokenStream {
    let mut left = Vec::new();
    for token in tokens {
        if *count == 0 {
            break;
        }
        *count -= 1;
        left.push(match token {
            TokenTree::Group(group) => {
                TokenTree::Group(Group::new(group.delimiter(), truncated(group.stream(), count)))
            }
            token => token,
        });
    }
    left.into_iter().collect()
}

#[test]
fn truncated_arguments_do_not_panic() {
    for (kind, args) in VALID {
        expands(kind, args, METHOD);
        let mut length = 0;
        loop {
            let mut count = length;
            let half = truncated(tokens(args), &mut count);
            if count > 0 {
                break;
            }
            for suffix in ["", ",", ", ,", "=", ".", "|", "<"] {
                let half = half.clone().into_iter().chain(tokens(suffix)).collect::<TokenStream>();
                expand::attribute(kind, half, tokens(METHOD));
            }
            length += 1;
        }
        assert!(length > 20, "`{args}`");
    }
}

/// Parses arguments in which `@{…}` is a capture of `macro_rules!`: a group without delimiters.
fn captured(source: &str) -> TokenStream {
    fn grouped(tokens: TokenStream) -> TokenStream {
        let mut all = Vec::new();
        for token in tokens {
            let TokenTree::Group(group) = token else {
                all.push(token);
                continue;
            };
            let is_capture = matches!(all.last(), Some(TokenTree::Punct(at)) if at.as_char() == '@');
            let delimiter = if is_capture { Delimiter::None } else { group.delimiter() };
            all.truncate(all.len() - usize::from(is_capture));
            all.push(TokenTree::Group(Group::new(delimiter, grouped(group.stream()))));
        }
        all.into_iter().collect()
    }
    grouped(tokens(source))
}

#[test]
fn captures_are_transparent() {
    for (kind, args) in [
        (Rate, "@{\"100/min\"}, @{10}, refill = @{interval}, key = @{user.id}"),
        (Rate, "rate = @{@{2.0} * @{3.0}}, burst = @{BURST}, skip_when = @{user.is_admin}"),
        (Count, "@{limits::LIMIT}, @{user.period}, key_type = @{IP}, fallback = @{Self::f}, pass_args"),
        (Count, "@{user}, 60, name = @{\"send\"}, key = @{\"<user.id>\"}, registry = @{&self.registry}"),
        (Funnel, "10, 5, fallback = @{|error| Err(@{error})}, crate = @{::renamed}"),
        (Window, "5, 60, key = @{<User as Named>::name(user)}, charge_when = @{Result::is_err}"),
    ] {
        if let Err(error) = read(kind, captured(args), METHOD) {
            panic!("{error} in `{args}`");
        }
    }
    for args in [
        "@{}",
        "@{} = 5",
        "limit = @{}",
        "5, @{}",
        "@{limit = 5}",
        "@{5, 60}",
        "@{5} @{60}",
        "@{=}",
        "key = @{<}",
        "@{,}",
    ] {
        expand::attribute(Count, captured(args), tokens(METHOD));
    }
}

#[track_caller]
fn fails_captured(kind: AttributeKind, args: &str, expected: &[&str]) {
    let Err(errors) = read(kind, captured(args), METHOD) else { panic!("no error in `{args}`") };
    let found: Vec<_> = errors.into_iter().map(|error| error.to_string()).collect();
    assert_eq!(found, expected, "`{args}`");
}

#[test]
fn errors_see_through_captures() {
    fails_captured(
        Rate,
        "5, fallback = @{|| 5}",
        &[
            "a fallback closure takes one argument, the `Error`, and captures those of the function; write `|error| …`",
        ],
    );
    fails_captured(
        Rate,
        "5, crate = @{\"renamed\"}",
        &["`crate` is the path of the renamed crate; write `crate = ::renamed`"],
    );
}
