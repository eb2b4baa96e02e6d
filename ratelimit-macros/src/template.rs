//! Keys: who is counted. Templates like `"<user.id>:<@ip>"`, and bare expressions.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Expr, LitStr};

use crate::errors::{Errors, closest, listed};
use crate::function::Function;

/// One part of a key.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// A text that is the same for every call.
    Text(String),
    /// An expression over the function's arguments.
    Expr(TokenStream),
    /// The client's address, from the request context.
    Ip,
    /// The user, from the request context.
    User,
    /// The user if there is one, else the address.
    UserOrIp,
}

const CONTEXT: [&str; 4] = ["ip", "user", "user_or_ip", "method"];

/// The parts of a bare expression: one, or those of a tuple.
pub(crate) fn bare(expr: &Expr, errors: &mut Errors) -> Vec<Part> {
    let Expr::Tuple(tuple) = expr else {
        return vec![Part::Expr(expr.to_token_stream())];
    };
    if tuple.elems.is_empty() {
        errors.on(tuple, "`()` names nobody to count; write what to count by: `key = user.id`");
    }
    tuple.elems.iter().map(|part| Part::Expr(part.to_token_stream())).collect()
}

/// The parts of a template.
///
/// One `:` right beside a placeholder only separates: `<a>:<b>` is the two parts of `(a, b)`, but `<a>-<b>` has three.
pub(crate) fn template(literal: &LitStr, function: &Function, errors: &mut Errors) -> Vec<Part> {
    let text = literal.value();
    if text.is_empty() {
        errors.on(
            literal,
            "this template names nobody to count; write what to count by: `key = \"<user.id>\"`",
        );
        return Vec::new();
    }
    let mut parts = Vec::new();
    let mut fixed = String::new();
    let mut rest = text.as_str();
    let mut behind_placeholder = false;
    while let Some(at) = rest.find(['<', '>']) {
        fixed.push_str(&rest[..at]);
        let open = rest[at..].starts_with('<');
        rest = &rest[at + 1..];
        let next = if open { '<' } else { '>' };
        if let Some(escaped) = rest.strip_prefix(next) {
            fixed.push(next);
            rest = escaped;
            continue;
        }
        if !open {
            errors.on(
                literal,
                "`>` without a `<` before it in this template; write `>>` for the character itself",
            );
            return Vec::new();
        }
        push_text(&mut parts, &fixed, behind_placeholder, true);
        fixed.clear();
        match placeholder(rest, literal, function) {
            Ok((part, behind)) => {
                parts.push(part);
                rest = behind;
                behind_placeholder = true;
            }
            Err(message) => {
                errors.on(literal, message);
                return Vec::new();
            }
        }
    }
    fixed.push_str(rest);
    push_text(&mut parts, &fixed, behind_placeholder, false);
    parts
}

fn push_text(parts: &mut Vec<Part>, text: &str, behind_placeholder: bool, before_placeholder: bool) {
    let mut text = text;
    if behind_placeholder {
        text = text.strip_prefix(':').unwrap_or(text);
    }
    if before_placeholder {
        text = text.strip_suffix(':').unwrap_or(text);
    }
    if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
}

