//! An invalid policy.

use std::error::Error as StdError;
use std::fmt;

/// An invalid policy configuration: which argument is wrong, and what to write instead.
///
/// ```
/// use std::time::Duration;
/// use ratelimits::FixedWindow;
///
/// let invalid = FixedWindow::new(0, Duration::from_secs(60)).check().unwrap_err();
/// assert_eq!(invalid.argument(), "limit");
/// assert_eq!(invalid.to_string(), "`limit` is 0, which admits nothing; write at least 1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidPolicy {
    // Of types without a destructor, so that constants may match what `check` returns.
    argument: &'static str,
    problem: &'static str,
}

impl InvalidPolicy {
    /// Creates an error. The problem is a predicate, such as "is too long; …", to which the argument is the subject.
    pub(crate) const fn new(argument: &'static str, problem: &'static str) -> Self {
        InvalidPolicy { argument, problem }
    }

    /// Replaces the argument with the one that the caller wrote.
    pub(crate) const fn with_argument(self, argument: &'static str) -> Self {
        InvalidPolicy { argument, problem: self.problem }
    }

    /// Returns the name of the wrong argument, as the attributes call it.
    #[must_use]
    pub const fn argument(&self) -> &str {
        self.argument
    }

    /// Returns what is wrong with the argument, and what to write instead.
    #[must_use]
    pub const fn problem(&self) -> &str {
        self.problem
    }
}

impl fmt::Display for InvalidPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.argument, self.problem)
    }
}

impl StdError for InvalidPolicy {}
