//! Numbers that whoever runs the tests sets, to make them longer or to see a failure again.

use std::env::VarError;

/// The number in this variable. What is there and is none would otherwise pass for the usual one.
pub(crate) fn number(variable: &str) -> Option<u64> {
    match std::env::var(variable) {
        Ok(text) => Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number"))),
        Err(VarError::NotPresent) => None,
        Err(error) => panic!("{variable}: {error}"),
    }
}
