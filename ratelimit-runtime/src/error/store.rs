//! Errors of the store.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// The store failed, refused, or could not be reached.
///
/// An error is transient or permanent. A transient error is an outage, to which
/// [`OnStoreError`](crate::OnStoreError) applies; it reaches the caller only where that is
/// [`Deny`](crate::OnStoreError::Deny) or cannot be followed. A permanent error, such as another program's value under a
/// key, always reaches the caller.
///
/// ```
/// let error = ratelimits::Registry::connect_lazy("redis://127.0.0.1:no-port").unwrap_err();
/// assert!(matches!(error, ratelimits::Error::Store(_)));
/// ```
#[derive(Clone, Debug)]
pub struct StoreError(Arc<Inner>);

#[derive(Clone, Debug)]
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

    /// An error that a healthy store would return as well: the call fails, whatever `on_store_error` says.
    pub(crate) fn permanent(message: impl Into<String>) -> Self {
        StoreError::new(message.into(), true)
    }

    /// Adds the underlying error.
    #[cfg(feature = "redis")]
    pub(crate) fn caused_by(self, source: impl StdError + Send + Sync + 'static) -> Self {
        let inner = Arc::unwrap_or_clone(self.0);
        StoreError(Arc::new(Inner { source: Some(Arc::new(source)), ..inner }))
    }

    pub(crate) fn is_permanent(&self) -> bool {
        self.0.permanent
    }

    fn new(message: String, permanent: bool) -> Self {
        StoreError(Arc::new(Inner { message, source: None, permanent }))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
