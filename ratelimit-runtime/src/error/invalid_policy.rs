//! A policy that makes no sense.

use std::error::Error as StdError;
use std::fmt;

/// A policy that makes no sense: which argument is wrong, and what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidPolicy {
    argument: &'static str,
    problem: &'static str,
}

impl InvalidPolicy {
    pub(crate) const fn new(argument: &'static str, problem: &'static str) -> Self {
        InvalidPolicy { argument, problem }
    }

    /// The same problem, of the argument as the caller named it.
    pub(crate) const fn of(self, argument: &'static str) -> Self {
        InvalidPolicy { argument, problem: self.problem }
    }

    /// The argument that is wrong, as the attribute calls it.
    #[must_use]
    pub const fn argument(&self) -> &'static str {
        self.argument
    }

    /// What is wrong with it, and what to write.
    #[must_use]
    pub const fn problem(&self) -> &'static str {
        self.problem
    }
}

impl fmt::Display for InvalidPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.argument, self.problem)
    }
}

impl StdError for InvalidPolicy {}
