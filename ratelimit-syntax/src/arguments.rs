//! Tokens to arguments: which were given, with which value, where.

mod parser;
mod problem;

use std::fmt;

use proc_macro2::Span;
use syn::Expr;

pub use problem::{Problem, ProblemKind};

/// The arguments of one attribute in source order, each at most once, all of them known.
#[derive(Debug, Default)]
pub struct Arguments {
    given: Vec<Argument>,
    is_incomplete: bool,
}

/// An argument that was given.
pub struct Argument {
    /// The argument.
    pub name: &'static str,
    /// The span of the argument's name, or of its value if it is positional.
    pub span: Span,
    /// The value, unless the argument is a flag or its value is invalid.
    pub value: Option<Expr>,
}

impl Arguments {
    /// Returns the argument of this name, even with an invalid value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Argument> {
        self.given.iter().find(|argument| argument.name == name)
    }

    /// Returns whether to report the argument as missing: if some argument was not understood, it may be this one.
    #[must_use]
    pub fn is_missing(&self, name: &str) -> bool {
        self.get(name).is_none() && !self.is_incomplete
    }

    /// Returns the arguments.
    pub fn iter(&self) -> impl Iterator<Item = &Argument> {
        self.given.iter()
    }
}

impl fmt::Debug for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Argument").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
