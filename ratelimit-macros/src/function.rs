//! The function under the attribute. Its body stays the tokens it is.

mod block;
mod output;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, FnArg, Pat, PatIdent, ReturnType, Signature, Token, Type, Visibility, parse_quote};

pub(crate) use block::AsyncBlock;
use output::infer_impl_trait;

/// A function, with or without a body.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) defaultness: Option<Ident>,
    pub(crate) signature: Signature,
    pub(crate) body: Option<Group>,
    /// Where a function that is not async itself returns a future: the async block that is its body.
    pub(crate) block: Option<AsyncBlock>,
    /// What follows the signature, as it was written.
    rest: TokenStream,
    bindings: Vec<Ident>,
}

/// A pattern among the arguments, and the name of the whole argument.
pub(crate) struct Renamed {
    pub(crate) name: Ident,
    pub(crate) pattern: Pat,
    /// The `#[cfg]` of the argument.
    pub(crate) cfgs: Vec<Attribute>,
    /// All attributes of the argument: lints are about the pattern.
    pub(crate) attributes: Vec<Attribute>,
}

/// An argument as it can be passed on.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    /// The `#[cfg]` of the argument.
    pub(crate) cfgs: Vec<Attribute>,
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
            // Only there the body has to be understood: elsewhere half a line in it is no matter of the attribute's.
            let is_async = signature.asyncness.is_some();
            let block = if is_async { None } else { AsyncBlock::find(split(body.as_ref()).1, &signature) };
            let mut bindings = bindings(&signature);
            for Renamed { pattern, .. } in block.iter().flat_map(AsyncBlock::renamed) {
                names(pattern, &mut bindings);
            }
            Ok(Function { attributes, visibility, defaultness, signature, body, block, rest, bindings })
        };
        parse.parse2(item)
    }

    /// Whether there is an async body to stand in front of, or there would be if there was a body.
    pub(crate) fn is_async(&self) -> bool {
        self.signature.asyncness.is_some() || self.block.is_some()
    }

    /// Whether the return type is a future, as far as it is written.
    pub(crate) fn returns_future(&self) -> bool {
        output::of_future(&self.signature.output).is_some()
    }

    /// The name without `r#`.
    pub(crate) fn name(&self) -> String {
        self.signature.ident.unraw().to_string()
    }

    /// Every name that the arguments bind, `self` among them.
    pub(crate) fn bindings(&self) -> &[Ident] {
        &self.bindings
    }

    pub(crate) fn receiver(&self) -> Option<Token![self]> {
        self.signature.receiver().map(|receiver| receiver.self_token)
    }

    /// The inner attributes at the start of the body, and what follows them. They hold for the function.
    pub(crate) fn split_body(&self) -> (TokenStream, TokenStream) {
        split(self.body.as_ref())
    }

    /// The arguments as they can be passed on. An argument that is taken apart gets a name in the signature first.
    pub(crate) fn name_arguments(&mut self) -> (Vec<Argument>, Vec<Renamed>) {
        let mut names = Vec::new();
        let mut renamed = Vec::new();
        for argument in &mut self.signature.inputs {
            let FnArg::Typed(argument) = argument else { continue };
            let cfgs = cfgs(&argument.attrs);
            if let Some(PatIdent { ident, .. }) = plain(&argument.pat) {
                names.push(Argument { name: ident.clone(), cfgs });
                continue;
            }
            let name = format_ident!("ratelimits_argument_{}", names.len(), span = Span::mixed_site());
            let named = PatIdent {
                attrs: Vec::new(),
                by_ref: None,
                mutability: borrowed_mutably(&argument.pat).then(Default::default),
                ident: name.clone(),
                subpat: None,
            };
            let pattern = std::mem::replace(&mut *argument.pat, Pat::Ident(named));
            names.push(Argument { name: name.clone(), cfgs: cfgs.clone() });
            if !matches!(pattern, Pat::Wild(_)) {
                let attributes = argument.attrs.clone();
                argument.attrs.retain(|attribute| !is_lint(attribute));
                renamed.push(Renamed { name, pattern, cfgs, attributes });
            }
        }
        (names, renamed)
    }

    /// The arguments that are taken apart: these, and those that `#[async_trait]` takes apart in its block.
    pub(crate) fn taken_apart<'a>(&'a self, renamed: &'a [Renamed]) -> impl Iterator<Item = &'a Renamed> {
        renamed.iter().chain(self.block.iter().flat_map(AsyncBlock::renamed))
    }

    /// Moves the arguments that the body changes into variables of an async block that holds it, where assignments to them
    /// are what they were in the function.
    pub(crate) fn move_changing(&mut self) -> TokenStream {
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

    /// What a call comes to, as declared: the return type, or that of the returned future. None where none is written.
    pub(crate) fn declared_output(&self) -> Option<&Type> {
        if let Some(block) = &self.block {
            return Some(block.output());
        }
        match &self.signature.output {
            ReturnType::Type(_, output) => Some(output),
            ReturnType::Default => None,
        }
    }

    /// The same with `_` for every `impl Trait`, which an expression cannot name.
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

/// The braces, also where `macro_rules!` captured them as a block.
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
            FnArg::Typed(argument) => names(&argument.pat, &mut found),
        }
    }
    found
}

/// Adds the names that the pattern binds.
fn names(pattern: &Pat, found: &mut Vec<Ident>) {
    visit(&mut pattern.clone(), &mut |pattern| {
        if let Pat::Ident(binding) = pattern {
            found.push(binding.ident.clone());
        }
    });
}

/// Whether the pattern borrows from the argument with `ref mut`.
fn borrowed_mutably(pattern: &Pat) -> bool {
    let mut found = false;
    visit(&mut pattern.clone(), &mut |pattern| {
        found |= matches!(pattern, Pat::Ident(PatIdent { by_ref: Some(_), mutability: Some(_), .. }));
    });
    found
}

/// The pattern, if it only names the argument.
pub(crate) fn plain(pattern: &Pat) -> Option<&PatIdent> {
    match pattern {
        Pat::Ident(name @ PatIdent { by_ref: None, subpat: None, .. }) => Some(name),
        _ => None,
    }
}

/// The conditions of an argument.
pub(crate) fn cfgs(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
}

fn is_lint(attribute: &Attribute) -> bool {
    ["allow", "expect", "warn", "deny", "forbid"].iter().any(|level| attribute.path().is_ident(level))
}

impl Renamed {
    /// The names that the pattern binds.
    pub(crate) fn bindings(&self) -> Vec<Ident> {
        let mut found = Vec::new();
        names(&self.pattern, &mut found);
        found
    }

    /// The pattern that binds the same names to references into a borrowed argument.
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

/// Visits a pattern and the patterns in it, the outer ones first.
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
