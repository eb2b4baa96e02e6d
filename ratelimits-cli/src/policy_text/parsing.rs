//! The parser of an attribute's text.

use std::panic::resume_unwind;
use std::thread;

use ratelimit_syntax::expr::{has_division, word};
use ratelimit_syntax::{Arguments, AttributeKind, Problem, ProblemKind, closest, listed};
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Path, Token, bracketed, parenthesized};

use super::invalid_text::InvalidText;
use super::literal::{self, Literal};

/// An argument of an attribute.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) value: Value,
}

/// How the value of an argument is written.
#[derive(Debug)]
pub(super) enum Value {
    /// The argument is a flag.
    Flag,
    Literal(Literal),
    /// A single identifier.
    Word(String),
    /// Anything else, which the program evaluates.
    Computed,
}

const ADVICE: &str = "write a policy like `rate_limit(rate = \"100/min\", burst = 20)`";

/// The longest text, in characters, and its deepest nesting.
const LONGEST: usize = 1_000;
const DEEPEST: usize = 32;

/// The stack of the parser, in bytes. It calls itself for each operator, too: `<` takes tens of kB in a debug build. Only what is used is allocated.
const STACK: usize = 256 << 20;

/// Parses an attribute into its kind and its arguments, each at most once, all of them known.
pub(super) fn parse(text: &str) -> Result<(AttributeKind, Vec<Argument>), InvalidText> {
    check_size(text)?;
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK);
        let failed = |error| InvalidText::new(format!("the parser cannot be started: {error}"));
        let parser = thread.spawn_scoped(scope, || parse_here(text)).map_err(failed)?;
        parser.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn parse_here(text: &str) -> Result<(AttributeKind, Vec<Argument>), InvalidText> {
    let parse =
        |input: ParseStream<'_>| {
            let parsed = if input.parse::<Option<Token![#]>>()?.is_some() {
                let inner;
                bracketed!(inner in input);
                attribute(&inner)?
            } else {
                attribute(input)?
            };
            match input.is_empty() {
                true => Ok(parsed),
                false => Err(input
                    .error("unexpected text after the policy; write each policy as an argument of its own")),
            }
        };
    let (attribute, arguments, problems) =
        parse.parse_str(text).map_err(|error| advised(error.to_string()))?;
    match problems.first() {
        Some(problem) => Err(invalid(problem)),
        None => Ok((attribute, arguments.iter().map(argument).collect::<Result<_, _>>()?)),
    }
}

fn invalid(problem: &Problem) -> InvalidText {
    match problem.kind {
        ProblemKind::Repeated(_) => InvalidText::new(format!("{problem}; leave out one")),
        ProblemKind::NoExpression(_) => advised("expected an expression".to_owned()),
        _ => advised(problem.to_string()),
    }
}

/// Adds what to write to a problem, unless it says so. The errors of syn do not.
fn advised(problem: String) -> InvalidText {
    InvalidText::new(if problem.contains(';') { problem } else { format!("{problem}; {ADVICE}") })
}

/// Rejects text that is no policy by its size. Brackets count wherever they are.
fn check_size(text: &str) -> Result<(), InvalidText> {
    if text.chars().count() > LONGEST {
        return Err(InvalidText::new(format!("the policy has more than {LONGEST} characters; {ADVICE}")));
    }
    let mut depth = 0usize;
    for char in text.chars() {
        match char {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(InvalidText::new(format!("the policy nests more than {DEEPEST} brackets; {ADVICE}")));
        }
    }
    Ok(())
}

fn attribute(input: ParseStream<'_>) -> syn::Result<(AttributeKind, Arguments, Vec<Problem>)> {
    let path: Path = input.call(Path::parse_mod_style)?;
    let Some(last) = path.segments.last() else { return Err(input.error("expected an attribute")) };
    let name = last.ident.to_string();
    let Some(attribute) = AttributeKind::named(&name) else {
        let names = AttributeKind::ALL.map(AttributeKind::name);
        let advice = match closest(&name, names) {
            Some(closest) => format!("did you mean `{closest}`?"),
            None => format!("write one of {}", listed(names)),
        };
        return Err(syn::Error::new(last.ident.span(), format!("unknown attribute `{name}`; {advice}")));
    };
    let content;
    parenthesized!(content in input);
    // No word is a value, as there is no function with arguments.
    let (arguments, problems) = Arguments::parse(attribute, content.parse()?, &|_| false);
    Ok((attribute, arguments, problems))
}

fn argument(given: &ratelimit_syntax::Argument) -> Result<Argument, InvalidText> {
    let name = given.name;
    let value = match &given.value {
        None => Value::Flag,
        Some(expr) => value(name, expr).map_err(|problem| InvalidText::new(format!("`{name}` {problem}")))?,
    };
    Ok(Argument { name, value })
}

fn value(name: &str, expr: &Expr) -> Result<Value, &'static str> {
    if let Some(word) = word(expr) {
        return Ok(Value::Word(word.to_string()));
    }
    match literal::evaluate(expr)? {
        Some(Literal::Integer(_)) if matches!(name, "rate" | "leak_rate") && has_division(expr) => {
            Err(literal::DIVISION)
        }
        literal => Ok(literal.map_or(Value::Computed, Value::Literal)),
    }
}
