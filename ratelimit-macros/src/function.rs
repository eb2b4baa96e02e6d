//! The function under the attribute. Its body stays the tokens it is.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::format_ident;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{
    Attribute, FnArg, GenericArgument, Pat, PatIdent, PathArguments, ReturnType, Signature, Token, Type,
    Visibility,
};

/// A function, with or without a body.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) defaultness: Option<Ident>,
    pub(crate) signature: Signature,
    pub(crate) body: Option<Group>,
    bindings: Vec<Ident>,
}

/// A pattern among the arguments that got a name, so that the whole argument can be passed on.
pub(crate) struct Renamed {
    pub(crate) name: Ident,
    pub(crate) pattern: Pat,
}

impl Function {
    pub(crate) fn parse(item: TokenStream) -> syn::Result<Function> {
        let parse = |input: ParseStream<'_>| {
            let attributes = input.call(Attribute::parse_outer)?;
            let visibility = input.parse()?;
            let is_default = input.fork().call(Ident::parse_any).is_ok_and(|word| word == "default");
            let defaultness = if is_default { Some(input.call(Ident::parse_any)?) } else { None };
            let signature: Signature = input.parse()?;
            let body = body(input.parse()?);
            let bindings = bindings(&signature);
            Ok(Function { attributes, visibility, defaultness, signature, body, bindings })
        };
        parse.parse2(item)
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

    /// Takes the inner attributes off the start of the body: they hold for the function and so go to its outer brace.
    pub(crate) fn split_body(&self) -> (TokenStream, TokenStream) {
        let mut rest: Vec<TokenTree> = self.body.iter().flat_map(Group::stream).collect();
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

    /// The arguments as they can be passed on. An argument that is taken apart gets a name in the signature first.
    pub(crate) fn name_arguments(&mut self) -> (Vec<Ident>, Vec<Renamed>) {
        let mut names = Vec::new();
        let mut renamed = Vec::new();
        for argument in &mut self.signature.inputs {
            let FnArg::Typed(argument) = argument else { continue };
            if let Pat::Ident(PatIdent { by_ref: None, subpat: None, ident, .. }) = &*argument.pat {
                names.push(ident.clone());
                continue;
            }
            let name = format_ident!("argument_{}", names.len(), span = Span::mixed_site());
            let named = PatIdent {
                attrs: Vec::new(),
                by_ref: None,
                mutability: None,
                ident: name.clone(),
                subpat: None,
            };
            let pattern = std::mem::replace(&mut *argument.pat, Pat::Ident(named));
            names.push(name.clone());
            if !matches!(pattern, Pat::Wild(_)) {
                renamed.push(Renamed { name, pattern });
            }
        }
        (names, renamed)
    }

    /// The return type with `_` for every `impl Trait`, which an expression cannot name.
    pub(crate) fn output(&self) -> Option<Type> {
        let ReturnType::Type(_, output) = &self.signature.output else { return None };
        let mut output = (**output).clone();
        infer_impl_trait(&mut output);
        Some(output)
    }
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
    let mut names = Vec::new();
    for argument in &signature.inputs {
        match argument {
            FnArg::Receiver(receiver) => names.push(Ident::new("self", receiver.self_token.span)),
            FnArg::Typed(argument) => visit(&mut (*argument.pat).clone(), &mut |pattern| {
                if let Pat::Ident(binding) = pattern {
                    names.push(binding.ident.clone());
                }
            }),
        }
    }
    names
}

impl Renamed {
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

fn infer_impl_trait(ty: &mut Type) {
    match ty {
        Type::ImplTrait(_) => {
            *ty = Type::Infer(syn::TypeInfer { attrs: Vec::new(), underscore_token: Default::default() })
        }
        Type::Array(array) => infer_impl_trait(&mut array.elem),
        Type::Group(group) => infer_impl_trait(&mut group.elem),
        Type::Paren(paren) => infer_impl_trait(&mut paren.elem),
        Type::Ptr(pointer) => infer_impl_trait(&mut pointer.elem),
        Type::Reference(reference) => infer_impl_trait(&mut reference.elem),
        Type::Slice(slice) => infer_impl_trait(&mut slice.elem),
        Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(infer_impl_trait),
        Type::Path(path) => {
            for segment in &mut path.path.segments {
                let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else { continue };
                for argument in &mut arguments.args {
                    match argument {
                        GenericArgument::Type(ty) => infer_impl_trait(ty),
                        GenericArgument::AssocType(associated) => infer_impl_trait(&mut associated.ty),
                        _ => {}
                    }
                }
            }
        }
        _ => {}
    }
}
