//! Why a call did not go ahead.

#[cfg(feature = "test-util")]
mod for_tests;
mod limited;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use tracing::level_filters::LevelFilter;

use crate::algorithm::known;
use crate::base::coop::count_refusal;
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::log::log;
use crate::decide::decision::{Decision, SinglePolicy};
use crate::key::missing_key::MissingKey;
use crate::policy::Algorithm;
use crate::store::decided_by::DecidedBy;
use crate::store::error::StoreError;
pub(crate) use limited::KeptKey;
pub use limited::Limited;

/// Why a call did not go ahead.
///
/// Only [`Error::Limited`] means that a policy refused the call. A store failure is never reported as limited.
///
/// ```
/// use ratelimits::{Error, count_limit};
///
/// #[count_limit(1, "1h")]
/// async fn report() -> Result<(), Error> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// report().await.unwrap();
/// match report().await {
///     Err(Error::Limited(limited)) => assert!(limited.decision().retry_after.is_some()),
///     Err(Error::Store(error)) => panic!("the store failed: {error}"),
///     other => panic!("{other:?}"),
/// }
/// # }
/// ```
// The tag is a word, so that the rest is copied as words: in the spare bits of a smaller field, it would cut it into odd pieces.
#[repr(u64)]
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The call exceeded a policy.
    Limited(Limited),
    /// The store failed or could not be reached.
    Store(StoreError),
    /// The key needs something that the call does not have.
    MissingKey(MissingKey),
    /// A policy, or a number in it, is invalid.
    Invalid(InvalidPolicy),
}

impl Error {
    /// The error of a call that its only policy refuses now. It is logged.
    #[inline(always)]
    pub(crate) fn limited_by(policy: SinglePolicy, source: DecidedBy, key: KeptKey) -> Self {
        let SinglePolicy { name, algorithm, retry_after, .. } = policy;
        log_limited(|| (name, algorithm, source, known(retry_after)));
        Error::Limited(Limited::of_one(policy, source, key))
    }

    /// The error of a call that is refused now. It is logged.
    pub(crate) fn limited(limited: Limited) -> Self {
        log_limited(|| (limited.policy(), limited.algorithm(), limited.source(), limited.retry_after()));
        Error::Limited(limited)
    }

    /// Whether somebody listens to refusals.
    #[inline(always)]
    pub(crate) fn logs_limited() -> bool {
        LevelFilter::current() >= LevelFilter::DEBUG
    }

    /// Logs that a call of this policy is refused, though not by the policy.
    #[cold]
    pub(crate) fn log_refusal(&self, policy: &str) {
        count_refusal();
        log!(DEBUG, policy, error = %self, "call was refused");
    }

    /// Returns how long until the same call would be admitted. `None` if it never would be, if that is unknown, because other calls have to
    /// end first or an operator has blocked the key, or if no policy refused it.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Limited(limited) => limited.retry_after(),
            _ => None,
        }
    }

    /// Whether no amount of waiting can help: the same call would be refused again, however late.
    ///
    /// True for an [`Error::Limited`] whose call costs more than the policy can ever admit, and for [`Error::MissingKey`] and [`Error::Invalid`], which only another call or another policy can avoid. Never true
    /// for an [`Error::Store`], even a permanent one: the store can be repaired in the meantime.
    ///
    /// In an HTTP response, a limited call is 413 if this is true, and otherwise 429, with `Retry-After` if that is known.
    ///
    /// ```
    /// # use ratelimits::{Registry, TokenBucket};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
    /// let rows = Registry::in_memory().limiter("rows", TokenBucket::per_second(1).burst(100))?;
    /// rows.try_acquire_n("tenant-7", 100).await?;
    /// let early = rows.try_acquire_n("tenant-7", 100).await.unwrap_err();
    /// assert!(early.is_limited() && !early.is_unsatisfiable() && early.retry_after().is_some());
    /// let too_many = rows.try_acquire_n("tenant-7", 101).await.unwrap_err();
    /// assert!(too_many.is_limited() && too_many.is_unsatisfiable() && too_many.retry_after().is_none());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn is_unsatisfiable(&self) -> bool {
        match self {
            Error::Limited(limited) => limited.is_unsatisfiable(),
            Error::MissingKey(_) | Error::Invalid(_) => true,
            Error::Store(_) => false,
        }
    }

    /// Whether a policy refused the call.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        matches!(self, Error::Limited(_))
    }
}

/// Counts and logs a refusal. Whether somebody listens is asked here, because a refusal has little else to do. So the `log` crate, as a stand-in
/// for a subscriber, does not get it.
#[inline(always)]
fn log_limited<'a>(refusal: impl FnOnce() -> (&'a str, Algorithm, DecidedBy, Option<Duration>)) {
    #[cold]
    fn log((policy, algorithm, source, retry_after): (&str, Algorithm, DecidedBy, Option<Duration>)) {
        let retry_after = retry_after.map(tracing::field::debug);
        log!(DEBUG, policy, algorithm = algorithm.name(), source = ?source, retry_after, "call was limited");
    }
    count_refusal();
    if Error::logs_limited() {
        log(refusal());
    }
}

/// Every result of a limited function has room for one.
const _: () = assert!(size_of::<Error>() <= 72);

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
    /// Converts a decision in which a policy refused to an error.
    pub(crate) fn into_result(self) -> Result<Decision, Error> {
        if self.admitted { Ok(self) } else { Err(self.into_error()) }
    }

    /// Converts a refusal to an error.
    pub(crate) fn into_error(self) -> Error {
        Error::limited(Limited::new(self))
    }
}
