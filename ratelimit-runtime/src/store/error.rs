//! Errors of the store.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::base::lazy_box::LazyBox;
use crate::base::timer::NoTimers;

/// How late tokio's timers may be, which have a resolution of a millisecond, in a process that is not overloaded.
const LATE: Duration = Duration::from_millis(20);

/// The store failed, refused, or could not be reached.
///
/// An error is transient or permanent. A transient error is an outage, to which
/// [`OnStoreError`](crate::OnStoreError) applies; it reaches the caller only where that is
/// [`Deny`](crate::OnStoreError::Deny) or cannot be followed. A permanent error, such as another program's value under a
/// key, always reaches the caller. [`is_transient`](Self::is_transient) tells which one it is.
///
/// ```
/// let error = ratelimits::Registry::connect_lazy("redis://127.0.0.1:no-port").unwrap_err();
/// let ratelimits::Error::Store(error) = error else { panic!("{error}") };
/// assert!(!error.is_transient());
/// ```
// The box is never empty. It is lazy for how it is dropped: so what a caller ignores of a limiter's decision costs nothing.
pub struct StoreError(LazyBox<Inner>);

#[derive(Clone)]
struct Inner {
    message: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
    permanent: bool,
}

impl StoreError {
    /// An outage: `on_store_error` applies.
    pub(crate) fn transient(message: impl Into<String>) -> Self {
        StoreError::new(message.into(), false)
    }

    /// An outage: the call was not sent in time.
    #[cfg(feature = "redis")]
    pub(crate) fn not_sent() -> Self {
        StoreError::transient(
            "the call was not sent before the deadline: this process is overloaded, or its threads are blocked",
        )
    }

    /// An outage: this server did not reply in time. A process that notices late may be at fault itself.
    pub(crate) fn deadline_exceeded(server: &dyn fmt::Display, deadline: Instant) -> Self {
        let problem = format!("{server} did not respond before the deadline");
        match deadline.elapsed() {
            late if late < LATE => StoreError::transient(problem),
            late => StoreError::transient(format!(
                "{problem}, {} ms before this process noticed: it is overloaded, or its threads are blocked",
                late.as_millis()
            )),
        }
    }

    /// An error that a healthy store would return as well: the call fails, whatever `on_store_error` says.
    pub(crate) fn permanent(message: impl Into<String>) -> Self {
        StoreError::new(message.into(), true)
    }

    /// Adds the underlying error.
    #[cfg(feature = "redis")]
    pub(crate) fn caused_by(self, source: impl StdError + Send + Sync + 'static) -> Self {
        StoreError(LazyBox::of(Inner { source: Some(Arc::new(source)), ..self.inner().clone() }))
    }

    /// Puts what the error is about before its message.
    pub(crate) fn with_subject(self, subject: &str) -> Self {
        let message = format!("{subject}: {self}");
        StoreError(LazyBox::of(Inner { message, ..self.inner().clone() }))
    }

    /// Whether this is an outage, which ends by itself: no connection, no reply in time, a server that is loading or out of memory.
    /// The same call may succeed later. Otherwise somebody has to change something first.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        !self.is_permanent()
    }

    pub(crate) fn is_permanent(&self) -> bool {
        self.inner().permanent
    }

    /// An error of one line.
    fn new(mut message: String, permanent: bool) -> Self {
        // Some errors of the Redis client have several.
        if message.contains(['\n', '\r']) {
            message =
                message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        }
        StoreError(LazyBox::of(Inner { message, source: None, permanent }))
    }

    fn inner(&self) -> &Inner {
        self.0.get().expect("an error is made with its content")
    }
}

impl From<NoTimers> for StoreError {
    fn from(NoTimers: NoTimers) -> Self {
        StoreError::permanent(
            "a call has to wait, but its tokio runtime has shut down, or has no timers; build it with `enable_time`",
        )
    }
}

impl Clone for StoreError {
    fn clone(&self) -> Self {
        StoreError(LazyBox::of(self.inner().clone()))
    }
}

/// What `main` prints of an error that it returns, so a text for people: with the underlying error only if that says more.
impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { message, source, .. } = self.inner();
        let source = source.as_ref().map(ToString::to_string);
        let source = source.filter(|source| !message.contains(source));
        let mut error = f.debug_tuple("StoreError");
        error.field(message);
        source.iter().for_each(|source| _ = error.field(source));
        error.finish()
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner().message)
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner().source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line() {
        let error = StoreError::transient("could not connect: \r\n  no route\nto host\n");
        assert_eq!(error.to_string(), "could not connect: no route to host");
    }

    #[cfg(feature = "redis")]
    #[test]
    fn main_prints_a_text_for_people() {
        let debug = |message: &str| {
            let error = StoreError::transient(message).caused_by(std::io::Error::other("refused"));
            format!("{:?}", crate::Error::from(error))
        };
        assert_eq!(debug("could not connect: refused"), r#"Store(StoreError("could not connect: refused"))"#);
        assert_eq!(debug("invalid reply"), r#"Store(StoreError("invalid reply", "refused"))"#);
    }

    #[test]
    fn late_timers_tell_an_overloaded_process() {
        let error = |late| {
            StoreError::deadline_exceeded(&"Redis", Instant::now() - Duration::from_millis(late)).to_string()
        };
        assert_eq!(error(1), "Redis did not respond before the deadline");
        assert!(error(50).contains("overloaded"), "{}", error(50));
    }
}
