//! Keys: templates like `"<user.id>:<@ip>"`, and bare expressions.

use std::iter::Peekable;
use std::str::Chars;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use ratelimit_syntax::closest;
use syn::{Expr, LitStr};

use crate::errors::Errors;
use crate::function::Function;

/// One part of a key.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Fixed text.
    Text(String),
    /// An expression over the function's arguments.
    Expr(TokenStream),
    /// The IP address of the request context.
    Ip,
    /// The user of the request context.
    User,
    /// The user of the request context, or without one its IP address.
    UserOrIp,
}

const CONTEXT: [&str; 4] = ["ip", "user", "user_or_ip", "method"];

/// Returns the parts of a bare expression: one, or those of a tuple.
pub(crate) fn bare(expr: &Expr, errors: &mut Errors) -> Vec<Part> {
    let Expr::Tuple(tuple) = expr else {
        return vec![Part::Expr(expr.to_token_stream())];
    };
    if tuple.elems.is_empty() {
        errors.on(tuple, "an empty key has no parts; write `key = user.id`");
    }
    tuple.elems.iter().map(|part| Part::Expr(part.to_token_stream())).collect()
}

/// Parses the parts of a template.
///
/// One `:` next to a placeholder is a separator: `<a>:<b>` has the two parts of `(a, b)`, but `<a>-<b>` has three.
pub(crate) fn template(literal: &LitStr, function: &Function, errors: &mut Errors) -> Vec<Part> {
    let text = literal.value();
    if text.is_empty() {
        errors.on(literal, "an empty template has no parts; write `key = \"<user.id>\"`");
        return Vec::new();
    }
    let mut parts = Vec::new();
    let mut fixed = String::new();
    let mut rest = text.as_str();
    let mut after_placeholder = false;
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
            errors.on(literal, "unmatched `>` in the template; write `>>` for a literal `>`");
            return Vec::new();
        }
        push_text(&mut parts, &fixed, after_placeholder, true);
        fixed.clear();
        match placeholder(rest, literal, function) {
            Ok((part, tail)) => {
                parts.push(part);
                rest = tail;
                after_placeholder = true;
            }
            Err(message) => {
                errors.on(literal, message);
                return Vec::new();
            }
        }
    }
    fixed.push_str(rest);
    if !after_placeholder {
        let message = "the template has no placeholder, so all calls would share one key; write `key = \"<user.id>\"`, or \
                       `prefix = …` for fixed text";
        errors.on(literal, message);
        return Vec::new();
    }
    push_text(&mut parts, &fixed, after_placeholder, false);
    parts
}

fn push_text(parts: &mut Vec<Part>, text: &str, after_placeholder: bool, before_placeholder: bool) {
    let mut text = text;
    if after_placeholder {
        text = text.strip_prefix(':').unwrap_or(text);
    }
    if before_placeholder {
        text = text.strip_suffix(':').unwrap_or(text);
    }
    if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
}

/// Parses one placeholder after its `<`. Returns it and the text after its `>`.
///
/// It ends at the first `>` that completes an expression, so `<ids.iter().sum::<u64>()>` needs no escapes.
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
            "empty placeholder in the template; write `<user.id>`, or `<<>>` for a literal `<>`".to_owned()
        }
        Some(inside) => {
            format!("expected an expression in `<{inside}>`; write `<user.id>`, or `<<` for a literal `<`")
        }
    })
}

fn unclosed(rest: &str) -> String {
    format!("unclosed placeholder `<{rest}`; write `<{rest}>`, or `<<` for a literal `<`")
}

fn unknown_name(name: &str) -> String {
    match closest(name, CONTEXT) {
        Some(known) => format!("unknown placeholder `<@{name}>`; did you mean `<@{known}>`?"),
        None => format!(
            "unknown placeholder `<@{name}>`; write `<@ip>`, `<@user>`, `<@user_or_ip>` or `<@method>`"
        ),
    }
}

/// The bounds of a placeholder, for which the parser does not overflow the compiler's stack.
const MAX_LEN: usize = 500;
const MAX_DEPTH: usize = 50;

/// Returns whether brackets and quotes are balanced. If they are not, the compiler's lexer must not see the text, because it
/// reports that by itself.
fn is_balanced(text: &str) -> bool {
    if text.len() > MAX_LEN {
        return false;
    }
    let mut open = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if open.len() > MAX_DEPTH {
            return false;
        }
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
                    skip_escape(&mut chars);
                }
                // A lifetime has no second quote.
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

/// Skips what follows the backslash of a character: `n`, `x41`, `u{e9}`.
fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.next() {
        Some('x') => _ = chars.nth(1),
        Some('u') => _ = chars.find(|char| *char == '}'),
        _ => {}
    }
}

/// Gives tokens from inside a literal the span of the literal, and names of arguments the hygiene of the argument, which may
/// come from `macro_rules!`.
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
mod tests;
