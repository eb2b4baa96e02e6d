//! The function under the attribute. Its body is not parsed.

mod arguments;
mod boxed_future;
mod output;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{
    Attribute, FnArg, Meta, Pat, PatIdent, ReturnType, Signature, Token, Type, Visibility, parse_quote,
};

pub(crate) use arguments::{ArgumentNames, Destructured, cfgs, plain};
use arguments::{bindings, borrows_mutably, bound_names, is_lint};
pub(crate) use boxed_future::AsyncBlock;
use output::infer_impl_trait;

/// A function, with or without a body.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) defaultness: Option<Ident>,
    pub(crate) signature: Signature,
    pub(crate) body: Option<Group>,
    /// The async block that is the body of a function that returns a future without being async itself.
    pub(crate) block: Option<AsyncBlock>,
    /// Whether something in it does not parse.
    pub(crate) is_malformed: bool,
    /// The tokens after the signature.
    rest: TokenStream,
    bindings: Vec<Ident>,
}

impl Function {
    pub(crate) fn parse(item: TokenStream) -> syn::Result<Function> {
        let parse = |input: ParseStream<'_>| {
            let attributes = input.call(Attribute::parse_outer)?;
            let visibility = input.parse()?;
            let is_default = input.fork().call(Ident::parse_any).is_ok_and(|word| word == "default");
            let defaultness = if is_default { Some(input.call(Ident::parse_any)?) } else { None };
            let signature: Signature = input.parse()?;
            let rest: TokenStream = input.parse()?;
            let body = body(rest.clone());
            let block = match (signature.asyncness, split(body.as_ref()).1) {
                (None, body) if mentions_async(body.clone()) => AsyncBlock::find(body, &signature),
                // Not parsed, so that errors in it are the compiler's.
                _ => Ok(None),
            };
            let is_malformed = block.is_err() || !begins_with_body(rest.clone());
            let block = block.unwrap_or_default();
            let mut bindings = bindings(&signature);
            for Destructured { pattern, .. } in block.iter().flat_map(AsyncBlock::destructured) {
                bound_names(pattern, &mut bindings);
            }
            Ok(Function {
                attributes,
                visibility,
                defaultness,
                signature,
                body,
                block,
                is_malformed,
                rest,
                bindings,
            })
        };
        parse.parse2(item)
    }

    /// Returns whether the function is async, or its body is an async block.
    pub(crate) fn is_async(&self) -> bool {
        self.signature.asyncness.is_some() || self.block.is_some()
    }

    /// Returns whether the return type is written as a future.
    pub(crate) fn returns_future(&self) -> bool {
        output::is_future(&self.signature.output)
    }

    /// Returns the attribute by which other languages can call the function.
    pub(crate) fn exported(&self) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| is_export(&attribute.meta))
    }

    /// Returns the name without `r#`.
    pub(crate) fn name(&self) -> String {
        self.signature.ident.unraw().to_string()
    }

    /// Returns all names that the arguments bind, `self` included.
    pub(crate) fn bindings(&self) -> &[Ident] {
        &self.bindings
    }

    pub(crate) fn receiver(&self) -> Option<Token![self]> {
        self.signature.receiver().map(|receiver| receiver.self_token)
    }

    /// Returns the inner attributes of the body, which apply to the function, and the rest of it.
    pub(crate) fn split_body(&self) -> (TokenStream, TokenStream) {
        split(self.body.as_ref())
    }

    /// Returns names for all arguments. In the signature, an argument that is destructured gets a name instead.
    pub(crate) fn name_arguments(&mut self) -> ArgumentNames {
        let mut named = ArgumentNames::default();
        for argument in &mut self.signature.inputs {
            let FnArg::Typed(argument) = argument else { continue };
            if let Some(PatIdent { ident, .. }) = plain(&argument.pat) {
                named.names.push(ident.clone());
                continue;
            }
            let name = format_ident!("ratelimits_argument_{}", named.names.len(), span = Span::mixed_site());
            let instead = PatIdent {
                attrs: Vec::new(),
                by_ref: None,
                mutability: borrows_mutably(&argument.pat).then(Default::default),
                ident: name.clone(),
                subpat: None,
            };
            let pattern = std::mem::replace(&mut *argument.pat, Pat::Ident(instead));
            named.names.push(name.clone());
            if !matches!(pattern, Pat::Wild(_)) {
                let attributes = argument.attrs.clone();
                argument.attrs.retain(|attribute| !is_lint(attribute));
                named.destructured.push(Destructured { name, pattern, cfgs: cfgs(&attributes), attributes });
            }
        }
        named
    }

    /// Returns the destructured arguments: these, and those that `#[async_trait]` destructures in its block.
    pub(crate) fn destructured<'a>(
        &'a self,
        named: &'a ArgumentNames,
    ) -> impl Iterator<Item = &'a Destructured> {
        named.destructured.iter().chain(self.block.iter().flat_map(AsyncBlock::destructured))
    }

    /// Returns statements that move the mutable arguments into the async block or closure that holds the body.
    pub(crate) fn move_mutable(&mut self) -> TokenStream {
        let mut moves = TokenStream::new();
        for argument in &mut self.signature.inputs {
            if let FnArg::Typed(argument) = argument
                && let Some(PatIdent { mutability: Some(_), ident, .. }) = plain(&argument.pat)
            {
                let (attributes, pattern) = (&argument.attrs, &argument.pat);
                moves.extend(quote!(#(#attributes)* let #pattern = #ident;));
                argument.attrs.push(parse_quote!(#[allow(unused_mut)]));
            }
        }
        moves
    }

    /// Returns the declared output: the return type, or the output of the returned future.
    pub(crate) fn declared_output(&self) -> Option<&Type> {
        if let Some(block) = &self.block {
            return Some(block.output());
        }
        match &self.signature.output {
            ReturnType::Type(_, output) => Some(output),
            ReturnType::Default => None,
        }
    }

    /// Returns the declared output with `_` for every `impl Trait`, which an expression cannot name.
    pub(crate) fn output(&self) -> Option<Type> {
        let mut output = self.declared_output()?.clone();
        infer_impl_trait(&mut output);
        Some(output)
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.attributes.iter().for_each(|attribute| attribute.to_tokens(tokens));
        self.visibility.to_tokens(tokens);
        self.defaultness.to_tokens(tokens);
        self.signature.to_tokens(tokens);
        self.rest.to_tokens(tokens);
    }
}

/// Returns the inner attributes of a body, and the rest of it.
pub(crate) fn split(body: Option<&Group>) -> (TokenStream, TokenStream) {
    let mut rest: Vec<TokenTree> = body.into_iter().flat_map(Group::stream).collect();
    let mut count = 0;
    while let [TokenTree::Punct(hash), TokenTree::Punct(bang), TokenTree::Group(_), ..] = &rest[count..]
        && hash.as_char() == '#'
        && bang.as_char() == '!'
    {
        count += 3;
    }
    let body = rest.split_off(count);
    (rest.into_iter().collect(), body.into_iter().collect())
}

/// Returns whether there may be an async block.
fn mentions_async(body: TokenStream) -> bool {
    body.into_iter().any(|token| match token {
        TokenTree::Ident(word) => word == "async",
        TokenTree::Group(group) => mentions_async(group.stream()),
        _ => false,
    })
}

fn is_export(meta: &Meta) -> bool {
    match meta {
        Meta::List(list) if list.path.is_ident("unsafe") => {
            list.parse_args::<Meta>().is_ok_and(|meta| is_export(&meta))
        }
        meta => meta.path().is_ident("no_mangle") || meta.path().is_ident("export_name"),
    }
}

/// Returns whether there is nothing between the signature and the body or semicolon.
fn begins_with_body(rest: TokenStream) -> bool {
    rest.into_iter().next().is_some_and(|token| match token {
        TokenTree::Group(group) => matches!(group.delimiter(), Delimiter::Brace | Delimiter::None),
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    })
}

/// Returns the braces, also inside a block that `macro_rules!` captured.
pub(crate) fn body(rest: TokenStream) -> Option<Group> {
    rest.into_iter().find_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => body(group.stream()),
        _ => None,
    })
}
