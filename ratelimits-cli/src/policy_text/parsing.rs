//! The parser of an attribute's text.

use std::panic::resume_unwind;
use std::thread;

use ratelimit_runtime::{Algorithm, closest};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, Path, Token, bracketed, parenthesized};

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

const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::TokenBucket, Algorithm::FixedWindow, Algorithm::LeakyBucket, Algorithm::SlidingWindow];

/// The longest text, in characters, and its deepest nesting.
const LONGEST: usize = 1_000;
const DEEPEST: usize = 32;

/// The stack of the parser, in bytes. It calls itself for each operator, too: `<` takes tens of kB in a debug build. Only what is used is allocated.
const STACK: usize = 256 << 20;

/// Parses an attribute into its algorithm and its arguments, each at most once, all of them known.
pub(super) fn parse(text: &str) -> Result<(Algorithm, Vec<Argument>), InvalidText> {
    check_size(text)?;
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK);
        let failed = |error| InvalidText::new(format!("the parser cannot be started: {error}"));
        let parser = thread.spawn_scoped(scope, || parse_here(text)).map_err(failed)?;
        parser.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn parse_here(text: &str) -> Result<(Algorithm, Vec<Argument>), InvalidText> {
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
    // The errors below say what to write, those of syn do not.
    parse.parse_str(text).map_err(|error| match error.to_string() {
        problem if problem.contains(';') => InvalidText::new(problem),
        problem => InvalidText::new(format!(
            "{problem}; write a policy like `rate_limit(rate = \"100/min\", burst = 20)`"
        )),
    })
}

/// Rejects text that is no policy by its size. Brackets count wherever they are.
fn check_size(text: &str) -> Result<(), InvalidText> {
    let advice = "write a policy like `rate_limit(rate = \"100/min\", burst = 20)`";
    if text.chars().count() > LONGEST {
        return Err(InvalidText::new(format!("the policy has more than {LONGEST} characters; {advice}")));
    }
    let mut depth = 0usize;
    for char in text.chars() {
        match char {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(InvalidText::new(format!("the policy nests more than {DEEPEST} brackets; {advice}")));
        }
    }
    Ok(())
}

fn attribute(input: ParseStream<'_>) -> syn::Result<(Algorithm, Vec<Argument>)> {
    let path: Path = input.call(Path::parse_mod_style)?;
    let Some(last) = path.segments.last() else { return Err(input.error("expected an attribute")) };
    let name = last.ident.to_string();
    let Some(algorithm) = ALGORITHMS.into_iter().find(|algorithm| algorithm.attribute().name == name) else {
        let names = ALGORITHMS.map(|algorithm| algorithm.attribute().name);
        let advice = match closest(&name, names) {
            Some(closest) => format!("did you mean `{closest}`?"),
            None => format!("write one of {}", listed(names)),
        };
        return Err(syn::Error::new(last.ident.span(), format!("unknown attribute `{name}`; {advice}")));
    };
    let content;
    parenthesized!(content in input);
    Ok((algorithm, arguments(algorithm, &content)?))
}

fn arguments(algorithm: Algorithm, input: ParseStream<'_>) -> syn::Result<Vec<Argument>> {
    let mut arguments: Vec<Argument> = Vec::new();
    let [first, second] = algorithm.attribute().positional;
    let mut is_after_named = false;
    while !input.is_empty() {
        let argument = if let Some(name) = next_name(input) {
            is_after_named = true;
            named(algorithm, &name, input)?
        } else if let Some(&name) = [first, second].get(arguments.len())
            && !is_after_named
        {
            Argument { name, value: value(name, input)? }
        } else {
            return Err(input.error(format!(
                "only `{first}` and `{second}` may be positional, before all named arguments; write `… = …`"
            )));
        };
        if arguments.iter().any(|given| given.name == argument.name) {
            return Err(
                input.error(format!("`{}` is specified more than once; leave out one", argument.name))
            );
        }
        arguments.push(argument);
        if !input.is_empty() && input.parse::<Option<Token![,]>>()?.is_none() {
            return Err(input.error("expected `,`; arguments are written like `burst = 20`"));
        }
    }
    Ok(arguments)
}

/// Returns the name of the next argument, unless it is positional.
fn next_name(input: ParseStream<'_>) -> Option<Ident> {
    let ahead = input.fork();
    let name = ahead.call(Ident::parse_any).ok()?;
    let is_named = ahead.is_empty() || ahead.peek(Token![,]);
    let is_assigned = ahead.peek(Token![=]) && !ahead.peek(Token![==]) && !ahead.peek(Token![=>]);
    (is_named || is_assigned).then_some(name)
}

fn named(algorithm: Algorithm, name: &Ident, input: ParseStream<'_>) -> syn::Result<Argument> {
    let attribute = algorithm.attribute();
    let written = name.unraw().to_string();
    let error = |message: String| Err(syn::Error::new(name.span(), message));
    let Some(known) = attribute.arguments().find(|known| *known == written) else {
        let advice = match closest(&written, attribute.arguments()) {
            Some(closest) => format!("did you mean `{closest}`?"),
            None => format!("the arguments of `{}` are {}", attribute.name, listed(attribute.arguments())),
        };
        return error(format!("unknown argument `{written}`; {advice}"));
    };
    input.call(Ident::parse_any)?;
    let is_flag = attribute.flags.contains(&known);
    match (input.parse::<Option<Token![=]>>()?.is_some(), is_flag) {
        (true, true) => error(format!("`{known}` takes no value; write `{known}`, or leave it out")),
        (false, false) => error(format!("`{known}` needs a value; write `{known} = …`")),
        (false, true) => Ok(Argument { name: known, value: Value::Flag }),
        (true, false) => Ok(Argument { name: known, value: value(known, input)? }),
    }
}

fn value(name: &str, input: ParseStream<'_>) -> syn::Result<Value> {
    let span = input.span();
    let problem = |problem: &str| syn::Error::new(span, format!("`{name}` {problem}"));
    if input.is_empty() || input.peek(Token![,]) {
        return Err(problem(&format!("needs a value; write `{name} = …`")));
    }
    let expr: Expr = input.parse()?;
    if let Expr::Path(path) = &expr
        && let Some(word) = path.path.get_ident()
    {
        return Ok(Value::Word(word.to_string()));
    }
    let literal = literal::evaluate(&expr).map_err(problem)?;
    if matches!(name, "rate" | "leak_rate") {
        literal::check_rate(&expr).map_err(problem)?;
    }
    Ok(literal.map_or(Value::Computed, Value::Literal))
}

fn listed(names: impl IntoIterator<Item = &'static str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
