//! The amount of work that random and endurance tests do.

use std::env::VarError;

/// Returns `short`, or `long` if `RATELIMITS_TEST_BUDGET=long`.
pub(crate) fn budget(short: u64, long: u64) -> u64 {
    match std::env::var("RATELIMITS_TEST_BUDGET").as_deref() {
        Err(VarError::NotPresent) => short,
        Ok("long") => long,
        other => panic!("RATELIMITS_TEST_BUDGET is {other:?}; set it to \"long\" or unset it"),
    }
}
