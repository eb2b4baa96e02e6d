//! Why a call did not go ahead.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::decision::Decision;

/// Why a call did not go ahead.
///
/// Only [`Error::Limited`] says that a policy refused the call. A store that failed is never reported as a limit.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The policy said no.
    Limited(Limited),
    /// The store failed or could not be asked.
    Store(StoreError),
    /// The key asks for something the call does not have.
    MissingKey(MissingKey),
    /// The policy, or a number in it, makes no sense.
    Invalid(InvalidPolicy),
}

impl Error {
    /// How long until the same call would be admitted. `None` if it never would be, or if no policy refused it.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Limited(limited) => limited.decision().retry_after,
            _ => None,
        }
    }

    /// Whether a policy refused the call.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        matches!(self, Error::Limited(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Limited(limited) => limited.fmt(f),
            Error::Store(error) => error.fmt(f),
            Error::MissingKey(missing) => missing.fmt(f),
            Error::Invalid(invalid) => invalid.fmt(f),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Error::Store(error) => error.source(),
            _ => None,
        }
    }
}

/// A policy refused the call.
#[derive(Debug)]
pub struct Limited(Box<(Arc<str>, Decision)>);

impl Limited {
    pub(crate) fn new(policy: Arc<str>, decision: Decision) -> Self {
        Limited(Box::new((policy, decision)))
    }

    /// The name of the policy that refused.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.0.0
    }

    /// What it decided. Nothing was charged.
    #[must_use]
    pub fn decision(&self) -> &Decision {
        &self.0.1
    }
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limited by policy `{}`", self.policy())?;
        match self.decision().retry_after {
            Some(wait) => write!(f, "; the same call is admitted in {wait:?}"),
            None => write!(f, "; the call costs more than the policy ever admits"),
        }
    }
}

impl StdError for Limited {}

/// The store failed, refused, or could not be reached.
#[derive(Debug)]
pub struct StoreError(Box<Told>);

#[derive(Clone, Debug)]
struct Told {
    problem: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
    is_defect: bool,
}

impl StoreError {
    /// The store is in trouble, which passes: `on_store_error` says what becomes of the call.
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        StoreError(Box::new(Told { problem: problem.into(), source: None, is_defect: false }))
    }

    /// Something is wrong that a store in the best of health would not mend, such as another program's value under a key:
    /// the call is refused, whatever `on_store_error` says.
    pub(crate) fn defect(problem: impl Into<String>) -> Self {
        StoreError(Box::new(Told { problem: problem.into(), source: None, is_defect: true }))
    }

    #[cfg(feature = "redis")]
    pub(crate) fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// The same error for another decision of the same call.
    #[cfg(feature = "redis")]
    pub(crate) fn again(&self) -> Self {
        StoreError(self.0.clone())
    }

    #[cfg_attr(
        not(feature = "redis"),
        expect(dead_code, reason = "a store in this process is never in trouble")
    )]
    pub(crate) fn is_defect(&self) -> bool {
        self.0.is_defect
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.problem)
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// The key asks for something that the call does not have. Such a call is refused: it never shares an "unknown" bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// The client's address, which no surrounding [`RequestContext`](crate::RequestContext) has.
    Ip,
    /// The user, whom no surrounding [`RequestContext`](crate::RequestContext) has.
    User,
    /// A part of the key, which is `None`.
    Part,
}

impl fmt::Display for MissingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MissingKey::Ip => {
                "no client address to count by; run the call inside `RequestContext::new().with_ip(address).scope(…)`"
            }
            MissingKey::User => {
                "no user to count by; run the call inside `RequestContext::new().with_user(user).scope(…)`"
            }
            MissingKey::Part => "a part of the key is `None`",
        })
    }
}

impl StdError for MissingKey {}

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

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Error::Store(error)
    }
}

impl From<MissingKey> for Error {
    fn from(error: MissingKey) -> Self {
        Error::MissingKey(error)
    }
}

impl From<InvalidPolicy> for Error {
    fn from(error: InvalidPolicy) -> Self {
        Error::Invalid(error)
    }
}
