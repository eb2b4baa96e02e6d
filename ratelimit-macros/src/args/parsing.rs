//! The arguments one by one, and what is wrong with their order and their spelling.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, Token};

use super::advice::{advice, is_false};
use super::{Args, Given};
use crate::errors::{Errors, closest, listed};
use crate::expr::{is_number, literal, shown};
use crate::stack::Limit;

struct Parsing {
    pub(super) args: Args,
    pub(super) positional: usize,
    pub(super) named: bool,
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
}

impl Parsing {
    pub(super) fn argument(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        if input.peek(syn::Ident::peek_any) {
            if input.peek2(Token![=]) && !input.peek2(Token![==]) && !input.peek2(Token![=>]) {
                self.named = true;
                let name = Ident::parse_any(input)?;
                input.parse::<Token![=]>()?;
                return self.assignment(name, input, errors);
            }
            if self.is_assigned_otherwise(input) {
                return self.assignment_otherwise(input, errors);
            }
            if is_single(input) && self.word(input, errors)? {
                return Ok(());
            }
        }
        self.by_position(input, errors)
    }

    /// Whether the next argument is like `rate: 5`, or `rate(5)`, `rate == 5` of an argument that there is. By position
    /// `rate(…)` of anything but a literal may well be a call.
    fn is_assigned_otherwise(&self, input: ParseStream<'_>) -> bool {
        if input.peek2(Token![:]) && !input.peek2(Token![::]) {
            return true;
        }
        let ahead = input.fork();
        if !ahead.call(Ident::parse_any).is_ok_and(|name| self.known(&name).is_some()) {
            return false;
        }
        if ahead.peek(Token![==]) || ahead.peek(Token![=>]) {
            return true;
        }
        let Ok(TokenTree::Group(group)) = ahead.parse() else { return false };
        let may_be_a_call = self.takes_values() && syn::parse2::<syn::Lit>(group.stream()).is_err();
        group.delimiter() == Delimiter::Parenthesis && ends(&ahead) && !may_be_a_call
    }

    /// Whether the next argument may be a value without a name.
    fn takes_values(&self) -> bool {
        !self.named && self.positional < 2
    }

    fn assignment_otherwise(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        self.named = true;
        let name = Ident::parse_any(input)?;
        let mut operator = TokenStream::new();
        while input.peek(Token![:]) || input.peek(Token![=]) || input.peek(Token![>]) {
            operator.extend([input.parse::<TokenTree>()?]);
        }
        let value = tokens_to_comma(input)?;
        let Some(known) = self.known(&name) else {
            self.unknown(&name, syn::parse2(value).ok().as_ref(), errors);
            return Ok(());
        };
        if self.args.kind.flags().contains(&known) {
            errors.at(name.span(), format!("`{known}` takes no value; write `{known}`"));
        } else if operator.is_empty() {
            let inside = value.clone().into_iter().find_map(|token| match token {
                TokenTree::Group(group) => Some(group.stream()),
                _ => None,
            });
            let message = format!(
                "`(…)` gives no value; write `{known} = {}`",
                shown_value(inside.unwrap_or_default())
            );
            errors.on(value, message);
        } else {
            let written = operator.to_string().replace(' ', "");
            let message = format!("`{written}` gives no value; write `{known} = {}`", shown_value(value));
            errors.on(operator, message);
        }
        self.keep(known, name.span(), None, errors);
        Ok(())
    }

