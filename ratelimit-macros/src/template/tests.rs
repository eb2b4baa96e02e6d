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
fn parts_are_placeholders_and_text() {
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
fn doubled_brackets_are_escapes() {
    is("<<a>><b>", &["\"<a>\"", "b"]);
    is("<a>>>", &["a", "\">\""]);
    is("<<<a>", &["\"<\"", "a"]);
}

#[test]
fn placeholders_end_with_their_expression() {
    is("<v.iter().sum::<u64>()>:x", &["v.iter().sum::<u64>()", "\"x\""]);
    is("<(a > b)>", &["(a>b)"]);
    is("<m[\">\"]>", &["m[\">\"]"]);
    is("<s.find('>')>", &["s.find('>')"]);
    for char in [r"'\x41'", r"'\u{e9}'", r"b'\x41'", r"'\''", r"'\\'", r"'\u{1F600}'", "'{'", "'}'", "'('"] {
        is(&format!("<s.find({char})>:<a>"), &[&format!("s.find({char})"), "a"]);
    }
}

#[track_caller]
fn fails(text: &str, message: &str) {
    assert_eq!(parts(text).unwrap_err(), message, "{text}");
}

#[test]
fn errors_say_what_to_write() {
    fails("", "an empty template has no parts; write `key = \"<user.id>\"`");
    fails("a<user", "unclosed placeholder `<user`; write `<user>`, or `<<` for a literal `<`");
    fails("<@ip", "unclosed placeholder `<@ip`; write `<@ip>`, or `<<` for a literal `<`");
    fails("a>b", "unmatched `>` in the template; write `>>` for a literal `>`");
    fails("<>", "empty placeholder in the template; write `<user.id>`, or `<<>>` for a literal `<>`");
    fails("<a +>", "expected an expression in `<a +>`; write `<user.id>`, or `<<` for a literal `<`");
    for open in ["'\\u{e9", "'\\x4", "'\\x41", "'\\", "'\\u{e9}("] {
        let message =
            format!("expected an expression in `<a + {open}>`; write `<user.id>`, or `<<` for a literal `<`");
        fails(&format!("<a + {open}>"), &message);
    }
    fails("<(a>", "expected an expression in `<(a>`; write `<user.id>`, or `<<` for a literal `<`");
    fails("<@usr>", "unknown placeholder `<@usr>`; did you mean `<@user>`?");
    fails(
        "<@client>",
        "unknown placeholder `<@client>`; write `<@ip>`, `<@user>`, `<@user_or_ip>` or `<@method>`",
    );
}

#[test]
fn templates_have_a_placeholder() {
    for text in ["user.id", "{a}", "${user.id}", ":id", "@user", "<<user.id>>", "sms", "a b"] {
        fails(
            text,
            "the template has no placeholder, so all calls would share one key; write `key = \"<user.id>\"`, or \
             `prefix = …` for fixed text",
        );
    }
}

#[test]
fn deep_templates_do_not_overflow_the_stack() {
    for depth in [1_000, 100_000] {
        for [open, close] in [["(", ")"], ["-", ""], ["f(", ")"], ["{", "}"], ["|a|", ""], ["[", "]"]] {
            let text = format!("<{}a{}>", open.repeat(depth), close.repeat(depth));
            assert!(parts(&text).unwrap_err().contains("expected an expression"), "{open}");
        }
    }
    is(
        &format!("<{}a{}>", "(".repeat(40), ")".repeat(40)),
        &[&format!("{}a{}", "(".repeat(40), ")".repeat(40))],
    );
    assert_eq!(parts(&format!("<{}a>", "-".repeat(499))).unwrap().len(), 1);
}
