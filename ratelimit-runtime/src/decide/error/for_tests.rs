//! Errors that no call returned, for tests of what is made of them.

use super::Error;
use crate::decide::decision::Decision;

#[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
impl Error {
    /// Creates the error of a call that was limited by this [decision](Decision::for_tests), for unit tests.
    ///
    /// # Panics
    ///
    /// If all policies admit the call.
    #[must_use]
    pub fn limited_for_tests(decision: Decision) -> Self {
        assert!(!decision.admitted, "the decision admits the call");
        decision.into_error()
    }
}
