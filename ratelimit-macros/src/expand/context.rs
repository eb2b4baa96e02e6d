//! What all parts of the expansion share: their input, and hygiene.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::format_ident;

use crate::function::{ArgumentNames, Function};
use crate::model::{Limit, Tag};

/// What the parts of the expansion are generated from.
pub(super) struct Expansion<'a> {
    pub(super) function: &'a Function,
    pub(super) limits: &'a [Limit],
    pub(super) tag: Tag,
    pub(super) arguments: &'a ArgumentNames,
    /// The path of the facade.
    pub(super) library: TokenStream,
    /// The import of the items that generated code names.
    pub(super) import: TokenStream,
}

/// Returns the tokens in braces with this span.
pub(super) fn braced(tokens: TokenStream, span: Span) -> Group {
    let mut group = Group::new(Delimiter::Brace, tokens);
    group.set_span(span);
    group
}

/// Returns a span in the user's code with the hygiene of the macro.
pub(super) fn hygienic(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}

/// Returns the name of a local variable. The prefix avoids constants and unit structs in scope, which no `let` can shadow.
pub(super) fn local(name: &str) -> Ident {
    format_ident!("ratelimits_{name}", span = Span::mixed_site())
}
