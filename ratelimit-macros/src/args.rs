//! Tokens to arguments: which were given, with what, where. What the values mean is for [`model`](crate::model).

mod advice;
mod foreign;
mod parsing;

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, ExprField, Lit, LitStr, Member};

use crate::errors::{Errors, closest};
use crate::stack::Limit;
use parsing::{Parsing, separator, skip_to_comma};

/// One of the four attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Rate,
    Count,
    Funnel,
    Window,
}

const SHARED: [&str; 12] = [
    "key",
    "key_type",
    "prefix",
    "name",
    "cost",
    "timeout",
    "fallback",
    "on_store_error",
    "skip_when",
    "charge_when",
    "registry",
    "crate",
];

/// What `on_store_error` can be.
pub(crate) const ON_STORE_ERROR: [&str; 3] = ["local", "allow", "deny"];

/// What `key_type` can be.
pub(crate) const KEY_TYPES: [&str; 4] = ["IP", "USER", "METHOD", "CUSTOM"];

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Rate, Kind::Count, Kind::Funnel, Kind::Window];

    /// The attribute as it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Rate => "rate_limit",
            Kind::Count => "count_limit",
            Kind::Funnel => "funnel_limit",
            Kind::Window => "window_limit",
        }
    }

    /// The attribute of this name.
    pub(crate) fn named(name: &Ident) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| name == kind.name())
    }

    /// The arguments with a value that only this attribute has. The first two can be given by position.
    fn own(self) -> &'static [&'static str] {
        match self {
            Kind::Rate => &["rate", "burst", "refill", "warmup"],
            Kind::Count => &["limit", "period"],
            Kind::Funnel => &["capacity", "leak_rate", "drain"],
            Kind::Window => &["limit", "period", "precision"],
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Kind::Rate => &["borrow", "pass_args", "shadow"],
            Kind::Count => &["aligned", "pass_args", "shadow"],
            Kind::Funnel => &["queue", "pass_args", "shadow"],
            Kind::Window => &["pass_args", "shadow"],
        }
    }

    fn legal(self) -> Vec<&'static str> {
        [self.own(), &SHARED, self.flags()].concat()
    }
}

/// The arguments of one attribute, each at most once, all of them legal.
pub(crate) struct Args {
    pub(crate) kind: Kind,
    /// Where the attribute is written: what is missing from it is told there.
    pub(crate) place: Span,
    given: Vec<Given>,
    /// Named by a message already: that they are missing is no news.
    suggested: Vec<&'static str>,
    /// Words of other limiters, with their values.
    foreign: Vec<(String, Expr)>,
    /// The names that the function's arguments bind.
    bindings: Vec<Ident>,
}

struct Given {
    name: &'static str,
    span: Span,
    value: Option<Expr>,
}

impl Args {
    /// Reads the tokens between the attribute's parentheses. A word that the function's arguments bind is a value.
    pub(crate) fn parse(limit: &Limit, bindings: &[Ident], errors: &mut Errors) -> Args {
        let mut parsing = Parsing {
            args: Args {
                kind: limit.kind,
                place: limit.place,
                given: Vec::new(),
                suggested: Vec::new(),
                foreign: Vec::new(),
                bindings: bindings.to_vec(),
            },
            positional: 0,
            named: false,
        };
        let parsed = Parser::parse2(
            |input: ParseStream<'_>| {
                while !input.is_empty() {
                    if let Err(error) = parsing.argument(input, errors) {
                        errors.push(error);
                        skip_to_comma(input)?;
                    }
                    separator(input, errors)?;
                }
                Ok(())
            },
            limit.args.clone(),
        );
        if let Err(error) = parsed {
            errors.push(error);
        }
        parsing.args
    }

    /// The value of the argument, if it was given one.
    pub(crate) fn value(&self, name: &str) -> Option<&Expr> {
        self.given.iter().find(|given| given.name == name)?.value.as_ref()
    }

    /// Where the argument's name was written, or its value if it was given by position.
    pub(crate) fn span(&self, name: &str) -> Option<Span> {
        self.given.iter().find(|given| given.name == name).map(|given| given.span)
    }

    /// Whether an argument of the function has this name.
    pub(crate) fn binds(&self, name: &Ident) -> bool {
        self.bindings.contains(name)
    }

    /// The path that the argument is.
    pub(crate) fn path(&self, name: &str) -> Option<&syn::Path> {
        match peel(self.value(name)?) {
            Expr::Path(path) => Some(&path.path),
            _ => None,
        }
    }

    /// Whether the argument was given, if only by a mistaken value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.span(name).is_some()
    }

    /// Whether nothing was said of the argument, by the user or to the user.
    pub(crate) fn is_missing(&self, name: &str) -> bool {
        !self.has(name) && !self.suggested.contains(&name)
    }
}

/// Tokens as a user would write them. The compiler knows how; outside of it, every token has spaces around.
pub(crate) fn shown(tokens: impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    if text.contains('"') {
        return text;
    }
    [(" . ", "."), (" .", "."), (" :: ", "::"), ("& ", "&"), (" (", "(")]
        .into_iter()
        .fold(text, |text, (spaced, written)| text.replace(spaced, written))
}

/// The expression inside the invisible groups that `macro_rules!` puts around its captures, and inside parentheses.
pub(crate) fn peel(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Group(group) => &group.expr,
            Expr::Paren(paren) => &paren.expr,
            _ => return expr,
        };
    }
}

/// The string literal that the expression is.
pub(crate) fn literal(expr: &Expr) -> Option<&LitStr> {
    match peel(expr) {
        Expr::Lit(syn::ExprLit { lit: Lit::Str(literal), .. }) => Some(literal),
        _ => None,
    }
}

/// What of [`ON_STORE_ERROR`] the value means, be it in other words.
pub(crate) fn on_store_error(expr: &Expr) -> Option<&'static str> {
    const OTHERS: [(&str, &[&str]); 3] = [
        ("local", &["memory", "in_memory", "inmemory", "in_process", "process", "fallback"]),
        ("allow", &["open", "fail_open", "pass", "permit", "ignore", "skip"]),
        ("deny", &["closed", "close", "fail_closed", "refuse", "reject", "block", "fail", "error", "throw"]),
    ];
    let written = last_word(expr)?.to_lowercase();
    let other = || OTHERS.into_iter().find(|(_, words)| words.contains(&&*written)).map(|(meant, _)| meant);
    closest(&written, &ON_STORE_ERROR).or_else(other)
}

/// `IP` of `LimitType.IP`, `LimitType::IP` and `"IP"`.
pub(crate) fn last_word(expr: &Expr) -> Option<String> {
    match peel(expr) {
        Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        Expr::Field(ExprField { member: Member::Named(name), .. }) => Some(name.to_string()),
        value => literal(value).map(LitStr::value),
    }
}
