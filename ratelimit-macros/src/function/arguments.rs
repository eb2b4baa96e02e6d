//! The arguments of a function, and the patterns that destructure them.

use proc_macro2::Ident;
use syn::{Attribute, FnArg, Pat, PatIdent, Signature};

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

/// Returns the names that the arguments bind, `self` included.
pub(super) fn bindings(signature: &Signature) -> Vec<Ident> {
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
pub(super) fn bound_names(pattern: &Pat, found: &mut Vec<Ident>) {
    visit(&mut pattern.clone(), &mut |pattern| {
        if let Pat::Ident(binding) = pattern {
            found.push(binding.ident.clone());
        }
    });
}

/// Returns whether the pattern contains `ref mut`.
pub(super) fn borrows_mutably(pattern: &Pat) -> bool {
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

pub(super) fn is_lint(attribute: &Attribute) -> bool {
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
