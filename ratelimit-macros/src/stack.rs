//! Several attributes on one function become one decision.
//!
//! The compiler expands the first attribute first, and shows it those that follow. An attribute that sees another of ours
//! behind it steps there, as a `#[__limit]` that carries its arguments; the last one finds all of them and weaves once. So
//! the compiler resolves every attribute itself, attributes of others keep their places, and one under `cfg_attr` may come or
//! not. What is not seen is an attribute that is imported under another name: that is a decision of its own.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token, parse_quote};

use crate::function::Function;
use crate::kind::Kind;

/// The attribute that carries another behind its last sibling.
pub(crate) const CARRIER: &str = "__limit";

/// One of our attributes on a function.
pub(crate) struct Limit {
    pub(crate) kind: Kind,
    /// Where it is written.
    pub(crate) place: Span,
    pub(crate) args: TokenStream,
}

impl Limit {
    /// An attribute that the compiler has found where it is written.
    pub(crate) fn written(kind: Kind, args: TokenStream) -> Limit {
        Limit { kind, place: Span::call_site(), args }
    }

    /// An attribute that was carried: `rate_limit(…)`.
    pub(crate) fn carried(tokens: TokenStream) -> Option<Limit> {
        let parse = |input: ParseStream<'_>| Ok((input.parse::<Ident>()?, input.parse::<Group>()?));
        let (name, args) = parse.parse2(tokens).ok()?;
        let kind = Kind::named(&name)?;
        Some(Limit { kind, place: name.span(), args: args.stream() })
    }

    fn carrier(&self, library: &TokenStream) -> Attribute {
        let name = Ident::new(self.kind.name(), self.place);
        let carrier = Ident::new(CARRIER, Span::call_site());
        let args = Group::new(Delimiter::Parenthesis, self.args.clone());
        parse_quote!(#[#library::__private::#carrier(#name #args)])
    }
}

/// The last of the siblings that are still to come.
pub(crate) fn last_sibling(function: &Function) -> Option<usize> {
    function.attributes.iter().rposition(|attribute| is_sibling(&attribute.meta))
}

/// Puts the attribute behind that sibling, and behind those that have stepped there before it.
pub(crate) fn step_back(limit: &Limit, last: usize, library: &TokenStream, function: &mut Function) {
    let carried =
        function.attributes[last + 1..].iter().take_while(|attribute| is_carrier(attribute)).count();
    let place = last + 1 + carried;
    function.attributes.insert(place, limit.carrier(library));
}

/// Takes the attributes that were carried here off the function.
pub(crate) fn collect(function: &mut Function) -> Vec<Limit> {
    let mut limits = Vec::new();
    function.attributes.retain(|attribute| {
        let limit = match &attribute.meta {
            Meta::List(list) if is_carrier(attribute) => Limit::carried(list.tokens.clone()),
            _ => None,
        };
        let keep = limit.is_none();
        limits.extend(limit);
        keep
    });
    limits
}

/// Whether it is one of ours, or may turn out to be one.
fn is_sibling(meta: &Meta) -> bool {
    let Some(last) = meta.path().segments.last() else { return false };
    if Kind::named(&last.ident).is_some() {
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
