//! A store that failed.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

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
