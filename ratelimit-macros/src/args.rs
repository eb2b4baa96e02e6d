//! Tokens to arguments: which were given, with which value, where. What values mean is for [`model`](crate::model).

mod hints;
mod parsing;

use proc_macro2::{Ident, Span};
use syn::Expr;

use crate::expr::peel;
use crate::kind::Kind;

/// The arguments of one attribute, each at most once, all of them known.
pub(crate) struct Args {
    pub(crate) kind: Kind,
    /// The attribute, where missing arguments are reported.
    pub(crate) attribute: Span,
    given: Vec<Arg>,
    /// Whether some argument was not understood, which may be the one that is missing.
    incomplete: bool,
    /// The names that the function's arguments bind.
    bindings: Vec<Ident>,
}

struct Arg {
    name: &'static str,
    span: Span,
    value: Option<Expr>,
}

impl Args {
    /// Returns the value of the argument.
    pub(crate) fn value(&self, name: &str) -> Option<&Expr> {
        self.arg(name)?.value.as_ref()
    }

    /// Returns the span of the argument's name, or of its value if it is positional.
    pub(crate) fn span(&self, name: &str) -> Option<Span> {
        self.arg(name).map(|arg| arg.span)
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
        self.arg(name).is_some()
    }

    /// Returns whether to report the argument as missing.
    pub(crate) fn is_missing(&self, name: &str) -> bool {
        !self.has(name) && !self.incomplete
    }

    /// Returns whether the function has an argument of this name.
    pub(crate) fn binds(&self, name: &Ident) -> bool {
        self.bindings.contains(name)
    }

    fn arg(&self, name: &str) -> Option<&Arg> {
        self.given.iter().find(|arg| arg.name == name)
    }
}
