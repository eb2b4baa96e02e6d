//! The error for an invalid text of a policy.

use std::error::Error;
use std::fmt;

use ratelimit_runtime::InvalidPolicy;

/// What is wrong with the text of a policy, and what to write instead.
#[derive(Debug)]
pub(crate) struct InvalidText(String);

impl InvalidText {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        InvalidText(problem.into())
    }
}

impl From<InvalidPolicy> for InvalidText {
    fn from(invalid: InvalidPolicy) -> Self {
        InvalidText(invalid.to_string())
    }
}

impl fmt::Display for InvalidText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for InvalidText {}
