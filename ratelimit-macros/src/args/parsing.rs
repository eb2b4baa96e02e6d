//! The arguments one by one, and what is wrong with their order and their spelling.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Expr, Token};

use super::{Args, Given, Kind, literal, shown};
use crate::errors::{Errors, closest, listed};
use crate::number::is_number;

pub(super) struct Parsing<'a> {
    pub(super) args: Args,
    pub(super) bindings: &'a [Ident],
    pub(super) positional: usize,
    pub(super) named: bool,
}

impl Parsing<'_> {
    pub(super) fn argument(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        if input.peek(syn::Ident::peek_any) {
            if input.peek2(Token![=]) && !input.peek2(Token![==]) {
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

    /// Whether the next argument is like `rate: 5`, or `rate(5)` of an argument that there is. By position `rate(…)` of
    /// anything but a literal may well be a call.
    fn is_assigned_otherwise(&self, input: ParseStream<'_>) -> bool {
        if input.peek2(Token![:]) && !input.peek2(Token![::]) {
            return true;
        }
        let ahead = input.fork();
        let is_known = ahead.call(Ident::parse_any).is_ok_and(|name| self.known(&name.to_string()).is_some());
        let Ok(TokenTree::Group(group)) = ahead.parse() else { return false };
        let may_be_a_call = self.takes_values() && syn::parse2::<syn::Lit>(group.stream()).is_err();
        is_known && group.delimiter() == Delimiter::Parenthesis && ends(&ahead) && !may_be_a_call
    }

    /// Whether the next argument may be a value without a name.
    fn takes_values(&self) -> bool {
        !self.named && self.positional < 2
    }

    fn assignment_otherwise(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        self.named = true;
        let name = Ident::parse_any(input)?;
        let text = name.to_string();
        let colon = input.parse::<Option<Token![:]>>()?;
        let value = tokens_to_comma(input)?;
        let Some(known) = self.known(&text) else {
            self.unknown(&name, errors);
            return Ok(());
        };
        if self.args.kind.flags().contains(&known) {
            errors.at(name.span(), takes_no_value(known));
        } else if let Some(colon) = colon {
            let message = format!("`:` gives no value; write `{known} = {}`", shown(&value));
            errors.on(colon, message);
        } else {
            let inside = value.clone().into_iter().find_map(|token| match token {
                TokenTree::Group(group) => Some(group.stream()),
                _ => None,
            });
            let message =
                format!("`(…)` gives no value; write `{known} = {}`", shown(inside.unwrap_or_default()));
            errors.on(value, message);
        }
        self.keep(known, name.span(), None, errors);
        Ok(())
    }

    /// Reads a single word, unless it is a value by position.
    fn word(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<bool> {
        let kind = self.args.kind;
        let word = input.fork().call(Ident::parse_any)?;
        let text = word.to_string();
        if let Some(name) = self.known(&text) {
            if kind.own().get(self.positional) == Some(&name) {
                self.positional += 1;
            } else {
                self.named = true;
            }
            Ident::parse_any(input)?;
            if !kind.flags().contains(&name) {
                errors.at(word.span(), needs_a_value(name));
            }
            self.keep(name, word.span(), None, errors);
            return Ok(true);
        }
        // By position a word may be a value: an argument of the function, or a constant, which is spelled in capitals.
        let is_value = self.bindings.contains(&word) || text != text.to_lowercase();
        let mistyped = !is_value && closest(&text, &kind.legal()).is_some();
        if self.named || mistyped {
            Ident::parse_any(input)?;
            self.named = true;
            self.unknown(&word, errors);
            return Ok(true);
        }
        Ok(false)
    }

    fn assignment(&mut self, name: Ident, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        let Some(known) = self.known(&name.to_string()) else {
            self.unknown(&name, errors);
            return skip_to_comma(input);
        };
        if self.args.kind.flags().contains(&known) {
            errors.at(name.span(), takes_no_value(known));
            self.keep(known, name.span(), None, errors);
            return skip_to_comma(input);
        }
        if ends(input) {
            errors.at(name.span(), needs_a_value(known));
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
        let value = input.parse::<Expr>();
        let (value, failed) = match value {
            Ok(value) => (Some(value), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.keep(known, name.span(), value, errors);
        failed
    }

    fn by_position(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        let value: Expr = input.parse()?;
        let place = self.positional;
        self.positional += 1;
        let [first, second] = [self.args.kind.own()[0], self.args.kind.own()[1]];
        let next = [first, second].into_iter().find(|name| self.args.is_missing(name));
        match next {
            Some(name) if self.named => {
                let message = format!(
                    "a value without its name goes before all arguments with one; write `{name} = {}`",
                    shown(value.to_token_stream())
                );
                errors.on(&value, message);
                self.args.suggested.push(name);
            }
            _ if self.named || place >= 2 => {
                let no_key =
                    is_number(&value) || literal(&value).is_some_and(|text| !text.value().contains('<'));
                let meant = if no_key || !self.args.is_missing("key") {
                    "… = …".to_owned()
                } else {
                    self.args.suggested.push("key");
                    format!("key = {}", shown(value.to_token_stream()))
                };
                errors.on(
                    &value,
                    format!("only `{first}` and `{second}` go without their names; write `{meant}`"),
                );
            }
            _ => {
                let span = syn::spanned::Spanned::span(&value);
                self.keep(self.args.kind.own()[place], span, Some(value), errors);
            }
        }
        Ok(())
    }

    fn known(&self, name: &str) -> Option<&'static str> {
        self.args.kind.legal().into_iter().find(|legal| *legal == name)
    }

    fn unknown(&mut self, name: &Ident, errors: &mut Errors) {
        let (kind, written) = (self.args.kind, name.to_string());
        let legal = kind.legal();
        let owners: Vec<_> =
            Kind::ALL.into_iter().filter(|other| other.legal().contains(&&*written)).collect();
        let problem = if owners.is_empty() {
            let meant = closest(&written, &legal);
            self.args.suggested.extend(meant);
            let meant = meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
            format!("unknown argument `{written}`; {meant}")
        } else {
            let owners: Vec<_> = owners.iter().map(|owner| format!("`{}`", owner.name())).collect();
            format!("`{written}` belongs to {}; ", owners.join(" and "))
        };
        errors.at(name.span(), format!("{problem}the arguments of `{}` are {}", kind.name(), listed(&legal)));
    }

    fn keep(&mut self, name: &'static str, span: Span, value: Option<Expr>, errors: &mut Errors) {
        if self.args.has(name) {
            errors.at(span, format!("`{name}` is given twice; write it once"));
        } else {
            self.args.given.push(Given { name, span, value });
        }
    }
}

fn needs_a_value(name: &str) -> String {
    format!("`{name}` needs a value; write `{name} = …`")
}

fn takes_no_value(name: &str) -> String {
    format!("`{name}` takes no value; write `{name}`")
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
    input.peek(Token![@]) || (input.peek(Token![<]) && input.fork().parse::<Expr>().is_err())
}
