//! Why a call did not go ahead.

pub(crate) mod invalid_policy;
pub(crate) mod missing_key;
#[cfg_attr(not(feature = "redis"), allow(dead_code))]
pub(crate) mod store;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::decision::Decision;
pub use invalid_policy::InvalidPolicy;
pub use missing_key::MissingKey;
pub use store::StoreError;

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

impl Decision {
    /// The decision, or if a policy refused the error that says so.
    pub(crate) fn into_result(self) -> Result<Decision, Error> {
        let reported = &self.policies()[self.reported()];
        if reported.admitted { Ok(self) } else { Err(self.into_error()) }
    }

    /// The error that says that the reported policy refused.
    pub(crate) fn into_error(self) -> Error {
        Error::Limited(Limited::new(Arc::clone(&self.policies()[self.reported()].policy), self))
    }
}
