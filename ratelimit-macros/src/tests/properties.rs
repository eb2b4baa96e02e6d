//! Arbitrary arguments and templates: no panics, every error has a span, and the expansion parses.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use quote::quote;
use ratelimit_syntax::{KEY_TYPES, ON_STORE_ERROR};

use super::*;

/// Words of Rust and of values, and values.
const PIECES: [&str; 62] = [
    "interval",
    "user",
    "permits",
    "tokens",
    "r#rate",
    "r#type",
    "self",
    "Self",
    "super",
    "true",
    "false",
    "None",
    "forever",
    "async",
    "fn",
    "as",
    "=",
    "=",
    "=",
    "=",
    ",",
    ",",
    ",",
    ",",
    ";",
    ":",
    "::",
    "==",
    "=>",
    "->",
    "<",
    ">",
    "<<",
    ">>",
    "@",
    "#",
    "$",
    "?",
    "!",
    "&",
    "|",
    "..",
    ".",
    "-",
    "/",
    "5",
    "0",
    "2.5",
    "1e400",
    "18446744073709551616",
    "5u8",
    "15m",
    "'a",
    "'x'",
    "\"5/s\"",
    "\"1d\"",
    "\"<user.id>\"",
    "\"\"",
    "()",
    "(user)",
    "[1]",
    "{ 5 }",
];

/// The arguments of all attributes.
fn arguments() -> Vec<&'static str> {
    AttributeKind::ALL.into_iter().flat_map(AttributeKind::arguments).collect()
}

fn pieces() -> impl Strategy<Value = String> {
    let values = [&PIECES[..], &KEY_TYPES, &ON_STORE_ERROR].concat();
    let piece = prop_oneof![
        9 => select(arguments()).prop_map(str::to_owned),
        21 => select(values).prop_map(str::to_owned),
        2 => Just(String::from("|error| error")),
        1 => texts().prop_map(|text| format!("{text:?}")),
        1 => r"[\PC]{0,6}",
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.join(" "))
}

/// Almost templates.
fn texts() -> impl Strategy<Value = String> {
    let odd = [
        "<", ">", "<<", ">>", ":", "::", "@", "@ip", "@user", "@method", "@usr", "user.id", "user", "<user>",
        "a", "é", "５", "\0", "\n", "\\", "\"", "'", "'a", "'\\", "b'", "r#\"", "//", "/*", "*/", "(", ")",
        "[", "]", "{", "}", "${", "#{", "::<", " ", "+", "|", "=>", "0x", "1e", "1_", "\u{feff}", "\u{202e}",
        "#!", "\\u{", "if", "match", "move", "async {",
    ];
    prop_oneof![
        6 => vec(select(odd.to_vec()), 0..9).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
}

fn kinds() -> impl Strategy<Value = AttributeKind> {
    select(AttributeKind::ALL.to_vec())
}

/// Asserts that an attribute expands, or that each of its errors has a span and the function is unchanged.
fn is_code_or_errors(kind: AttributeKind, written: &str, item: &str) {
    let Ok(args) = TokenStream::from_str(written) else { return };
    let errors = read(kind, args.clone(), item).err();
    let expanded = expand::attribute(kind, args.clone(), tokens(item));
    let parsed = syn::parse2::<syn::File>(expanded.clone());
    assert!(parsed.is_ok(), "`{args}` becomes {expanded}");
    if let Some(errors) = errors {
        let text = expanded.to_string();
        assert!(text.contains("compile_error") && text.ends_with(&tokens(item).to_string()), "{text}");
        for error in errors {
            // The span of the attribute itself has no text here.
            let span = error.span().source_text().unwrap_or_default();
            let within = written.contains(&span) || item.contains(&span);
            assert!(within && !error.to_string().is_empty(), "`{args}`: {error} at {span}");
        }
    }
}

fn cases() -> u32 {
    if std::env::var("RATELIMITS_TEST_BUDGET").is_ok_and(|budget| budget == "long") { 10_000 } else { 1_000 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn arguments_expand_or_fail(kind in kinds(), args in pieces()) {
        is_code_or_errors(kind, &args, SEND);
    }

    #[test]
    fn templates_expand_or_fail(kind in kinds(), text in texts()) {
        let text = proc_macro2::Literal::string(&text);
        let own = match kind {
            Rate => quote!(5.0),
            Funnel => quote!(5, drain = "1m"),
            Count | Window => quote!(5, "1m"),
            Concurrency => quote!(5),
        };
        let args = quote!(#own, key = #text).to_string();
        is_code_or_errors(kind, &args, SEND);
    }

    #[test]
    fn string_values_expand_or_fail(
        kind in kinds(),
        name in select(arguments()),
        text in prop_oneof![texts(), "[0-9]{0,24}(us|ms|s|m|h|d|/s|/min|/5s)?", "[a-z_:]{0,9}"],
    ) {
        let text = proc_macro2::Literal::string(&text);
        is_code_or_errors(kind, &format!("{name} = {text}"), SEND);
    }
}
