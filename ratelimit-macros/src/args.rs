//! Tokens to arguments: which were given, with what, where. What the values mean is for [`model`](crate::model).

mod advice;
mod foreign;
mod parsing;

pub(crate) use advice::closest_on_store_error;

use proc_macro2::{Ident, Span};
use syn::Expr;

use crate::expr::peel;
use crate::kind::Kind;

/// The arguments of one attribute, each at most once, all of them legal.
pub(crate) struct Args {
    pub(crate) kind: Kind,
    /// Where the attribute is written: what is missing from it is told there.
    pub(crate) place: Span,
    pub(self) given: Vec<Given>,
    /// Named by a message already: that they are missing is no news.
    suggested: Vec<&'static str>,
    /// Words of other limiters, with their values.
    foreign: Vec<(String, Expr)>,
    /// The names that the function's arguments bind.
    bindings: Vec<Ident>,
}

struct Given {
    name: &'static str,
    span: Span,
    value: Option<Expr>,
}

impl Args {
    /// The value of the argument, if it was given one.
    pub(crate) fn value(&self, name: &str) -> Option<&Expr> {
        self.given.iter().find(|given| given.name == name)?.value.as_ref()
    }

    /// Where the argument's name was written, or its value if it was given by position.
    pub(crate) fn span(&self, name: &str) -> Option<Span> {
        self.given.iter().find(|given| given.name == name).map(|given| given.span)
    }

    /// Whether an argument of the function has this name.
    pub(crate) fn binds(&self, name: &Ident) -> bool {
        self.bindings.contains(name)
    }

    /// The path that the argument is.
    pub(crate) fn path(&self, name: &str) -> Option<&syn::Path> {
        match peel(self.value(name)?) {
            Expr::Path(path) => Some(&path.path),
            _ => None,
        }
    }

    /// Whether the argument was given, if only by a mistaken value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.span(name).is_some()
    }

    /// Whether nothing was said of the argument, by the user or to the user.
    pub(crate) fn is_missing(&self, name: &str) -> bool {
        !self.has(name) && !self.suggested.contains(&name)
    }
}