/// Reads one placeholder from behind its `<`, and what follows its `>`.
///
/// It ends at the first `>` before which there is a whole expression: so `<ids.iter().sum::<u64>()>` needs no escapes.
fn placeholder<'t>(rest: &'t str, literal: &LitStr, function: &Function) -> Result<(Part, &'t str), String> {
    let ends = rest.match_indices('>').map(|(at, _)| at);
    if let Some(named) = rest.strip_prefix('@') {
        let end = named.find('>').ok_or_else(|| unclosed(rest))?;
        let part = match &named[..end] {
            "ip" => Part::Ip,
            "user" => Part::User,
            "user_or_ip" => Part::UserOrIp,
            "method" => Part::Text(function.name()),
            unknown => return Err(unknown_name(unknown)),
        };
        return Ok((part, &named[end + 1..]));
    }
    let mut first = None;
    for end in ends {
        let inside = &rest[..end];
        first.get_or_insert(inside);
        if is_balanced(inside)
            && let Ok(expr) = syn::parse_str::<Expr>(inside)
        {
            let tokens = resolved(expr.to_token_stream(), literal.span(), function);
            return Ok((Part::Expr(tokens), &rest[end + 1..]));
        }
    }
    Err(match first {
        None => unclosed(rest),
        Some(inside) if inside.trim().is_empty() => {
            "`<>` in this template names nothing; write an expression over the arguments: `<user.id>`"
                .to_owned()
        }
        Some(inside) => {
            format!(
                "`<{inside}>` in this template is no expression; write one over the arguments: `<user.id>`, or `<<` for the character itself"
            )
        }
    })
}

fn unclosed(rest: &str) -> String {
    format!("`<{rest}` in this template is not closed; write `<{rest}>`, or `<<` for the character itself")
}

fn unknown_name(name: &str) -> String {
    let meant = match closest(name, &CONTEXT) {
        Some(known) => format!("did you mean `<@{known}>`? "),
        None => String::new(),
    };
    let known: Vec<_> = CONTEXT.iter().map(|known| format!("<@{known}>")).collect();
    let known: Vec<_> = known.iter().map(String::as_str).collect();
    format!("unknown `<@{name}>` in this template; {meant}the request context has {}", listed(&known))
}

/// Whether brackets and quotes close. The compiler's lexer reports what does not by itself, so it must not see it.
fn is_balanced(text: &str) -> bool {
    let mut open = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(char) => return false,
            '"' => loop {
                match chars.next() {
                    Some('\\') => _ = chars.next(),
                    Some('"') => break,
                    Some(_) => {}
                    None => return false,
                }
            },
            '\'' => {
                let quoted = chars.next();
                if quoted == Some('\\') {
                    chars.next();
                }
                // A lifetime has no second quote, and what it would swallow is no bracket.
                if chars.peek() == Some(&'\'') {
                    chars.next();
                } else if quoted.is_none_or(|quoted| !quoted.is_alphanumeric() && quoted != '_') {
                    return false;
                }
            }
            _ => {}
        }
    }
    open.is_empty()
}

/// Tokens from inside a literal, placed at the literal and resolved where the function's arguments are: an argument that
/// came through `macro_rules!` is found by the hygiene of its own name.
fn resolved(tokens: TokenStream, literal: Span, function: &Function) -> TokenStream {
    let here = Span::call_site().located_at(literal);
    let respan = |token| match token {
        TokenTree::Group(group) => {
            let mut respanned = Group::new(group.delimiter(), resolved(group.stream(), literal, function));
            respanned.set_span(here);
            TokenTree::Group(respanned)
        }
        TokenTree::Ident(mut ident) => {
            let argument = function.bindings().iter().find(|argument| **argument == ident);
            ident.set_span(argument.map_or(here, |argument: &Ident| argument.span().located_at(literal)));
            TokenTree::Ident(ident)
        }
        mut other => {
            other.set_span(here);
            other
        }
    };
    tokens.into_iter().map(respan).collect()
}

#[cfg(test)]
mod tests {
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
        is("a:b", &["\"a:b\""]);
        is("<@user>:<@user_or_ip>:<@method>", &["@User", "@UserOrIp", "\"send\""]);
    }

    #[test]
    fn doubled_brackets_are_the_characters() {
        is("<<a>>", &["\"<a>\""]);
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
        fails(
            "<@ip",
            "`<@ip` in this template is not closed; write `<@ip>`, or `<<` for the character itself",
        );
        fails("a>b", "`>` without a `<` before it in this template; write `>>` for the character itself");
        fails(
            "<>",
            "`<>` in this template names nothing; write an expression over the arguments: `<user.id>`",
        );
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
}
