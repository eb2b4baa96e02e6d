//! Several attributes on one function become one decision.
//!
//! The compiler expands the first attribute first, and passes it those that follow. An attribute that sees a sibling re-emits
//! itself after the last one, as a `#[__limit]` that carries its arguments; the last one expands them all into one prologue.
//! So the compiler resolves every attribute itself, foreign attributes keep their order, and siblings may be under `cfg_attr`.
//! An attribute that is imported under another name is not recognized, and is decided separately. Its number is found in the
//! prologues of those that were expanded before it.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use ratelimit_syntax::AttributeKind;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token, parse_quote};

use crate::function::Function;

/// The attribute that carries a deferred one.
pub(crate) const CARRIER: &str = "__limit";

/// One of our attributes on a function.
pub(crate) struct LimitAttribute {
    pub(crate) kind: AttributeKind,
    /// Where it is written.
    pub(crate) span: Span,
    pub(crate) args: TokenStream,
}

impl LimitAttribute {
    /// Returns the attribute that the compiler is expanding.
    pub(crate) fn new(kind: AttributeKind, args: TokenStream) -> LimitAttribute {
        LimitAttribute { kind, span: Span::call_site(), args }
    }

    /// Parses a deferred attribute: `rate_limit(…)`.
    pub(crate) fn deferred(tokens: TokenStream) -> Option<LimitAttribute> {
        let parse = |input: ParseStream<'_>| Ok((input.parse::<Ident>()?, input.parse::<Group>()?));
        let (name, args) = parse.parse2(tokens).ok()?;
        let kind = AttributeKind::named(&name.to_string())?;
        Some(LimitAttribute { kind, span: name.span(), args: args.stream() })
    }

    fn carrier(&self, library: &TokenStream) -> Attribute {
        let name = Ident::new(self.kind.name(), self.span);
        let carrier = Ident::new(CARRIER, Span::call_site());
        let args = Group::new(Delimiter::Parenthesis, self.args.clone());
        parse_quote!(#[#library::__private::#carrier(#name #args)])
    }
}

/// Returns the index of the last sibling that is still to be expanded.
pub(crate) fn last_sibling(function: &Function) -> Option<usize> {
    function.attributes.iter().rposition(|attribute| is_sibling(&attribute.meta))
}

/// Re-emits the attribute after the sibling at this index, and after those that were deferred to it before.
pub(crate) fn defer(
    attribute: &LimitAttribute,
    sibling: usize,
    library: &TokenStream,
    function: &mut Function,
) {
    let start = sibling + 1;
    let deferred = function.attributes[start..].iter().take_while(|attribute| is_carrier(attribute)).count();
    function.attributes.insert(start + deferred, attribute.carrier(library));
}

/// Removes the deferred attributes from the function, and returns them.
pub(crate) fn take_deferred(function: &mut Function) -> Vec<LimitAttribute> {
    let mut taken = Vec::new();
    function.attributes.retain(|attribute| {
        let deferred = match &attribute.meta {
            Meta::List(list) if is_carrier(attribute) => LimitAttribute::deferred(list.tokens.clone()),
            _ => None,
        };
        let keep = deferred.is_none();
        taken.extend(deferred);
        keep
    });
    taken
}

/// Returns the highest number that a prologue in the body has, or 0. No attribute in the body itself has been expanded yet.
pub(crate) fn last_number(function: &Function) -> u32 {
    fn last(tokens: TokenStream) -> u32 {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let numbers = tokens.iter().enumerate().map(|(at, token)| match token {
            TokenTree::Group(group) => {
                let is_options =
                    at > 0 && matches!(&tokens[at - 1], TokenTree::Ident(name) if name == "SiteOptions");
                if is_options { number(group.stream()).unwrap_or(0) } else { last(group.stream()) }
            }
            _ => 0,
        });
        numbers.max().unwrap_or(0)
    }
    fn number(options: TokenStream) -> Option<u32> {
        let mut tokens = options.into_iter();
        tokens.find(|token| matches!(token, TokenTree::Ident(field) if field == "number"))?;
        tokens.nth(1)?.to_string().trim_end_matches("u32").parse().ok()
    }
    function.body.as_ref().map_or(0, |body| last(body.stream()))
}

/// Returns whether the attribute is one of ours, or a `cfg_attr` that may become one.
fn is_sibling(meta: &Meta) -> bool {
    let Some(last) = meta.path().segments.last() else { return false };
    if AttributeKind::named(&last.ident.to_string()).is_some() {
        return true;
    }
    let Meta::List(list) = meta else { return false };
    let conditional = list.path.is_ident("cfg_attr");
    conditional
        && Punctuated::<Meta, Token![,]>::parse_terminated
            .parse2(list.tokens.clone())
            .is_ok_and(|metas| metas.iter().skip(1).any(is_sibling))
}

fn is_carrier(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|last| last.ident == CARRIER)
}
