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
    if !behind_placeholder {
        errors.on(
            literal,
            format!(
                "this template has no placeholder, so all calls would share one counter; write `key = \"{}\"`, \
                 or `prefix = …` for a fixed text",
                guessed(&text, function)
            ),
        );
        return Vec::new();
    }
    push_text(&mut parts, &fixed, behind_placeholder, false);
    parts
}

/// The template that was probably meant by one without a placeholder.
fn guessed(text: &str, function: &Function) -> String {
    for (open, close) in [("<<", ">>"), ("${", "}"), ("#{", "}"), ("{", "}")] {
        if let Some((before, rest)) = text.split_once(open)
            && let Some((inside, behind)) = rest.split_once(close)
            && could_be_placeholder(inside)
        {
            return format!("{before}<{inside}>{behind}");
        }
    }
    let inside = text.trim_start_matches(['$', ':', '#', '%']);
    let is_marked = inside != text || text.starts_with('@');
    let word = text.split(|char: char| !char.is_alphanumeric() && char != '_').next();
    let begins_with_argument =
        function.bindings().iter().any(|argument| word.is_some_and(|word| argument == word));
    if (is_marked || begins_with_argument) && could_be_placeholder(inside) {
        return format!("<{inside}>");
    }
    "<user.id>".to_owned()
}

fn could_be_placeholder(text: &str) -> bool {
    match text.strip_prefix('@') {
        Some(name) => CONTEXT.contains(&name),
        None => {
            is_balanced(text) && syn::parse_str::<Expr>(text).is_ok_and(|expr| !matches!(expr, Expr::Lit(_)))
        }
    }
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

/// So long a placeholder is, and so deep are its brackets, that the compiler's stack holds its parser.
const LONGEST: usize = 500;
const DEEPEST: usize = 50;

/// Whether brackets and quotes close. The compiler's lexer reports what does not by itself, so it must not see it.
fn is_balanced(text: &str) -> bool {
    if text.len() > LONGEST {
        return false;
    }
    let mut open = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if open.len() > DEEPEST {
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
mod tests;
