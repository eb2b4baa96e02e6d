//! Templates, part by part.

use super::*;
use quote::quote;

fn parts(text: &str) -> Result<Vec<String>, String> {
    let function = Function::parse(quote!(
        async fn send(user: &User, a: u8, b: u8) {}
    ))
    .unwrap();
    let mut errors = Errors::default();
    let parts = template(&LitStr::new(text, Span::call_site()), &function, &mut errors);
    errors.finish(Some(parts)).map_err(|error| error.to_string()).map(|parts| {
        let shown = |part: &Part| match part {
            Part::Text(text) => format!("{text:?}"),
            Part::Expr(tokens) => tokens.to_string().replace(' ', ""),
            context => format!("@{context:?}"),
        };
        parts.iter().map(shown).collect()
    })
}

#[track_caller]
fn is(text: &str, expected: &[&str]) {
    assert_eq!(parts(text).unwrap(), expected, "{text}");
}

#[test]
fn parts_are_placeholders_and_the_texts_between() {
    is("<user.id>:<@ip>", &["user.id", "@Ip"]);
    is("sms:<a>", &["\"sms\"", "a"]);
    is("<a>-<b>", &["a", "\"-\"", "b"]);
    is("<a><b>", &["a", "b"]);
    is("<a>::<b>", &["a", "b"]);
    is("<a>:::<b>", &["a", "\":\"", "b"]);
    is(":<a>:", &["a"]);
    is("<@user>:<@user_or_ip>:<@method>", &["@User", "@UserOrIp", "\"send\""]);
}

#[test]
fn doubled_brackets_are_the_characters() {
    is("<<a>><b>", &["\"<a>\"", "b"]);
    is("<a>>>", &["a", "\">\""]);
    is("<<<a>", &["\"<\"", "a"]);
}

#[test]
fn a_placeholder_ends_where_its_expression_does() {
    is("<v.iter().sum::<u64>()>:x", &["v.iter().sum::<u64>()", "\"x\""]);
    is("<(a > b)>", &["(a>b)"]);
    is("<m[\">\"]>", &["m[\">\"]"]);
    is("<s.find('>')>", &["s.find('>')"]);
}

#[track_caller]
fn fails(text: &str, message: &str) {
    assert_eq!(parts(text).unwrap_err(), message, "{text}");
}

#[test]
fn mistakes_say_what_to_write() {
    fails("", "this template names nobody to count; write what to count by: `key = \"<user.id>\"`");
    fails(
        "a<user",
        "`<user` in this template is not closed; write `<user>`, or `<<` for the character itself",
    );
    fails("<@ip", "`<@ip` in this template is not closed; write `<@ip>`, or `<<` for the character itself");
    fails("a>b", "`>` without a `<` before it in this template; write `>>` for the character itself");
    fails("<>", "`<>` in this template names nothing; write an expression over the arguments: `<user.id>`");
    fails(
        "<a +>",
        "`<a +>` in this template is no expression; write one over the arguments: `<user.id>`, or `<<` for the character itself",
    );
    fails(
        "<@usr>",
        "unknown `<@usr>` in this template; did you mean `<@user>`? the request context has `<@ip>`, `<@user>`, `<@user_or_ip>`, `<@method>`",
    );
    fails(
        "<(a>",
        "`<(a>` in this template is no expression; write one over the arguments: `<user.id>`, or `<<` for the character itself",
    );
}

#[test]
fn a_template_without_a_placeholder_is_none() {
    for (text, meant) in [
        ("user.id", "<user.id>"),
        ("user[0]", "<user[0]>"),
        ("a", "<a>"),
        ("{a}", "<a>"),
        ("sms:{user.id}:x", "sms:<user.id>:x"),
        ("${user.id}", "<user.id>"),
        ("{@ip}", "<@ip>"),
        ("$id", "<id>"),
        (":id", "<id>"),
        ("@user", "<@user>"),
        ("<<user.id>>", "<user.id>"),
        ("x:<<a>>", "x:<a>"),
        ("sms", "<user.id>"),
        ("sms.send", "<user.id>"),
        ("{}", "<user.id>"),
        ("a b", "<user.id>"),
        ("@anybody", "<user.id>"),
    ] {
        let message = format!(
            "this template has no placeholder, so all calls would share one counter; write `key = \"{meant}\"`, or `prefix = …` for a fixed text"
        );
        fails(text, &message);
    }
}

#[test]
fn no_template_is_too_deep_for_the_stack() {
    for depth in [1_000, 100_000] {
        for [open, close] in [["(", ")"], ["-", ""], ["f(", ")"], ["{", "}"], ["|a|", ""], ["[", "]"]] {
            let text = format!("<{}a{}>", open.repeat(depth), close.repeat(depth));
            assert!(parts(&text).unwrap_err().contains("is no expression"), "{open}");
        }
    }
    is(
        &format!("<{}a{}>", "(".repeat(40), ")".repeat(40)),
        &[&format!("{}a{}", "(".repeat(40), ")".repeat(40))],
    );
    assert_eq!(parts(&format!("<{}a>", "-".repeat(499))).unwrap().len(), 1);
}