    /// Reads a single word, unless it is a value by position.
    fn word(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<bool> {
        let kind = self.args.kind;
        let word = input.fork().call(Ident::parse_any)?;
        let text = word.unraw().to_string();
        if let Some(name) = self.known(&word) {
            if kind.own().get(self.positional) == Some(&name) {
                self.positional += 1;
            } else {
                self.named = true;
            }
            Ident::parse_any(input)?;
            if !kind.flags().contains(&name) {
                errors.at(word.span(), format!("`{name}` needs a value; write `{name} = …`"));
            }
            self.keep(name, word.span(), None, errors);
            return Ok(true);
        }
        // By position a word may be a value: an argument of the function, or a constant, which is spelled in capitals.
        let is_value = self.args.binds(&word) || text == text.to_uppercase();
        let means_an_argument =
            closest(&text, &kind.legal()).is_some() || advice(&self.args, &text, None).is_some();
        if self.named || (!is_value && means_an_argument) {
            Ident::parse_any(input)?;
            self.named = true;
            self.unknown(&word, None, errors);
            return Ok(true);
        }
        Ok(false)
    }

    fn assignment(&mut self, name: Ident, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        let Some(known) = self.known(&name) else {
            let value = if parses(input) { Some(input.parse::<Expr>()?) } else { None };
            self.unknown(&name, value.as_ref(), errors);
            return skip_to_comma(input);
        };
        if self.args.kind.flags().contains(&known) {
            let value = tokens_to_comma(input)?;
            let instead = match syn::parse2(value) {
                Ok(value) if is_false(&value) => "leave it out".to_owned(),
                _ => format!("write `{known}`"),
            };
            errors.at(name.span(), format!("`{known}` takes no value; {instead}"));
            self.keep(known, name.span(), None, errors);
            return Ok(());
        }
        if ends(input) {
            errors.at(name.span(), format!("`{known}` needs a value; write `{known} = …`"));
            self.keep(known, name.span(), None, errors);
            return Ok(());
        }
        if known == "key" && is_bare_template(input) {
            self.keep(known, name.span(), None, errors);
            let template = tokens_to_comma(input)?;
            let text = template.to_string().replace(' ', "");
            let text = if text.starts_with('@') { format!("<{text}>") } else { text };
            errors.on(template, format!("a template is a string; write `key = \"{text}\"`"));
            return Ok(());
        }
        let value = expression(known, input, errors)?;
        self.keep(known, name.span(), value, errors);
        Ok(())
    }

    fn by_position(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        if input.peek(Token![,]) {
            errors.at(input.span(), "no argument in front of this `,`; leave it out");
            return Ok(());
        }
        let own = self.args.kind.own();
        let place = self.positional;
        self.positional += 1;
        let name = own.get(place).filter(|_| !self.named && place < 2).copied();
        let Some(value) = expression(name.unwrap_or("…"), input, errors)? else {
            self.args.suggested.extend(name);
            return Ok(());
        };
        let (first, second) = (own[0], own[1]);
        let next = [first, second].into_iter().find(|name| self.args.is_missing(name));
        match (name, next) {
            (Some(name), _) => self.keep(name, value.span(), Some(value), errors),
            (None, Some(next)) if self.named => {
                let message = format!(
                    "a value without its name goes before all arguments with one; write `{next} = {}`",
                    shown(&value)
                );
                errors.on(&value, message);
                self.args.suggested.push(next);
            }
            _ => {
                let no_key =
                    is_number(&value) || literal(&value).is_some_and(|text| !text.value().contains('<'));
                let meant = if no_key || !self.args.is_missing("key") {
                    "… = …".to_owned()
                } else {
                    self.args.suggested.push("key");
                    format!("key = {}", shown(&value))
                };
                errors.on(
                    &value,
                    format!("only `{first}` and `{second}` go without their names; write `{meant}`"),
                );
            }
        }
        Ok(())
    }

    fn known(&self, name: &Ident) -> Option<&'static str> {
        let name = name.unraw();
        self.args.kind.legal().into_iter().find(|legal| name == legal)
    }

    fn unknown(&mut self, name: &Ident, value: Option<&Expr>, errors: &mut Errors) {
        let (kind, written) = (self.args.kind, name.unraw().to_string());
        let legal = kind.legal();
        let message = match advice(&self.args, &written, value) {
            Some(advice) => {
                let named = legal.into_iter().filter(|legal| advice.contains(&format!("{legal} = ")));
                self.args.suggested.extend(named);
                self.args.foreign.extend(value.map(|value| (written, value.clone())));
                advice
            }
            None => {
                let meant = closest(&written, &legal);
                self.args.suggested.extend(meant);
                let meant = meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
                format!(
                    "unknown argument `{written}`; {meant}the arguments of `{}` are {}",
                    kind.name(),
                    listed(&legal)
                )
            }
        };
        errors.at(name.span(), message);
    }

    fn keep(&mut self, name: &'static str, span: Span, value: Option<Expr>, errors: &mut Errors) {
        if self.args.has(name) {
            errors.at(span, format!("`{name}` is given twice; write it once"));
        } else {
            self.args.given.push(Given { name, span, value });
        }
    }
}

/// Reads what stands between two arguments. Where an argument begins without it, that one is read all the same.
pub(super) fn separator(input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
    if input.peek(Token![;]) {
        errors.at(input.span(), "`;` does not separate arguments; write `,`");
        input.parse::<Token![;]>()?;
    } else if !ends(input) {
        errors.at(input.span(), "no comma between two arguments; write `,`");
        if !input.peek(syn::Ident::peek_any) {
            skip_to_comma(input)?;
        }
    }
    input.parse::<Option<Token![,]>>().map(drop)
}

/// Reads the value of the argument. One that is half typed is reported where it stands, not where the parser gave up.
fn expression(name: &str, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Option<Expr>> {
    if parses(input) {
        return input.parse().map(Some);
    }
    let tokens = tokens_to_comma(input)?;
    errors.on(&tokens, format!("`{}` is no expression; write `{name} = …`", shown(&tokens)));
    Ok(None)
}

fn parses(input: ParseStream<'_>) -> bool {
    input.fork().parse::<Expr>().is_ok()
}

/// The value, or `…` where there is none.
fn shown_value(tokens: TokenStream) -> String {
    if tokens.is_empty() { "…".to_owned() } else { shown(tokens.into_token_stream()) }
}

pub(super) fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    tokens_to_comma(input).map(drop)
}

fn tokens_to_comma(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !ends(input) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    Ok(tokens)
}

fn ends(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,])
}

/// Whether the next argument is a single word.
fn is_single(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    ahead.call(Ident::parse_any).is_ok() && ends(&ahead)
}

/// Whether the next value is like `<user.id>` or `@ip`, and not an expression like `<T as Trait>::of(user)`.
fn is_bare_template(input: ParseStream<'_>) -> bool {
    input.peek(Token![@]) || (input.peek(Token![<]) && !parses(input))
}
