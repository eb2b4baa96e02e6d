//! Tokens to arguments: which were given, with what, where. What the values mean is for [`model`](crate::model).

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Lit, LitStr, Token};

use crate::errors::{Errors, closest, listed};

/// One of the four attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Rate,
    Count,
    Funnel,
    Window,
}

const SHARED: [&str; 6] = ["key", "key_type", "prefix", "name", "cost", "fallback"];

impl Kind {
    /// The attribute as it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Rate => "rate_limit",
            Kind::Count => "count_limit",
            Kind::Funnel => "funnel_limit",
            Kind::Window => "window_limit",
        }
    }

    /// The arguments with a value that only this attribute has. The first two can be given by position.
    fn own(self) -> &'static [&'static str] {
        match self {
            Kind::Rate => &["rate", "burst", "refill"],
            Kind::Count => &["limit", "period"],
            Kind::Funnel => &["capacity", "leak_rate", "drain"],
            Kind::Window => &["limit", "period", "precision"],
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Kind::Count => &["aligned", "pass_args"],
            _ => &["pass_args"],
        }
    }

    fn legal(self) -> Vec<&'static str> {
        [self.own(), &SHARED, self.flags()].concat()
    }
}

/// The arguments of one attribute, each at most once, all of them legal.
pub(crate) struct Args {
    pub(crate) kind: Kind,
    given: Vec<Given>,
}

struct Given {
    name: &'static str,
    span: Span,
    value: Option<Expr>,
}

impl Args {
    /// Reads the tokens between the attribute's parentheses.
    pub(crate) fn parse(kind: Kind, tokens: TokenStream, errors: &mut Errors) -> Args {
        let mut parsing = Parsing { args: Args { kind, given: Vec::new() }, positional: 0, named: false };
        let parsed = Parser::parse2(
            |input: ParseStream<'_>| {
                while !input.is_empty() {
                    if let Err(error) = parsing.argument(input, errors) {
                        errors.push(error);
                        skip_to_comma(input)?;
                    } else if !input.is_empty() && !input.peek(Token![,]) {
                        errors.at(input.span(), "no comma between two arguments; write `,`");
                        skip_to_comma(input)?;
                    }
                    input.parse::<Option<Token![,]>>()?;
                }
                Ok(())
            },
            tokens,
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

    /// Whether the argument was given, if only by a mistaken value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.span(name).is_some()
    }
}

struct Parsing {
    args: Args,
    positional: usize,
    named: bool,
}

impl Parsing {
    fn argument(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        let kind = self.args.kind;
        let is_word = input.peek(syn::Ident::peek_any);
        if is_word && input.peek2(Token![=]) && !input.peek2(Token![==]) {
            self.named = true;
            let name = Ident::parse_any(input)?;
            input.parse::<Token![=]>()?;
            return self.assignment(name, input, errors);
        }
        if is_bare_word(input) {
            let word = input.fork().call(Ident::parse_any)?;
            let text = word.to_string();
            let legal = kind.legal();
            if let Some(name) = legal.iter().find(|name| **name == text) {
                if kind.own().get(self.positional) == Some(name) {
                    self.positional += 1;
                } else {
                    self.named = true;
                }
                Ident::parse_any(input)?;
                if !kind.flags().contains(name) {
                    errors.at(word.span(), format!("`{name}` needs a value; write `{name} = …`"));
                }
                self.keep(name, word.span(), None, errors);
                return Ok(());
            }
            // A constant by position is spelled in capitals.
            let mistyped = text == text.to_lowercase() && closest(&text, &legal).is_some();
            if self.named || self.positional >= 2 || mistyped {
                Ident::parse_any(input)?;
                self.named = true;
                errors.at(word.span(), unknown(&text, kind));
                return Ok(());
            }
        }
        self.by_position(input, errors)
    }

    fn assignment(&mut self, name: Ident, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        let kind = self.args.kind;
        let text = name.to_string();
        let Some(known) = kind.legal().into_iter().find(|legal| *legal == text) else {
            errors.at(name.span(), unknown(&text, kind));
            return skip_to_comma(input);
        };
        if kind.flags().contains(&known) {
            errors.at(name.span(), format!("`{known}` takes no value; write `{known}`"));
            self.keep(known, name.span(), None, errors);
            return skip_to_comma(input);
        }
        if input.is_empty() || input.peek(Token![,]) {
            errors.at(name.span(), format!("`{known}` needs a value; write `{known} = …`"));
            self.keep(known, name.span(), None, errors);
            return Ok(());
        }
        let value = input.parse::<Expr>();
        let (value, failed) = match value {
            Ok(value) => (Some(value), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.keep(known, name.span(), value, errors);
        failed
    }

    fn by_position(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        let kind = self.args.kind;
        let value: Expr = input.parse()?;
        let place = self.positional;
        self.positional += 1;
        let [first, second] = [kind.own()[0], kind.own()[1]];
        if place >= 2 {
            let message = format!("only `{first}` and `{second}` go without their names; write `… = …`");
            errors.on(&value, message);
        } else if self.named {
            let message = format!(
                "a value without its name goes before all arguments with one; write `{} = {}`",
                kind.own()[place],
                value.to_token_stream()
            );
            errors.on(&value, message);
        } else {
            let span = syn::spanned::Spanned::span(&value);
            self.keep(kind.own()[place], span, Some(value), errors);
        }
        Ok(())
    }

    fn keep(&mut self, name: &'static str, span: Span, value: Option<Expr>, errors: &mut Errors) {
        if self.args.has(name) {
            errors.at(span, format!("`{name}` is given twice; write it once"));
        } else {
            self.args.given.push(Given { name, span, value });
        }
    }
}

fn unknown(written: &str, kind: Kind) -> String {
    let legal = kind.legal();
    let meant = match closest(written, &legal) {
        Some(name) => format!("did you mean `{name}`? "),
        None => String::new(),
    };
    format!("unknown argument `{written}`; {meant}the arguments of `{}` are {}", kind.name(), listed(&legal))
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

/// Whether the next argument is a single word.
fn is_bare_word(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    ahead.call(Ident::parse_any).is_ok() && (ahead.is_empty() || ahead.peek(Token![,]))
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
