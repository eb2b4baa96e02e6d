//! Functions that do not parse. The compiler has reported a syntax error, next to which every other error would be noise.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;

use crate::function::{body, split};

/// Returns the function unchanged, except that its body cannot be compiled, or `None` if the item is no function.
///
/// A function with syntax that only the compiler knows must not lose its limit. The constant of a generic function is evaluated
/// after all checks, when code is generated, and so never after a syntax error.
pub(crate) fn unparsed(item: TokenStream, attribute: &str) -> Option<TokenStream> {
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    let is_named_function =
        |pair: &[TokenTree]| matches!(pair, [TokenTree::Ident(word), TokenTree::Ident(_)] if *word == "fn");
    let start = tokens.windows(2).position(is_named_function)?;
    let braces = |token: &TokenTree| body(token.clone().into());
    if tokens[..start].iter().any(|token| braces(token).is_some()) {
        return None;
    }
    // The last, because generic arguments may have braces, too.
    let (at, body) = (start..tokens.len()).rev().find_map(|at| Some((at, braces(&tokens[at])?)))?;
    let (inner_attributes, statements) = split(Some(&body));
    let message = format!("`{attribute}` cannot parse this function, which would not be limited");
    let guarded = quote! {
        #inner_attributes
        {
            #[inline(never)]
            fn unlimited<T>() {
                const { ::core::panic!(#message) }
            }
            unlimited::<()>();
        }
        #statements
    };
    let mut group = Group::new(Delimiter::Brace, guarded);
    group.set_span(body.span());
    tokens[at] = TokenTree::Group(group);
    Some(tokens.into_iter().collect())
}
