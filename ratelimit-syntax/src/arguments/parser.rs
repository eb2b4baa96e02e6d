//! The parser of arguments.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, Token};

use super::problem::{Problem, ProblemKind};
use super::{Argument, Arguments};
use crate::attribute_kind::AttributeKind;

impl Arguments {
    /// Parses the tokens between the attribute's parentheses. Returns all that is wrong with them besides the arguments.
    ///
    /// A single word that names no argument may be a positional value, as in `rate_limit(RATE)`, or a misspelled name:
    /// `is_value` decides.
    pub fn parse(
        attribute: AttributeKind,
        tokens: TokenStream,
        is_value: &dyn Fn(&Ident) -> bool,
    ) -> (Arguments, Vec<Problem>) {
        let mut parser = ArgumentParser {
            attribute,
            is_value,
            arguments: Arguments::default(),
            problems: Vec::new(),
            positional: attribute.positional().iter(),
            is_after_named: false,
        };
        let parsed = Parser::parse2(|input: ParseStream<'_>| parser.parse(input), tokens);
        if let Err(error) = parsed {
            parser.reject(ProblemKind::Syntax(error), TokenStream::new());
        }
        (parser.arguments, parser.problems)
    }
}

struct ArgumentParser<'v> {
    attribute: AttributeKind,
    is_value: &'v dyn Fn(&Ident) -> bool,
    arguments: Arguments,
    problems: Vec<Problem>,
    /// The arguments that the next positional values are.
    positional: std::slice::Iter<'static, &'static str>,
    is_after_named: bool,
}

impl ArgumentParser<'_> {
    fn parse(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        while !input.is_empty() {
            self.argument(input)?;
            if !at_end(input) {
                self.reject(ProblemKind::NoComma, next_token(input));
                tokens_to_comma(input)?;
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    }

    fn argument(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let ahead = input.fork();
        let Ok(name) = ahead.call(Ident::parse_any) else { return self.positional(input) };
        let known = self.attribute.argument(&name.unraw().to_string());
        let is_assigned = ahead.peek(Token![=]) && !ahead.peek(Token![==]) && !ahead.peek(Token![=>]);
        let is_colon = ahead.peek(Token![:]) && !ahead.peek(Token![::]);
        let is_alone = at_end(&ahead) && (known.is_some() || self.is_after_named || !(self.is_value)(&name));
        if !(is_assigned || is_colon || is_alone) {
            return self.positional(input);
        }
        self.is_after_named = true;
        input.call(Ident::parse_any)?;
        let Some(known) = known else {
            input.parse::<Option<Token![=]>>()?;
            input.parse::<Option<Token![:]>>()?;
            let unknown =
                ProblemKind::Unknown { name: name.unraw().to_string(), value: tokens_to_comma(input)? };
            self.reject(unknown, name);
            return Ok(());
        };
        if is_colon { self.colon(known, &name, input) } else { self.named(known, &name, input) }
    }

    /// Parses what follows the name of an argument: nothing, or its value.
    fn named(&mut self, known: &'static str, name: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        let is_flag = self.attribute.flags().contains(&known);
        let is_assigned = input.parse::<Option<Token![=]>>()?.is_some();
        let value = if is_flag && is_assigned {
            tokens_to_comma(input)?;
            self.reject(ProblemKind::TakesNoValue(known), name);
            None
        } else if is_flag {
            None
        } else if at_end(input) {
            self.reject(ProblemKind::NoValue(known), name);
            None
        } else {
            self.expression(known, input)?
        };
        if self.arguments.get(known).is_some() {
            self.reject(ProblemKind::Repeated(known), name);
        } else {
            self.arguments.given.push(Argument { name: known, span: name.span(), value });
        }
        Ok(())
    }

    /// Reports `rate: 5.0`, which is neither an assignment nor an expression.
    fn colon(&mut self, known: &'static str, name: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        let colon = input.parse::<Token![:]>()?;
        let value = tokens_to_comma(input)?;
        if self.attribute.flags().contains(&known) {
            self.reject(ProblemKind::TakesNoValue(known), name);
        } else if value.is_empty() {
            self.reject(ProblemKind::NoValue(known), name);
        } else {
            self.reject(ProblemKind::Colon(known, value), colon);
        }
        Ok(())
    }

    fn positional(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let name = self.positional.next().copied().filter(|_| !self.is_after_named);
        let Some(value) = self.expression(name.unwrap_or("…"), input)? else { return Ok(()) };
        match name {
            Some(name) => {
                self.arguments.given.push(Argument { name, span: value.span(), value: Some(value) });
            }
            // What was not understood may be why this is in the wrong place.
            None if self.arguments.is_incomplete => {}
            None => self.reject(ProblemKind::NotPositional, value),
        }
        Ok(())
    }

    /// Parses a value. If it is incomplete, all of it is reported, not where the parser gave up.
    fn expression(&mut self, name: &'static str, input: ParseStream<'_>) -> syn::Result<Option<Expr>> {
        if input.fork().parse::<Expr>().is_ok() {
            return input.parse().map(Some);
        }
        let next = next_token(input);
        let tokens = tokens_to_comma(input)?;
        if tokens.is_empty() {
            self.reject(ProblemKind::NoArgument, next);
        } else {
            self.reject(ProblemKind::NoExpression(name), tokens);
        }
        Ok(None)
    }

    fn reject(&mut self, kind: ProblemKind, tokens: impl ToTokens) {
        let is_understood = matches!(kind, ProblemKind::TakesNoValue(_) | ProblemKind::Repeated(_));
        self.arguments.is_incomplete |= !is_understood;
        self.problems.push(Problem { kind, tokens: tokens.to_token_stream(), attribute: self.attribute });
    }
}

fn next_token(input: ParseStream<'_>) -> Option<TokenTree> {
    input.cursor().token_tree().map(|(token, _)| token)
}

fn tokens_to_comma(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !at_end(input) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    Ok(tokens)
}

fn at_end(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,])
}
