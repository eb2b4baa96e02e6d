//! The series that stores record themselves.

/// How long a call of a script takes.
pub(crate) const CALL_TIME: &str = "ratelimits_store_seconds";
