//! An invalid source of client addresses.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

/// The settings of a [`ClientIp`](crate::ClientIp) are invalid.
///
/// ```
/// let invalid = ratelimits::ClientIp::header("x-forwarded-for", ["10.0.0.0/40"]).unwrap_err();
/// assert_eq!(
///     invalid.to_string(),
///     "invalid source of client addresses: `10.0.0.0/40` is not a network; write it like `10.0.0.0/8` or `2001:db8::/32`",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidClientIp {
    problem: Cow<'static, str>,
}

impl InvalidClientIp {
    pub(crate) fn new(problem: impl Into<Cow<'static, str>>) -> Self {
        InvalidClientIp { problem: problem.into() }
    }
}

impl fmt::Display for InvalidClientIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid source of client addresses: {}", self.problem)
    }
}

impl StdError for InvalidClientIp {}
