//! The arguments of an attribute on a function: which were given, with which value, where. What values mean is for
//! [`model`](crate::model).

mod hints;
mod parsing;

use proc_macro2::{Ident, Span};
use ratelimit_syntax::expr::peel;
use ratelimit_syntax::{Arguments, AttributeKind};
use syn::Expr;

/// The arguments of one attribute.
pub(crate) struct Args {
    pub(crate) kind: AttributeKind,
    /// The attribute, where missing arguments are reported.
    pub(crate) attribute: Span,
    given: Arguments,
    /// The names that the function's arguments bind.
    bindings: Vec<Ident>,
}

impl Args {
    /// Returns the value of the argument.
    pub(crate) fn value(&self, name: &str) -> Option<&Expr> {
        self.given.get(name)?.value.as_ref()
    }

    /// Returns the span of the argument's name, or of its value if it is positional.
    pub(crate) fn span(&self, name: &str) -> Option<Span> {
        self.given.get(name).map(|argument| argument.span)
    }

    /// Returns the argument as a path.
    pub(crate) fn path(&self, name: &str) -> Option<&syn::Path> {
        match peel(self.value(name)?) {
            Expr::Path(path) => Some(&path.path),
            _ => None,
        }
    }

    /// Returns whether the argument was given, even with an invalid value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.given.get(name).is_some()
    }

    /// Returns whether to report the argument as missing.
    pub(crate) fn is_missing(&self, name: &str) -> bool {
        self.given.is_missing(name)
    }

    /// Returns whether the function has an argument of this name.
    pub(crate) fn binds(&self, name: &Ident) -> bool {
        self.bindings.contains(name)
    }
}
