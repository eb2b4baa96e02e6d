//! The parser of an attribute's arguments.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, Token};

use super::{Arg, Args, hints};
use crate::errors::{Errors, closest, listed};
use crate::expr::shown;
use crate::kind::Kind;
use crate::number;
use crate::stack::LimitAttribute;

impl Args {
    /// Parses the tokens between the attribute's parentheses. `bindings` are the names of the function's arguments.
    pub(crate) fn parse(attribute: &LimitAttribute, bindings: &[Ident], errors: &mut Errors) -> Args {
        let args = Args {
            kind: attribute.kind,
            attribute: attribute.span,
            given: Vec::new(),
            incomplete: false,
            bindings: bindings.to_vec(),
        };
        let mut parser = ArgParser { args, errors, positional: 0, named: false };
        let parsed = Parser::parse2(|input: ParseStream<'_>| parser.parse(input), attribute.args.clone());
        if let Err(error) = parsed {
            parser.errors.push(error);
        }
        parser.args
    }
}

struct ArgParser<'e> {
    args: Args,
    errors: &'e mut Errors,
    /// How many positional arguments there have been.
    positional: usize,
    /// Whether there has been a named one.
    named: bool,
}

impl ArgParser<'_> {
    fn parse(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        while !input.is_empty() {
            self.argument(input)?;
            if !at_end(input) {
                self.args.incomplete = true;
                self.errors.at(input.span(), "expected `,`; arguments are written like `cost = 2`");
                skip_to_comma(input)?;
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    }

    fn argument(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let ahead = input.fork();
        let Ok(name) = ahead.call(Ident::parse_any) else { return self.positional(input) };
        if ahead.peek(Token![=]) && !ahead.peek(Token![==]) && !ahead.peek(Token![=>]) {
            input.call(Ident::parse_any)?;
            input.parse::<Token![=]>()?;
            self.assignment(&name, input)
        } else if ahead.peek(Token![:]) && !ahead.peek(Token![::]) {
            input.call(Ident::parse_any)?;
            self.colon(&name, input)
        } else if at_end(&ahead) && !self.is_value(&name) {
            input.call(Ident::parse_any)?;
            self.word(&name);
            Ok(())
        } else {
            self.positional(input)
        }
    }

    /// Returns whether a single word is a positional value: an argument of the function, a constant, or some other name that
    /// was hardly meant as an argument.
    fn is_value(&self, word: &Ident) -> bool {
        let text = word.unraw().to_string();
        let is_bound = self.args.binds(word) || text == text.to_uppercase();
        let is_argument =
            || closest(&text, &self.args.kind.arguments()).is_some() || suggestion(&text).is_some();
        !self.named && self.known(word).is_none() && (is_bound || !is_argument())
    }

    fn word(&mut self, name: &Ident) {
        self.named = true;
        let Some(known) = self.known(name) else { return self.unknown(name) };
        if !self.args.kind.flags().contains(&known) {
            self.needs_value(known, name);
        }
        self.keep(Arg { name: known, span: name.span(), value: None });
    }

    fn assignment(&mut self, name: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        self.named = true;
        let Some(known) = self.known(name) else {
            let value = tokens_to_comma(input)?;
            if hints::is_cost(&name.unraw().to_string()) && number::is_fraction(value) {
                self.args.incomplete = true;
                self.errors.at(name.span(), format!("unknown argument `{name}`; {}", number::SCALE));
            } else {
                self.unknown(name);
            }
            return Ok(());
        };
        let value = if self.args.kind.flags().contains(&known) {
            skip_to_comma(input)?;
            self.takes_no_value(known, name);
            None
        } else if at_end(input) {
            self.needs_value(known, name);
            None
        } else {
            self.expression(known, input)?
        };
        self.keep(Arg { name: known, span: name.span(), value });
        Ok(())
    }

    /// Reports `rate: 5.0`, which is neither an assignment nor an expression.
    fn colon(&mut self, name: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        self.named = true;
        self.args.incomplete = true;
        let colon = input.parse::<Token![:]>()?;
        let value = tokens_to_comma(input)?;
        match self.known(name) {
            None => self.unknown(name),
            Some(known) if self.args.kind.flags().contains(&known) => self.takes_no_value(known, name),
            Some(known) if value.is_empty() => self.needs_value(known, name),
            Some(known) => {
                self.errors.on(colon, format!("unexpected `:`; write `{known} = {}`", shown(value)));
            }
        }
        Ok(())
    }

    fn positional(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let [first, second, ..] = self.args.kind.own() else { return skip_to_comma(input) };
        let name = [*first, *second].get(self.positional).copied().filter(|_| !self.named);
        self.positional += 1;
        let Some(value) = self.expression(name.unwrap_or("…"), input)? else {
            self.args.incomplete = true;
            return Ok(());
        };
        match name {
            Some(name) => self.keep(Arg { name, span: value.span(), value: Some(value) }),
            None if self.args.incomplete => {}
            None => {
                let message = format!(
                    "only `{first}` and `{second}` may be positional, before all named arguments; write `… = {}`",
                    shown(&value)
                );
                self.errors.on(&value, message);
                self.args.incomplete = true;
            }
        }
        Ok(())
    }

    /// Parses a value. If it is incomplete, all of it is reported, not where the parser gave up.
    fn expression(&mut self, name: &str, input: ParseStream<'_>) -> syn::Result<Option<Expr>> {
        if input.fork().parse::<Expr>().is_ok() {
            return input.parse().map(Some);
        }
        let start = input.span();
        let tokens = tokens_to_comma(input)?;
        if tokens.is_empty() {
            self.errors.at(start, "expected an argument");
        } else if name == "key" {
            self.errors.on(
                &tokens,
                "expected an expression or a string; write `key = user.id` or `key = \"<user.id>\"`",
            );
        } else {
            self.errors.on(&tokens, format!("expected an expression; write `{name} = …`"));
        }
        Ok(None)
    }

    fn known(&self, name: &Ident) -> Option<&'static str> {
        let name = name.unraw();
        self.args.kind.arguments().into_iter().find(|known| name == known)
    }

    fn unknown(&mut self, name: &Ident) {
        self.args.incomplete = true;
        let kind = self.args.kind;
        let (written, known) = (name.unraw().to_string(), kind.arguments());
        let is_spelling = |known: &&str| hints::normalized(known) == hints::normalized(&written);
        let did_you_mean = |known: &str| format!("did you mean `{known}`?");
        let advice = known
            .iter()
            .copied()
            .find(is_spelling)
            .map(did_you_mean)
            .or_else(|| suggestion(&written))
            .or_else(|| closest(&written, &known).map(did_you_mean))
            .unwrap_or_else(|| format!("the arguments of `{}` are {}", kind.name(), listed(&known)));
        self.errors.at(name.span(), format!("unknown argument `{written}`; {advice}"));
    }

    fn needs_value(&mut self, known: &str, name: &Ident) {
        self.args.incomplete = true;
        self.errors.at(name.span(), format!("`{known}` needs a value; write `{known} = …`"));
    }

    fn takes_no_value(&mut self, known: &str, name: &Ident) {
        let message = format!("`{known}` takes no value; write `{known}`, or leave it out");
        self.errors.at(name.span(), message);
    }

    fn keep(&mut self, arg: Arg) {
        if self.args.has(arg.name) {
            self.errors.at(arg.span, format!("`{}` is specified more than once", arg.name));
        } else {
            self.args.given.push(arg);
        }
    }
}

/// Returns what to write instead of a word of another limiter or an argument of another attribute.
fn suggestion(written: &str) -> Option<String> {
    let owners = || Kind::ALL.into_iter().filter(|kind| kind.arguments().contains(&written)).map(Kind::name);
    hints::find(written).map(str::to_owned).or_else(|| {
        let owners: Vec<_> = owners().collect();
        (!owners.is_empty()).then(|| format!("it belongs to {}", listed(&owners)))
    })
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    tokens_to_comma(input).map(drop)
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
