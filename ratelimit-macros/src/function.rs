//! The function under the attribute. Its body is not parsed.

mod boxed_future;
mod output;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, FnArg, Pat, PatIdent, ReturnType, Signature, Token, Type, Visibility, parse_quote};

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
    /// The tokens after the signature.
    rest: TokenStream,
    bindings: Vec<Ident>,
}

/// An argument that is destructured by a pattern, with the name that it has instead.
pub(crate) struct Destructured {
    pub(crate) name: Ident,
    pub(crate) pattern: Pat,
    /// The `#[cfg]` of the argument.
    pub(crate) cfgs: Vec<Attribute>,
    /// All attributes of the argument. Lints apply to the pattern.
    pub(crate) attributes: Vec<Attribute>,
}

/// The names of a function's arguments.
#[derive(Default)]
pub(crate) struct ArgumentNames {
    /// The names under which the arguments can be passed on.
    pub(crate) names: Vec<Ident>,
    /// Those that stand for a pattern.
    pub(crate) destructured: Vec<Destructured>,
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
            // Other bodies are not parsed, so that errors in them are the compiler's.
            let is_async = signature.asyncness.is_some();
            let block = if is_async { None } else { AsyncBlock::find(split(body.as_ref()).1, &signature) };
            let mut bindings = bindings(&signature);
            for Destructured { pattern, .. } in block.iter().flat_map(AsyncBlock::destructured) {
                bound_names(pattern, &mut bindings);
            }
            Ok(Function { attributes, visibility, defaultness, signature, body, block, rest, bindings })
        };
        parse.parse2(item)
    }

    /// Returns whether the function is async, or its body is an async block.
    pub(crate) fn is_async(&self) -> bool {
        self.signature.asyncness.is_some() || self.block.is_some()
    }

    /// Returns whether the return type is written as a future.
    pub(crate) fn returns_future(&self) -> bool {
        output::of_future(&self.signature.output).is_some()
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

    /// Returns statements that move the mutable arguments into the async block that holds the body.
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

fn split(body: Option<&Group>) -> (TokenStream, TokenStream) {
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

/// Returns the braces, also inside a block that `macro_rules!` captured.
fn body(rest: TokenStream) -> Option<Group> {
    rest.into_iter().find_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => body(group.stream()),
        _ => None,
    })
}

fn bindings(signature: &Signature) -> Vec<Ident> {
    let mut found = Vec::new();
    for argument in &signature.inputs {
        match argument {
            FnArg::Receiver(receiver) => found.push(Ident::new("self", receiver.self_token.span)),
            FnArg::Typed(argument) => bound_names(&argument.pat, &mut found),
        }
    }
    found
}

/// Adds the names that the pattern binds.
fn bound_names(pattern: &Pat, found: &mut Vec<Ident>) {
    visit(&mut pattern.clone(), &mut |pattern| {
        if let Pat::Ident(binding) = pattern {
            found.push(binding.ident.clone());
        }
    });
}

/// Returns whether the pattern contains `ref mut`.
fn borrows_mutably(pattern: &Pat) -> bool {
    let mut found = false;
    visit(&mut pattern.clone(), &mut |pattern| {
        found |= matches!(pattern, Pat::Ident(PatIdent { by_ref: Some(_), mutability: Some(_), .. }));
    });
    found
}

/// Returns the pattern if it is just a name.
pub(crate) fn plain(pattern: &Pat) -> Option<&PatIdent> {
    match pattern {
        Pat::Ident(name @ PatIdent { by_ref: None, subpat: None, .. }) => Some(name),
        _ => None,
    }
}

/// Returns the `#[cfg]` attributes.
pub(crate) fn cfgs(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
}

fn is_lint(attribute: &Attribute) -> bool {
    ["allow", "expect", "warn", "deny", "forbid"].iter().any(|level| attribute.path().is_ident(level))
}

impl Destructured {
    /// Returns the names that the pattern binds.
    pub(crate) fn bindings(&self) -> Vec<Ident> {
        let mut found = Vec::new();
        bound_names(&self.pattern, &mut found);
        found
    }

    /// Returns the pattern that binds the same names to references into the borrowed argument.
    pub(crate) fn borrowed(&self) -> Pat {
        let mut pattern = self.pattern.clone();
        visit(&mut pattern, &mut |pattern| match pattern {
            Pat::Reference(reference) => *pattern = (*reference.pat).clone(),
            Pat::Ident(binding) => {
                binding.by_ref = None;
                binding.mutability = None;
            }
            _ => {}
        });
        pattern
    }
}

/// Visits a pattern and the patterns in it, outer ones first.
fn visit(pattern: &mut Pat, visitor: &mut impl FnMut(&mut Pat)) {
    visitor(pattern);
    match pattern {
        Pat::Ident(PatIdent { subpat: Some((_, inner)), .. }) => visit(inner, visitor),
        Pat::Or(or) => or.cases.iter_mut().for_each(|case| visit(case, visitor)),
        Pat::Paren(paren) => visit(&mut paren.pat, visitor),
        Pat::Reference(reference) => visit(&mut reference.pat, visitor),
        Pat::Slice(slice) => slice.elems.iter_mut().for_each(|element| visit(element, visitor)),
        Pat::Struct(fields) => fields.fields.iter_mut().for_each(|field| visit(&mut field.pat, visitor)),
        Pat::Tuple(tuple) => tuple.elems.iter_mut().for_each(|element| visit(element, visitor)),
        Pat::TupleStruct(tuple) => tuple.elems.iter_mut().for_each(|element| visit(element, visitor)),
        Pat::Type(typed) => visit(&mut typed.pat, visitor),
        _ => {}
    }
}
